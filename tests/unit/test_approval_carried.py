"""Dangerous commands in variables, options and strings, which a program runs that finds them there."""

from __future__ import annotations

import pytest

from codex_py.tools.danger import find_danger
from codex_py.tools.known_safe import is_known_safe
from codex_py.tools.plain_script import plain_segments
from tests.support.work import within

DANGEROUS = r"""
GIT_PAGER='rm -rf x' git log
PAGER='rm -rf ~/x' man ls
GIT_SSH_COMMAND='rm -rf x' git fetch
LESSOPEN='|rm -rf %s' less a
LESSCLOSE='rm -rf x' less a
EDITOR='rm -rf x' git commit
VISUAL='rm -rf x' crontab -e
GIT_EDITOR='rm -rf x' git commit
GIT_ASKPASS='rm -rf x' git fetch
SSH_ASKPASS='rm -rf x' ssh h
BROWSER='rm -rf x' xdg-open a
export GIT_PAGER='rm -rf x'; git log
env GIT_PAGER='rm -rf x' git log
PROMPT_COMMAND='rm -rf x' bash -i
ENV='$(rm -rf x)' sh -i
git -c core.pager='rm -rf x' log
git -c core.editor='rm -rf x' commit
git -c core.sshCommand='rm -rf x' fetch
git -c alias.x='!rm -rf x' x
git -c core.fsmonitor='rm -rf x' status
git -c diff.external='rm -rf x' diff
git -c credential.helper='!rm -rf x' fetch
git -c core.hooksPath=/tmp -c sequence.editor='rm -rf x' rebase -i
GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.pager GIT_CONFIG_VALUE_0='rm -rf x' git log
X='rm -rf x' git --config-env=core.pager=X log
git config core.pager 'rm -rf x'
git config --global alias.x '!rm -rf x'
GIT_CONFIG_PARAMETERS="'core.pager=rm -rf x'" git log
rg --pre 'rm -rf' x
rg --pre='rm -rf' x
rg --hostname-bin='rm -rf x' y
sort --compress-program='rm -rf x' a
tar cf a.tar b --checkpoint=1 --checkpoint-action=exec='rm -rf x'
tar --checkpoint-action='exec=rm -rf x' -cf a b
tar -I 'rm -rf x' -xf a
tar --use-compress-program='rm -rf x' -xf a
tar --to-command='rm -rf x' -xf a
tar --rsh-command='rm -rf x' -xf a:b
tar -F 'rm -rf x' -cf a b
man -P 'rm -rf x' ls
man --pager='rm -rf x' ls
man -H'rm -rf x' ls
awk 'BEGIN{system("rm -rf x")}'
awk 'BEGIN{print | "rm -rf x"}'
awk 'BEGIN{"rm -rf x" | getline}'
sed '1e rm -rf x' a
sed 's/a/rm -rf x/e' a
sed -n '$e rm -rf x' a
git grep -O'rm -rf x' foo
git grep --open-files-in-pager='rm -rf x' foo
git rebase -x 'rm -rf x' main
git rebase --exec='rm -rf x' main
git difftool --extcmd='rm -rf x'
git mergetool --tool-cmd 'rm -rf x'
git ls-remote 'ext::sh -c rm% -rf% x'
git clone 'ext::sh -c "rm -rf x"' y
git clone --upload-pack='rm -rf x' a b
git fetch --upload-pack 'rm -rf x'
git push --receive-pack='rm -rf x' o
git send-email --sendmail-cmd='rm -rf x'
git archive --remote=x --exec='rm -rf x'
git daemon --access-hook='rm -rf x'
rsync -e 'rm -rf x' a b:c
rsync --rsh='rm -rf x' a b
rsync --rsync-path='rm -rf x' a b:c
scp -S 'rm -rf x' a b:
ssh -o ProxyCommand='rm -rf x' h
ssh -oProxyCommand='rm -rf x' h
ssh -o 'LocalCommand rm -rf x' h
sftp -o ProxyCommand='rm -rf x' h
split --filter='rm -rf x' a
vim -c '!rm -rf x' a
vim '+!rm -rf x'
ex -c '!rm -rf x'
emacs --eval '(shell-command "rm -rf x")'
less '+!rm -rf x' a
more '+!rm -rf x'
gdb -ex '!rm -rf x'
gdb -ex 'shell rm -rf x'
lldb -o 'platform shell rm -rf x'
make -f - <<< 'all:; rm -rf x'
make SHELL='rm -rf x'
make --eval='$(shell rm -rf x)'
nc -e 'rm -rf x' h 1
nc -c 'rm -rf x' h 1
ncat --sh-exec 'rm -rf x' h
socat - EXEC:'rm -rf x'
socat - SYSTEM:'rm -rf x'
zip a b -T -TT 'rm -rf x'
dpkg --pre-invoke='rm -rf x' -i
apt-get -o DPkg::Pre-Invoke='rm -rf x' i
wget --use-askpass='rm -rf x' u
sqlite3 a '.shell rm -rf x'
psql -c '\! rm -rf x'
mysql -e '\! rm -rf x'
echo 'rm -rf x' | crontab -
PS4='$(rm -rf x)' bash -x a
complete -C 'rm -rf x' y
bind -x '"a":rm -rf x'
mapfile -C 'rm -rf x' a < b
source <(echo rm -rf x)
. /dev/stdin <<< 'rm -rf x'
perl -e 'unlink glob "*"'
python -c 'import shutil; shutil.rmtree("x")'
node -e 'fs.rmSync("x",{recursive:true,force:true})'
ruby -e 'FileUtils.rm_rf("x")'
php -r 'system("rm -rf x");'
lua -e 'os.execute("rm -rf x")'
capsh -- -c 'rm -rf x'
xterm -e 'rm -rf x'
npm exec -c 'rm -rf x'
npx -c 'rm -rf x'
yarn exec 'rm -rf x'
direnv exec . rm -rf x
nix-shell --run 'rm -rf x'
conda run rm -rf x
mise exec -- rm -rf x
op run -- rm -rf x
dotenv rm -rf x
ts-node -e 'x' ; rm -rf y
python3 -c 'import os; os.system("git reset --hard")'
python3 -c 'import subprocess; subprocess.run(["git", "clean", "-fd"])'
GIT_PAGER="rm -rf x" git log
git -c alias.x='reset --hard' x
git config alias.x 'reset --hard'
echo '0 * * * * rm -rf x' | crontab -
tar --use-compress='rm -rf x' -xf a
sh /dev/stdin <<< 'rm -rf x'
npm exec -- rimraf x
pnpm dlx rimraf x
npm config set script-shell 'rm -rf x'
nodemon --exec 'rm -rf x'
nodemon -x 'rm -rf x'
watchexec -- rm -rf x
watchexec 'rm -rf x'
concurrently 'rm -rf x' 'ls'
cargo watch -s 'rm -rf x'
lerna exec -- rm -rf x
nx exec -- rm -rf x
nix develop -c rm -rf x
nix shell a#b --command rm -rf x
ansible all -a 'rm -rf x'
vagrant ssh -c 'rm -rf x'
lxc exec c -- rm -rf x
nerdctl exec c rm -rf x
bwrap --bind / / rm -rf x
proot rm -rf x
flatpak-spawn --host rm -rf x
distrobox enter x -- rm -rf y
toolbox run rm -rf x
machinectl shell x /bin/rm -rf y
mosh h -- rm -rf x
gdb --args rm -rf x
caffeinate rm -rf x
arch -x86_64 rm -rf x
grm -rf x
gfind . -delete
ls | gxargs rm
gtimeout 5 rm -rf x
gtruncate -s 0 x
csh -c 'rm -rf x'
ash -c 'rm -rf x'
fd --exec=rm
fd -Hx rm
bat --pager='rm -rf x' a
bat --pager 'rm -rf x' a
delta --pager='rm -rf x'
LESS='+!rm -rf x' less a
LESS=+'!rm -rf x' git log
osascript -e 'do shell script "rm -rf x"'
Rscript -e 'unlink("x", recursive=TRUE)'
Rscript -e 'system("rm -rf x")'
julia -e 'rm("x", recursive=true)'
expect -c 'spawn rm -rf x'
guile -c '(system "rm -rf x")'
emacs --batch --eval '(delete-directory "x" t)'
vim -c 'call delete("x","rf")'
python3 -c "import os;[os.remove(f) for f in os.listdir('.')]"
ruby -e 'Dir.glob("*").each{|f| File.delete f}'
docker network prune -f
docker stack rm x
gh issue delete 3
gh secret delete x
gh api repos/x/y --method=DELETE
terraform apply --auto-approve
terraform state rm x
pulumi stack rm x
cdk destroy
sls remove
eksctl delete cluster x
doctl compute droplet delete x
etcdctl del --prefix ''
vault kv destroy x
gcloud storage rm -r gs://x
gsutil rsync -d a gs://b
bq rm -r -f x
aws sqs purge-queue --queue-url x
supabase db reset
systemctl kexec
loginctl poweroff
nix-collect-garbage -d
diskutil apfs deleteVolume x
""".strip().split("\n")
HARMLESS = r"""
grep -r rm\ -rf .
grep 'rm -rf' a
rg 'rm -rf x'
git log --grep='rm -rf'
git commit -m 'rm -rf removed'
echo 'rm -rf x'
PAGER=cat git log
GIT_PAGER=cat git log
EDITOR=true git rebase -i HEAD~1
git -c core.pager=cat log
git -c user.name='rm -f bob' commit -m x
sed 's/rm -rf x/y/' a
tar xf a -I zstd
ssh -o ProxyCommand='nc h 22' h
rsync -e 'ssh -p 2' a b:c
rsync --rsh=ssh a b:c
split --filter='gzip > $FILE' a
find . -exec grep -l 'rm -rf' {} +
sort --compress-program=gzip a
git rebase -x 'make test' main
make -j4
env A=1 pytest
FOO='rm -rf x' ./a
git grep 'rm -rf'
man rm
which rm
type rm
git -c core.pager='less -R' log
GIT_SSH_COMMAND='ssh -i key' git fetch
EDITOR=vim git commit
PS1='$ ' bash
git config core.pager delta
git push -u origin main
git rebase --exec 'make test' main
rg --pre pdftotext x
rg -e 'rm -rf' a
vim -c 'set nu' a
python3 -c 'print("rm -rf x")'
sed -n '/rm -rf/p' a
sed -e 's/rm/ls/' -e 's/x/y/' a
tar --checkpoint-action=dot -cf a b
awk '{print "rm -rf " $1}' a
npm exec eslint .
npm exec -- eslint .
nodemon --exec 'npm test'
nix develop -c make
gdb --args ./a -f x
LESS=-R git log
bat --pager='less -R' x
fd -Hx wc
fd --exec=wc
fd -e rm
gfind . -name x
gtimeout 5 ls
Rscript -e 'rm(x)'
crontab -l
make SHELL=/bin/bash
ssh host 'ls -l'
docker rm x
""".strip().split("\n")


def danger(script: str) -> str | None:
    return find_danger(script, "/work", {"HOME": "/home/me"})


@pytest.mark.parametrize("script", DANGEROUS)
def test_a_command_is_judged_wherever_a_program_finds_it(script: str) -> None:
    assert (danger(script) or "").startswith("it ")
    segments = plain_segments(script)
    assert segments is None or not all(map(is_known_safe, segments))


@pytest.mark.parametrize("script", HARMLESS)
def test_what_only_looks_like_one_is_harmless(script: str) -> None:
    assert danger(script) is None


def test_a_variable_that_git_is_told_to_read_a_setting_from_is_judged() -> None:
    assert danger("X='rm -rf y' make") is None
    assert danger("X='rm -rf y' git --config-env=core.pager=X log") is not None


@pytest.mark.parametrize(
    "script",
    [
        "git " + "-c core.pager='a b' " * 5_000,
        "A='x y' " * 5_000,
        "PAGER='x y' " * 5_000,
        "sed '" + "s/s/" * 2_000 + "'",
        "awk '" + '\\"' * 30_000 + "'",
        "python -c '" + "system(" * 20_000 + "'",
    ],
    ids=lambda script: script[:12],
)
def test_options_made_to_stall_do_not(script: str) -> None:
    within(4_000_000, lambda: danger(script))

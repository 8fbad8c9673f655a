"""What counts as a plain script, and which plain commands are known to only read."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

from codex_py.shell.known_safe import is_known_safe
from codex_py.shell.reading import read_command_line

SAFE = r"""
ls
ls -la src
cat a.txt
cat 'a b.txt' "c d.txt"
cat a.txt | head -5
cd src && ls
ls || true
ls; pwd
echo hello world
echo 'a;b|c$(d)' "x\.y"
echo a=b
grep -rn foo .
grep -E "a|b" a.txt
head -n 5 a.txt
tail -3 a.txt
wc -l a.txt
nl a.txt
seq 1 3
stat a.txt
tr a b
uname -a
id
whoami
which ls
rev a.txt
paste a.txt a.txt
cut -d: -f1 a.txt
expr 1 + 2
numfmt 1000
tac a.txt
uniq a.txt
uniq -c a.txt
base64 a.txt
base64 -d -w0 a.txt
base64 -w 0 a.txt
base64 --decode a.txt
sed -n 1p a.txt
sed -n 1,5p a.txt
sed -n 1,5p
cat a.txt | sed -n 2,3p
find .
find . -name '*.txt' -type f
find . -maxdepth 2 -not -path './x/*' -print0
find src -name a -o -name b
find . -newermt 2020-01-01
rg foo
rg -n foo src
rg -in --glob '*.py' foo
rg --files
rg -C3 -e foo -e bar .
rg -tpy foo
rg --context=3 foo
rg -- --pre
bash -lc 'ls | wc -l'
bash -c "cat a.txt"
sh -c 'ls && pwd'
""".strip().split("\n")

PLAIN_AND_UNKNOWN = r"""
rm a.txt
touch x
python x.py
git status
git log
git -c core.pager=x log
./cat a.txt
/bin/cat a.txt
../ls
bin/ls
env ls
sudo ls
time ls
xargs ls
tee x
sort -o x a.txt
awk 1 a.txt
sed -i s/a/b/ a.txt
sed 1p a.txt
sed -n 1w a.txt
sed -n '1e touch x' a.txt
sed -n p a.txt
sed -n 1,5p a.txt b.txt
sed -n 1p -i
sed -n 1p -fx
sed -n 1p --in-place
sed -ne 1p
uniq a.txt b.txt
uniq --output=x
uniq -c a.txt b.txt
tac
tac -
base64 -o x a.txt
base64 -ox a.txt
base64 --output=x a.txt
base64 --out x a.txt
find . -delete
find . -exec ls +
find . -execdir ls +
find . -ok ls +
find . -okdir ls +
find . -fprint x
find . -fprint0 x
find . -fprintf x y
find . -fls x
find . -name
find . -files0-from x
find . -unknown
rg --pre cat foo
rg --pre=cat foo
rg --pre-glob x foo
rg --hostname-bin x foo
rg --hostname-bin=x foo
rg -z foo
rg -nz foo
rg --search-zip foo
rg --unknown foo
rg -nK foo
rg -n --glob
rg --hyperlink-format x foo
ls && rm a
cat a | sh
cd .. ; make
bash x.sh
bash -c 'rm x'
bash -i -c ls
bash -c ls extra
zsh -ic ls
wget x
printf x
test -f x
export A=b
alias ls=rm
exec ls
eval ls
source x
. x
command ls
builtin cd
printenv
""".strip().split("\n")

NOT_PLAIN = [
    *r"""
ls > x
ls >> x
ls 2>&1
ls 2>/dev/null
cat < a.txt
cat << E
cat <<< x
ls &
ls & rm x
(ls)
{ ls; }
ls $(pwd)
ls `pwd`
ls $HOME
ls "$HOME"
ls ${HOME}
ls *.txt
ls a?c
ls [ab]
ls {a,b}
ls ~
ls ~/x
echo =ls
ls a\ b
\ls
A=b ls
A=b
! ls
ls |& cat
cat <(ls)
cat >(ls)
if true; then ls; fi
for i in 1; do ls; done
while true; do ls; done
case x in x) ls;; esac
f() { ls; }
[[ a ]]
((1))
ls # comment
echo $'a'
echo $"a"
echo "a`ls`"
echo "a\$b"
ls;;ls
; ls
&& ls
ls &&
ls |
ls 'a
ls "a
coproc { ls; }
bash -c 'ls > x'
bash -c "ls \$(pwd)"
""".strip().split("\n"),
    "",
    " ",
    "ls\nrm x",
    "ls \r rm x",
    "ls\rrm x",
    "ls \\\n rm",
    "cat a\x00b",
    "cat a\x01b",
    "ls\x0brm",
    "ls\x0crm",
    "cat a\u00a0b",
    "cat a\u200bb",
    "cat \u202etxt",
    "'ls\u2028rm'",
    "\u2003ls",
    "ls \x1b[2K",
    "cat '\udcff'",
    "bash -c 'bash -c \"bash -c ls\"' x >y",
    "ls " + "a" * 200_000,
    "a|" * 50_000,
    "(" * 50_000,
]


def is_safe(script: str) -> bool:
    segments = read_command_line(script, "/work", {}).segments
    return segments is not None and all(is_known_safe(words) for words in segments)


@pytest.mark.parametrize("script", SAFE)
def test_what_only_reads_is_known(script: str) -> None:
    assert is_safe(script)


@pytest.mark.parametrize("script", PLAIN_AND_UNKNOWN)
def test_what_may_do_more_is_not(script: str) -> None:
    assert not is_safe(script)


@pytest.mark.parametrize("script", NOT_PLAIN, ids=lambda script: ascii(script)[:30])
def test_what_a_shell_would_change_is_not_plain(script: str) -> None:
    assert read_command_line(script, "/work", {}).segments is None


def test_words_are_as_the_shell_has_them() -> None:
    assert read_command_line("cd a && cat 'b c'\"d\"e -5 | bash -lc 'ls; pwd'", "/work", {}).segments == (
        ("cd", "a"),
        ("cat", "b cde", "-5"),
        ("ls",),
        ("pwd",),
    )


def test_the_shell_agrees_on_the_words_of_every_safe_script(tmp_path: Path) -> None:
    """Each command name becomes a printer of its words, so that bash itself says what it would have run."""
    plain = [
        script
        for script in (*SAFE, *PLAIN_AND_UNKNOWN)
        if (found := read_command_line(script, "/work", {}).segments) and len(found) == 1
    ]
    for script in plain:
        segments = read_command_line(script, "/work", {}).segments
        assert segments
        [words] = segments
        if script.startswith(("bash -c", "bash -lc", "sh -c")):
            continue
        result = subprocess.run(
            ["bash", "-c", f"set -- {script}; printf '%s\\0' \"$@\""], capture_output=True, check=True, cwd=tmp_path
        )
        assert tuple(result.stdout.decode().split("\0")[:-1]) == words


def test_what_is_safe_writes_nothing_and_starts_nothing_else(tmp_path: Path) -> None:
    """The safe scripts with hostile operands, run for real in a directory whose every trap would leave a mark."""
    directory = tmp_path / "work"
    directory.mkdir()
    (directory / "src").mkdir()
    for name in ("a.txt", "b.txt", "-i", "--pre=trap", "src/trap"):
        (directory / name).write_text("foo\n1w written\n")
    traps = tmp_path / "traps"
    traps.mkdir()
    mark = tmp_path / "mark"
    for name in ("sh", "python", "git", "less", "gzip", "xz", "trap", "touch", "tee"):
        (traps / name).write_text(f"#!/bin/bash\necho {name} >> {mark}\n")
        (traps / name).chmod(0o755)
    before = _state(directory)
    hostile = [
        *("cat -- -i", "grep -rn foo . --include=*", "ls -- --pre=trap", "head -n1 -- -i", "wc -- -i", "echo -n -e"),
        *("rg foo -- --pre=trap", "rg -e --pre=trap", "find . -name -delete", "find . -path -exec", "uniq a.txt"),
        *("sed -n 1,2p a.txt", "base64 a.txt", "tac a.txt b.txt", "stat -c %n a.txt", "find . -printf %p"),
        *("nl a.txt", "cut -c1 a.txt --output-delimiter=x", "paste -s a.txt", "rg -r x foo a.txt", "tr a b"),
    ]
    # `which` is a script of its own on some systems: it may start a shell.
    scripts = [script for script in (*SAFE, *hostile) if "which" not in script]
    with tempfile.TemporaryDirectory() as scratch:
        env = {"PATH": f"{traps}:{os.environ['PATH']}", "HOME": str(directory), "TMPDIR": scratch}
        for script in scripts:
            if "*" in script and script in hostile:
                assert not is_safe(script)
                continue
            assert is_safe(script), script
            if script.startswith("sh "):
                continue
            subprocess.run(
                ["/bin/bash", "-c", script],
                cwd=directory,
                env=env,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=60,
                check=False,
            )
            assert not mark.exists(), f"{script}: {mark.read_text()}"
            assert _state(directory) == before, script
            assert list(Path(scratch).iterdir()) == []


def _state(directory: Path) -> dict[str, tuple[bytes, int]]:
    return {
        str(path): (path.read_bytes() if path.is_file() else b"", path.stat().st_mtime_ns)
        for path in sorted(directory.rglob("*"))
    }

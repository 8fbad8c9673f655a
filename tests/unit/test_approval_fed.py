"""Dangerous commands that a program in the script is given to read, in every way a script can give it."""

from __future__ import annotations

import pytest

from codex_py.tools.danger import find_danger
from codex_py.tools.hidden_commands import hidden_commands
from tests.support.work import within

FED = [
    "bash <<< 'rm -f x'",
    "bash <<<$'rm -f x'",
    "bash 0<<<'rm -f x'",
    "bash 2>&1 <<<'rm -f x'",
    "bash > log <<<'rm -f x'",
    "<<<'rm -f x' bash",
    "{ bash; } <<<'rm -f x'",
    "(bash) <<<'rm -f x'",
    "tcsh <<<'rm -f x'",
    "X='rm -f x'; bash <<<\"$X\"",
    "X='rm -f x'; bash <<<$X",
    "bash < <(echo rm -f x)",
    "< <(echo rm -f x) bash",
    "bash <(echo rm -f x)",
    "source <(printf '%s' 'rm -f x')",
    "cat <<<'rm -f x' | bash",
    "printf '%s' 'rm -f x' | sh",
    "BASH_ENV=<(echo rm -f x) bash -c ls",
    "bash -c \"$(cat <<'E'\nrm -f x\nE\n)\"",
    'eval "$(cat <<E\nrm -f x\nE\n)"',
    'bash <<<"$(cat <<E\nrm -f x\nE\n)"',
    "ed <<<'!rm -f x'",
    "ed f <<E\n1d\n!rm -f x\nE",
    "echo '!rm -f x' | ed",
    "vim -es f <<<':!rm -f x'",
    "sqlite3 a <<<'.shell rm -f x'",
    "psql <<<'\\! rm -f x'",
    "gdb <<<'shell rm -f x'",
    "sftp h <<<'!rm -f x'",
    "make -f - <<<$'all:\n\trm -f x'",
    "start-stop-daemon -S -x /bin/rm -- -f x",
    "start-stop-daemon --exec=/bin/rm -S -- -f x",
    "{rm,-f,x}",
    "alias g='rm -f x'; g",
    "awk 'BEGIN{system(\"rm -f x\")}'",
    "python3 <<<'import os; os.system(\"rm -f x\")'",
    "echo 'import os; os.system(\"rm -f x\")' | python3 - a",
]


WRITTEN = [
    "cat > x.sh <<'E'\nrm -f x\nE\nbash x.sh",
    "cat > x.sh <<'E'\nrm -f x\nE\nchmod +x x.sh && ./x.sh",
    "cat <<'E' > x.sh && sh x.sh\nrm -f x\nE",
    "tee x.sh <<'E'\nrm -f x\nE\nsh x.sh",
    "cat <<'E' | tee a x.sh\nrm -f x\nE\nsh x.sh",
    "cat > x.sh << 'E'\n#!/bin/bash\nset -e\nrm -f x\nE\nsudo bash -x x.sh",
    "cat > x.sh <<'E'\n#!/usr/bin/env bash\nrm -f x\nE\nnohup ./x.sh &",
    "cat <<< 'rm -f x' > s; sh s",
    "install -m755 /dev/stdin s <<'E'\nrm -f x\nE\n./s",
    "printf 'rm -f x\\n' > s; sh s",
    "echo 'rm -f x' > s && bash ./s",
    "echo 'rm -f x' >> /tmp/s && . /tmp/s",
    "echo 'rm -f x' >| s; source s",
    "echo 'rm -f x' &> s; sh s",
    "> s echo 'rm -f x'; sh s",
    "echo 'rm -f x' | tee s; sh s",
    "echo ls > s; echo 'rm -f x' >> s; sh s",
    "{ echo '#!/bin/sh'; echo 'rm -f x'; } > s; sh s",
    "F=/tmp/s; echo 'rm -f x' > $F; sh $F",
    "if true; then echo 'rm -f x' > s; fi; sh s",
    "echo 'rm -f x' > s; BASH_ENV=s bash -c true",
    "echo 'rm -f x' > s; export ENV=\"$PWD/s\"; sh -i",
    "echo 'rm -f x' > s; sh < s",
    "echo 'rm -f x' > s; cat s | sh",
    "echo 'rm -f x' > s; eval \"$(cat s)\"",
    "echo 'rm -f x' > s; sh -c \"$(cat s)\"",
    "echo 'rm -f x' > s; at now -f s",
    "echo '* * * * * rm -f x' > s; crontab s",
    "printf 'all:\\n\trm -f x\\n' > M; make -f M",
    "cat > Makefile <<'E'\nall:\n\t@rm -f x\nE\nmake",
    "cat > GNUmakefile <<'E'\n.PHONY: all\nall: deep ; ls\ndeep:\n\trm -f x\nE\nmake -C . -j 4 V=1",
    "printf 'a:\\n\\tls\\nb:\\n\\t-rm -f x\\n' > Makefile && make a && make b",
    "cat > makefile <<'E'\nR = rm -f\n%.o: ; $(R) x\na: \\\n  a.o\nE\nmake a",
    "cat > Makefile <<'E'\nX := $(shell rm -f x)\nE\nmake",
    "cat > Makefile <<'E'\n$(T): ; rm -f x\nE\nmake some",
    "make -f <(printf 'a:\\n\\tls\\nb:\\n\\trm -f x\\n') b",
    "echo 'rm -f x' > s; cp s /tmp/t; sh /tmp/t",
    "echo 'rm -f x' > s; install -m 755 s t && mv t u; ./u",
    "echo 'rm -f x' > s; ln -s s t; . ./t",
    "echo 'rm -f x' > s; eval \"$(< s)\"",
    "echo 'rm -f x' > s; bash --rcfile s -i",
    "echo '!rm -f x' > s; ed f < s",
    "cat > s <<'E'\nBEGIN{system(\"rm -f x\")}\nE\nawk -f s",
    "awk -f - <<'E'\nBEGIN{system(\"rm -f x\")}\nE",
    "awk -f <(echo 'BEGIN{system(\"rm -f x\")}')",
    "sed -f <(echo '1e rm -f x') f",
    "python3 <(echo 'import os; os.system(\"rm -f x\")')",
    "vim -S <(echo ':!rm -f x')",
    "gdb -x <(echo 'shell rm -f x')",
    "psql -f <(echo '\\! rm -f x')",
    "printf 'rm -f x\\n' | parallel",
    "parallel ::: 'rm -f x'",
    "printf 'rm -f x' | xargs -I{} sh -c '{}'",
]


@pytest.mark.parametrize("script", FED + WRITTEN)
def test_what_is_fed_is_judged(script: str) -> None:
    assert find_danger(script, "/work", {}) == "it deletes without asking (`rm -f`)"


@pytest.mark.parametrize("script", [script for script in FED + WRITTEN if not script.startswith("start-stop-daemon")])
def test_rules_see_what_is_fed(script: str) -> None:
    found = hidden_commands(script.replace("rm -f", "git push").replace("{rm,-f,", "{git,push,"), "/work", {})
    assert ("git", "push", "x") in [words[:3] for words in found]


@pytest.mark.parametrize(
    "script",
    [
        "psql db <<E\ndrop table users;\nE",
        "echo 'drop database x' | psql",
        "cat <<E | mysql\ndrop schema x;\nE",
        "cat > x.sql <<E\ndrop table users;\nE\npsql -f x.sql",
        "cat > x.sql <<E\ndrop table users;\nE\nmysql db < x.sql",
        "redis-cli <<<FLUSHALL",
        "echo flushall | valkey-cli",
        "mongosh --eval 'db.x.drop()'",
        "mongosh --eval 'db.x.deleteMany({})'",
        "psql -c 'alter table x drop column y'",
    ],
)
def test_what_a_database_is_fed_is_judged(script: str) -> None:
    assert (find_danger(script, "/work", {}) or "").startswith("it deletes ")


@pytest.mark.parametrize(
    "script",
    [
        "cat > f <<E\nrm -f x\nE",
        "x=$(cat <<E\nrm -f x\nE\n)",
        "git commit -m \"$(cat <<'E'\nno rm -f x any more\n\nrm -f x\nE\n)\"",
        "python3 - <<E\ns.replace('rm -f x', 'rm x'); os.system('rm -f x')\nE",
        "ed f <<E\n1i\nrm -f x\n.\nw\nE",
        "psql <<E\ninsert into t values ('dropped');\nE",
        "cat dump.sql | psql",
        "curl x | sqlite3 db",
        "diff <(echo rm -f x) y",
        "A=<(echo rm -f x) cat y",
        "bash x.sh <<<'rm -f x'",
        "wc -l <<<'rm -f x'",
        "read x <<<'rm -f x'",
        "mapfile a < <(echo rm -f x)",
        "start-stop-daemon --start --exec /usr/sbin/nginx -- -f x",
    ],
)
def test_what_nothing_runs_is_harmless(script: str) -> None:
    assert find_danger(script, "/work", {}) is None


@pytest.mark.parametrize(
    "script",
    [
        "bash<<<$a\n" * 20_000,
        "a=1;bash<<<$a;" * 140,
        "psql<<<'!'\n" * 20_000,
        "ed<<E\n" + "!\n" * 100_000 + "E\n",
        "psql <<<'" + "drop " * 100_000 + "'",
        "cat<<<x|" * 20_000,
        "A=<(echo x) " * 20_000,
    ],
    ids=lambda script: script[:12],
)
def test_what_is_fed_to_stall_does_not(script: str) -> None:
    within(20_000_000, lambda: (find_danger(script, "/work", {}), hidden_commands(script, "/work", {})))

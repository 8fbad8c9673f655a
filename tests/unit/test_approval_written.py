"""Scripts that write files and run them, or only write them; how they are judged is in `test_approval_fed`."""

from __future__ import annotations

import pytest

from codex_py.tools.danger import find_danger
from codex_py.tools.hidden_commands import hidden_commands
from tests.support.work import within


def test_rules_see_the_commands_that_parallel_makes() -> None:
    found = hidden_commands("parallel -j2 git ::: push 'pull -q'", "/work", {})
    assert {("git", "push"), ("git", "pull", "-q")} <= set(found)


def test_the_commands_that_parallel_makes_are_judged() -> None:
    reason = find_danger("git reset --hard", "/work", {})
    assert reason is not None
    assert find_danger("parallel -j2 git ::: status 'reset --hard'", "/work", {}) == reason
    assert find_danger("parallel -j2 git ::: status 'reset HEAD x'", "/work", {}) is None


@pytest.mark.parametrize(
    "script",
    [
        "echo 'rm -f x' > notes.txt; bash build.sh",
        "cat > x.sh <<'E'\nrm -f x\nE\nchmod +x x.sh",
        "cat > x.sh <<'E'\nrm -f x\nE\ncat x.sh; git add x.sh; ./configure",
        "cat > x.sh <<'E'\nrm -f x\nE\nbash -n x.sh && shellcheck x.sh",
        "cat > x.sh <<'E'\nls\nE\necho 'rm -f x' > y; bash x.sh",
        "cat > test_x.py <<'E'\nimport shutil\nshutil.rmtree('y')\nE\npython3 test_x.py",
        "echo 'rm -f x' > log; cat log; bash build.sh",
        "cat > Makefile <<'E'\nall: x.o\n\tcc x.o\nclean:\n\trm -f *.o\nE\nmake && make all",
        "cat > Makefile <<'E'\nclean:\n\t$(RM) *.o\nE\nmake -f other.mk",
        "echo 'rm -f x' > s; cp s t; cat t; sh u",
        "sed -n <(echo '1e rm -f x') f",
        "diff - <(echo 'rm -f x')",
        "".join("echo 'ls -l' >> s\n" for _ in range(200)) + "sh s",
    ],
)
def test_what_is_only_written_is_no_danger(script: str) -> None:
    assert find_danger(script, "/work", {}) is None


@pytest.mark.parametrize(
    "script",
    [
        "".join(f"echo 'ls {place}' > f{place}\n" for place in range(1500)) + "sh f1",
        "cat > f <<'E'\n" + "echo hello world\n" * 4000 + "E\nsh f",
        "cat f" + " | tee a" * 3000 + "; sh a",
        "ENV=f " * 5000 + "sh > f",
        "echo ls > a; " + "cp a b; cp b a; " * 1000 + "sh a",
        "cat > Makefile <<'E'\n" + "a: " + "b " * 2000 + "\n" + "\tls $(A)\n" * 4000 + "E\nmake",
        "cat > Makefile <<'E'\n" + "".join(f"a{n}: a{n + 1} %.o $x\n" for n in range(3000)) + "E\nmake",
    ],
)
def test_long_scripts_that_write_files_are_judged_in_time(script: str) -> None:
    assert within(20_000_000, lambda: find_danger(script, "/work", {})) is None

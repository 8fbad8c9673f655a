from __future__ import annotations

import pytest

from codex_py.tools.patch_in_command import PatchInCommand, find_patch_in_argv, find_patch_in_command
from tests.support.work import within
from tests.unit.patch_cases import patch

BODY = patch("*** Add File: a", "+x $HOME `id` \\n") + "\n"


@pytest.mark.parametrize(
    ("command", "workdir"),
    [
        (f"apply_patch <<'EOF'\n{BODY}EOF", None),
        (f"apply_patch <<'EOF'\n{BODY}EOF\n", None),
        (f"\n  apply_patch <<'EOF'\n{BODY}EOF  \n\n", None),
        (f"applypatch <<'EOF'\n{BODY}EOF", None),
        (f"apply_patch <<EOF\n{BODY}EOF", None),
        (f'apply_patch <<"EOF"\n{BODY}EOF', None),
        (f"apply_patch <<\\EOF\n{BODY}EOF", None),
        (f"apply_patch << 'PATCH'\n{BODY}PATCH", None),
        (f"apply_patch<<'END OF IT'\n{BODY}END OF IT", None),
        (f"apply_patch <<-'EOF'\n{BODY}\tEOF", None),
        (f"apply_patch <<'EOF'   \n{BODY}EOF", None),
        (f"apply_patch <<'EOF'\r\n{BODY}EOF\r\n", None),
        (f"apply_patch '{BODY}'", None),
        (f"cd src && apply_patch <<'EOF'\n{BODY}EOF", "src"),
        (f"cd  ./a-b/c.d   &&   apply_patch <<'EOF'\n{BODY}EOF", "./a-b/c.d"),
        (f"cd /abs/path&&apply_patch <<'EOF'\n{BODY}EOF", "/abs/path"),
        (f'cd "my dir" && apply_patch <<EOF\n{BODY}EOF', "my dir"),
        (f"cd 'my $dir' && apply_patch <<EOF\n{BODY}EOF", "my $dir"),
        (f"cd src &&\napply_patch <<EOF\n{BODY}EOF", "src"),
        (f"cd src && apply_patch '{BODY}'", "src"),
        (f"bash -lc 'apply_patch <<EOF\n{BODY}EOF'", None),
        (f"/bin/sh  -c 'cd src && apply_patch <<'\"'EOF'\"'\n{BODY}EOF\n'", "src"),
    ],
)
def test_a_command_that_is_one_patch_is_found(command: str, workdir: str | None) -> None:
    assert find_patch_in_command(command) == PatchInCommand(BODY, workdir)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "ls",
        "apply_patch",
        "apply_patch --help",
        "apply_patch < file",
        f"echo hi; apply_patch <<'EOF'\n{BODY}EOF",
        f"set -e\napply_patch <<'EOF'\n{BODY}EOF",
        f"apply_patch <<'EOF'\n{BODY}EOF\necho done",
        f"apply_patch <<'EOF' && echo done\n{BODY}EOF",
        f"apply_patch <<'EOF' | cat\n{BODY}EOF",
        f"apply_patch <<'EOF' > log\n{BODY}EOF",
        f"apply_patch x <<'EOF'\n{BODY}EOF",
        f"apply_patch <<'EOF'\n{BODY}",
        f"apply_patch <<'EOF'\n{BODY}NOT",
        f"apply_patch <<'EOF'\n{BODY}EOF\n{BODY}EOF",
        f"cd a; apply_patch <<'EOF'\n{BODY}EOF",
        f"cd a || apply_patch <<'EOF'\n{BODY}EOF",
        f"cd a b && apply_patch <<'EOF'\n{BODY}EOF",
        f"cd && apply_patch <<'EOF'\n{BODY}EOF",
        f"cd '' && apply_patch <<'EOF'\n{BODY}EOF",
        f"cd - && apply_patch <<'EOF'\n{BODY}EOF",
        f"cd $DIR && apply_patch <<'EOF'\n{BODY}EOF",
        f'cd "$DIR" && apply_patch <<EOF\n{BODY}EOF',
        f"cd ~/x && apply_patch <<'EOF'\n{BODY}EOF",
        f"cd $(pwd) && apply_patch <<'EOF'\n{BODY}EOF",
        f"cd a* && apply_patch <<'EOF'\n{BODY}EOF",
        f"cd a && cd b && apply_patch <<'EOF'\n{BODY}EOF",
        f"sudo apply_patch <<'EOF'\n{BODY}EOF",
        f"./apply_patch <<'EOF'\n{BODY}EOF",
        f"apply_patch'{BODY}'",
        f"apply_patch '{BODY}' && ls",
        f'apply_patch "{BODY}"',
        f"cat <<'EOF'\n{BODY}EOF",
        f"{BODY}ls",
        f"bash -lc 'apply_patch <<EOF\n{BODY}EOF' && ls",
        f"bash -lc \"apply_patch <<'EOF'\n{BODY}EOF\"",
        f"bash -x -c 'apply_patch <<EOF\n{BODY}EOF'",
    ],
)
def test_anything_else_is_left_to_the_shell(command: str) -> None:
    assert find_patch_in_command(command) is None


def test_the_text_of_a_patch_without_a_call_is_distinguished() -> None:
    assert find_patch_in_command(f"\n{BODY}\n") == PatchInCommand(BODY.strip(), explicit=False)


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (["apply_patch", BODY], PatchInCommand(BODY)),
        (["applypatch", BODY], PatchInCommand(BODY)),
        (["bash", "-lc", f"apply_patch <<'EOF'\n{BODY}EOF"], PatchInCommand(BODY)),
        (["/usr/bin/zsh", "-c", f"cd x && apply_patch <<'EOF'\n{BODY}EOF"], PatchInCommand(BODY, "x")),
        (["sh", "-c", BODY], PatchInCommand(BODY.strip(), explicit=False)),
        ([BODY], PatchInCommand(BODY, explicit=False)),
        (["apply_patch"], None),
        (["apply_patch", BODY, "x"], None),
        (["fish", "-c", f"apply_patch <<'EOF'\n{BODY}EOF"], None),
        (["bash", "-x", f"apply_patch <<'EOF'\n{BODY}EOF"], None),
        (["bash", "-lc", "ls"], None),
        ([], None),
    ],
)
def test_a_patch_in_an_argument_vector(argv: list[str], found: PatchInCommand | None) -> None:
    assert find_patch_in_argv(argv) == found


@pytest.mark.parametrize(
    "command",
    [
        "cd " + "a" * 1_000_000,
        "cd " + " " * 1_000_000 + "a",
        "cd a" + " " * 1_000_000 + "b",
        "cd '" + "a" * 1_000_000,
        "apply_patch " + " " * 1_000_000 + "<",
        "apply_patch <<" + " " * 1_000_000,
        "apply_patch <<EOF\n" + "EO\n" * 300_000,
        "apply_patch <<-EOF\n" + "\t\n" * 500_000,
        "apply_patch <<EOF\n" + "EOF\n" * 300_000,
        "apply_patch '" + "''" * 500_000,
        "bash -c " + "''" * 500_000 + "*** Begin Patch",
    ],
)
def test_a_hostile_megabyte_is_looked_at_in_linear_time(command: str) -> None:
    assert within(len(command), lambda: find_patch_in_command(command)) is None

"""Which shell runs a command, and how command lines are shown."""

from __future__ import annotations

import random
import shlex
from pathlib import Path

import pytest

from codex_py.errors import ToolError
from codex_py.process.shells import argv_without_profile, find_shell, join_words, quote_word, shell_argv, user_shell


def test_the_users_shell_is_taken_when_it_is_one_we_know(tmp_path: Path) -> None:
    zsh = tmp_path / "zsh"
    zsh.touch(0o755)
    assert user_shell({"SHELL": str(zsh)}) == str(zsh)


@pytest.mark.parametrize("shell", ["", "fish", "/usr/bin/fish", "/no/such/bash", "bash"])
def test_any_other_shell_gives_way_to_bash_or_sh(shell: str) -> None:
    assert Path(user_shell({"SHELL": shell, "PATH": ""})).name in {"bash", "zsh", "sh"}


def test_a_shell_is_found_by_name_or_path(tmp_path: Path) -> None:
    (tmp_path / "mysh").touch(0o755)
    assert find_shell("mysh", {"PATH": str(tmp_path)}) == f"{tmp_path}/mysh"
    assert find_shell("/bin/sh", {}) == "/bin/sh"
    assert Path(find_shell("sh", {})).name == "sh"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("/bin/nosuch", "no such file"),
        ("nosuch", "not found"),
        ("/etc", "not an executable file"),
        ("/etc/passwd", "not an executable file"),
        ("./bash", "not found"),
    ],
)
def test_a_shell_that_cannot_run_is_named_in_the_error(name: str, reason: str) -> None:
    with pytest.raises(ToolError) as caught:
        find_shell(name, {})
    assert str(caught.value) == f"cannot use shell `{name}`: {reason}"


def test_login_and_plain_shells_differ_in_one_flag() -> None:
    assert shell_argv("/bin/bash", "x", login=True) == ("/bin/bash", "-lc", "x")
    assert shell_argv("/bin/bash", "x", login=False) == ("/bin/bash", "-c", "x")
    assert argv_without_profile("/bin/bash", "x") == ("/bin/bash", "-c", "x")
    assert argv_without_profile("/bin/zsh", "x") == ("/bin/zsh", "-f", "-c", "x")


# Each as the reference's event stream shows it.
QUOTED = {
    "": "''",
    "true": "true",
    "a=b": "'a=b'",
    "~x,y=[z]": "'~x,y=[z]'",
    "echo hi; exit 3": "'echo hi; exit 3'",
    "echo \"it's\" 'a b'": '"echo \\"it\'s\\" \'a b\'"',
    ": it's $x": "\": it's \"'$x'",
    ": a^b \\ c!": "': a''^b '\"\\\\ c\"'!'",
    "^b": "'^b'",
    "é": "'é'",
    "printf 'a\\nb'": "\"printf 'a\\\\nb'\"",
    ": a\n: `b` \"$c\" 'd'": "': a\n: `b` \"$c\" '\"'d'\"",
}


@pytest.mark.parametrize("word", QUOTED)
def test_words_are_quoted_in_the_published_form(word: str) -> None:
    assert quote_word(word) == QUOTED[word]


def test_a_shell_reads_the_same_words_back() -> None:
    source = random.Random(7)
    for _ in range(2000):
        words = ["".join(source.choices("ab '\"\\$`!^~#\n*é", k=source.randrange(12))) for _ in range(3)]
        assert shlex.split(join_words(words)) == words

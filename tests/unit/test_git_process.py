"""A shell that runs one git after the other: every answer is the one of its question, whatever bytes are in it."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from codex_py.errors import UserError
from codex_py.protocol.command import PreparedCommand
from codex_py.services.git_process import GitShell, shell_argv

ODD = ["", "a b", "new\nline\n", "it's", '"$HOME"', "`touch ran`", "\\", "*", "é\u2028", *map(chr, range(1, 32))]
BYTES = [os.fsdecode(bytes([byte])) for byte in range(0x80, 0x100)]


@contextmanager
def shell_of(directory: Path, *program: str) -> Generator[GitShell, None, None]:
    shell = GitShell(PreparedCommand(shell_argv(program), directory, {"PATH": os.environ["PATH"], "LC_ALL": "C"}))
    try:
        yield shell
    finally:
        shell.close()


def script(shell: GitShell, text: str, *words: str, seconds: float = 20, stdin: bytes = b"") -> Sequence[object]:
    return tuple(shell.ask([text, "sh", *words], seconds=seconds, stdin=stdin))


def test_words_of_any_bytes_arrive_as_they_are(tmp_path: Path) -> None:
    with shell_of(tmp_path, "sh", "-c") as shell:
        for words in (ODD, BYTES, ["".join(ODD), "".join(BYTES)]):
            _, out, _ = script(shell, 'printf "%s\\0" "$@"', *words)
            assert out == b"".join(os.fsencode(word) + b"\0" for word in words)
    assert list(tmp_path.iterdir()) == []


def test_each_question_has_its_own_output_status_and_complaint(tmp_path: Path) -> None:
    with shell_of(tmp_path, "sh", "-c") as shell:
        assert script(shell, "printf '1\\n\\0:.'; echo warning >&2") == (0, b"1\n\0:.", "warning")
        assert script(shell, "echo 'fatal: no' >&2; echo more >&2; exit 3") == (3, b"", "no")
        assert script(shell, "kill -9 $$") == (137, b"", "no reason")
        # Nothing of the questions that follow is read, and there is more than fits into a pipe.
        assert script(shell, "cat; head -c 300000 /dev/zero") == (0, bytes(300_000), "no reason")
        value = b"x" * 300_000 + b"\n"
        assert script(shell, "cat", stdin=value) == (0, value, "no reason")
        assert not shell.is_open


def test_a_shell_that_ends_without_an_answer_is_a_failure(tmp_path: Path) -> None:
    with shell_of(tmp_path, "sh", "-c") as shell:
        status, out, _ = script(shell, "kill -9 0")
        assert (status != 0, out, shell.is_open, shell.never_began()) == (True, b"", False, False)


def test_a_question_that_takes_too_long_ends_the_shell(tmp_path: Path) -> None:
    with shell_of(tmp_path, "sh", "-c") as shell:
        with pytest.raises(UserError, match=r"git took longer than 0\.2 s"):
            script(shell, "sleep 1000", seconds=0.2)
        assert not shell.is_open


def test_a_shell_that_cannot_be_started_is_cleaned_up(tmp_path: Path) -> None:
    cleaned: list[bool] = []
    command = PreparedCommand(("/none",), tmp_path, {}, cleanup=lambda: cleaned.append(True))
    with pytest.raises(UserError, match="cannot run git: no such file or directory"):
        GitShell(command)
    assert cleaned == [True]

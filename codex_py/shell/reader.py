"""Reads command lines, each once for all who judge it, and the scripts that they run.

Every session loads this; what reads and judges is loaded for the first command.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from codex_py.shell.command_line import CommandLine, ReadFile
from codex_py.text.files import FileRefused, read_trusted

_MAX_FILE_BYTES: Final = 64 * 1024
_MAX_REMEMBERED: Final = 8
_SHELL_LINE: Final = rb"#![^\n]*\b(?:ba|da|k|mk|z)?sh\b"


def read_script_file(path: str) -> str | None:
    """The text of a script for a POSIX shell at an absolute path; None for any other file.

    Only the first 64 KiB of a regular file are read.
    """
    try:
        head = read_trusted(path, _MAX_FILE_BYTES)
    except FileRefused:
        return None
    if head is None or b"\0" in head.raw or (head.raw.startswith(b"#!") and not re.match(_SHELL_LINE, head.raw)):
        return None
    return head.raw.decode("utf-8", "replace")


class CommandLineReader:
    """Reads the command lines of a session, each once: the last few are remembered."""

    def __init__(self, read_file: ReadFile | None = None) -> None:
        self._read_file = read_file
        self._recent: dict[tuple[str, str], tuple[CommandLine, Mapping[str, str]]] = {}

    def read(self, text: str, directory: str, env: Mapping[str, str]) -> CommandLine:
        """The command line as it would run in `directory`, its commands started with `env`."""
        from codex_py.shell.reading import read_command_line  # third-party weight: tree-sitter

        key = (text, directory)
        line, known_env = self._recent.get(key, (None, env))
        if line is None or known_env != env:
            line = read_command_line(text, directory, env, self._read_file)
            # A file may say something else the next time.
            if not line.reads_files:
                self._recent[key] = line, env
                for old in list(self._recent)[:-_MAX_REMEMBERED]:
                    self._recent.pop(old, None)
        return line

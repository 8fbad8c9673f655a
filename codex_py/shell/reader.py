"""Reads the command lines of a session, and loads what that takes with the first one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from codex_py.shell.command_line import CommandLine, ReadFile

_MAX_REMEMBERED: Final = 8


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

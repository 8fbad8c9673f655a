"""Shortens paths and commands for people. Cheap to import: loads nothing that draws."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

from codex_py.paths import short_path
from codex_py.text.display import cell_width
from codex_py.text.sanitize import sanitize_line

DIRECTORY_SHOWN: Final = 32


def relative_path(path: Path, cwd: Path | None) -> str:
    """A path relative to `cwd` if it is below it, else the whole path; not sanitized."""
    return str(path.relative_to(cwd)) if cwd is not None and path.is_relative_to(cwd) else str(path)


def short_directory(cwd: Path, home: Path | None, *, max_width: int = DIRECTORY_SHOWN) -> str:
    """A sanitized directory with `~` for the home; a long one is cut at its beginning."""
    path = sanitize_line(short_path(cwd, str(home or "")))
    if cell_width(path) <= max_width:
        return path
    end = path[-(max_width - 1) :]
    while cell_width(end) > max_width - 1:
        end = end[1:]
    return f"…{end}"


_WRAPPED: Final = re.compile(r"\S*?(?:bash|zsh|sh|dash) -l?c ")
# Longer commands are not checked for a wrapping shell.
_MAX_WRAPPED_LENGTH: Final = 16 * 1024


def command_title(command: str) -> str:
    """A command without the shell that runs it, and without leading blank lines."""
    text = command.strip()
    if len(text) > _MAX_WRAPPED_LENGTH or not (wrapped := _WRAPPED.match(text)):
        return text
    try:
        inner = shlex.split(text[wrapped.end() :])
    except ValueError:
        return text
    return inner[0].strip() or text if len(inner) == 1 else text

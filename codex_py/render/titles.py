"""Paths and commands as a person reads them. Cheap to import: nothing that draws."""

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
    """A path below `cwd` from there, any other whole; not made harmless."""
    return str(path.relative_to(cwd)) if cwd is not None and path.is_relative_to(cwd) else str(path)


def short_directory(cwd: Path, home: Path | None, *, max_width: int = DIRECTORY_SHOWN) -> str:
    """A directory from home on, harmless, and by its end when it is long."""
    path = sanitize_line(short_path(cwd, str(home or "")))
    if cell_width(path) <= max_width:
        return path
    end = path[-(max_width - 1) :]
    while cell_width(end) > max_width - 1:
        end = end[1:]
    return f"…{end}"


_WRAPPED: Final = re.compile(r"\S*?(?:bash|zsh|sh|dash) -l?c ")
# Longer ones are no wrapped one-liners, and are not read to find out.
_MAX_WRAPPED_LENGTH: Final = 16 * 1024


def command_title(command: str) -> str:
    """The command a person thinks of: without the shell it is handed to, and without blank lines before it."""
    text = command.strip()
    if len(text) > _MAX_WRAPPED_LENGTH or not (wrapped := _WRAPPED.match(text)):
        return text
    try:
        inner = shlex.split(text[wrapped.end() :])
    except ValueError:
        return text
    return inner[0].strip() or text if len(inner) == 1 else text

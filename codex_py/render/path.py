"""Paths as a person reads them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from codex_py.text.cells import cell_width
from codex_py.text.sanitize import sanitize_line

DIRECTORY_SHOWN: Final = 32


def relative_path(path: Path, cwd: Path | None) -> str:
    """A path below `cwd` from there, any other whole; not made harmless."""
    return str(path.relative_to(cwd)) if cwd is not None and path.is_relative_to(cwd) else str(path)


def short_directory(cwd: Path, home: Path | None, *, max_width: int = DIRECTORY_SHOWN) -> str:
    """A folder from home on, harmless, and by its end when it is long."""
    path = str(cwd)
    if home is not None and (cwd == home or cwd.is_relative_to(home)):
        path = os.path.join("~", str(cwd.relative_to(home))) if cwd != home else "~"  # noqa: PTH118
    path = sanitize_line(path)
    if cell_width(path) <= max_width:
        return path
    end = path[-(max_width - 1) :]
    while cell_width(end) > max_width - 1:
        end = end[1:]
    return f"…{end}"

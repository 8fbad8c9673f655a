"""What `codex_py.render` makes, as plain rows to compare."""

from __future__ import annotations

import re
from typing import Final

from rich.cells import cell_len
from rich.console import RenderableType

from codex_py.render.entry import to_lines
from codex_py.render.theme import Theme

DARK: Final = Theme("dark", "256")
MONO: Final = Theme("mono", "none")
_STYLE: Final = re.compile(r"\x1b\[[0-9;]*m")


def uncoloured(line: str) -> str:
    """A line without its styles."""
    return _STYLE.sub("", line)


def rows(renderable: RenderableType, width: int = 60) -> list[str]:
    """The lines as they are read; each one was checked to fit and to leave the terminal alone."""
    lines = to_lines(renderable, width=width, theme=MONO)
    plain = [uncoloured(line) for line in lines]
    for line in plain:
        assert cell_len(line) <= width, (line, width)
        assert line == line.rstrip()
        assert not re.search("[\x00-\x1f\x7f-\x9f\ud800-\udfff]", line)
    return plain

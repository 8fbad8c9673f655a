"""What a narrower window does to the drawing: most terminals rewrap its rows, so that it takes more of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout.screen import Screen

# Of others, such as xterm, it is taken that they cut rows off. Over ssh mostly TERM alone comes along.
_TERMS: Final = ("tmux", "screen", "xterm-kitty", "xterm-ghostty", "alacritty", "foot", "wezterm", "contour")
_PROGRAMS: Final = (
    *("alacritty", "apple_terminal", "ghostty", "iterm.app", "iterm2", "kitty", "tmux", "vscode"),
    *("warpterminal", "wezterm"),
)
_SIGNS: Final = (
    *("TMUX", "STY", "VTE_VERSION", "WT_SESSION"),
    *("KONSOLE_VERSION", "KITTY_WINDOW_ID", "ALACRITTY_WINDOW_ID"),
)


def rewraps_lines(env: Mapping[str, str]) -> bool:
    """Whether the terminal is known for it."""
    programs = (env.get(name, "").lower() for name in ("TERM_PROGRAM", "LC_TERMINAL"))
    return (
        env.get("TERM", "").startswith(_TERMS)
        or any(env.get(name) for name in _SIGNS)
        or any(program in _PROGRAMS for program in programs)
    )


def rows_gained(drawn: Screen, cursor: Point, width: int) -> int:
    """How many rows more there are from the first to that of the cursor, once they have been wrapped at `width`."""
    above = sum((_cells(drawn, y) - 1) // width for y in range(cursor.y) if _cells(drawn, y))
    return above + cursor.x // width


def _cells(drawn: Screen, y: int) -> int:
    """How many cells of a row were drawn; spaces at its end were not."""
    return max((x for x, char in drawn.data_buffer[y].items() if char.char != " "), default=-1) + 1

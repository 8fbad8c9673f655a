"""Choosing a theme: the screen shows each one while it is selected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from codex_py.render.theme import THEME_NAMES
from codex_py.ui.repl.panels.forms import FormAsker, ListEntry, ListForm

_ABOUT: Final = {
    "auto": "by what the terminal says of itself",
    "dark": "for a dark ground",
    "light": "for a light ground",
    "mono": "no colours: weight and slant only",
}


async def choose_theme(asker: FormAsker, current: str, preview: Callable[[str], None]) -> str | None:
    """Let the user choose; `preview` draws in a theme, and gets the current one back when none is chosen."""
    entries = tuple(
        ListEntry(name, name, _ABOUT.get(name, ""), mark="●" if name == current else "○") for name in THEME_NAMES
    )
    start = THEME_NAMES.index(current) if current in THEME_NAMES else 0
    listing = ListForm(title="Theme", entries=entries, start=start, searchable=False)
    chosen: str | None = None
    try:
        chosen = await asker.pick(listing, on_move=preview)
    finally:
        if chosen is None:
            preview(current)
    return chosen

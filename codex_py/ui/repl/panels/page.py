"""A page to read: scrolled with the arrow keys, closed with Escape, `q` or Enter."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from codex_py.ui.repl.panels.drawing import Row, cells, padded, part, wrapped
from codex_py.ui.repl.panels.forms import FactSection, TextLine
from codex_py.ui.repl.panels.frame import Frame


class PagePanel(Frame[None]):
    """Sections of two columns, such as keys and what they do."""

    def __init__(self, title: str, sections: Sequence[FactSection]) -> None:
        super().__init__(title, None)
        self._sections = tuple(sections)
        self._top = 0
        self._last = 0

    def rows(self, width: int, height: int) -> list[Row]:
        rows = section_rows(self._sections, width)
        self._last = max(0, len(rows) - height)
        self._top = min(self._top, self._last)
        return rows[self._top : self._top + height]

    def keys(self) -> Sequence[tuple[str, str]]:
        return ((("↑↓", "scroll"),) if self._last else ()) + (("Esc", "close"),)

    def bind(self, keys: KeyBindings) -> None:
        ways = (("up", -1), ("k", -1), ("down", 1), ("j", 1), ("pageup", -10), ("pagedown", 10), (" ", 10))
        for key, by in (*ways, ("home", -(10**9)), ("end", 10**9)):
            keys.add(key, eager=True)(self._scroller(by))

        @keys.add("q", eager=True)
        @keys.add("?", eager=True)
        @keys.add("enter", eager=True)
        def _(event: KeyPressEvent) -> None:
            self.dismiss()

    def _scroller(self, by: int) -> Callable[[KeyPressEvent], None]:
        def scroll(event: KeyPressEvent) -> None:
            self._top = max(0, min(self._top + by, self._last))

        return scroll


def section_rows(sections: Sequence[FactSection], width: int) -> list[Row]:
    """The sections one below the other, their first columns equally wide."""
    names = [name for _, lines in sections for name, _ in lines]
    column = min(max(map(cells, names), default=0), max(8, width // 3))
    rows: list[Row] = []
    for heading, lines in sections:
        rows += [[], [part(heading, "dialog.title")]] if rows else [[part(heading, "dialog.title")]]
        for name, text in lines:
            below = wrapped(TextLine(text, "menu"), width, indent=" " * (column + 4))
            if cells(name) > column:
                rows += [[part(f"  {name}", "dialog.key")], *below]
            else:
                rows += [[part(f"  {padded(name, column)}  ", "dialog.key"), *below[0][1:]], *below[1:]]
    return rows

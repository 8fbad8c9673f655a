"""What is finished, on its way to the scrollback: drawn in the theme, a blank line where one belongs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from codex_py.protocol.events import Event
from codex_py.render.entry import Flow, ScrollbackEntry
from codex_py.render.event import render_event
from codex_py.render.notice import render_notice
from codex_py.render.theme import Theme
from codex_py.ui.repl.screen import Screen


class Printer:
    """The output sink of a session on a screen."""

    def __init__(self, screen: Screen, theme: Callable[[], Theme], cwd: Path) -> None:
        self._screen = screen
        self._flow = Flow()
        self._theme = theme
        # Paths below it are shown from there.
        self.cwd = cwd

    def note(self, text: str) -> None:
        self.show(render_notice(text))

    def fail(self, message: str, *, hint: str | None = None) -> None:
        self.show(render_notice(message, "error", hint=hint))

    def show(self, entry: ScrollbackEntry) -> None:
        self._screen.print_above(self._flow.lines(entry, width=self._screen.width, theme=self._theme()))

    def show_lines(self, lines: Sequence[str]) -> None:
        """Show what is drawn already."""
        self._screen.print_above(["", *lines] if self._flow.gap_before(ScrollbackEntry()) else lines)

    def event(self, event: Event, *, expanded: bool = False) -> None:
        entry = render_event(event, expanded=expanded, cwd=self.cwd)
        if entry is not None:
            self.show(entry)

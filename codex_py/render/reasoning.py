"""The model's reasoning: dim, on one line, and whole when it is asked for."""

from __future__ import annotations

import re
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from codex_py.render.entry import OneLine, ScrollbackEntry, line_of
from codex_py.render.markdown import render_markdown
from codex_py.text.truncate import count_lines

MARK: Final = "∴ "
_MARKUP: Final = re.compile(r"[*_`#]+")


def render_reasoning(text: str, *, expanded: bool) -> ScrollbackEntry | None:
    """A summary of thinking; folded it is its title and how much more there is."""
    if not text.strip():
        return None
    if expanded:
        whole = render_markdown(text, MARK, style="reasoning")
        return None if whole is None else ScrollbackEntry(_Dimmed(whole))
    title = _title_of(text)
    more = count_lines(text.strip()) - 1
    note = f" · {more} more line{'' if more == 1 else 's'}" if more else ""
    line = Text.assemble((MARK, "reasoning"), line_of(title, "reasoning"))
    return ScrollbackEntry(OneLine(line, Text(note, "dim")), spacing="dense")


def _title_of(text: str) -> str:
    """The first line of a summary without its markup."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return _MARKUP.sub("", first[:400]).strip()


class _Dimmed:
    """A body in which everything that has no colour of its own is dim."""

    def __init__(self, body: ScrollbackEntry) -> None:
        self._body = body

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        style = console.get_style("reasoning")
        for line in console.render_lines(self._body, options, style=style, pad=False, new_lines=True):
            yield from line

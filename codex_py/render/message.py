"""The user's messages and the model's."""

from __future__ import annotations

from typing import Final

from rich.text import Text

from codex_py.render.entry import Margin, OneLine, ScrollbackEntry, line_of
from codex_py.render.markdown import render_markdown
from codex_py.render.prose import WrappedProse
from codex_py.text.excerpt import ends_of

_PROMPT: Final = "› "
_MAX_LINES: Final = 200
_WIDEST: Final = 4000


def render_prompt(text: str) -> ScrollbackEntry:
    """The user's message as it was typed; of a very long text the ends."""
    lines = [line if len(line) <= _WIDEST else f"{line[:_WIDEST]}…" for line in ends_of(text.strip("\n"), _MAX_LINES)]
    body = WrappedProse("\n".join(lines).expandtabs(4), "prompt")
    return ScrollbackEntry(Margin(body, _PROMPT, " " * len(_PROMPT), style="prompt.mark"))


def render_message(text: str) -> ScrollbackEntry | None:
    """A whole message of the model; None when there is nothing in it."""
    return render_markdown(text)


def render_queued(text: str, *, steers: bool = False) -> ScrollbackEntry:
    """A message that waits, on one line: for the end of the running turn, or to be heard in it."""
    first, _, rest = text.strip().partition("\n")
    line = Text.assemble(("» ", "dim"), line_of(first[:_WIDEST], "dim"), (" …" if rest else "", "dim"))
    return ScrollbackEntry(OneLine(line, Text(" · steers", "accent") if steers else None), spacing="dense")

"""Draws what fills the context window, as a bar with a list below it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from codex_py.protocol.status import ContextUse
from codex_py.render.entry import Margin, ScrollbackEntry
from codex_py.render.status import describe_tokens

_NAMES: Final = {
    "base": "base instructions",
    "tools": "tools",
    "skills_list": "skills list",
    "injected_skills": "injected skills",
    "agents_md": "AGENTS.md",
    "host": "environment and notes",
    "messages": "messages",
    "calls": "tool calls",
    "outputs": "tool outputs",
    "reasoning": "reasoning",
}
# Sections differ by character as well as by colour.
_SIGNS: Final = "█▓▒░█▓▒░█▓"
_STYLES: Final = 8
_WIDEST: Final = 72
_FREE: Final = "·"


def render_context(use: ContextUse) -> ScrollbackEntry:
    """The window as a bar, then each section with its tokens and its share."""
    about = "" if use.measured else "≈ "
    total = f"{about}{use.total:,} tokens"
    if use.window:
        left = max(0, use.window - use.total)
        total += f" of {describe_tokens(use.window)} · {left / use.window:.0%} left"
        if use.compacted_at:
            total += f" · compacts at {describe_tokens(use.compacted_at)}"
    head = Margin(Text.assemble(("Context", "strong"), (f" · {total}", "dim")), "≡ ", style="accent")
    return ScrollbackEntry(head, _Bar(use))


class _Bar:
    def __init__(self, use: ContextUse) -> None:
        self._use = use

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        use = self._use
        width = min(_WIDEST, options.max_width - 4)
        if width >= 10:
            yield self._bar(width)
        whole = use.window or use.total
        for number, part in enumerate(use.sections):
            yield _row(number, _NAMES[part.name], part.tokens, whole)
        if use.window:
            free = max(0, use.window - use.total)
            yield Text.assemble((f"  {_FREE} ", "bar.free"), (f"{'free':<22}", "none"), _amount(free, whole))

    def _bar(self, width: int) -> Text:
        use = self._use
        cells = shares([part.tokens for part in use.sections], max(use.window or 0, use.total, 1), width)
        bar = Text("  ", no_wrap=True)
        for number, count in enumerate(cells):
            bar.append(_SIGNS[number % len(_SIGNS)] * count, f"bar.{number % _STYLES + 1}")
        return bar.append(_FREE * (width - sum(cells)), "bar.free")


def shares(amounts: Sequence[int], whole: int, width: int) -> list[int]:
    """The cells of each amount, `width` in all: every amount above zero gets at least one if there are enough."""
    cells = [max(1, round(amount * width / whole)) if amount > 0 else 0 for amount in amounts]
    while (excess := sum(cells) - width) > 0 and cells:
        largest = max(range(len(cells)), key=cells.__getitem__)
        cells[largest] -= min(excess, max(1, cells[largest] - 1))
    return cells


def _row(number: int, name: str, tokens: int, whole: int) -> Text:
    sign = _SIGNS[number % len(_SIGNS)]
    return Text.assemble(
        (f"  {sign} ", f"bar.{number % _STYLES + 1}"), (f"{name:<22}", "none"), _amount(tokens, whole), no_wrap=True
    )


def _amount(tokens: int, whole: int) -> tuple[str, str]:
    share = f"{tokens / whole:>6.1%}" if whole else ""
    return f"{describe_tokens(tokens):>7} {share}", "dim"

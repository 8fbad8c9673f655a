"""Draws messages of the user and the model, reasoning, the plan, what a turn has used, and what fills the context."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.text import Text

from codex_py.protocol.events import PlanStep, PlanUpdated
from codex_py.protocol.status import ContextUse
from codex_py.protocol.usage import Spending, TokenUsage
from codex_py.render.entry import Band, Margin, OneLine, ScrollbackEntry, line_of, words
from codex_py.render.layout import WrappedProse
from codex_py.render.markdown import render_markdown
from codex_py.render.status import describe_tokens
from codex_py.text.display import counted, describe_seconds, ends_of
from codex_py.text.tokens import count_lines

_PROMPT: Final = "› "
_MAX_LINES: Final = 200
_WIDEST: Final = 4000


def render_prompt(text: str) -> ScrollbackEntry:
    """The user's message as typed; a very long text is cut in the middle."""
    lines = [line if len(line) <= _WIDEST else f"{line[:_WIDEST]}…" for line in ends_of(text.strip("\n"), _MAX_LINES)]
    body = WrappedProse("\n".join(lines).expandtabs(4), "prompt")
    return ScrollbackEntry(Band(Margin(body, _PROMPT, " " * len(_PROMPT), style="prompt.mark"), "message.ground"))


def render_message(text: str) -> ScrollbackEntry | None:
    """A whole message of the model; None for an empty one."""
    return render_markdown(text)


def render_queued(text: str, *, steers: bool = False) -> ScrollbackEntry:
    """A queued message on one line; it waits for the end of the running turn, or `steers` it."""
    first, _, rest = text.strip().partition("\n")
    line = Text.assemble(("» ", "dim"), line_of(first[:_WIDEST], "dim"), (" …" if rest else "", "dim"))
    return ScrollbackEntry(OneLine(line, Text(" · steers", "accent") if steers else None), spacing="dense")


def render_turn_end(seconds: float, usage: TokenUsage, spent: Spending) -> ScrollbackEntry:
    """How long a turn took, its tokens, and what they cost where a price is known; tokens that a cache served are part
    of those that went in.
    """
    facts = [describe_seconds(seconds)]
    if usage.input_tokens or usage.output_tokens:
        cached = f" ({describe_tokens(usage.cached_input_tokens)} cached)" if usage.cached_input_tokens else ""
        facts.append(f"{describe_tokens(usage.input_tokens)} tokens in{cached}")
        facts.append(f"{describe_tokens(usage.output_tokens)} out")
    if spent.known_usd:
        facts.append(spent.in_words())
    note = "".join(f" · {fact}" for fact in facts[1:])
    return ScrollbackEntry(OneLine(Text(f"· {facts[0]}", "dim"), Text(note, "dim")), spacing="dense")


_REASONING_MARK: Final = "∴ "
_MARKUP: Final = re.compile(r"[*_`#]+")


def render_reasoning(text: str, *, expanded: bool) -> ScrollbackEntry | None:
    """A summary of reasoning; unless `expanded`, its title and the number of further lines."""
    if not text.strip():
        return None
    if expanded:
        whole = render_markdown(text, _REASONING_MARK, style="reasoning")
        return None if whole is None else ScrollbackEntry(_Dimmed(whole))
    title = _reasoning_title(text)
    more = count_lines(text.strip()) - 1
    note = f" · {counted(more, 'more line')}" if more else ""
    line = Text.assemble((_REASONING_MARK, "reasoning"), line_of(title, "reasoning"))
    return ScrollbackEntry(OneLine(line, Text(note, "dim")), spacing="dense")


def _reasoning_title(text: str) -> str:
    """The first line of a summary without its markup."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    return _MARKUP.sub("", first[:400]).strip()


class _Dimmed:
    """Draws a body dim, except where it has colours of its own."""

    def __init__(self, body: ScrollbackEntry) -> None:
        self._body = body

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        style = console.get_style("reasoning")
        for line in console.render_lines(self._body, options, style=style, pad=False, new_lines=True):
            yield from line


_STEP_MARKS: Final = {
    "completed": ("☑ ", "plan.done"),
    "in_progress": ("▸ ", "plan.now"),
    "pending": ("☐ ", "plan.todo"),
}


# A plan of more steps is shown in at most this many rows.
_MAX_STEPS: Final = 12


def is_done(plan: PlanUpdated) -> bool:
    """Whether every step is completed."""
    return all(step.status == "completed" for step in plan.steps)


def render_final_plan(plan: PlanUpdated) -> ScrollbackEntry:
    """The plan at the end of a turn; of a long plan, the part with the current step."""
    return render_plan(plan) if len(plan.steps) < _MAX_STEPS else render_plan_now(plan, _MAX_STEPS)


def render_plan(plan: PlanUpdated) -> ScrollbackEntry:
    """All steps of a plan, how many are done, and the explanation of the last change."""
    renderables: list[RenderableType] = [_plan_head(plan)]
    if plan.explanation.strip():
        renderables.append(Margin(words(plan.explanation.strip(), "dim"), "  ", "  "))
    for step in plan.steps:
        mark, style = _STEP_MARKS[step.status]
        renderables.append(Margin(line_of(step.text, style), f"  {mark}", "    ", style=style))
    return ScrollbackEntry(*renderables)


def render_plan_now(plan: PlanUpdated, rows: int) -> ScrollbackEntry:
    """A long plan in at most `rows` rows, at least three: the next step, those around it, and how many there are."""
    steps, max_steps = plan.steps, max(1, rows - 3)
    now = next((number for number, step in enumerate(steps) if step.status != "completed"), len(steps))
    first = max(0, min(now - max_steps // 3, len(steps) - max_steps))
    renderables: list[RenderableType] = [_plan_head(plan)]
    if first:
        renderables.append(_steps_left_out(first, "before"))
    renderables += [_step_line(step) for step in steps[first : first + max_steps]]
    if after := len(steps) - first - max_steps:
        renderables.append(_steps_left_out(after, "after"))
    return ScrollbackEntry(*renderables)


def _plan_head(plan: PlanUpdated) -> Text:
    done = sum(step.status == "completed" for step in plan.steps)
    return Text.assemble(("≡ ", "accent"), ("Plan", "strong"), (f" · {done} of {len(plan.steps)} done", "dim"))


def _step_line(step: PlanStep) -> OneLine:
    mark, style = _STEP_MARKS[step.status]
    return OneLine(Text.assemble((f"  {mark}", style), line_of(step.text, style)))


def _steps_left_out(number: int, where: str) -> Text:
    return Text(f"    … {number} more {where}", "dim")


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
_BAR_WIDTH: Final = 72
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
        width = min(_BAR_WIDTH, options.max_width - 4)
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

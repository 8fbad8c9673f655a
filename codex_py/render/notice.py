"""The program's own messages: warnings, errors and what to do about them, and what the turn did besides working."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from rich.text import Text

from codex_py.protocol.events import ContextCompacted, Retrying, SkillUsed, WebSearched
from codex_py.protocol.reports import patch_was_declined
from codex_py.render.entry import Margin, OneLine, ScrollbackEntry, line_of, words
from codex_py.render.path import relative_path
from codex_py.text.age import describe_seconds
from codex_py.text.excerpt import ends_of

Level: TypeAlias = Literal["note", "warning", "error"]

_LEVELS: Final = {"note": ("· ", "dim"), "warning": ("! ", "warn"), "error": ("✗ ", "bad")}
_REASON_LINES: Final = 10
_USES: Final = {"explicit": "used", "read": "read", "script": "ran a script of"}


def render_notice(message: str, level: Level = "note", *, hint: str | None = None) -> ScrollbackEntry:
    """A message of the program; the hint stands below."""
    mark, style = _LEVELS[level]
    body = words(message.strip(), style if level == "note" else "none")
    if hint:
        body.append_text(words(f"\n{hint}", "dim"))
    return ScrollbackEntry(Margin(body, mark, "  ", style=style), spacing="dense" if level == "note" else "apart")


def render_refused_patch(reason: str, *, expanded: bool = False) -> ScrollbackEntry:
    """A patch of which nothing was written, and why; if the user declined it, without the text sent to the model.

    Of a long reason, with the lines that were looked for, the ends are shown unless it is `expanded`.
    """
    if patch_was_declined(reason):
        return ScrollbackEntry(
            OneLine(Text.assemble(("⊘ ", "warn"), "patch"), Text(" · declined", "dim")), spacing="dense"
        )
    text = reason.strip() if expanded else "\n".join(ends_of(reason.strip(), _REASON_LINES))
    return ScrollbackEntry(Margin(words(text, "dim"), "✗ ", "  ", style="bad"), spacing="dense")


def render_answer(question: str, answers: Sequence[str]) -> ScrollbackEntry:
    """The model's question, and the user's answer."""
    body = words(question.strip(), "dim")
    reply = Margin(words("\n".join(answers).strip()), "  ↳ ", "    ") if answers else Text("  ↳ no answer", "dim")
    return ScrollbackEntry(Margin(body, "? ", "  ", style="accent"), reply)


def render_retry(event: Retrying) -> ScrollbackEntry:
    """A request that is sent again."""
    count = f"{event.attempt} of {event.limit}" if event.limit is not None else f"{event.attempt}"
    when = f" in {describe_seconds(event.delay)}" if event.delay >= 1 else ""
    note = Text(f" · trying again{when} ({count})", "dim")
    return ScrollbackEntry(OneLine(Text.assemble(("↻ ", "warn"), line_of(event.message)), note), spacing="dense")


def render_skill(event: SkillUsed, *, cwd: Path | None = None) -> ScrollbackEntry:
    """A skill that was put before the model, or that a command used."""
    where = f"{event.scope} · {relative_path(event.path, cwd)}"
    return _skill(_USES[event.kind], event.name, where)


def render_stored_skill(name: str, path: Path, *, cwd: Path | None = None) -> ScrollbackEntry:
    """A skill that was put before the model in an earlier run; the kind of skill is not stored."""
    return _skill(_USES["explicit"], name, relative_path(path, cwd))


def render_search(event: WebSearched) -> ScrollbackEntry:
    """What the model looked up in the web."""
    action_type, url = event.action.get("type"), event.action.get("url")
    verb = "opened" if action_type == "open_page" and isinstance(url, str) else "searched the web for"
    sought = url if action_type == "open_page" and isinstance(url, str) else event.query
    line = Text.assemble(("⌕ ", "search"), (f"{verb} ", "none"), line_of(sought, "search"))
    return ScrollbackEntry(OneLine(line), spacing="dense")


def render_compaction(event: ContextCompacted) -> ScrollbackEntry:
    """How much smaller the context has become."""
    line = Text.assemble(
        ("≈ ", "accent"), "Context compacted", (f" · {event.before_tokens:,} → {event.after_tokens:,} tokens", "dim")
    )
    return ScrollbackEntry(line)


def _skill(use: str, name: str, where: str) -> ScrollbackEntry:
    line = Text.assemble(("◆ ", "skill"), f"{use} skill ", line_of(name, "skill"))
    return ScrollbackEntry(OneLine(line, Text.assemble((" · ", "dim"), line_of(where, "dim"))), spacing="dense")

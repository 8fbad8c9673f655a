"""Draws an event as its scrollback entry, and notices such as warnings and errors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from rich.text import Text

from codex_py.protocol import events
from codex_py.protocol.events import ContextCompacted, Retrying, SkillSuggested, SkillUsed, WebSearched
from codex_py.protocol.readable import describe_options, patch_was_declined
from codex_py.render.agents import render_agent, render_refusal
from codex_py.render.entry import Margin, OneLine, ScrollbackEntry, line_of, words
from codex_py.render.markdown import render_markdown
from codex_py.render.message import render_message, render_plan, render_prompt, render_reasoning
from codex_py.render.patch import render_changes
from codex_py.render.status import relative_path
from codex_py.render.tool_call import refusal_words, render_command, render_input, render_mcp_call, render_tool_call
from codex_py.text.display import describe_changes, describe_seconds, ends_of

Level: TypeAlias = Literal["note", "warning", "error"]

_LEVELS: Final = {"note": ("· ", "dim"), "warning": ("! ", "warn"), "error": ("✗ ", "bad")}
_REASON_LINES: Final = 10
_USES: Final = {"explicit": "used", "read": "read", "script": "ran a script of"}


def render_notice(message: str, level: Level = "note", *, hint: str | None = None) -> ScrollbackEntry:
    """A message of this program, with the hint below it."""
    mark, style = _LEVELS[level]
    body = words(message.strip(), "none" if level == "warning" else style)
    if hint:
        body.append_text(words(f"\n{hint}", "dim"))
    return ScrollbackEntry(Margin(body, mark, "  ", style=style), spacing="dense" if level == "note" else "apart")


def render_refused_patch(reason: str, *, expanded: bool = False) -> ScrollbackEntry:
    """A patch that was not applied, and why; if the user declined it, without the text sent to the model.

    A long reason is shortened in the middle unless `expanded`.
    """
    if patch_was_declined(reason):
        line = OneLine(Text.assemble(("⊘ ", "warn"), "patch"), Text(" · declined", "dim"))
        return ScrollbackEntry(line, *refusal_words(reason), spacing="dense")
    text = reason.strip() if expanded else "\n".join(ends_of(reason.strip(), _REASON_LINES))
    return ScrollbackEntry(Margin(words(text, "dim"), "✗ ", "  ", style="bad"), spacing="dense")


def render_answer(question: str, answers: Sequence[str]) -> ScrollbackEntry:
    """The model's question, and the user's answer."""
    body = words(question.strip(), "dim")
    reply = Margin(words("\n".join(answers).strip()), "  ↳ ", "    ") if answers else Text("  ↳ no answer", "dim")
    return ScrollbackEntry(Margin(body, "? ", "  ", style="accent"), reply)


def render_answer_aside(question: str, answer: str) -> ScrollbackEntry:
    """A question beside the conversation, and the model's answer."""
    body = render_markdown(answer, "  ")
    title = Text.assemble(("? ", "accent"), ("Side question", "strong"), (" · not part of the conversation", "dim"))
    subject = Margin(words(question.strip(), "dim"))
    return ScrollbackEntry(OneLine(title), subject, Text(), *([body] if body else []))


def render_retry(event: Retrying) -> ScrollbackEntry:
    """A request that is sent again."""
    when = f" in {describe_seconds(event.delay)}" if event.delay >= 1 else ""
    line = Text.assemble(("↻ ", "warn"), f"{describe_attempt(event)}{when}", (" · ", "dim"), line_of(event.message))
    return ScrollbackEntry(OneLine(line), spacing="dense")


def describe_attempt(event: Retrying) -> str:
    """Which attempt comes next: `attempt 2 of 5`."""
    return f"attempt {event.attempt}" + (f" of {event.limit}" if event.limit is not None else "")


def render_skill(event: SkillUsed, *, cwd: Path | None = None) -> ScrollbackEntry:
    """A skill that was injected, or that a command used."""
    about = f" · {describe_options(event.applied)}" if event.applied else ""
    where = f"{event.scope} · {relative_path(event.path, cwd)}{about}"
    return _skill(_USES[event.kind], event.name, where)


def render_named_skill(event: SkillSuggested, *, cwd: Path | None = None) -> ScrollbackEntry:
    """A skill that the user named in words, and that the model was pointed to."""
    return _skill("named", event.name, f"{event.scope} · {relative_path(event.path, cwd)}")


def render_stored_skill(name: str, path: Path, *, cwd: Path | None = None) -> ScrollbackEntry:
    """A skill that was injected in an earlier run; its scope is not stored."""
    return _skill(_USES["explicit"], name, relative_path(path, cwd))


def render_search(event: WebSearched) -> ScrollbackEntry:
    """A web search of the model, or a page that it opened."""
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


def render_event(event: events.Event, *, expanded: bool, cwd: Path | None = None) -> ScrollbackEntry | None:
    """The scrollback entry of an event; None if it has none.

    `expanded` shows reasoning, outputs and diffs in full. Paths below `cwd` are relative to it. A message that
    `MarkdownStream` has drawn while it streamed must not be drawn again.
    """
    match event:
        case events.TurnStarted(_, messages) | events.Steered(_, messages, False):
            return render_prompt("\n".join(messages)) if any(messages) else None
        case events.MessageDone(text):
            return render_message(text)
        case events.ReasoningDone(text):
            return render_reasoning(text, expanded=expanded)
        case events.PatchFinished(_, changes, ok, output):
            return render_changes(changes, ok=ok, output=output, expanded=expanded, cwd=cwd)
        case events.CommandFinished():
            return render_command(event, expanded=expanded)
        case events.McpCallFinished():
            return render_mcp_call(event, expanded=expanded)
        case events.ToolCallFinished():
            return render_tool_call(event, expanded=expanded)
        case events.CommandInput():
            return render_input(event)
        case events.PlanUpdated():
            return render_plan(event)
        case events.PatchRejected(_, reason):
            return render_refused_patch(reason, expanded=expanded)
        case _:
            return _remark(event, cwd)


def _remark(event: events.Event, cwd: Path | None) -> ScrollbackEntry | None:
    match event:
        case events.AgentChanged():
            return render_agent(event, expanded=False)
        case events.AgentCallFinished(_, tool, _, _, str(reason)) if reason != "interrupted":
            return render_refusal("wait_agent" if tool == "wait" else tool, reason)
        case events.SkillUsed():
            return render_skill(event, cwd=cwd)
        case events.SkillSuggested(named=True):
            return render_named_skill(event, cwd=cwd)
        case events.WebSearched():
            return render_search(event)
        case events.Warned(message):
            return render_notice(message, "warning")
        case events.Retrying():
            return render_retry(event)
        case events.ContextCompacted():
            return render_compaction(event)
        case events.FilesChanged(_, changed, deleted):
            line = Text.assemble(("± ", "accent"), describe_changes(changed, deleted), (" · /undo", "dim"))
            return ScrollbackEntry(OneLine(line))
        case events.TurnFailed(_, message):
            return render_notice(message, "error")
        case events.TurnInterrupted():
            return render_notice("Interrupted. Type what to do instead.", "warning")
        case _:
            return None

"""Events as plain lines, for a terminal that cannot be drawn on and for a screen reader: words, no signs or colours."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from codex_py.protocol import events
from codex_py.protocol.readable import patch_was_declined
from codex_py.protocol.status import AgentState
from codex_py.render.titles import command_title, relative_path
from codex_py.text.display import describe_seconds, ends_of
from codex_py.text.sanitize import sanitize, sanitize_line

_STEPS: Final = {"completed": "done", "in_progress": "doing", "pending": "to do"}
_USES: Final = {"explicit": "used", "read": "read", "script": "ran a script"}
_ENDS: Final = {"completed": "is done", "errored": "failed", "interrupted": "was interrupted", "shutdown": "is closed"}
_CHANGES: Final = {"add": "added", "delete": "deleted", "update": "edited"}


def plain_lines(event: events.Event, *, expanded: bool, cwd: Path | None = None) -> list[str]:
    """The lines printed for an event; none for most. Every line says in words what it is."""
    match event:
        case events.MessageDone(text):
            return _titled("codex", text)
        case events.ReasoningDone(text):
            return _titled("thinking", text) if expanded else []
        case events.CommandStarted(_, command):
            return [f"running: {_line(command_title(command))}"]
        case events.McpCallStarted(_, server, tool):
            return [f"calling {_line(tool)} of {_line(server)}"]
        case events.McpCallFinished():
            return _call_ending(event, expanded=expanded)
        case events.ToolCallFinished(_, tool, _, ok, seconds, output):
            how = "succeeded" if ok else "failed"
            body = output if expanded or not ok else ""
            return [f"{_line(tool)} {how} in {describe_seconds(seconds)}", *_indented(body)]
        case events.CommandFinished():
            return [_ending(event), *_output(event, expanded=expanded)]
        case events.PatchFinished(_, changes, True):
            return [line for change in changes for line in _change(change, cwd)]
        case events.PatchFinished(_, _, False, output):
            return ["patch failed:", *ends_of(output)]
        case events.PlanUpdated(steps):
            return ["plan:", *(f"  {_STEPS[step.status]}: {_line(step.text)}" for step in steps)]
        case _:
            return _remark(event)


def _remark(event: events.Event) -> list[str]:
    match event:
        case events.SkillUsed(name, scope, _, use):
            return [f"skill {_USES[use]}: {_line(name)} ({scope})"]
        case events.AgentChanged(agent, was) if agent.status not in (was, "pending_init"):
            return _agent(agent)
        case events.WebSearched(_, query):
            return [f"web search: {_line(query)}"]
        case events.CommandInput(_, command, text) if text:
            return [f"typed {_line(text)} into: {_line(command_title(command))}"]
        case events.PatchRejected(_, reason):
            return ["patch declined" if patch_was_declined(reason) else _line(reason)]
        case events.Warned(message):
            return _titled("warning", message)
        case events.Retrying():
            return [f"trying again: {_line(event.message)}"]
        case events.CompactionStarted(_, tokens):
            return [f"compacting the context: about {tokens:,} tokens"]
        case events.ContextCompacted(before, after):
            return [f"context compacted: {before:,} tokens before, {after:,} now"]
        case events.TurnFailed(_, message):
            return _titled("error", message)
        case events.TurnInterrupted():
            return ["interrupted"]
        case _:
            return []


def _agent(agent: AgentState) -> list[str]:
    if agent.is_at_work:
        return [f"{_line(agent.title)} works on: {_line(agent.task)}"]
    return [f"{_line(agent.title)} {_ENDS.get(agent.status, agent.status)}", *_indented(agent.message or "")]


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in ends_of(text)]


def _titled(title: str, text: str) -> list[str]:
    lines = sanitize(text).strip("\n").split("\n")
    return [f"{title}: {lines[0]}", *lines[1:]] if any(lines) else []


def _line(text: str) -> str:
    return sanitize_line(" ".join(text.split()))


def _ending(event: events.CommandFinished) -> str:
    took = describe_seconds(event.seconds)
    match event.status, event.exit_code:
        case "in_progress", _:
            how = f"still running after {took}"
        case "declined", _:
            how = "declined"
        case _, 0:
            how = f"succeeded in {took}"
        case _, None:
            how = f"stopped after {took}" if event.seconds else "stopped"
        case _, code:
            how = f"failed with exit code {code} in {took}"
    return f"command {how}: {_line(command_title(event.command))}"


def _call_ending(event: events.McpCallFinished, *, expanded: bool) -> list[str]:
    how = {"completed": "succeeded in", "failed": "failed in", "declined": "declined after"}[event.status]
    text = event.error or (event.output if expanded else "")
    return [
        f"{_line(event.tool)} of {_line(event.server)} {how} {describe_seconds(event.seconds)}",
        *(f"  {line}" for line in ends_of(text)),
    ]


def _output(event: events.CommandFinished, *, expanded: bool) -> list[str]:
    if not (expanded or event.by_user or event.status == "failed"):
        return []
    return [f"  {line}" for line in ends_of(event.output, 400 if expanded else 24)]


def _change(change: events.FileChange, cwd: Path | None) -> list[str]:
    path = relative_path(change.path, cwd)
    moved = f", moved to {change.move_path}" if change.move_path else ""
    body = [line for line in sanitize(change.diff).splitlines() if not line.startswith(("--- ", "+++ "))]
    return [_line(f"{_CHANGES[change.kind]} {path}{moved}"), *(f"  {line}" for line in ends_of("\n".join(body), 60))]

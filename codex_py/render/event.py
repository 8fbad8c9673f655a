"""The single entry point from an event to its entry in the scrollback."""

from __future__ import annotations

from pathlib import Path

from codex_py.protocol import events
from codex_py.render.agents import render_agent, render_refusal
from codex_py.render.command import render_command, render_input
from codex_py.render.entry import ScrollbackEntry
from codex_py.render.message import render_message, render_prompt
from codex_py.render.notice import (
    render_compaction,
    render_notice,
    render_refused_patch,
    render_retry,
    render_search,
    render_skill,
)
from codex_py.render.patch import render_changes
from codex_py.render.plan import render_plan
from codex_py.render.reasoning import render_reasoning
from codex_py.render.tool_call import render_mcp_call, render_tool_call


def render_event(event: events.Event, *, expanded: bool, cwd: Path | None = None) -> ScrollbackEntry | None:
    """What is shown of an event once and for all; None when that is nothing.

    `expanded` shows reasoning, outputs and diffs whole. Paths below `cwd` are shown from there. A message that was
    drawn while it came, by `MarkdownStream`, is not to be drawn again.
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
        case events.WebSearched():
            return render_search(event)
        case events.Warned(message):
            return render_notice(message, "warning")
        case events.Retrying():
            return render_retry(event)
        case events.ContextCompacted():
            return render_compaction(event)
        case events.TurnFailed(_, message):
            return render_notice(message, "error")
        case events.TurnInterrupted():
            return render_notice("interrupted: tell it what to do differently", "warning")
        case _:
            return None

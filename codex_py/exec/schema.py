"""The published line types of `exec --json`: the format of `codex exec --json`, field for field.

Scripts and SDKs parse these, so names, order and nesting never change; new information becomes a new field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, TypeAlias

from codex_py.protocol import events
from codex_py.protocol.failures import FailureCode
from codex_py.protocol.usage import Spending, TokenUsage

Line: TypeAlias = dict[str, Any]
Item: TypeAlias = dict[str, Any]
CommandStatus: TypeAlias = Literal["in_progress", "completed", "failed", "declined"]
PatchStatus: TypeAlias = Literal["completed", "failed"]

TURN_STARTED: Final[Line] = {"type": "turn.started"}
NO_USAGE: Final = TokenUsage()


def thread_started(thread_id: str) -> Line:
    return {"type": "thread.started", "thread_id": thread_id}


def turn_completed(
    event: events.TurnCompleted, skills: Sequence[events.SkillUsed | events.SkillSuggested] = ()
) -> Line:
    """`usage` counts the whole thread, earlier runs included; `turn_usage` is of this turn.

    `turn_usage`, `skills_used` and `skills_suggested` are additions of this program. They are left out when the turn is
    the whole thread and when no skill was used or suggested, for strict readers of the published types.
    """
    costs, usage = event.costs, {**_counts(event.usage), **_costs(event.costs.session)}
    if costs.agents.requests:
        usage["agents_cost_usd"] = costs.agents.known_usd
    is_whole = event.turn_usage == event.usage
    own = {} if is_whole else {"turn_usage": {**_counts(event.turn_usage), **_costs(costs.turn)}}
    return {"type": "turn.completed", "usage": usage, **own, **_skills_used(skills)}


def skill_used(use: events.SkillUsed) -> dict[str, Any]:
    """`kind` is `explicit` (named by the user), `read` or `script` (a command read it or ran its script).

    `applied` has the fields of the front matter that hold for the turn, where there are any.
    """
    applied = {"applied": dict(use.applied)} if use.applied else {}
    return {"name": use.name, "scope": use.scope, "path": str(use.path), "kind": use.kind, **applied}


def turn_failed(
    message: str, code: FailureCode, skills: Sequence[events.SkillUsed | events.SkillSuggested] = ()
) -> Line:
    """`code` is an addition of this program; `skills_used` and `skills_suggested` are as in `turn_completed`."""
    return {"type": "turn.failed", "error": {"message": message, "code": code}, **_skills_used(skills)}


def error(message: str) -> Line:
    return {"type": "error", "message": message}


def item_started(item: Item) -> Line:
    return {"type": "item.started", "item": item}


def item_updated(item: Item) -> Line:
    return {"type": "item.updated", "item": item}


def item_completed(item: Item) -> Line:
    return {"type": "item.completed", "item": item}


def agent_message(item_id: str, text: str) -> Item:
    return {"id": item_id, "type": "agent_message", "text": text}


def reasoning(item_id: str, text: str) -> Item:
    return {"id": item_id, "type": "reasoning", "text": text}


def error_item(item_id: str, message: str) -> Item:
    """A warning: the turn goes on."""
    return {"id": item_id, "type": "error", "message": message}


def command_started(item_id: str, event: events.CommandStarted) -> Item:
    return _command(item_id, event.command, "", None, "in_progress")


def command_finished(item_id: str, event: events.CommandFinished) -> Item:
    return _command(item_id, event.command, event.output, event.exit_code, event.status)


def file_change(item_id: str, changes: Sequence[events.FileChange], status: PatchStatus) -> Item:
    """A patch that has ended. Its start has no line, because one of the SDKs refuses it."""
    listed = [{"path": str(change.path), "kind": change.kind} for change in changes]
    return {"id": item_id, "type": "file_change", "changes": listed, "status": status}


def mcp_call_started(item_id: str, event: events.McpCallStarted) -> Item:
    return _mcp_call(item_id, event, None, None, "in_progress")


def mcp_call_finished(item_id: str, event: events.McpCallFinished) -> Item:
    """A call that was not permitted counts as failed, with the reason as its error."""
    error = None if event.error is None else {"message": event.error}
    return _mcp_call(item_id, event, event.result, error, "completed" if event.status == "completed" else "failed")


def web_search(item_id: str, event: events.WebSearched) -> Item:
    return {"id": item_id, "type": "web_search", "query": event.query, "action": event.action}


def agent_call_started(item_id: str, thread_id: str, event: events.AgentCallStarted) -> Item:
    return _agent_call(item_id, thread_id, event, event.targets, "in_progress")


def agent_call_finished(item_id: str, thread_id: str, event: events.AgentCallFinished) -> Item:
    """`agents_states` are by thread; `error` is an addition of this program, only there when the call failed."""
    item = _agent_call(
        item_id, thread_id, event, [agent.id for agent in event.agents], "failed" if event.error else "completed"
    )
    states = {agent.id: {"status": agent.status, "message": agent.message} for agent in event.agents}
    return {**item, "agents_states": states, **({"error": {"message": event.error}} if event.error else {})}


def context_compaction(item_id: str, event: events.ContextCompacted) -> Item:
    """The history was replaced by a summary; an addition of this program. The tokens are estimates."""
    return {
        "id": item_id,
        "type": "context_compaction",
        "before_tokens": event.before_tokens,
        "after_tokens": event.after_tokens,
        "how": event.how,
        "reason": event.reason,
    }


def todo_list(item_id: str, steps: Sequence[events.PlanStep]) -> Item:
    """The model's list of steps; a step in progress is not completed."""
    items = [{"text": step.text, "completed": step.status == "completed"} for step in steps]
    return {"id": item_id, "type": "todo_list", "items": items}


def _counts(usage: TokenUsage) -> dict[str, float | None]:
    return {
        "input_tokens": usage.input_tokens,
        "cached_input_tokens": usage.cached_input_tokens,
        "cache_write_input_tokens": usage.cache_write_input_tokens,
        "output_tokens": usage.output_tokens,
        "reasoning_output_tokens": usage.reasoning_output_tokens,
    }


def _costs(spending: Spending) -> dict[str, float | None]:
    """Additions of this program: null where a price is unknown, and then what is known of the cost."""
    if not spending.unpriced:
        return {"cost_usd": spending.usd}
    known = {"known_cost_usd": spending.usd} if spending.usd else {}
    return {"cost_usd": None, **known, "unpriced_requests": spending.unpriced}


def skill_suggested(suggested: events.SkillSuggested) -> dict[str, Any]:
    """`named` is there where the user named the skill in words."""
    named = {"named": True} if suggested.named else {}
    return {"name": suggested.name, "scope": suggested.scope, "path": str(suggested.path), **named}


def _skills_used(skills: Sequence[events.SkillUsed | events.SkillSuggested]) -> dict[str, Any]:
    used = [skill_used(skill) for skill in skills if isinstance(skill, events.SkillUsed)]
    suggested = [skill_suggested(skill) for skill in skills if isinstance(skill, events.SkillSuggested)]
    return {
        **({"skills_used": used} if used else {}),
        **({"skills_suggested": suggested} if suggested else {}),
    }


def _command(item_id: str, command: str, output: str, exit_code: int | None, status: CommandStatus) -> Item:
    """A declined command has the status `failed`, because the SDKs know no other; `declined` is an addition."""
    return {
        "id": item_id,
        "type": "command_execution",
        "command": command,
        "aggregated_output": output,
        "exit_code": exit_code,
        "status": "failed" if status == "declined" else status,
        **({"declined": True} if status == "declined" else {}),
    }


def _agent_call(
    item_id: str,
    thread_id: str,
    event: events.AgentCallStarted | events.AgentCallFinished,
    receivers: Sequence[str],
    status: str,
) -> Item:
    return {
        "id": item_id,
        "type": "collab_tool_call",
        "tool": event.tool,
        "sender_thread_id": thread_id,
        "receiver_thread_ids": list(receivers),
        "prompt": event.prompt,
        "agents_states": {},
        "status": status,
    }


def _mcp_call(
    item_id: str,
    event: events.McpCallStarted | events.McpCallFinished,
    result: dict[str, Any] | None,
    error: dict[str, str] | None,
    status: str,
) -> Item:
    return {
        "id": item_id,
        "type": "mcp_tool_call",
        "server": event.server,
        "tool": event.tool,
        "arguments": event.arguments,
        "result": result,
        "error": error,
        "status": status,
    }

"""Thread items and turns in the protocol's words. Pure: an event in, an object out."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import count
from typing import Any, Final, TypeAlias

from codex_py.protocol import events
from codex_py.protocol.encoding import as_list, as_object, decode_or_none
from codex_py.protocol.status import AgentState, AgentStatus, AgentTool
from codex_py.rollout.stored_turns import PastItem, PastTurn, PastUserMessage

Item: TypeAlias = dict[str, Any]

_COMMAND: Final = {"in_progress": "inProgress", "completed": "completed", "failed": "failed", "declined": "declined"}
_AGENT_TOOLS: Final[dict[AgentTool, str]] = {
    "spawn_agent": "spawnAgent",
    "send_input": "sendInput",
    "wait": "wait",
    "close_agent": "closeAgent",
}
_AGENT_STATES: Final[dict[AgentStatus, str]] = {"pending_init": "pendingInit", "not_found": "notFound"}
_SEARCHES: Final = {"search": "search", "open_page": "openPage", "find_in_page": "findInPage"}


def user_message(item_id: str, content: Sequence[Item]) -> Item:
    """`content` are inputs in the form in which clients send them."""
    return {"type": "userMessage", "id": item_id, "clientId": None, "content": list(content)}


def text_content(text: str) -> Item:
    return {"type": "text", "text": text, "text_elements": []}


def agent_message(item_id: str, text: str, phase: str | None = None) -> Item:
    return {
        "type": "agentMessage",
        "id": item_id,
        "text": text,
        "phase": phase,
        "memoryCitation": None,
        "moderation": None,
        "delivery": None,
        "questions": None,
    }


def reasoning(item_id: str, text: str) -> Item:
    return {"type": "reasoning", "id": item_id, "summary": [text] if text else [], "content": []}


def command_started(item_id: str, command: str, cwd: object, *, by_user: bool = False) -> Item:
    return {
        "type": "commandExecution",
        "id": item_id,
        "command": command,
        "cwd": str(cwd),
        "processId": None,
        "source": "userShell" if by_user else "agent",
        "status": "inProgress",
        "commandActions": [{"type": "unknown", "command": command}],
        "aggregatedOutput": None,
        "exitCode": None,
        "durationMs": None,
        "pluginId": None,
        "scriptPath": None,
    }


def command_finished(item_id: str, event: events.CommandFinished) -> Item:
    return {
        **command_started(item_id, event.command, event.cwd, by_user=event.by_user),
        "status": _COMMAND[event.status],
        "aggregatedOutput": event.output,
        "exitCode": event.exit_code,
        "durationMs": milliseconds(event.seconds),
    }


def file_change(item_id: str, changes: Sequence[events.FileChange], status: str) -> Item:
    """`status` is `inProgress`, `completed`, `failed` or `declined`."""
    return {"type": "fileChange", "id": item_id, "changes": [_change(change) for change in changes], "status": status}


def mcp_call_started(item_id: str, server: str, tool: str, arguments: object) -> Item:
    return {
        "type": "mcpToolCall",
        "id": item_id,
        "server": server,
        "tool": tool,
        "status": "inProgress",
        "arguments": arguments,
        "appContext": None,
        "mcpAppUi": None,
        "pluginId": None,
        "readOnlyHint": None,
        "result": None,
        "error": None,
        "durationMs": None,
    }


def mcp_call_finished(item_id: str, event: events.McpCallFinished) -> Item:
    result = None
    if event.result is not None:
        structured = event.result.get("structured_content")
        result = {"content": as_list(event.result.get("content")), "structuredContent": structured, "_meta": None}
    return {
        **mcp_call_started(item_id, event.server, event.tool, event.arguments),
        "status": "completed" if event.status == "completed" else "failed",
        "result": result,
        "error": None if event.error is None else {"message": event.error},
        "durationMs": milliseconds(event.seconds),
    }


def web_search(item_id: str, event: events.WebSearched) -> Item:
    action_type = _SEARCHES.get(str(event.action.get("type")), "other")
    fields = {
        "search": {"query": event.query, "queries": None},
        "openPage": {"url": event.action.get("url")},
        "findInPage": {"url": event.action.get("url"), "pattern": event.action.get("pattern")},
    }
    return {
        "type": "webSearch",
        "id": item_id,
        "query": event.query,
        "action": {"type": action_type, **fields.get(action_type, {})},
        "results": None,
    }


def agent_call(item_id: str, thread_id: str, event: events.AgentCallStarted | events.AgentCallFinished) -> Item:
    ended = isinstance(event, events.AgentCallFinished)
    agents = event.agents if ended else ()
    status = "inProgress" if not ended else "failed" if event.error else "completed"
    return {
        "type": "collabAgentToolCall",
        "id": item_id,
        "tool": _AGENT_TOOLS[event.tool],
        "status": status,
        "senderThreadId": thread_id,
        "receiverThreadIds": [agent.id for agent in agents] if ended else list(event.targets),
        "prompt": event.prompt,
        "model": None,
        "reasoningEffort": None,
        "agentsStates": {agent.id: _agent_state(agent) for agent in agents},
    }


def compaction(item_id: str) -> Item:
    return {"type": "contextCompaction", "id": item_id}


def plan(item_id: str, text: str) -> Item:
    return {"type": "plan", "id": item_id, "text": text}


def numbered(turn_id: str, number: int) -> str:
    """The id of an item without the id of a call: the same while it is streamed and when the thread is read later."""
    return f"{turn_id}-{number}"


def past_item(item_id: str, past: PastItem) -> Item | None:
    """An item of an earlier turn; None where the protocol has no item for it."""
    match past.happened:
        case PastUserMessage(text, pictures):
            content = [text_content(text)] if text else []
            return user_message(item_id, [*({"type": "image", "url": url} for url in pictures), *content])
        case events.MessageDone(text):
            return agent_message(item_id, text)
        case events.ReasoningDone(text):
            return reasoning(item_id, text)
        case events.CommandFinished() as event:
            return command_finished(item_id, event)
        case events.PatchFinished(_, changes, ok):
            return file_change(item_id, changes, "completed" if ok else "failed")
        case events.ToolCallFinished() as event:
            return _past_tool_call(item_id, event)
        case events.WebSearched() as event:
            return web_search(item_id, event)
        case events.ContextCompacted():
            return compaction(item_id)
        case _:
            return None


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def milliseconds(seconds: float) -> int:
    return round(seconds * 1000)


def _change(change: events.FileChange) -> Item:
    change_type: Item = {"type": change.kind}
    if change.kind == "update":
        change_type["move_path"] = None if change.move_path is None else str(change.move_path)
    return {"path": str(change.path), "kind": change_type, "diff": _bare_diff(change)}


def _bare_diff(change: events.FileChange) -> str:
    """A diff as the protocol has it: the content of a file that is added or deleted, else the hunks without headers."""
    lines = change.diff.splitlines(keepends=True)
    body = lines[2:] if change.diff.startswith("--- ") else lines
    sign = {"add": "+", "delete": "-"}.get(change.kind)
    if sign is None:
        return "".join(body)
    return "".join(line[1:] for line in body if line.startswith(sign))


def _past_tool_call(item_id: str, event: events.ToolCallFinished) -> Item | None:
    """A call of an MCP server's tool; the others have events of their own."""
    server, _, tool = event.tool.removeprefix("mcp__").rpartition(".")
    if not tool or not event.tool.startswith("mcp__"):
        return None
    arguments = as_object(decode_or_none(event.arguments))
    content = [{"type": "text", "text": event.output}]
    return {
        **mcp_call_started(item_id, server, tool, arguments),
        "status": "completed" if event.ok else "failed",
        "result": {"content": content, "structuredContent": None, "_meta": None},
    }


def _agent_state(agent: AgentState) -> Item:
    return {"status": _AGENT_STATES.get(agent.status, agent.status), "message": agent.message}


def turn_payload(
    turn_id: str,
    status: str = "inProgress",
    *,
    items: Sequence[Item] | None = None,
    error: dict[str, Any] | None = None,
    began: float | None = None,
    ended: float | None = None,
) -> dict[str, Any]:
    """A turn; times are seconds since the epoch. `items`, if any, are a summary of it."""
    took = None if began is None or ended is None else max(0, round((ended - began) * 1000))
    return {
        "id": turn_id,
        "rootTurnId": turn_id,
        "items": list(items or ()),
        "itemsView": "notLoaded" if items is None else "summary",
        "status": status,
        "error": error,
        "startedAt": None if began is None else int(began),
        "completedAt": None if ended is None else int(ended),
        "durationMs": took,
    }


def past_turn(turn: PastTurn, *, running: str | None) -> dict[str, Any]:
    """A turn of a stored session with all its items; `running` is the id of the running turn.

    A turn without an end in the file was killed, which counts as interrupted.
    """
    status = "inProgress" if turn.id == running else turn.end or "interrupted"
    number = count(1)
    entries = [past_item(past.id or numbered(turn.id, next(number)), past) for past in turn.items]
    items = [item for item in entries if item is not None]
    payload = turn_payload(
        turn.id,
        status,
        items=items,
        error=turn_error(turn.error) if turn.error else None,
        began=turn.began,
        ended=turn.ended,
    )
    return {**payload, "itemsView": "full"}


def turn_error(message: str) -> dict[str, Any]:
    return {"message": message, "codexErrorInfo": "other", "additionalDetails": None, "misalignment": None}

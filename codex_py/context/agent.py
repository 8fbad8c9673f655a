"""What the model reads of an agent that has ended while nobody waited for it."""

from __future__ import annotations

from typing import Any

from codex_py.protocol.encoding import encode_json
from codex_py.protocol.items import ResponseItem, message


def subagent_notification(agent_id: str, nickname: str, status: str | dict[str, Any]) -> ResponseItem:
    """The user message `<subagent_notification>`; the status is as `wait_agent` gives it."""
    payload = encode_json({"agent_path": agent_id, "nickname": nickname, "status": status}).decode()
    # A tag in what an agent said must not end the block.
    payload = payload.replace("</", "<\\/")
    return message("user", f"<subagent_notification>\n{payload}\n</subagent_notification>")

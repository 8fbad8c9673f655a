"""What the model says to an MCP server that is allowed to ask it: one request of its own, without tools or history."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import Any

from codex_py.core.turn_context import TurnSettings
from codex_py.model.client import ModelClient, TurnState
from codex_py.model.prompt import Prompt
from codex_py.model.stream import ItemDone
from codex_py.protocol.encoding import as_list, as_object, encode_json
from codex_py.protocol.ids import uuid7
from codex_py.protocol.items import Message


async def sample(model: ModelClient, request: Mapping[str, Any], settings: TurnSettings) -> Mapping[str, Any]:
    """Answer a `sampling/createMessage`. Raises `ModelError`."""
    chosen = settings.model
    prompt = Prompt(
        model=chosen.model,
        instructions=str(request.get("systemPrompt") or ""),
        input=[encode_json(_item(as_object(message))) for message in as_list(request.get("messages"))],
        tools=b"[]",
        thread_id=uuid7(),
        turn_id=uuid7(),
        effort=chosen.effort,
        max_output_tokens=chosen.max_output_tokens,
    )
    texts: list[str] = []
    async with aclosing(model.stream(prompt, turn_state=TurnState())) as stream:
        async for event in stream:
            if isinstance(event, ItemDone) and isinstance(view := event.item.view(), Message):
                texts.append(view.text)
    content = {"type": "text", "text": "\n".join(texts)}
    return {"role": "assistant", "content": content, "model": chosen.model, "stopReason": "endTurn"}


def _item(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message of the protocol's as an item of ours; a list of contents is one message with several parts."""
    content = message.get("content")
    contents = [as_object(part) for part in as_list(content) or [content]]
    role = "assistant" if message.get("role") == "assistant" else "user"
    text_type = "output_text" if role == "assistant" else "input_text"
    text_parts = [{"type": text_type, "text": str(part["text"])} for part in contents if "text" in part]
    text_parts += [
        {"type": "input_image", "image_url": f"data:{part.get('mimeType', '')};base64,{part.get('data', '')}"}
        for part in contents
        if part.get("type") == "image" and role == "user"
    ]
    return {"type": "message", "role": role, "content": text_parts}

"""The body of a model request. Keys have a fixed order, and what grows comes as bytes that are ready to send."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from codex_py.protocol.encoding import encode_json
from codex_py.protocol.value import Value


class Prompt(Value):
    """Everything that decides the request body, and nothing else.

    `input` holds encoded items, `tools` an encoded array (`b"[]"` for none), `output_schema` an encoded JSON schema.
    `window` counts the compactions of the thread so far.
    """

    model: str
    instructions: str
    input: Sequence[bytes]
    tools: bytes
    thread_id: str
    turn_id: str
    window: int = 0
    parallel_tool_calls: bool = True
    effort: str | None = None
    summary: str | None = None
    verbosity: str | None = None
    service_tier: str | None = None
    output_schema: bytes | None = None

    @property
    def window_id(self) -> str:
        """The thread and how often it was compacted, as the server is told."""
        return f"{self.thread_id}:{self.window}"


def encode_body(prompt: Prompt) -> bytes:
    """The request as JSON. The body of a longer history extends that of a shorter one up to the end of `input`."""
    return b"".join((_head(prompt), b",".join(prompt.input), b"]", _tail(prompt)))


def _head(prompt: Prompt) -> bytes:
    fields: dict[str, Any] = {"model": prompt.model, "instructions": prompt.instructions, "stream": True}
    if prompt.service_tier:
        fields["service_tier"] = prompt.service_tier
    return encode_json(fields)[:-1] + b',"input":['


def _tail(prompt: Prompt) -> bytes:
    before: dict[str, Any] = {"tool_choice": "auto", "parallel_tool_calls": prompt.parallel_tool_calls}
    if reasoning := _reasoning(prompt):
        before["reasoning"] = reasoning
    before["store"] = False
    before["include"] = ["reasoning.encrypted_content"]
    before["prompt_cache_key"] = prompt.thread_id
    # Sorted, so that two bodies differ only where their contents do.
    metadata = {
        "session_id": prompt.thread_id,
        "thread_id": prompt.thread_id,
        "turn_id": prompt.turn_id,
        "x-codex-window-id": prompt.window_id,
    }
    return b"".join(
        (
            b',"tools":',
            prompt.tools,
            b",",
            encode_json(before)[1:-1],
            _text(prompt),
            b',"client_metadata":',
            encode_json(metadata),
            b"}",
        )
    )


def _reasoning(prompt: Prompt) -> dict[str, str]:
    # A summary of `none` is this program's word for not asking; the API has no such value.
    wanted = {"effort": prompt.effort, "summary": None if prompt.summary == "none" else prompt.summary}
    return {key: value for key, value in wanted.items() if value}


def _text(prompt: Prompt) -> bytes:
    parts: list[bytes] = []
    if prompt.verbosity:
        parts.append(b'"verbosity":' + encode_json(prompt.verbosity))
    if prompt.output_schema is not None:
        form = b'{"type":"json_schema","strict":true,"schema":%b,"name":"codex_output_schema"}'
        parts.append(b'"format":' + form % prompt.output_schema)
    return b',"text":{' + b",".join(parts) + b"}" if parts else b""

"""Reading what the endpoint for compactions answers: `{"output":[…]}`, the items that take the place of a history."""

from __future__ import annotations

import asyncio
from typing import Final

from codex_py.errors import ModelError
from codex_py.model.failures import not_a_stream
from codex_py.model.http import broken_stream, httpx
from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.protocol.items import ResponseItem

_MAX_BODY: Final = 64 * 1024 * 1024


async def read_compacted(response: httpx.Response, *, url: str, idle_timeout: float) -> list[ResponseItem]:
    """The items of a 2xx answer, at least one. `url` is shown; `idle_timeout` is seconds of silence.

    Raises `ModelError` for a body that breaks off, is over 64 MiB, or holds no items.
    """
    body = await _read_body(response, idle_timeout)
    try:
        values = [
            as_object(value) for value in as_list(as_object(decode_json(body.decode("utf-8", "replace"))).get("output"))
        ]
        items = [ResponseItem.from_wire(value) for value in values if isinstance(value.get("type"), str)]
    except ValueError:
        items = []
    if items:
        return items
    raise not_a_compaction(response, body, url)


def not_a_compaction(response: httpx.Response, body: bytes, url: str) -> ModelError:
    """The error for an answer that says something else."""
    message = str(not_a_stream(response.status_code, response.headers, body[:4096], url=url))
    return ModelError(message.replace("not with an event stream", "not with a compacted history"), retryable=False)


async def _read_body(response: httpx.Response, idle_timeout: float) -> bytes:
    body = bytearray()
    chunks = response.aiter_bytes()
    try:
        while True:
            async with asyncio.timeout(idle_timeout):
                chunk = await anext(chunks, None)
            if chunk is None:
                return bytes(body)
            body += chunk
            if len(body) > _MAX_BODY:
                raise ModelError("the compacted history is over 64 MiB", retryable=False)
    except (httpx.HTTPError, OSError) as error:
        raise broken_stream(error, idle_timeout=idle_timeout) from error

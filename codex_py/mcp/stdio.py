"""The stdio transport for the SDK: bounded lines, and a server that ends or floods reported at once.

The SDK's own has no bound for a line and takes quadratic time for a long one. Imports the SDK.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, NamedTuple

import anyio
import mcp_types as types
from mcp.shared.message import SessionMessage

from codex_py.mcp.child import ServerChild

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
# More than this without an answer to anything, or so much that is no message at all, and it is not listened to longer.
_MAX_UNASKED_BYTES: Final = 2 * MAX_ANSWER_BYTES
# A line that is longer than this may have no end at all.
_MAX_LINE_BYTES: Final = 4 * MAX_ANSWER_BYTES
_MAX_JUNK_LINES: Final = 10_000
_CHUNK_BYTES: Final = 256 * 1024
_ENDS_BYTES: Final = 4096
_ID: Final = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*[,}]')
TOO_LONG: Final = f"its answer is over {MAX_ANSWER_BYTES // 2**20} MiB"


class TooLong(NamedTuple):
    """A line that was not kept: its beginning and its end."""

    head: bytes
    tail: bytes


@asynccontextmanager
async def stdio_streams(child: ServerChild, on_end: Callable[[str], None]) -> AsyncGenerator[tuple[Any, Any], None]:
    """The streams for a session with a started server, which is stopped at the end.

    `on_end` hears why nothing more will come, when that happens before the end.
    """
    to_session, from_server = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_server, from_session = anyio.create_memory_object_stream[SessionMessage](0)

    async def receive() -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with to_session:
                on_end(await _pass_on(child, to_session.send))

    async def write() -> None:
        async with from_session:
            async for outgoing in from_session:
                line = outgoing.message.model_dump_json(by_alias=True, exclude_unset=True)
                child.stdin.write(line.encode() + b"\n")
                try:
                    await child.stdin.drain()
                except (OSError, RuntimeError):
                    # Whoever waits for an answer must not wait for ever.
                    to_session.close()
                    return

    async with anyio.create_task_group() as group:
        group.start_soon(receive)
        group.start_soon(write)
        try:
            yield from_server, to_server
        finally:
            with anyio.CancelScope(shield=True):
                await child.stop()
            for stream in (from_server, to_server, to_session, from_session):
                stream.close()
            group.cancel_scope.cancel()


async def _pass_on(child: ServerChild, send: Callable[[SessionMessage], Awaitable[None]]) -> str:
    """Hand every message on until there are no more; gives back why."""
    junk = unasked = 0
    async for line in _lines(child):
        if isinstance(line, TooLong):
            refusal = _refusal(line)
            if refusal is None:
                child.kill()
                return TOO_LONG
            await send(refusal)
        elif (message := _message(line)) is not None:
            is_answer = isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
            unasked = 0 if is_answer else unasked + len(line)
            await send(SessionMessage(message))
        elif line.strip():
            junk += 1
            child.tail.append(line[:1000] + b"\n")
        if junk > _MAX_JUNK_LINES or unasked > _MAX_UNASKED_BYTES:
            child.kill()
            return "it sent more than anybody asked for, and was stopped"
    status = await child.ended()
    return "it has ended" if status is None else f"it has ended with status {status}"


async def _lines(child: ServerChild) -> AsyncIterator[bytes | TooLong]:
    """The lines of a server's output; work in proportion to their length, whatever that is."""
    line = _Line()
    while chunk := await child.stdout.read(_CHUNK_BYTES):
        *ended, rest = chunk.split(b"\n")
        for piece in ended:
            line.add(piece)
            yield line.whole()
            line = _Line()
        line.add(rest)
        if line.size > _MAX_LINE_BYTES:
            yield TooLong(b"", b"")
            return


class _Line:
    """A line as it comes in. Of one that is too long only both ends are kept."""

    def __init__(self) -> None:
        self.size = 0
        self._pieces: list[bytes] = []
        self._head = self._tail = b""

    def add(self, piece: bytes) -> None:
        self.size += len(piece)
        self._pieces.append(piece)
        if self.size > MAX_ANSWER_BYTES:
            self._head = self._head or b"".join(self._pieces)[:_ENDS_BYTES]
            self._tail = (self._tail + piece)[-_ENDS_BYTES:]
            self._pieces.clear()

    def whole(self) -> bytes | TooLong:
        return TooLong(self._head, self._tail) if self.size > MAX_ANSWER_BYTES else b"".join(self._pieces)


def _message(line: bytes) -> types.JSONRPCMessage | None:
    try:
        return types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        return None


def _refusal(line: TooLong) -> SessionMessage | None:
    """The error that answers a call in place of a line that was too long; None when it names no call."""
    found = _ID.findall(line.tail) or _ID.findall(line.head)
    if not found:
        return None
    error = types.ErrorData(code=types.INTERNAL_ERROR, message=TOO_LONG)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=int(found[-1]), error=error))

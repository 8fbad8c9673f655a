"""Standard streams and HTTP for the SDK: answers of bounded size, and what its errors mean. Imports the SDK.

The SDK's own has no bound for a line and takes quadratic time for a long one. Imports the SDK.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, NamedTuple, cast

import anyio
import httpx2
import mcp_types as types
from httpx2 import ConnectError, ConnectTimeout
from mcp import MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from codex_py.mcp.child import ServerChild
from codex_py.mcp.repair import parse_odd_message, without_lone_surrogates
from codex_py.mcp.servers import McpServer
from codex_py.text.address import shown_url
from codex_py.text.files import system_error, system_reason
from codex_py.text.sanitize import sanitize_line

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
# More than this without an answer to anything, or so much that is no message at all, and it is not listened to longer.
_MAX_UNASKED_BYTES: Final = 2 * MAX_ANSWER_BYTES
# A line that is longer than this may have no end at all.
_MAX_LINE_BYTES: Final = 4 * MAX_ANSWER_BYTES
_MAX_JUNK_LINES: Final = 10_000
_CHUNK_BYTES: Final = 256 * 1024
# As the W3C's Trace Context writes it.
_TRACE: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_ENDS_BYTES: Final = 4096
_ID: Final = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*[,}]')
_END_SECONDS: Final = 1.0
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

    has_ended = anyio.Event()

    async def receive() -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with to_session:
                on_end(await _pass_on(child, to_session.send))
                has_ended.set()

    async def write() -> None:
        async with from_session:
            async for outgoing in from_session:
                line = outgoing.message.model_dump_json(by_alias=True, exclude_unset=True)
                child.stdin.write(line.encode() + b"\n")
                try:
                    await child.stdin.drain()
                except (OSError, RuntimeError):
                    # Why it reads no more is known in a moment; whoever waits for an answer must not wait for ever.
                    with anyio.move_on_after(_END_SECONDS):
                        await has_ended.wait()
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
        return parse_odd_message(line)


def _refusal(line: TooLong) -> SessionMessage | None:
    """The error that answers a call in place of a line that was too long; None when it names no call."""
    found = _ID.findall(line.tail) or _ID.findall(line.head)
    if not found:
        return None
    error = types.ErrorData(code=types.INTERNAL_ERROR, message=TOO_LONG)
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=int(found[-1]), error=error))


_SECONDS: Final = 30.0
# A stream of events may be silent for as long as the call it belongs to, which has a deadline of its own.
_SILENCE_SECONDS: Final = 3600.0
# A server that hangs does not answer the farewell either.
_FAREWELL_SECONDS: Final = 0.3


@asynccontextmanager
async def http_streams(
    server: McpServer, env: Mapping[str, str], auth: httpx2.Auth | None, *, on_refusal: Callable[[int], None]
) -> AsyncGenerator[tuple[Any, Any], None]:
    """The streams for a session with a server at a URL. Raises what the connection raises.

    `on_refusal` gets the status of every answer to a message that is an error: the SDK does not report it.
    """
    assert server.url is not None
    timeout = httpx2.Timeout(_SECONDS, read=_SILENCE_SECONDS)
    transport = _Bounded(httpx2.AsyncHTTPTransport(verify=_certificates(env)), on_refusal)
    async with (
        httpx2.AsyncClient(headers=headers_for(server, env), timeout=timeout, auth=auth, transport=transport) as client,
        streamable_http_client(server.url, http_client=client, max_sse_event_size=MAX_ANSWER_BYTES) as streams,
    ):
        yield streams


def headers_for(server: McpServer, env: Mapping[str, str]) -> dict[str, str]:
    """The headers the configuration names, and the trace of the session; one whose variable is empty is left out."""
    trace = env.get("TRACEPARENT", "")
    headers = {"traceparent": trace} if _TRACE.fullmatch(trace) else {}
    headers |= server.http_headers
    headers |= {header: env[name] for header, name in server.env_http_headers.items() if env.get(name)}
    if server.bearer_token_env_var and (token := env.get(server.bearer_token_env_var)):
        headers["Authorization"] = f"Bearer {token}"
    return headers


def _certificates(env: Mapping[str, str]) -> ssl.SSLContext | bool:
    file = env.get("CODEX_CA_CERTIFICATE") or env.get("SSL_CERT_FILE")
    return ssl.create_default_context(cafile=file) if file else True


class _Bounded(httpx2.AsyncBaseTransport):
    """Ends an answer that is too long; a stream of events has bounds of its own. Halves of characters are replaced."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, on_refusal: Callable[[int], None]) -> None:
        self._inner = inner
        self._on_refusal = on_refusal

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        async with asyncio.timeout(_FAREWELL_SECONDS if request.method == "DELETE" else None):
            response = await self._inner.handle_async_request(request)
        # Hardly any server has a stream of its own to listen to.
        if response.status_code >= 400 and request.method == "POST":
            self._on_refusal(response.status_code)
        stream = response.stream
        assert isinstance(stream, httpx2.AsyncByteStream)
        is_plain = response.headers.get("content-encoding", "identity") == "identity"
        is_bounded = "text/event-stream" not in response.headers.get("content-type", "")
        response.stream = _CheckedStream(stream, is_plain=is_plain, is_bounded=is_bounded)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _CheckedStream(httpx2.AsyncByteStream):
    """The lines of a body, none with half a character; compressed ones stay as they are."""

    def __init__(self, inner: httpx2.AsyncByteStream, *, is_plain: bool, is_bounded: bool) -> None:
        self._inner = inner
        self._is_plain = is_plain
        self._is_bounded = is_bounded

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        pieces: list[bytes] = []
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                if self._is_bounded:
                    raise httpx2.StreamError(TOO_LONG)
                # The SDK bounds the event.
                yield b"".join([*pieces, chunk])
                pieces = []
            elif not self._is_plain:
                yield chunk
            else:
                # An escape is never cut in two at the end of a line.
                ended = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
                if ended:
                    yield without_lone_surrogates(b"".join([*pieces, chunk[:ended]]))
                    pieces, size = [], size if self._is_bounded else 0
                pieces.append(chunk[ended:])
        if pieces:
            yield without_lone_surrogates(b"".join(pieces))

    async def aclose(self) -> None:
        await self._inner.aclose()


_MAX_REASON: Final = 500
# The SDK's words for an answer that is too long, and for one that cannot be read.
_TOO_LONG: Final = re.compile(rf"{TOO_LONG}|exceeded the \d+ byte limit")
# Its words for a connection that is gone: servers use the same code for errors of their own.
_LOST: Final = re.compile(r"Connection closed$|SSE stream (ended|failed)")
_UNREADABLE: Final = "Failed to parse"
_NUMBER: Final = re.compile(r"\[Errno -?\d+\] ")
_WRONG_ANSWER: Final = "its answer is not what the protocol says"


def first_of(error: BaseException) -> BaseException:
    """The first of a group that is a reason and not the consequence of one."""
    while isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        error = next((leaf for leaf in inner if not isinstance(leaf, asyncio.CancelledError)), inner[0])
    return error


def is_lost(error: BaseException) -> bool:
    """Whether nothing more will come after this error."""
    return has_code_of_lost(error) and _LOST.match(str(error)) is not None


def has_code_of_lost(error: BaseException) -> bool:
    """Whether an error has the code of a lost connection, whoever gave it."""
    return isinstance(error, MCPError) and error.code == types.CONNECTION_CLOSED


def says_too_long(text: str) -> bool:
    """Whether an error is about an answer that is too long."""
    return _TOO_LONG.search(text) is not None


def not_connected(error: BaseException, url: str) -> str | None:
    """Explain an error of connecting to the address of a server; None for any other error."""
    if isinstance(error, ConnectTimeout):
        return f"cannot connect to `{shown_url(url)}`: the connection timed out"
    cause = system_error(error)
    if not isinstance(error, ConnectError) or cause is None:
        return None
    hint = "; is it running?" if isinstance(cause, ConnectionRefusedError) else ""
    return f"cannot connect to `{shown_url(url)}`: {sanitize_line(system_reason(cause))}{hint}"


def describe_error(error: BaseException) -> str:
    """Describe an error on one line, in codex-py's own words for known ones."""
    lines = str(error).splitlines()
    if not lines:
        return type(error).__name__
    if says_too_long(lines[0]):
        return TOO_LONG
    if isinstance(error, ValidationError) or lines[0].startswith(_UNREADABLE):
        return _WRONG_ANSWER
    if number := _NUMBER.match(lines[0]):
        words = lines[0][number.end() :]
        return sanitize_line(words[:1].lower() + words[1:])[:_MAX_REASON]
    return sanitize_line(lines[0])[:_MAX_REASON]

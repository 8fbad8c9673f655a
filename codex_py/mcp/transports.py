"""Standard streams and HTTP for the SDK: answers of bounded size, and what its errors mean. Imports the SDK."""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, cast
from urllib.parse import urlsplit

import anyio
import httpx2
import mcp_types as types
from httpx2 import ConnectError, ConnectTimeout
from mcp import MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from codex_py.mcp.child import MAX_ANSWER_BYTES, ServerChild
from codex_py.mcp.repair import read_message, without_lone_surrogates
from codex_py.mcp.servers import McpServer
from codex_py.model.certificates import authorities
from codex_py.text.address import is_loopback, shown_url
from codex_py.text.files import system_error, system_reason
from codex_py.text.sanitize import sanitize_line

# A server that sends more than this between two answers, in messages or in lines that are none, is stopped.
_MAX_UNASKED_BYTES: Final = 2 * MAX_ANSWER_BYTES
_MAX_SHOWN_BYTES: Final = 1000
# How long the reason is waited for when a server takes no more input.
_END_SECONDS: Final = 1.0
TOO_LONG: Final = f"its answer is over {MAX_ANSWER_BYTES // 2**20} MiB"
# As the W3C's Trace Context writes it.
_TRACE: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


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
                async for message in _messages(child):
                    if isinstance(message, str):
                        on_end(message)
                        has_ended.set()
                    else:
                        await to_session.send(SessionMessage(message))

    async def write() -> None:
        async for outgoing in from_session:
            line = outgoing.message.model_dump_json(by_alias=True, exclude_unset=True)
            child.stdin.write(line.encode() + b"\n")
            try:
                await child.stdin.drain()
            except (OSError, RuntimeError):
                # Whoever waits for an answer must not wait for ever.
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


async def _messages(child: ServerChild) -> AsyncGenerator[types.JSONRPCMessage | str, None]:
    """The messages of a server, and at last the reason why there are no more."""
    unasked = 0
    try:
        while line := await child.stdout.readline():
            message = read_message(line)
            if message is None:
                child.tail.append(line[:_MAX_SHOWN_BYTES].rstrip(b"\n") + b"\n")
            is_answer = isinstance(message, types.JSONRPCResponse | types.JSONRPCError)
            unasked = 0 if is_answer else unasked + len(line)
            if message is not None:
                yield message
            if unasked > _MAX_UNASKED_BYTES:
                child.kill()
                yield "it sent more than anybody asked for, and was stopped"
                return
    except ValueError:
        # A line over the limit of the stream.
        child.kill()
        yield TOO_LONG
        return
    status = await child.ended()
    yield "it has ended" if status is None else f"it has ended with status {status}"


_SECONDS: Final = 30.0
# A stream of events may be silent for as long as the call it belongs to, which has a deadline of its own.
_SILENCE_SECONDS: Final = 3600.0
# A server that hangs does not answer the request that ends the session either.
_FAREWELL: Final = dict.fromkeys(("connect", "read", "write", "pool"), 0.3)


@asynccontextmanager
async def http_streams(
    server: McpServer, env: Mapping[str, str], auth: httpx2.Auth | None, *, on_refusal: Callable[[int], None]
) -> AsyncGenerator[tuple[Any, Any], None]:
    """The streams for a session with a server at a URL. Raises what the connection raises.

    `on_refusal` gets the status of every answer to a message that is an error: the SDK does not report it.
    """
    assert server.url is not None

    async def bound(request: httpx2.Request) -> None:
        if request.method == "DELETE":
            request.extensions["timeout"] = _FAREWELL

    async def check(response: httpx2.Response) -> None:
        # Hardly any server has a stream of its own to listen to, for which the SDK sends a GET.
        if response.status_code >= 400 and response.request.method == "POST":
            on_refusal(response.status_code)
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        is_events = "text/event-stream" in response.headers.get("content-type", "")
        response.stream = _CheckedStream(response.stream, is_events=is_events)

    client = httpx2.AsyncClient(
        # The lines of a body are checked as they come.
        headers={"Accept-Encoding": "identity", **headers_for(server, env)},
        timeout=httpx2.Timeout(_SECONDS, read=_SILENCE_SECONDS),
        auth=auth,
        verify=_certificates(env),
        # Proxies of the environment, which cannot reach this machine.
        trust_env=not is_loopback(urlsplit(server.url).hostname or ""),
        event_hooks={"request": [bound], "response": [check]},
    )
    async with (
        client,
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
    return authorities(file) if file else True


class _CheckedStream(httpx2.AsyncByteStream):
    """A body in whole lines, so that an escape is never cut in two; ends one that is too long, or a line of events."""

    def __init__(self, inner: httpx2.AsyncByteStream, *, is_events: bool) -> None:
        self._inner = inner
        self._is_events = is_events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        pieces: list[bytes] = []
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                raise httpx2.StreamError(TOO_LONG)
            # Events may also end their lines with a carriage return.
            ended = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
            if ended:
                yield without_lone_surrogates(b"".join([*pieces, chunk[:ended]]))
                pieces, size = [], size if not self._is_events else 0
            pieces.append(chunk[ended:])
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

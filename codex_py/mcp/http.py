"""The client for servers that are reached by HTTP: their headers, and answers of bounded size. Imports the SDK."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from codex_py.mcp.servers import McpServer
from codex_py.mcp.stdio import MAX_ANSWER_BYTES, TOO_LONG

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

    `on_refusal` hears the status of every answer to a message that is an error: the SDK does not tell it.
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
    """The headers the configuration names; one whose variable is empty is left out."""
    headers = dict(server.http_headers)
    headers |= {header: env[name] for header, name in server.env_http_headers.items() if env.get(name)}
    if server.bearer_token_env_var and (token := env.get(server.bearer_token_env_var)):
        headers["Authorization"] = f"Bearer {token}"
    return headers


def _certificates(env: Mapping[str, str]) -> ssl.SSLContext | bool:
    file = env.get("CODEX_CA_CERTIFICATE") or env.get("SSL_CERT_FILE")
    return ssl.create_default_context(cafile=file) if file else True


class _Bounded(httpx2.AsyncBaseTransport):
    """Ends an answer that is too long; a stream of events has bounds of its own."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, on_refusal: Callable[[int], None]) -> None:
        self._inner = inner
        self._on_refusal = on_refusal

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        async with asyncio.timeout(_FAREWELL_SECONDS if request.method == "DELETE" else None):
            response = await self._inner.handle_async_request(request)
        # Hardly any server has a stream of its own to listen to.
        if response.status_code >= 400 and request.method == "POST":
            self._on_refusal(response.status_code)
        if "text/event-stream" not in response.headers.get("content-type", ""):
            stream = response.stream
            assert isinstance(stream, httpx2.AsyncByteStream)
            response.stream = _BoundedStream(stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, inner: httpx2.AsyncByteStream) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MAX_ANSWER_BYTES:
                raise httpx2.StreamError(TOO_LONG)
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()

"""Every HTTP request of this program: one pool of connections over httpx, its deadlines, and its errors in our words.

Why it is httpx: docs/decisions/004-httpx-sends-every-request.md.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from codex_py.errors import ConfigError, ModelError
from codex_py.model.certificates import authorities, certificate_advice
from codex_py.model.error_bodies import on_one_line
from codex_py.text.address import is_loopback
from codex_py.text.files import system_error, system_reason

_CONNECT_SECONDS: Final = 15.0
# Long enough to span a tool call, short enough that few servers have hung up by then.
_KEEPALIVE_SECONDS: Final = 30.0
# What sending and reading raise. A ValueError is of a name or a header that cannot be encoded.
HTTP_ERRORS: Final = (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError)


_PROXIES: Final = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


class HttpClient:
    """Requests to one server: no redirects, proxies only beyond the loopback, `idle_timeout` seconds of silence.

    `ca_file` replaces the known certificate authorities. Raises `UserError` for a file that cannot be used and for a
    proxy setting that makes no sense.
    """

    def __init__(self, base_url: str, *, ca_file: str | None, idle_timeout: float) -> None:
        address = urlsplit(base_url)
        is_local = is_loopback(address.hostname or "")
        self._is_local = is_local
        self._connect_seconds = min(_CONNECT_SECONDS, idle_timeout)
        # A server that sends its headers byte by byte is never silent.
        self._headers_seconds = _CONNECT_SECONDS + 2 * idle_timeout
        # Reading the certificate authorities takes longer than a whole request to the loopback.
        needs_tls = address.scheme == "https" or not is_local
        trust = authorities(ca_file) if needs_tls else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        try:
            self._http = httpx.AsyncClient(
                verify=trust,
                # Of the environment httpx takes the proxies.
                trust_env=not is_local,
                timeout=httpx.Timeout(idle_timeout, connect=self._connect_seconds, pool=None),
                limits=httpx.Limits(keepalive_expiry=_KEEPALIVE_SECONDS),
            )
        except (ValueError, httpx.InvalidURL, ImportError) as error:
            raise ConfigError(
                f"cannot use the proxy settings of the environment: {str(error).splitlines()[0]}",
                hint=f"fix or unset {_set_proxies()}, or list the server in NO_PROXY",
            ) from error

    async def send(
        self, method: str, url: str, *, headers: Mapping[str, str], content: bytes | None = None
    ) -> httpx.Response:
        """Send a request; its answer, to be read and closed, when the headers are there. Raises `HTTP_ERRORS`.

        A kept connection that ends before the answer begins was being closed while the request was under way: the
        request is sent again, once.
        """
        sending = _Sending(look_up_seconds=None if self._is_local else self._connect_seconds)
        request = self._http.build_request(
            method, url, headers=dict(headers), content=content, extensions={"trace": sending.note}
        )
        async with asyncio.timeout(self._headers_seconds):
            try:
                return await self._http.send(request, stream=True)
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                if not sending.reused_connection:
                    raise
            return await self._http.send(request, stream=True)

    async def aclose(self) -> None:
        """Close every connection, answers that are still being read included. Safe to call more than once."""
        with suppress(OSError):
            await self._http.aclose()


class _Sending:
    """How far a request has come, as the trace of httpcore tells. Names are looked up before it connects."""

    def __init__(self, *, look_up_seconds: float | None) -> None:
        self._look_up_seconds = look_up_seconds
        self._connected = self._sent = False

    @property
    def reused_connection(self) -> bool:
        return self._sent and not self._connected

    async def note(self, event: str, facts: Mapping[str, Any]) -> None:
        if event == "connection.connect_tcp.started":
            self._connected = True
            if self._look_up_seconds is not None:
                await _look_up(facts["host"], facts["port"], self._look_up_seconds)
        elif event == "http11.send_request_headers.started":
            self._sent = True


def _set_proxies() -> str:
    """The variables that name proxies here."""
    return " and ".join(f"`{name}`" for name in os.environ if name.lower() in _PROXIES and os.environ[name])


async def _look_up(host: str, port: int, seconds: float) -> None:
    """Wait until the system's resolver has answered for a name, in a thread that is abandoned when it takes too long.

    The event loop looks names up in threads that it waits for at its end, and a resolver without an answer takes
    minutes. Once it has answered, it does so again.
    """
    loop, answered = asyncio.get_running_loop(), asyncio.Event()

    def look_up() -> None:
        # What is wrong with the name is reported when the connection is made.
        with suppress(OSError, UnicodeError, OverflowError):
            socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        with suppress(RuntimeError):  # the loop may be closed by now
            loop.call_soon_threadsafe(answered.set)

    threading.Thread(target=look_up, daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            await answered.wait()
    except TimeoutError as error:
        raise httpx.ConnectTimeout("") from error


async def read_body(chunks: AsyncIterator[bytes], *, limit: int) -> bytes:
    """The rest of a body. One that is longer than `limit` ends soon after it. Raises `HTTP_ERRORS`."""
    body = bytearray()
    async for chunk in chunks:
        body += chunk
        if len(body) > limit:
            break
    return bytes(body)


def no_answer(error: Exception, *, host: str, idle_timeout: float, address: str = "", hint: str = "") -> ModelError:
    """A request that failed before a status line came.

    `host` is named; when nothing listens there, `address` is named in its place, and `hint` follows.
    """
    address = address or f"`{host}`"
    cause = system_error(error)
    if cause is not None and cause.errno in (errno.EMFILE, errno.ENFILE):
        return ModelError(f"cannot connect to {address}: {_reason(error)}; raise `ulimit -n`", retryable=False)
    match error:
        case httpx.ConnectTimeout():
            return _unreachable(address, "the connection timed out", hint)
        case httpx.ConnectError():
            return _not_connected(error, host, address, hint)
        case TimeoutError() | httpx.TimeoutException():
            return ModelError(f"no answer from `{host}` for {idle_timeout:g} s", retryable=True).counted_as("timeout")
        case httpx.ProxyError():
            message = on_one_line(str(error))
            # A proxy passes on refusals of its own as 4xx; its 5xx may pass.
            return ModelError(
                f"the proxy refused to connect to `{host}`: {message}", retryable=not message.startswith("4")
            ).counted_as("network")
        case httpx.InvalidURL() | httpx.UnsupportedProtocol() | httpx.LocalProtocolError() | ValueError():
            return ModelError(f"cannot send the request to `{host}`: {on_one_line(str(error))}", retryable=False)
        case _:
            return ModelError(f"no answer from `{host}`: {_reason(error)}", retryable=True).counted_as("network")


def broken_stream(error: Exception, *, idle_timeout: float) -> ModelError:
    """An answer that broke off or fell silent."""
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        silence = f"no event from the server for {idle_timeout:g} s"
        return ModelError(silence, retryable=True, streaming=True).counted_as("timeout")
    return ModelError(f"the answer was cut off: {_reason(error)}", retryable=True, streaming=True)


def _not_connected(error: Exception, host: str, address: str, hint: str) -> ModelError:
    cause = system_error(error)
    match cause:
        case ssl.SSLCertVerificationError():
            reason = on_one_line(cause.verify_message or str(cause))
            message = f"the certificate of `{host}` is not trusted: {reason}{certificate_advice(cause)}"
            return ModelError(message, retryable=False).counted_as("network")
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "HTTP_REQUEST"):
            message = f"`{host}` does not speak https; is its address `http://`?"
            return ModelError(message, retryable=False).counted_as("config")
        case OSError() if not isinstance(cause, ssl.SSLError | ConnectionResetError | BrokenPipeError):
            return _unreachable(address, _reason(error), hint)
        case _:
            # Something listens there and hung up during the handshake: counted, not waited for.
            return ModelError(f"the connection to `{host}` failed: {_reason(error)}", retryable=True)


def _unreachable(address: str, reason: str, hint: str) -> ModelError:
    message = f"cannot connect to {address}: {reason}" + (f"; {hint}" if hint else "")
    return ModelError(message, retryable=True, unreachable=True)


def _reason(error: Exception) -> str:
    if isinstance(error, httpx.RemoteProtocolError):
        message = on_one_line(str(error)).lower()
        if message.startswith("illegal"):
            return "it does not speak HTTP"
        return "the server hung up" if "disconnected" in message or "peer closed" in message else message
    cause = system_error(error)
    if isinstance(cause, ssl.SSLError):
        return on_one_line(str(cause.reason or cause)).replace("_", " ").lower()
    if isinstance(cause, BrokenPipeError):
        return "the server hung up"
    if cause is not None and cause.strerror:
        return on_one_line(system_reason(cause))
    # httpx and anyio leave some of their errors without a word.
    return on_one_line(str(error)) or "the connection was lost"

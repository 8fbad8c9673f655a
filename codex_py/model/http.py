"""The one way this program talks HTTP: requests over our own connection, or through a proxy where there is one.

Why this is not httpx: docs/decisions/004-own-transport.md. It knows proxies, and is loaded where the environment names
one (`model/proxied.py`).
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
import sys
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, Protocol
from urllib.parse import quote, unquote, urlsplit

import h11

from codex_py.errors import ConfigError
from codex_py.model.connection import HttpConnection
from codex_py.model.exchange import (
    Answer,
    ConnectError,
    ConnectTimeout,
    HttpRequest,
    HttpTimeout,
    NetworkError,
    ReadError,
    ReadTimeout,
    RemoteProtocolError,
    UnsendableRequest,
    WriteError,
    WriteTimeout,
    header_text,
)
from codex_py.text.address import is_loopback

CONNECT_SECONDS: Final = 15.0
# Long enough to span a tool call, short enough that few servers have hung up by then.
_KEEPALIVE_SECONDS: Final = 30.0
# What stands in a path or a query as it is; all else is sent as %XX.
_SAFE: Final = "!$%&'()*+,-./:;=?@[]\\^_|~"
_PORTS: Final = {"http": 80, "https": 443}
_Origin = tuple[str, str, int]

if sys.platform == "linux":

    def getproxies() -> dict[str, str]:
        """The proxies that the environment names, as `urllib.request` has them, whose import takes 15 ms."""
        found = {name.lower(): value for name, value in os.environ.items() if value}
        return {name.removesuffix("_proxy"): value for name, value in found.items() if name.endswith("_proxy")}

else:
    from urllib.request import getproxies


class HttpClient(Protocol):
    """Requests to one server."""

    async def send(self, request: HttpRequest) -> Answer:
        """Send a request and give back its answer when the headers are there. Raises `HttpError`."""
        ...

    async def aclose(self) -> None:
        """Close every connection, answers that are still being read included."""
        ...


def open_client(url: str, *, ca_file: str | None, idle_timeout: float) -> HttpClient:
    """A client for one server: no redirects, proxies only beyond the loopback, `idle_timeout` seconds of silence.

    `ca_file` replaces the built-in list of certificate authorities. Raises `UserError` for a file that cannot be
    used and for a proxy setting that makes no sense.
    """
    target = urlsplit(url)
    connect = min(CONNECT_SECONDS, idle_timeout)
    context = _trust(ca_file, needed=target.scheme == "https")
    if is_loopback(target.hostname or "") or not may_have_proxy(target.scheme):
        return DirectClient(context, connect=connect, silence=idle_timeout)
    from codex_py.model.proxied import ProxiedClient  # only behind a proxy

    return ProxiedClient(context, connect=connect, silence=idle_timeout, keepalive=_KEEPALIVE_SECONDS)


class DirectClient:
    """Connections to servers without a proxy, of which one is kept alive between requests.

    A kept connection is used only when it looks alive. When the server hangs up on it all the same, without a byte of
    an answer, it was closing it while the request was under way: that is sent again, once, on a new connection.
    """

    def __init__(self, tls: ssl.SSLContext, *, connect: float, silence: float) -> None:
        tls.set_alpn_protocols(["http/1.1"])
        self._tls = tls
        self._connect_seconds = connect
        self._seconds = silence
        self._busy: set[HttpConnection] = set()
        self._idle: tuple[HttpConnection, _Origin, float] | None = None
        self._cookies: dict[_Origin, dict[str, str]] = {}

    async def send(self, request: HttpRequest) -> Answer:
        """As `HttpClient` says."""
        origin, path = _origin(request.url)
        with _reported(ReadTimeout, ReadError):
            headers = _headers(request, origin, self._cookies.get(origin, {}))
            head = h11.Request(method=request.method, target=path, headers=headers)
        idle = self._take(origin)
        if idle is not None:
            try:
                return await self._exchange(idle, request, head, origin)
            except (NetworkError, RemoteProtocolError):
                if not idle.unanswered:
                    raise
        return await self._exchange(await self._connect(origin), request, head, origin)

    async def aclose(self) -> None:
        """As `HttpClient` says."""
        if self._idle is not None:
            self._busy.add(self._idle[0])
            self._idle = None
        for connection in self._busy:
            connection.close()
        self._busy.clear()

    async def _exchange(
        self, connection: HttpConnection, request: HttpRequest, head: h11.Request, origin: _Origin
    ) -> Answer:
        """Send a request on this connection, which is given back when its answer has been read or something fails."""
        self._busy.add(connection)
        try:
            with _reported(WriteTimeout, WriteError):
                await connection.send(head, request.content or b"", seconds=self._seconds)
            with _reported(ReadTimeout, ReadError):
                answer = await connection.read_head(seconds=self._seconds)
        except BaseException:
            self._give_back(connection, None)
            raise
        headers = list(answer.headers)
        self._note_cookies(origin, headers)
        body = _Body(connection, self._seconds, lambda: self._give_back(connection, origin))
        return Answer(answer.status_code, headers, body, url=request.url, version=answer.http_version)

    async def _connect(self, origin: _Origin) -> HttpConnection:
        scheme, host, port = origin
        with _reported(ConnectTimeout, ConnectError):
            async with asyncio.timeout(self._connect_seconds):
                return await HttpConnection.open(host, port, self._tls if scheme == "https" else None)

    def _take(self, origin: _Origin) -> HttpConnection | None:
        if self._idle is None:
            return None
        (connection, its_origin, since), self._idle = self._idle, None
        if its_origin == origin and time.monotonic() < since + _KEEPALIVE_SECONDS and connection.is_quiet():
            return connection
        connection.close()
        return None

    def _give_back(self, connection: HttpConnection, origin: _Origin | None) -> None:
        """Keep a connection for the next request to its origin, when there is one and its answer is at its end."""
        if connection not in self._busy:
            return
        self._busy.discard(connection)
        if origin is not None and self._idle is None and connection.renew():
            self._idle = (connection, origin, time.monotonic())
        else:
            connection.close()

    def _note_cookies(self, origin: _Origin, headers: Sequence[tuple[bytes, bytes]]) -> None:
        """Keep the cookies of a server, such as those by which it finds the machine of a session; "" removes one."""
        for name, value in headers:
            if name == b"set-cookie":
                pair, _, attributes = header_text(value).partition(";")
                cookie, _, text = pair.strip().partition("=")
                removed = not text or "max-age=0" in attributes.lower()
                self._cookies.setdefault(origin, {})[cookie] = "" if removed else text


class _Body:
    """The rest of an answer. `finished` is called once; from then on the connection may be somebody else's."""

    def __init__(self, connection: HttpConnection, seconds: float, finished: Callable[[], None]) -> None:
        self._connection = connection
        self._seconds = seconds
        self._finished: Callable[[], None] | None = finished

    async def read(self) -> bytes:
        if self._finished is None:
            return b""
        chunk = b""
        try:
            with _reported(ReadTimeout, ReadError):
                chunk = await self._connection.read_body(seconds=self._seconds)
        finally:
            if not chunk:
                await self.aclose()
        return chunk

    async def aclose(self) -> None:
        finished, self._finished = self._finished, None
        if finished is not None:
            finished()


def _origin(url: str) -> tuple[_Origin, str]:
    """Scheme, host and port of an address, and what is asked for there."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        if not host.isascii():
            host = host.encode("idna").decode()
    except ValueError as error:
        raise ConnectError(str(error)) from error
    if parts.scheme not in _PORTS:
        raise UnsendableRequest(f"a request to `{parts.scheme}://` is not possible")
    path = quote(parts.path or "/", safe=_SAFE) + (f"?{quote(parts.query, safe=_SAFE)}" if parts.query else "")
    return (parts.scheme, host, _PORTS[parts.scheme] if port is None else port), path


def _headers(request: HttpRequest, origin: _Origin, cookies: Mapping[str, str]) -> list[tuple[str, str]]:
    """The headers of a request: its own, and before them what HTTP wants and they lack."""
    scheme, host, port = origin
    own = {name.lower() for name, _ in request.headers}
    shown = f"[{host}]" if ":" in host else host
    fixed = {"host": shown if port == _PORTS[scheme] else f"{shown}:{port}", "connection": "keep-alive"}
    if request.content is not None:
        fixed["content-length"] = str(len(request.content))
    if sent := "; ".join(f"{name}={value}" for name, value in cookies.items() if value):
        fixed["cookie"] = sent
    headers = [pair for pair in fixed.items() if pair[0] not in own] + list(request.headers)
    login, at, _ = urlsplit(request.url).netloc.rpartition("@")
    if not at:
        return headers
    basic = base64.b64encode(unquote(login if ":" in login else f"{login}:").encode()).decode()
    headers = [pair for pair in headers if pair[0].lower() != "authorization"]
    return [*headers, ("authorization", f"Basic {basic}")]


def may_have_proxy(scheme: str) -> bool:
    """Whether a proxy is set for such addresses. To which of them it applies, httpx knows."""
    proxies = getproxies()
    return any(proxies.get(name) for name in (scheme, "all"))


@contextmanager
def _reported(silence: type[HttpTimeout], failure: type[NetworkError]) -> Generator[None]:
    """Raise what goes wrong inside as `HttpError`."""
    try:
        yield
    except OSError as error:
        # A TimeoutError with a number is what the operating system says, and not our deadline.
        error_type = silence if isinstance(error, TimeoutError) and error.errno is None else failure
        raise error_type(str(error)) from error
    except h11.RemoteProtocolError as error:
        raise RemoteProtocolError(str(error)) from error
    except h11.LocalProtocolError as error:
        raise UnsendableRequest(str(error)) from error


def _trust(ca_file: str | None, *, needed: bool) -> ssl.SSLContext:
    if not needed:
        # Reading the certificate authorities takes longer than a whole request to the loopback.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file is None:
        return _built_in_trust()
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        reason = "no certificate in it" if isinstance(error, ssl.SSLError) else str(error.strerror).lower()
        raise ConfigError(
            f"cannot read the certificate file `{ca_file}`: {reason}",
            hint="CODEX_CA_CERTIFICATE and SSL_CERT_FILE name a PEM file",
        ) from error


def _built_in_trust() -> ssl.SSLContext:
    file, directory = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    if file or directory:
        return ssl.create_default_context(cafile=file or None, capath=None if file else directory)
    import certifi  # only for https

    return ssl.create_default_context(cafile=certifi.where())

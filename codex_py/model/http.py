"""httpx without its command line, and the one way this program opens a client.

A client talks through our own connection, unless a proxy is in between: docs/decisions/004-own-transport.md.

`import httpx` also tries `httpx._main`, and with it click, rich and pygments where they are installed: twice the time
of a one-liner. Nor is zstandard needed, if it is there, for answers that are not asked for in that form. Both are
declared absent while httpx is imported here, which httpx itself provides for. The tables of idna, 4 % of a one-liner,
are loaded for the first host with a letter beyond ASCII. Modules of this program import httpx from here.
"""

from __future__ import annotations

import asyncio
import ssl
import sys
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Final, cast
from urllib.request import getproxies

import h11

from codex_py.errors import ConfigError
from codex_py.model.connection import HttpConnection
from codex_py.text.address import is_loopback


@contextmanager
def _absent(name: str) -> Generator[None]:
    """Make `import name` fail inside the block, unless it has happened already."""
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    if name in modules:
        yield
        return
    modules[name] = None
    try:
        yield
    finally:
        del modules[name]


class _LazyModule(ModuleType):
    """Stands for a module that is imported when something of it is first used."""

    def __getattr__(self, name: str) -> object:
        return getattr(import_module(self.__name__), name)


@contextmanager
def _lazy(name: str) -> Generator[None]:
    """Make `import name` inside the block load nothing yet, unless the module is there already."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = _LazyModule(name)
    try:
        yield
    finally:
        del sys.modules[name]


with _absent("httpx._main"), _absent("zstandard"), _lazy("idna"):
    import httpx

__all__ = ["CONNECT_SECONDS", "httpx", "open_client"]

CONNECT_SECONDS: Final = 15.0
# Long enough to span a tool call, short enough that few servers have hung up by then.
_KEEPALIVE_SECONDS: Final = 30.0
_Origin = tuple[str, str, int]


def open_client(url: str, *, ca_file: str | None, idle_timeout: float) -> httpx.AsyncClient:
    """A client for one server: no redirects, proxies only beyond the loopback, `idle_timeout` seconds of silence.

    `ca_file` replaces the built-in list of certificate authorities. Raises `UserError` for a file that cannot be
    used and for a proxy setting that makes no sense.
    """
    target = httpx.URL(url)
    context = _trust(ca_file, needed=target.scheme == "https")
    timeout = httpx.Timeout(idle_timeout, connect=min(CONNECT_SECONDS, idle_timeout), pool=None)
    if is_loopback(target.host) or not _may_have_proxy(target.scheme):
        return httpx.AsyncClient(transport=DirectTransport(context), timeout=timeout, follow_redirects=False)
    try:
        return httpx.AsyncClient(
            verify=context,
            follow_redirects=False,
            timeout=timeout,
            limits=httpx.Limits(keepalive_expiry=_KEEPALIVE_SECONDS),
        )
    except (ValueError, httpx.InvalidURL, ImportError) as error:
        raise ConfigError(
            f"cannot use the proxy settings of the environment: {str(error).splitlines()[0]}",
            hint="fix or unset HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or list the server in NO_PROXY",
        ) from error


class DirectTransport(httpx.AsyncBaseTransport):
    """Connections to servers without a proxy, of which one is kept alive between requests.

    A kept connection is used only when it looks alive. When the server hangs up on it all the same, without a byte of
    an answer, it was closing it while the request was under way: that is sent again, once, on a new connection.
    """

    def __init__(self, tls: ssl.SSLContext) -> None:
        tls.set_alpn_protocols(["http/1.1"])
        self._tls = tls
        self._busy: set[HttpConnection] = set()
        self._idle: tuple[HttpConnection, _Origin, float] | None = None

    async def fetch(self, request: httpx.Request) -> httpx.Response:
        """Send a request and give back its answer when the headers are there. Raises `httpx.TransportError`."""
        origin = _origin(request.url)
        content = await request.aread()
        with _reported(httpx.ReadTimeout, httpx.ReadError):
            head = h11.Request(method=request.method, target=request.url.raw_path, headers=request.headers.raw)
        idle = self._take(origin)
        if idle is not None:
            try:
                return await self._exchange(idle, request, head, content)
            except (httpx.NetworkError, httpx.RemoteProtocolError):
                if not idle.unanswered:
                    raise
        connection = await self._connect(origin, seconds=_timeouts(request).get("connect"))
        return await self._exchange(connection, request, head, content)

    # What httpx calls it.
    handle_async_request = fetch

    async def aclose(self) -> None:
        """Close every connection, answers that are still being read included."""
        if self._idle is not None:
            self._busy.add(self._idle[0])
            self._idle = None
        for connection in self._busy:
            connection.close()
        self._busy.clear()

    async def _exchange(
        self, connection: HttpConnection, request: httpx.Request, head: h11.Request, content: bytes
    ) -> httpx.Response:
        """Send a request on this connection, which is given back when its answer has been read or something fails."""
        timeouts, origin = _timeouts(request), _origin(request.url)
        self._busy.add(connection)
        try:
            with _reported(httpx.WriteTimeout, httpx.WriteError):
                await connection.send(head, content, seconds=timeouts.get("write"))
            with _reported(httpx.ReadTimeout, httpx.ReadError):
                answer = await connection.read_head(seconds=timeouts.get("read"))
        except BaseException:
            self._give_back(connection, None)
            raise
        return httpx.Response(
            answer.status_code,
            headers=answer.headers.raw_items(),
            stream=_Body(connection, timeouts.get("read"), lambda: self._give_back(connection, origin)),
            extensions={"http_version": b"HTTP/" + answer.http_version, "reason_phrase": answer.reason},
        )

    async def _connect(self, origin: _Origin, *, seconds: float | None) -> HttpConnection:
        scheme, host, port = origin
        with _reported(httpx.ConnectTimeout, httpx.ConnectError):
            async with asyncio.timeout(seconds):
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


class _Body(httpx.AsyncByteStream):
    """The rest of an answer. `finished` is called once; from then on the connection may be somebody else's."""

    def __init__(self, connection: HttpConnection, seconds: float | None, finished: Callable[[], None]) -> None:
        self._connection = connection
        self._seconds = seconds
        self._finished: Callable[[], None] | None = finished

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        try:
            with _reported(httpx.ReadTimeout, httpx.ReadError):
                while self._finished and (chunk := await self._connection.read_body(seconds=self._seconds)):
                    yield chunk
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        finished, self._finished = self._finished, None
        if finished is not None:
            finished()


def _timeouts(request: httpx.Request) -> dict[str, float | None]:
    return request.extensions.get("timeout", {})


def _origin(url: httpx.URL) -> _Origin:
    if url.scheme not in ("http", "https"):
        raise httpx.UnsupportedProtocol(f"a request to `{url.scheme}://` is not possible")
    port = url.port if url.port is not None else 443 if url.scheme == "https" else 80
    return url.scheme, url.raw_host.decode("ascii"), port


def _may_have_proxy(scheme: str) -> bool:
    """Whether a proxy is set for such addresses. To which of them it applies, httpx knows."""
    proxies = getproxies()
    return any(proxies.get(name) for name in (scheme, "all"))


@contextmanager
def _reported(silence: type[httpx.TimeoutException], failure: type[httpx.NetworkError]) -> Generator[None]:
    """Raise what goes wrong inside as the errors of httpx."""
    try:
        yield
    except OSError as error:
        # A TimeoutError with a number is what the operating system says, and not our deadline.
        error_type = silence if isinstance(error, TimeoutError) and error.errno is None else failure
        raise error_type(str(error)) from error
    except h11.RemoteProtocolError as error:
        raise httpx.RemoteProtocolError(str(error)) from error
    except h11.LocalProtocolError as error:
        raise httpx.LocalProtocolError(str(error)) from error


def _trust(ca_file: str | None, *, needed: bool) -> ssl.SSLContext:
    if not needed:
        # Reading the certificate authorities takes longer than a whole request to the loopback.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca_file is None:
        return httpx.create_ssl_context()
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        reason = "no certificate in it" if isinstance(error, ssl.SSLError) else str(error.strerror).lower()
        raise ConfigError(
            f"cannot read the certificate file `{ca_file}`: {reason}",
            hint="CODEX_CA_CERTIFICATE and SSL_CERT_FILE name a PEM file",
        ) from error

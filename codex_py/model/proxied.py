"""Requests through a proxy: httpx knows the rules of `NO_PROXY`, and `CONNECT`, and how a proxy refuses.

`import httpx` also tries `httpx._main`, and with it click, rich and pygments where they are installed: twice the time
of a one-liner. Nor is zstandard needed, if it is there, for answers that are not asked for in that form. Both are
declared absent while httpx is imported here, which httpx itself provides for.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Final, cast

from codex_py.errors import ConfigError
from codex_py.model import exchange
from codex_py.model.exchange import Answer, HttpRequest


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


with _absent("httpx._main"), _absent("zstandard"):
    import httpx

# What httpx raises, as what this program raises; the first that fits counts.
_ERRORS: Final = (
    (httpx.ConnectTimeout, exchange.ConnectTimeout),
    (httpx.WriteTimeout, exchange.WriteTimeout),
    (httpx.TimeoutException, exchange.ReadTimeout),
    (httpx.ConnectError, exchange.ConnectError),
    (httpx.WriteError, exchange.WriteError),
    (httpx.NetworkError, exchange.ReadError),
    (httpx.ProxyError, exchange.ProxyError),
    (httpx.RemoteProtocolError, exchange.RemoteProtocolError),
    (httpx.TransportError, exchange.UnsendableRequest),
)


class ProxiedClient:
    """A client that asks the proxies of the environment. Raises `UserError` for a setting that makes no sense."""

    def __init__(self, tls: ssl.SSLContext, *, connect: float, silence: float, keepalive: float) -> None:
        try:
            self._http = httpx.AsyncClient(
                verify=tls,
                follow_redirects=False,
                timeout=httpx.Timeout(silence, connect=connect, pool=None),
                limits=httpx.Limits(keepalive_expiry=keepalive),
            )
        except (ValueError, httpx.InvalidURL, ImportError) as error:
            raise ConfigError(
                f"cannot use the proxy settings of the environment: {str(error).splitlines()[0]}",
                hint="fix or unset HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or list the server in NO_PROXY",
            ) from error

    async def send(self, request: HttpRequest) -> Answer:
        """As `HttpClient` says."""
        with _reported():
            prepared = self._http.build_request(
                request.method, request.url, content=request.content, headers=list(request.headers)
            )
            response = await self._http.send(prepared, stream=True)
        return Answer(response.status_code, response.headers.raw, _Body(response), url=request.url)

    async def aclose(self) -> None:
        """As `HttpClient` says."""
        await self._http.aclose()


class _Body:
    def __init__(self, response: httpx.Response) -> None:
        self._response = response
        self._chunks: AsyncIterator[bytes] = response.aiter_raw()

    async def read(self) -> bytes:
        if self._response.is_closed:
            return b""
        with _reported():
            return await anext(self._chunks, b"")

    async def aclose(self) -> None:
        await self._response.aclose()


@contextmanager
def _reported() -> Generator[None]:
    """Raise the errors of httpx as `HttpError`."""
    try:
        yield
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        ours = next((ours for theirs, ours in _ERRORS if isinstance(error, theirs)), exchange.UnsendableRequest)
        raise ours(str(error)) from error

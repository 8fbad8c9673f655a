"""The door to httpx: the library without its command line, and the one way this program opens a client.

`import httpx` also tries `httpx._main`, and with it click, rich and pygments where they are installed: half of the
start-up of a one-liner. It is declared absent while httpx is imported here, which httpx itself provides for. Modules
of this program import httpx from here.
"""

from __future__ import annotations

import ipaddress
import ssl
import sys
from collections.abc import Generator
from contextlib import contextmanager
from types import ModuleType
from typing import Final, cast

from codex_py.errors import UserError


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


with _absent("httpx._main"):
    import httpx

__all__ = ["CONNECT_SECONDS", "httpx", "is_loopback", "open_client"]

CONNECT_SECONDS: Final = 15.0
# Long enough to span a tool call, short enough that few servers have hung up by then.
_KEEPALIVE_SECONDS: Final = 30.0


def is_loopback(host: str) -> bool:
    """Whether a host name or address can only mean this machine."""
    host = host.strip("[]").rstrip(".").lower()
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def open_client(url: str, *, ca_file: str | None, idle_timeout: float) -> httpx.AsyncClient:
    """A client for one server: no redirects, proxies only beyond the loopback, `idle_timeout` seconds of silence.

    `ca_file` replaces the built-in list of certificate authorities. Raises `UserError` for a file that cannot be
    used and for a proxy setting that makes no sense.
    """
    target = httpx.URL(url)
    local = is_loopback(target.host)
    try:
        return httpx.AsyncClient(
            verify=_trust(ca_file, needed=target.scheme == "https"),
            trust_env=not local,
            follow_redirects=False,
            timeout=httpx.Timeout(idle_timeout, connect=min(CONNECT_SECONDS, idle_timeout), pool=None),
            limits=httpx.Limits(keepalive_expiry=_KEEPALIVE_SECONDS),
        )
    except (ValueError, httpx.InvalidURL, ImportError) as error:
        raise UserError(
            f"cannot use the proxy settings of the environment: {str(error).splitlines()[0]}",
            hint="mend or unset HTTP_PROXY, HTTPS_PROXY and ALL_PROXY, or list the server in NO_PROXY",
        ) from error


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
        raise UserError(
            f"cannot read the certificate file `{ca_file}`: {reason}",
            hint="CODEX_CA_CERTIFICATE and SSL_CERT_FILE name a PEM file",
        ) from error

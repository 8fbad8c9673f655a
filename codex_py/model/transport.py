"""What httpx and the socket below it report, as `ModelError`: unreachable, not trusted, cut off, silent."""

from __future__ import annotations

import errno
import ssl

from codex_py.errors import ModelError
from codex_py.model.failures import on_one_line
from codex_py.model.http import httpx
from codex_py.text.reasons import system_error, system_reason


def no_answer(error: Exception, *, host: str, idle_timeout: float, address: str = "", hint: str = "") -> ModelError:
    """A request that failed before a status line came.

    `host` is named; when nothing listens there, `address` is named in its place, and `hint` follows.
    """
    address = address or f"`{host}`"
    match error:
        case httpx.ConnectTimeout():
            return _unreachable(address, "the connection timed out", hint)
        case httpx.ConnectError():
            return _not_connected(error, host, address, hint)
        case TimeoutError() | httpx.TimeoutException():
            return ModelError(f"no answer from `{host}` for {idle_timeout:g} s", retryable=True)
        case httpx.ProxyError():
            message = on_one_line(str(error))
            # A proxy passes on refusals of its own as 4xx; its 5xx may pass.
            return ModelError(
                f"the proxy refused to connect to `{host}`: {message}", retryable=not message.startswith("4")
            )
        case httpx.UnsupportedProtocol() | httpx.LocalProtocolError():
            return ModelError(f"cannot send the request to `{host}`: {on_one_line(str(error))}", retryable=False)
        case _:
            return ModelError(f"no answer from `{host}`: {_reason(error)}", retryable=True)


def broken_stream(error: Exception, *, idle_timeout: float) -> ModelError:
    """An answer that broke off or fell silent."""
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return ModelError(f"no event from the server for {idle_timeout:g} s", retryable=True, streaming=True)
    return ModelError(f"the answer was cut off: {_reason(error)}", retryable=True, streaming=True)


def _not_connected(error: Exception, host: str, address: str, hint: str) -> ModelError:
    cause = system_error(error)
    match cause:
        case ssl.SSLCertVerificationError():
            reason = on_one_line(cause.verify_message or str(cause))
            return ModelError(
                f"the certificate of `{host}` is not trusted: {reason}; if it is your own authority's, name its PEM "
                "file in `CODEX_CA_CERTIFICATE`",
                retryable=False,
            )
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "HTTP_REQUEST"):
            return ModelError(f"`{host}` does not speak https; is its address `http://`?", retryable=False)
        case OSError(errno=errno.EMFILE | errno.ENFILE):
            return ModelError(f"cannot connect to {address}: {_reason(error)}; raise `ulimit -n`", retryable=False)
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

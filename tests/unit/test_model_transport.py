"""What failed connections are called, and which of them are waited for."""

from __future__ import annotations

import errno
import os
import socket
import ssl

import httpx
import pytest

from codex_py.errors import ModelError
from codex_py.model.http import broken_stream, no_answer


def wrapped(error: Exception, *causes: BaseException, cut: bool = False) -> Exception:
    """`error` with the chain below it that httpx, httpcore and anyio leave; `cut` hides the links as httpcore does."""
    outer: BaseException = error
    for cause in causes:
        if cut:
            outer.__context__, outer.__suppress_context__ = cause, True
        else:
            outer.__cause__ = cause
        outer = cause
    return error


def facts(error: ModelError) -> tuple[str, bool, bool, bool]:
    return str(error), error.retryable, error.unreachable, error.streaming


def seen(error: Exception, hint: str = "") -> tuple[str, bool, bool, bool]:
    return facts(no_answer(error, host="h:1", idle_timeout=7.0, hint=hint))


REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)")
ALL_FAILED = OSError("All connection attempts failed")


def certificate_error() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "[SSL: CERTIFICATE_VERIFY_FAILED] long (_ssl.c:1006)")
    error.verify_message, error.verify_code = "self-signed certificate", 18
    return error


def tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] words (_ssl.c:1006)")
    error.reason = reason
    return error


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize(
    ("causes", "reason"),
    [
        ([httpx.ConnectError("x"), ALL_FAILED, REFUSED], os.strerror(errno.ECONNREFUSED).lower()),
        ([ALL_FAILED, ExceptionGroup("many", [OSError(errno.ENETUNREACH, "x"), REFUSED])], "connection refused"),
        ([OSError(errno.EHOSTUNREACH, "odd words")], os.strerror(errno.EHOSTUNREACH).lower()),
        ([socket.gaierror(socket.EAI_NONAME, "Name or service not known")], "name or service not known"),
        ([socket.gaierror(-2, "Name or service not known"), ValueError("no address")], "name or service not known"),
    ],
)
def test_where_nothing_listens_is_unreachable(causes: list[BaseException], reason: str, cut: bool) -> None:
    error = wrapped(httpx.ConnectError("All connection attempts failed"), *causes, cut=cut)
    assert seen(error, "is it running?") == (f"cannot connect to `h:1`: {reason}; is it running?", True, True, False)


def test_a_connection_that_times_out_is_unreachable() -> None:
    assert seen(httpx.ConnectTimeout("")) == ("cannot connect to `h:1`: the connection timed out", True, True, False)


@pytest.mark.parametrize(
    "error",
    [
        wrapped(httpx.ConnectError(""), ConnectionResetError(errno.ECONNRESET, "x")),
        wrapped(httpx.ConnectError(""), BrokenPipeError(errno.EPIPE, "x")),
        wrapped(httpx.ConnectError(""), tls_error("UNEXPECTED_EOF_WHILE_READING")),
        httpx.ConnectError(""),
    ],
)
def test_a_handshake_that_breaks_off_is_counted(error: Exception) -> None:
    assert seen(error)[1:] == (True, False, False)
    assert seen(error)[0].startswith("the connection to `h:1` failed: ")


def test_a_certificate_nobody_vouches_for_is_final_and_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CODEX_CA_CERTIFICATE", "SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    assert seen(wrapped(httpx.ConnectError("x"), certificate_error(), cut=True)) == (
        "the certificate of `h:1` is not trusted: self-signed certificate; if it is your own authority's, name its "
        "PEM file in `CODEX_CA_CERTIFICATE`",
        False,
        False,
        False,
    )


def test_https_where_there_is_none_is_final() -> None:
    error = wrapped(httpx.ConnectError("x"), tls_error("WRONG_VERSION_NUMBER"))
    assert seen(error) == ("`h:1` does not speak https; is its address `http://`?", False, False, False)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TimeoutError(), ("no answer from `h:1` for 7 s", True)),
        (httpx.ReadTimeout(""), ("no answer from `h:1` for 7 s", True)),
        (httpx.WriteTimeout(""), ("no answer from `h:1` for 7 s", True)),
        (httpx.ReadError(""), ("no answer from `h:1`: the connection was lost", True)),
        (
            httpx.RemoteProtocolError("Server disconnected without sending a response."),
            ("no answer from `h:1`: the server hung up", True),
        ),
        (
            httpx.RemoteProtocolError("illegal status line: b'x'"),
            ("no answer from `h:1`: it does not speak HTTP", True),
        ),
        (
            httpx.ProxyError("407 Proxy Authentication Required"),
            ("the proxy refused to connect to `h:1`: 407 Proxy Authentication Required", False),
        ),
        (httpx.ProxyError("502 Bad Gateway"), ("the proxy refused to connect to `h:1`: 502 Bad Gateway", True)),
        (httpx.LocalProtocolError("bad\nheader"), ("cannot send the request to `h:1`: bad header", False)),
        (OSError(errno.EIO, "x"), (f"no answer from `h:1`: {os.strerror(errno.EIO).lower()}", True)),
    ],
)
def test_other_failures_before_an_answer(error: Exception, expected: tuple[str, bool]) -> None:
    assert seen(error) == (*expected, False, False)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (TimeoutError(), "no event from the server for 7 s"),
        (httpx.ReadTimeout(""), "no event from the server for 7 s"),
        (httpx.ReadError(""), "the answer was cut off: the connection was lost"),
        (
            wrapped(httpx.ReadError(""), ConnectionResetError(errno.ECONNRESET, "x"), cut=True),
            "the answer was cut off: connection reset by peer",
        ),
        (
            httpx.RemoteProtocolError("peer closed connection without sending complete message body"),
            "the answer was cut off: the server hung up",
        ),
        (httpx.DecodingError("Error -3\x1b[2J"), "the answer was cut off: Error -3 [2J"),
    ],
)
def test_failures_within_an_answer(error: Exception, message: str) -> None:
    assert facts(broken_stream(error, idle_timeout=7.0)) == (message, True, False, True)


def test_a_circle_of_causes_ends() -> None:
    first, second = httpx.ConnectError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert seen(first)[1:] == (True, False, False)

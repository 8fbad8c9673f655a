"""The local server to which a browser is redirected after a sign-in; it accepts one answer."""

from __future__ import annotations

import asyncio
import hmac
import os
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qs, urlsplit

from codex_py.errors import ModelError, UserError
from codex_py.model.error_bodies import on_one_line
from codex_py.model.json_request import JsonRequest, fetch_json
from codex_py.paths import draft_of, make_private_dir, open_private
from codex_py.text.address import is_loopback
from codex_py.text.files import FileRefused, os_reason, read_trusted

# The port that the issuer sends browsers back to.
CALLBACK_PORT: Final = 1455
_HOST: Final = "127.0.0.1"
_PORT_RETRIES: Final = 10
_PORT_RETRY_SECONDS: Final = 0.2
_MAX_BYTES: Final = 64 * 1024
_READ_SECONDS: Final = 10.0
_MAX_SECRET_BYTES: Final = 256
_WAIT_MINUTES: Final = 5
_PAGE: Final = """<!doctype html>
<html><head><meta charset="utf-8"><title>codex-py</title></head>
<body style="font-family: sans-serif; margin: 4em"><h1>{title}</h1><p>{text}</p></body></html>
"""


class SignInCancelled(UserError):
    """The user, or another sign-in, has cancelled this one."""

    def __init__(self) -> None:
        super().__init__("the sign-in was cancelled")


class Callback:
    """Waits for the browser. `uri` is the redirect URI."""

    def __init__(self, state: str) -> None:
        self._state = state
        # With this, another sign-in of the same user can cancel this one.
        self.cancel_secret: Final = secrets.token_urlsafe(32)
        # The issuer that the browser names.
        self.issuer: str | None = None
        self._outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.uri = ""

    def expect(self, state: str) -> None:
        """Wait for a sign-in with a new state; an earlier outcome is dropped."""
        self._state = state
        if self._outcome.done():
            self._outcome = asyncio.get_running_loop().create_future()

    async def wait(self, *, seconds: float = _WAIT_MINUTES * 60) -> str:
        """Wait for the code. Raises `ModelError` when the sign-in is refused or times out, and `SignInCancelled`."""
        try:
            async with asyncio.timeout(seconds):
                return await self._outcome
        except TimeoutError:
            raise ModelError(
                f"nobody signed in within {_WAIT_MINUTES} minutes; on a machine without a browser, use "
                "`codex-py login --device-auth`",
                retryable=False,
            ) from None

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        try:
            async with asyncio.timeout(_READ_SECONDS):
                status, title, text, outcome = self._judge(await _read_request(reader))
                writer.write(_response(status, title, text))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            # Not a valid request; the browser may still come.
            return
        finally:
            writer.close()
        self._finish(outcome)

    def _judge(self, request: _Request) -> tuple[str, str, str, str | Exception | None]:
        """The answer to a request, and the outcome of the sign-in: a code, an error, or None to go on waiting."""
        path, query = urlsplit(request.target).path, parse_qs(urlsplit(request.target).query)
        if not _is_this_machine(request.host):
            # DNS rebinding: a web page whose host name now resolves to this machine.
            return "400 Bad Request", "Wrong host", "This server answers on this machine only.", None
        if path == "/cancel" and _is_same(_only(query, "state"), self.cancel_secret):
            return "200 OK", "Cancelled", "The sign-in was cancelled.", SignInCancelled()
        if path != "/auth/callback":
            return "404 Not Found", "Not found", "There is nothing here.", None
        if self._outcome.done():
            return "400 Bad Request", "Too late", "This sign-in is over.", None
        # Checked first, because any web page can send a browser here.
        if not _is_same(_only(query, "state"), self._state):
            return "400 Bad Request", "State mismatch", "This is not the sign-in that is being waited for.", None
        if code := _only(query, "code"):
            self.issuer = _only(query, "iss") or None
            return "200 OK", "Signed in", "You can close this page and go back to the terminal.", code
        reason = on_one_line(_only(query, "error_description") or _only(query, "error"), 200) or "no code came back"
        refused = ModelError(f"the sign-in was refused: {reason}", retryable=False)
        return "400 Bad Request", "Not signed in", "The terminal says why.", refused

    def _finish(self, outcome: str | Exception | None) -> None:
        if outcome is None or self._outcome.done():
            return
        if isinstance(outcome, str):
            self._outcome.set_result(outcome)
        else:
            self._outcome.set_exception(outcome)


@asynccontextmanager
async def listen_for_callback(state: str, home: Path, *, port: int = CALLBACK_PORT) -> AsyncGenerator[Callback, None]:
    """A server for one sign-in with this `state`; port 0 is any free port.

    An earlier sign-in with the same CODEX_HOME (`home`) that still uses the port is cancelled. Raises `UserError` when
    the port stays in use.
    """
    callback = Callback(state)
    server = await _listen(callback, home, port)
    bound = int(server.sockets[0].getsockname()[1])
    try:
        callback.uri = f"http://{_HOST}:{bound}/auth/callback"
        _save_secret(home, bound, callback.cancel_secret)
        yield callback
    finally:
        if _load_secret(home, bound) == callback.cancel_secret:
            with suppress(OSError):
                _secret_file(home, bound).unlink(missing_ok=True)
        server.close()
        with suppress(OSError):
            await server.wait_closed()


async def _listen(callback: Callback, home: Path, port: int) -> asyncio.Server:
    is_sign_in = True
    for attempt in range(_PORT_RETRIES + 1):
        try:
            return await asyncio.start_server(callback.answer, _HOST, port, limit=_MAX_BYTES)
        except OSError as error:
            if attempt == _PORT_RETRIES:
                raise UserError(
                    f"cannot wait for the browser on port {port}: {os_reason(error)}",
                    hint="end the program that holds it, or use `codex-py login --device-auth`",
                ) from error
        try:
            if is_sign_in and (secret := _load_secret(home, port)):
                await fetch_json(JsonRequest(f"http://{_HOST}:{port}/cancel?state={secret}", seconds=2.0))
        except ModelError:
            # It has just ended, or it is another program, which is not asked again.
            is_sign_in = False
        await asyncio.sleep(_PORT_RETRY_SECONDS)
    raise AssertionError("the last attempt returns or raises")


class _Request(NamedTuple):
    target: str
    host: str


async def _read_request(reader: asyncio.StreamReader) -> _Request:
    """A GET request; raises `ValueError` for anything else."""
    head = await reader.readuntil(b"\r\n\r\n")
    first, *fields = head.decode("ascii").split("\r\n")
    method, target, version = first.split(" ")
    if method != "GET" or not version.startswith("HTTP/1."):
        raise ValueError("not a GET")
    headers = [(name.strip().lower(), value.strip()) for name, _, value in (field.partition(":") for field in fields)]
    hosts = [value for name, value in headers if name == "host"]
    return _Request(target, hosts[0] if len(hosts) == 1 else "")


def _is_this_machine(host: str) -> bool:
    """Whether a `Host` header names this machine; the port may be one that is forwarded here."""
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False


def _is_same(text: str, secret: str) -> bool:
    return hmac.compare_digest(text.encode(errors="replace"), secret.encode())


def _secret_file(home: Path, port: int) -> Path:
    """The file with the secret that cancels a sign-in; the sandbox hides it from commands, like `auth.json`."""
    return draft_of(home / "auth.json", f"sign-in-{port}")


def _save_secret(home: Path, port: int, secret: str) -> None:
    """Store the secret if possible; without it another sign-in cannot cancel this one, which is acceptable."""
    with suppress(OSError):
        make_private_dir(home)
        with os.fdopen(open_private(_secret_file(home, port), os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "w") as file:
            file.write(secret)


def _load_secret(home: Path, port: int) -> str:
    try:
        head = read_trusted(_secret_file(home, port), _MAX_SECRET_BYTES)
    except FileRefused:
        return ""
    return "" if head is None else head.raw.decode("ascii", errors="replace")


def _response(status: str, title: str, text: str) -> bytes:
    body = _PAGE.format(title=title, text=text).encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
        "cache-control: no-store\r\nreferrer-policy: no-referrer\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


def _only(query: dict[str, list[str]], name: str) -> str:
    values = query.get(name, [])
    return values[0] if len(values) == 1 else ""

"""The server on this machine that a browser is sent back to after a sign-in: one answer, then it is gone."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final
from urllib.parse import parse_qs, urlsplit

from codex_py.errors import ModelError, UserError
from codex_py.model.failures import one_line
from codex_py.model.json_request import JsonRequest, fetch_json

# The port that the issuer sends browsers back to.
CALLBACK_PORT: Final = 1455
_HOST: Final = "127.0.0.1"
_TAKE_OVER_TRIES: Final = 10
_TAKE_OVER_PAUSE: Final = 0.2
_MOST_BYTES: Final = 64 * 1024
_READ_SECONDS: Final = 10.0
_WAIT_MINUTES: Final = 5
_PAGE: Final = """<!doctype html>
<html><head><meta charset="utf-8"><title>codex-py</title></head>
<body style="font-family: sans-serif; margin: 4em"><h1>{title}</h1><p>{text}</p></body></html>
"""


class SignInCancelled(UserError):
    """The user, or another sign-in, has ended this one."""

    def __init__(self) -> None:
        super().__init__("the sign-in was cancelled")


class Callback:
    """Waits for the browser. `uri` is where it has to be sent back to."""

    def __init__(self, state: str) -> None:
        self._state = state
        # Who has signed the user in, as far as the browser says.
        self.issuer: str | None = None
        self._outcome: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.uri = ""

    def expect(self, state: str) -> None:
        """Wait for the sign-in with this state, for one that makes its own; one that is over counts no more."""
        self._state = state
        if self._outcome.done():
            self._outcome = asyncio.get_running_loop().create_future()

    async def wait(self, *, seconds: float = _WAIT_MINUTES * 60) -> str:
        """The code of the sign-in; raises `ModelError` when it was refused or nobody came, `SignInCancelled`."""
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
                status, title, text, outcome = self._judge(await _read_target(reader))
                writer.write(_response(status, title, text))
                await writer.drain()
                writer.close()
                await writer.wait_closed()
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError):
            # Whoever it was has not told us anything; the browser may still come.
            return
        finally:
            writer.close()
        self._finish(outcome)

    def _judge(self, target: str) -> tuple[str, str, str, str | Exception | None]:
        """The answer to a request, and what it means for the sign-in: a code, an end, or nothing."""
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        if path == "/cancel":
            return "200 OK", "Cancelled", "The sign-in was cancelled.", SignInCancelled()
        if path != "/auth/callback":
            return "404 Not Found", "Not found", "There is nothing here.", None
        if self._outcome.done():
            return "400 Bad Request", "Too late", "This sign-in is over.", None
        # Before anything else is looked at: any page can send a browser here.
        if not hmac.compare_digest(_only(query, "state").encode(), self._state.encode()):
            return "400 Bad Request", "State mismatch", "This is not the sign-in that is being waited for.", None
        if code := _only(query, "code"):
            self.issuer = _only(query, "iss") or None
            return "200 OK", "Signed in", "You can close this page and go back to the terminal.", code
        reason = one_line(_only(query, "error_description") or _only(query, "error"), 200) or "no code came back"
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
async def listen_for_callback(state: str, *, port: int = CALLBACK_PORT) -> AsyncGenerator[Callback, None]:
    """A server for one sign-in with this `state`; port 0 is any free one.

    An earlier sign-in that still holds the port is asked to end. Raises `UserError` when the port stays taken.
    """
    callback = Callback(state)
    server = await _listen(callback, port)
    try:
        callback.uri = f"http://{_HOST}:{server.sockets[0].getsockname()[1]}/auth/callback"
        yield callback
    finally:
        server.close()
        with suppress(OSError):
            await server.wait_closed()


async def _listen(callback: Callback, port: int) -> asyncio.Server:
    is_sign_in = True
    for attempt in range(_TAKE_OVER_TRIES + 1):
        try:
            return await asyncio.start_server(callback.answer, _HOST, port, limit=_MOST_BYTES)
        except OSError as error:
            if attempt == _TAKE_OVER_TRIES:
                raise UserError(
                    f"cannot wait for the browser on port {port}: {error.strerror or error}",
                    hint="end the program that holds it, or use `codex-py login --device-auth`",
                ) from error
        try:
            if is_sign_in:
                await fetch_json(JsonRequest(f"http://{_HOST}:{port}/cancel", seconds=2.0))
        except ModelError:
            # It has just ended, or it is some other program, which is not asked again.
            is_sign_in = False
        await asyncio.sleep(_TAKE_OVER_PAUSE)
    raise AssertionError("the last attempt returns or raises")


async def _read_target(reader: asyncio.StreamReader) -> str:
    """The target of a GET request; raises `ValueError` for anything else."""
    head = await reader.readuntil(b"\r\n\r\n")
    method, target, version = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
    if method != "GET" or not version.startswith("HTTP/1."):
        raise ValueError("not a GET")
    return target


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

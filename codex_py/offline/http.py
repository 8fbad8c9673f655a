"""Just enough HTTP/1.1 for a server that one client on this machine talks to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, NamedTuple

from codex_py.protocol.encoding import encode_json

HEAD_LIMIT: Final = 64 * 1024
BODY_LIMIT: Final = 32 * 1024 * 1024
# How much, and for how long, is read and thrown away of a request that was refused.
_DRAIN_LIMIT: Final = 256 * 1024 * 1024
_DRAIN_SECONDS: Final = 3.0
_CHUNK: Final = 64 * 1024
_REASONS: Final = (
    (200, "OK"),
    (400, "Bad Request"),
    (404, "Not Found"),
    (405, "Method Not Allowed"),
    (411, "Length Required"),
    (413, "Content Too Large"),
    (431, "Request Header Fields Too Large"),
    (505, "HTTP Version Not Supported"),
)


class Request(NamedTuple):
    """`path` is without its query; header names are in lower case."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    keep_alive: bool


class Refusal(Exception):
    """The request cannot be answered. `final` says that the connection cannot be used after it."""

    def __init__(self, status: int, message: str, *, final: bool = False, allow: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.final = final
        self.allow = allow


async def read_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Request | None:
    """The next request; None when the client is gone. Raise `Refusal` for what is not one, `ConnectionError` and
    `asyncio.IncompleteReadError` when the client leaves in the middle."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise Refusal(431, f"the request head is longer than {HEAD_LIMIT} bytes", final=True) from None
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise Refusal(400, "the request head is cut short", final=True) from None
        return None
    method, target, version, headers = _parse_head(head)
    close = "close" in headers.get("connection", "").lower()
    keep_alive = not close if version == "HTTP/1.1" else "keep-alive" in headers.get("connection", "").lower()
    body = await _read_body(reader, writer, method, headers)
    return Request(method, target.partition("?")[0], headers, body, keep_alive)


def _parse_head(head: bytes) -> tuple[str, str, str, dict[str, str]]:
    first, *rest = head.decode("latin-1").rstrip("\r\n").lstrip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[0].isalpha() or not words[1].startswith("/"):
        raise Refusal(400, "the request line is not HTTP", final=True)
    if words[2] not in ("HTTP/1.1", "HTTP/1.0"):
        status = 505 if words[2].startswith("HTTP/") else 400
        raise Refusal(status, "only HTTP/1.1 and HTTP/1.0 are spoken here", final=True)
    headers: dict[str, str] = {}
    for line in rest:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise Refusal(400, "a header line is malformed", final=True)
        if name.lower() == "content-length" and headers.get("content-length", value.strip()) != value.strip():
            raise Refusal(400, "there are two different lengths", final=True)
        headers[name.lower()] = value.strip()
    return words[0], words[1], words[2], headers


async def _read_body(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, headers: Mapping[str, str]
) -> bytes:
    if "transfer-encoding" in headers:
        raise Refusal(411, "send the body with a `content-length`, not in chunks", final=True)
    given = headers.get("content-length")
    if given is None:
        if method == "POST":
            raise Refusal(411, "a `content-length` is needed", final=True)
        return b""
    if not (given.isascii() and given.isdigit() and len(given) < 19):
        raise Refusal(400, "the `content-length` is not a number", final=True)
    length, waits = int(given), headers.get("expect", "").lower() == "100-continue"
    if length > BODY_LIMIT:
        raise Refusal(413, f"the body is longer than {BODY_LIMIT} bytes", final=True)
    if waits:
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return await reader.readexactly(length)


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """End a connection so that a client that still writes can read the answer it was given: closing at once would
    reset the connection and take the answer with it."""
    writer.write_eof()
    left = _DRAIN_LIMIT
    try:
        async with asyncio.timeout(_DRAIN_SECONDS):
            while left > 0 and (got := await reader.read(_CHUNK)):
                left -= len(got)
    except TimeoutError:
        return


def json_response(status: int, value: object, *, keep_alive: bool, allow: str = "") -> bytes:
    """A whole response with a JSON body."""
    body = encode_json(value)
    extra = f"allow: {allow}\r\n" if allow else ""
    return _head(status, "application/json", f"content-length: {len(body)}\r\n{extra}", keep_alive=keep_alive) + body


def error_response(refusal: Refusal, *, keep_alive: bool) -> bytes:
    """A refusal in the shape that providers use."""
    error = {"message": str(refusal), "type": "invalid_request_error", "param": None, "code": None}
    return json_response(refusal.status, {"error": error}, keep_alive=keep_alive, allow=refusal.allow)


def stream_head(*, keep_alive: bool) -> bytes:
    """The head of an event stream; its body follows in chunks."""
    extra = "cache-control: no-store\r\ntransfer-encoding: chunked\r\n"
    return _head(200, "text/event-stream; charset=utf-8", extra, keep_alive=keep_alive)


def chunk(body: bytes) -> bytes:
    """One chunk of a streamed body; an empty one ends it."""
    return b"%x\r\n%b\r\n" % (len(body), body)


def _head(status: int, content_type: str, extra: str, *, keep_alive: bool) -> bytes:
    reason = dict(_REASONS)[status]
    connection = "keep-alive" if keep_alive else "close"
    head = f"HTTP/1.1 {status} {reason}\r\ncontent-type: {content_type}\r\n{extra}connection: {connection}\r\n\r\n"
    return head.encode("latin-1")

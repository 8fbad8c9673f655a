"""One request over HTTP and its answer, and every way in which that fails."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Protocol

from codex_py.protocol.value import Value


class HttpError(Exception):
    """A request without an answer, or an answer without its end."""


class HttpTimeout(HttpError):
    """A silence that was too long."""


class ConnectTimeout(HttpTimeout):
    pass


class ReadTimeout(HttpTimeout):
    pass


class WriteTimeout(HttpTimeout):
    pass


class NetworkError(HttpError):
    """A failure of the connection, as the operating system reports it."""


class ConnectError(NetworkError):
    pass


class ReadError(NetworkError):
    pass


class WriteError(NetworkError):
    pass


class UnsendableRequest(HttpError):
    """A request that HTTP has no form for."""


class RemoteProtocolError(HttpError):
    """A server that does not speak HTTP, or hangs up."""


class ProxyError(HttpError):
    pass


class DecodingError(HttpError):
    """A body that is not compressed as its header says."""


class HttpRequest(Value):
    """`content` None is a request without a body."""

    method: str
    url: str
    headers: Sequence[tuple[str, str]] = ()
    content: bytes | None = None


class AnswerBody(Protocol):
    """The rest of an answer."""

    async def read(self) -> bytes:
        """The next bytes, as they were sent; empty at the end. Raises `HttpError`."""
        ...

    async def aclose(self) -> None:
        """Let go of the connection. Safe to call more than once."""
        ...


class Answer:
    """The head of an answer, and its body piece by piece. The names of `headers` are in lower case."""

    def __init__(
        self, status: int, headers: Sequence[tuple[bytes, bytes]], body: AnswerBody, *, url: str, version: bytes = b""
    ) -> None:
        self.status = status
        self.url = url
        self.version = version
        self.headers: dict[str, str] = {}
        for raw_name, raw_value in headers:
            name, value = header_text(raw_name).lower(), header_text(raw_value)
            self.headers[name] = f"{self.headers[name]}, {value}" if name in self.headers else value
        self._body = body
        self._inflater = _inflater(self.headers.get("content-encoding", "").strip().lower())
        self._has_begun = False

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    async def read(self) -> bytes:
        """The next bytes of the body, no longer compressed; empty at its end and when closed. Raises `HttpError`."""
        while self._inflater is not None:
            chunk = await self._body.read()
            if not chunk:
                inflater, self._inflater = self._inflater, None
                return inflater.flush()
            if inflated := self._inflate(chunk):
                return inflated
        return await self._body.read()

    async def aclose(self) -> None:
        """Let go of the connection. Safe to call more than once."""
        await self._body.aclose()

    def _inflate(self, chunk: bytes) -> bytes:
        is_first, self._has_begun = not self._has_begun, True
        try:
            return self._inflater.decompress(chunk) if self._inflater else chunk
        except zlib.error as error:
            if not is_first or self.headers["content-encoding"].strip().lower() != "deflate":
                raise DecodingError(str(error)) from error
        # Some servers take `deflate` for the format without a header.
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        return self._inflate(chunk)


def header_text(raw: bytes) -> str:
    """A header as text. Most are ASCII; others are in UTF-8, or in what HTTP once was in."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def _inflater(coding: str):
    # Nobody is asked to compress, but some servers do.
    if coding in ("gzip", "x-gzip"):
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    return zlib.decompressobj() if coding == "deflate" else None

"""One HTTP/1.1 connection: a request, its answer as it comes, and then perhaps the next request.

Why this is not httpcore: docs/decisions/004-own-transport.md.
"""

from __future__ import annotations

import ssl
from typing import Final

import h11

from codex_py.model.byte_stream import ByteStream, TlsStream
from codex_py.model.dial import open_stream

_MAX_HEADER_BYTES: Final = 100 * 1024
_PIECE_BYTES: Final = 1024 * 1024
_MAX_INTERIM_ANSWERS: Final = 100


class HttpConnection:
    """Send, read the head, read the body to its end, `renew`; in this order, one caller at a time.

    What sends or reads may raise `OSError`, a bare `TimeoutError` after `seconds` of silence, and `h11.ProtocolError`;
    all that is left then is to `close`. `unanswered` says that no byte has come back for the request sent last.
    """

    def __init__(self, stream: ByteStream | TlsStream) -> None:
        self._stream = stream
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MAX_HEADER_BYTES)
        self._broken: h11.RemoteProtocolError | None = None
        self.unanswered = True

    @classmethod
    async def open(cls, host: str, port: int, tls: ssl.SSLContext | None) -> HttpConnection:
        """Connect. Nothing stays open when it fails or is cancelled."""
        return cls(await open_stream(host, port, tls))

    async def send(self, head: h11.Request, body: bytes, *, seconds: float | None) -> None:
        """Send a request and wait until most of it has left, or the server does not want the rest."""
        chunks = [self._http.send(head), self._http.send(h11.Data(data=body)), self._http.send(h11.EndOfMessage())]
        self.unanswered = True
        # One piece, so that a small request is one packet; a large one is not copied whole, neither here nor below.
        if len(body) <= _PIECE_BYTES:
            chunks = [b"".join(chunks)]
        for chunk in chunks:
            for start in range(0, len(chunk), _PIECE_BYTES):
                self._stream.write(chunk[start : start + _PIECE_BYTES])
                await self._stream.drain(seconds)

    async def read_head(self, *, seconds: float | None) -> h11.Response:
        """Wait for the status line and the headers, at most 100 KiB of them; what only announces them is skipped."""
        interim_answers = 0
        while True:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                received = await self._stream.read(seconds)
                if not received:
                    raise h11.RemoteProtocolError(self._without_answer())
                self.unanswered = False
                self._http.receive_data(received)
            elif isinstance(event, h11.Response):
                return event
            else:
                interim_answers += 1
                if interim_answers > _MAX_INTERIM_ANSWERS:
                    raise h11.RemoteProtocolError(f"over {_MAX_INTERIM_ANSWERS} answers of status 1xx")

    def _without_answer(self) -> str:
        begun, _ = self._http.trailing_data
        if begun and not begun.startswith(b"HTTP/"):
            return "illegal answer"
        return "server disconnected without an answer"

    async def read_body(self, *, seconds: float | None) -> bytes:
        """The next bytes of the body, all that are there; empty at its end."""
        pieces: list[bytes] = []
        while self._broken is None and self._http.their_state is h11.SEND_BODY:
            try:
                event = self._http.next_event()
            except h11.RemoteProtocolError as error:
                self._broken = error
                break
            if isinstance(event, h11.Data):
                pieces.append(event.data)
            elif event is h11.NEED_DATA:
                if pieces:
                    break
                self._http.receive_data(await self._stream.read(seconds))
        # What came whole is handed on before the complaint about what followed.
        if self._broken is not None and not pieces:
            raise self._broken
        return b"".join(pieces)

    def renew(self) -> bool:
        """Get ready for another request; False when there cannot be one, because either side has not finished."""
        if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        # An answer that nobody has asked for would be taken for that to the next request.
        if self._http.trailing_data != (b"", False):
            return False
        self._http.start_next_cycle()
        return self.is_quiet()

    def is_quiet(self) -> bool:
        """Whether the server, as far as can be seen from here, waits for a request."""
        return self._stream.is_quiet()

    def close(self) -> None:
        """Close at once. Safe to call more than once."""
        self._stream.close()

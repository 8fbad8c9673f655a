"""The HTTP of the fake model: a threaded HTTP/1.1 server on the loopback that plays script elements on the wire."""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from typing import Any, Protocol, cast

from codex_py.text.compression import unpack
from tests.support.loopback import Loopback
from tests.support.script import Answer, Cut, Element, End, Hang, Headers, Json, Raw, Stream, status


class Model(Protocol):
    """What the server asks about every request."""

    connections: int
    problems: list[str]
    paths: tuple[str, ...]

    @property
    def closing(self) -> bool: ...

    def accept(self, path: str, headers: dict[str, str], body: bytes) -> Stream:
        """Check a request and say what to answer it with."""
        ...

    def get(self, path: str) -> Answer: ...

    def complain(self, name: str, problems: Sequence[str]) -> None: ...

    def hold(self, until: threading.Event | float) -> None:
        """Return when the event is set, the seconds are over, or the server closes."""
        ...


class LoopbackServer(Loopback):
    daemon_threads = False
    request_queue_size = 64

    def __init__(self, fake: Model, port: int = 0) -> None:
        self.fake = fake
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        super().__init__(_Handler, port)

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            self._open.add(request)
            self.fake.connections += 1
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.discard(request)
        super().shutdown_request(request)

    def drop_connections(self) -> None:
        with self._lock:
            for connection in self._open:
                _hang_up(connection)

    def handle_error(self, request: Any, client_address: Any) -> None:
        error = sys.exception()
        if not isinstance(error, ConnectionError):  # a client that hung up, as it should after an interrupt
            self.fake.problems.append(f"the fake server itself failed: {error!r}")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Small writes must not wait for an acknowledgement: that costs 40 ms an event.
    disable_nagle_algorithm = True
    server: LoopbackServer

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        self._answer(self.server.fake.get(self.path))

    def do_POST(self) -> None:
        fake = self.server.fake
        length = self.headers["content-length"]
        if length is None:
            fake.complain("length", ["no content-length"])
            self._answer(status(411, "length required"))
            return
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            return  # the client has given up amid its request
        if not self.path.partition("?")[0].endswith(fake.paths):
            fake.complain("script", [f"POST to {self.path}"])
            self._answer(status(404, "not found"))
            return
        header = {name.lower(): value for name, value in self.headers.items()}
        if header.get("content-encoding") == "zstd":
            body = unpack(body, 1 << 30)
        self._play(fake.accept(self.path, header, body))

    def _play(self, stream: Stream) -> None:
        header: dict[str, str | None] = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        code, begun = 200, False
        for element in stream:
            match element:
                case Answer():
                    self._answer(element)
                    return
                case Headers():
                    code, header = element.status, {**header, **element.values}
                    continue
                case Hang(until, before_headers=True):
                    self.server.fake.hold(until)
                    continue
                case Cut(reset=with_reset) if not begun:
                    self._hang_up(with_reset)
                    return
                case _:
                    pass
            if not begun:
                begun = True
                self._begin(code, header)
            if not self._send(element):
                return
        if not begun:
            self._begin(code, header)
        self._chunk(b"")

    def _send(self, element: Element) -> bool:
        """Put one element on the wire; False when it ended the answer."""
        match element:
            case Raw(content):
                if content:  # an empty chunk would end the body
                    self._chunk(content)
            case Hang(until):
                self.server.fake.hold(until)
                if self.server.fake.closing:
                    self._hang_up(False)
                    return False
            case Cut(reset=with_reset):
                self._hang_up(with_reset)
                return False
            case End():
                self._chunk(b"")
                return False
            case _:
                event = cast("Json", element)
                self._chunk(b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), _encoded(event)))
        return True

    def _chunk(self, content: bytes) -> None:
        """One HTTP chunk; the empty one ends the body."""
        self.wfile.write(b"%x\r\n%b\r\n" % (len(content), content))

    def _begin(self, code: int, header: Mapping[str, str | None]) -> None:
        self.send_response(code)
        for name, value in header.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()

    def _answer(self, answer: Answer) -> None:
        self._begin(answer.status, {**answer.headers, "content-length": str(len(answer.body))})
        self.wfile.write(answer.body)

    def _hang_up(self, with_reset: bool) -> None:
        self.close_connection = True
        if with_reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            # Closing is what sends the reset, and the file made of the socket holds it open.
            self.rfile.close()
            self.connection.close()
        else:
            _hang_up(self.connection)


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):  # the other side may have been quicker
        connection.shutdown(socket.SHUT_RDWR)


def _encoded(event: Json) -> bytes:
    try:
        return json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:  # a lone surrogate, which goes out as an escape
        return json.dumps(event, separators=(",", ":")).encode()

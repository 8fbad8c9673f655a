"""Servers of plain bytes on the loopback: one that says exactly what it is told, with TLS if wanted, and a proxy."""

from __future__ import annotations

import json
import socket
import ssl
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Self

import trustme

DONE: Final[tuple[dict[str, Any], ...]] = (
    {
        "type": "response.output_item.done",
        "item": {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "content": [{"type": "output_text", "annotations": [], "text": "done"}],
        },
    },
    {"type": "response.completed", "response": {"id": "resp_1"}},
)


def sse(events: Sequence[dict[str, Any]] = DONE) -> bytes:
    """Events as the bytes of a stream."""
    return b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)


def answer(body: bytes, *headers: str, version: str = "HTTP/1.1") -> bytes:
    """A whole 200 answer with its length."""
    head = [f"{version} 200 OK", "content-type: text/event-stream", f"content-length: {len(body)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


class Listener:
    """Serves each connection in a thread; leaving the block closes them all and waits."""

    def __init__(self) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        # Closing a listening socket does not wake its accept; this does.
        self._socket.shutdown(socket.SHUT_RDWR)
        for connection in self._open:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._socket.close()
        for connection in self._open:
            connection.close()

    def serve(self, connection: socket.socket) -> None:
        raise NotImplementedError

    def note_open(self, connection: socket.socket) -> socket.socket:
        self._open.append(connection)
        return connection

    def start(self, thread: threading.Thread) -> None:
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.start(threading.Thread(target=self._serve, args=(self.note_open(connection),)))

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError):  # the other side may leave at any time
            self.serve(connection)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


class WireServer(Listener):
    """Reads one request a connection, answers with these bytes, and hangs up. `requests` holds the heads."""

    def __init__(self, *answers: bytes, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self.requests: list[bytes] = []
        self._answers = list(answers)
        self._tls = tls

    def serve(self, connection: socket.socket) -> None:
        if self._tls is not None:
            connection = self.note_open(self._tls.wrap_socket(connection, server_side=True))
        with connection.makefile("rb") as stream:
            head = _head(stream.readline)
            if not head:
                return
            stream.read(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0] or 0))
            self.requests.append(head)
            connection.sendall(self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])


class Proxy(Listener):
    """An HTTP proxy that connects every target to one port here, or refuses with these bytes.

    `heads` are those of its requests.
    """

    def __init__(self, port: int = 0, *, refuse: bytes | None = None) -> None:
        super().__init__()
        self.heads: list[bytes] = []
        self._target = port
        self._refuse = refuse

    def serve(self, connection: socket.socket) -> None:
        head = _head(connection.makefile("rb", buffering=0).readline)
        self.heads.append(head)
        if self._refuse is not None:
            connection.sendall(self._refuse)
            return
        onward = self.note_open(socket.create_connection(("127.0.0.1", self._target)))
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        self.start(threading.Thread(target=_pump, args=(onward, connection)))
        _pump(connection, onward)


class Authority:
    """A certificate authority of our own; `file` is its PEM."""

    def __init__(self, directory: Path) -> None:
        self._ca = trustme.CA()
        self.file = directory / "authority.pem"
        self._ca.cert_pem.write_to_path(str(self.file))

    def server(self, *names: str, **settings: Any) -> ssl.SSLContext:
        """What a server with these names speaks TLS with."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with self._ca.issue_cert(*names, **settings).private_key_and_cert_chain_pem.tempfile() as path:
            context.load_cert_chain(path)
        return context


def _head(readline: Any) -> bytes:
    lines: list[bytes] = []
    while line := readline():
        lines.append(line)
        if line == b"\r\n":
            break
    return b"".join(lines)


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)

"""The HTTP server behind those of the tests: it stops at once."""

from __future__ import annotations

import selectors
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Loopback(ThreadingHTTPServer):
    """Listens on the loopback, in a thread that runs `serve_forever`.

    The library's server only looks now and then whether it should stop, and tests stop theirs by the thousand.
    """

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self._stop, self._stopped = socket.socketpair()
        self._ended = threading.Event()

    def serve_forever(self, poll_interval: float = 0.0) -> None:
        try:
            with selectors.DefaultSelector() as selector:
                selector.register(self, selectors.EVENT_READ)
                selector.register(self._stopped, selectors.EVENT_READ)
                while all(key.fileobj is self for key, _ in selector.select()):
                    self.handle_request()
        finally:
            self._ended.set()

    def shutdown(self) -> None:
        self._stop.close()
        self._ended.wait()
        self._stopped.close()

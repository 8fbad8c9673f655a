"""Servers on the loopback for skills: git over http, `git daemon`, an npm registry, and a pack without an end."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Final

from tests.support.loopback import Loopback

_COMMIT: Final = "1" * 40


class _Handler(BaseHTTPRequestHandler):
    """Quiet; `serve` answers every request."""

    def log_message(self, format: str, *args: Any) -> None:
        del format, args

    def body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        chunks: list[bytes] = []
        while size := int(self.rfile.readline(), 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        return b"".join(chunks)

    def answer(self, body: bytes, content_type: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def _serving(serve: Callable[[_Handler], None]) -> Generator[str, None, None]:
    class Handler(_Handler):
        def do_GET(self) -> None:
            with suppress(ConnectionError):
                serve(self)

        do_POST = do_GET

    server = Loopback(Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def git_over_http(
    top: Path, env: Mapping[str, str], meanwhile: Callable[[], object] = bool
) -> Generator[str, None, None]:
    """The repositories below a directory, served by `git http-backend`; `meanwhile` runs before each answer."""

    def serve(handler: _Handler) -> None:
        meanwhile()
        path, _, query = handler.path.partition("?")
        variables = {
            **env,
            "GIT_PROJECT_ROOT": str(top),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": handler.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": handler.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": handler.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": handler.headers.get("Git-Protocol", ""),
        }
        ended = subprocess.run(
            ["git", "http-backend"], input=handler.body(), env=variables, capture_output=True, check=True
        )
        head, _, body = ended.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        handler.answer(body, fields["Content-Type"], int(fields.get("Status", "200").split()[0]))

    with _serving(serve) as address:
        yield address


@contextmanager
def git_daemon(top: Path, env: Mapping[str, str]) -> Generator[str, None, None]:
    """The repositories below a directory, served by `git daemon`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    argv = ["git", "daemon", "--export-all", f"--base-path={top}", "--listen=127.0.0.1", f"--port={port}", "--verbose"]
    with subprocess.Popen(argv, env=dict(env), stderr=subprocess.PIPE, start_new_session=True) as daemon:
        assert daemon.stderr is not None
        try:
            while b"Ready to rumble" not in (line := daemon.stderr.readline()):
                assert line, "git daemon has ended"
            threading.Thread(target=daemon.stderr.read, daemon=True).start()
            yield f"git://127.0.0.1:{port}"
        finally:
            os.killpg(daemon.pid, 15)


@contextmanager
def endless_repository(most: int) -> Generator[tuple[str, list[int]], None, None]:
    """A repository whose pack has one file that never ends; the server gives up after `most` bytes.

    The list gets how many bytes were sent.
    """
    sent: list[int] = []

    def line(text: bytes) -> bytes:
        return b"%04x" % (len(text) + 4) + text

    def serve(handler: _Handler) -> None:
        if handler.command == "GET":
            capabilities = b"shallow side-band-64k ofs-delta symref=HEAD:refs/heads/main"
            refs = line(f"{_COMMIT} HEAD".encode() + b"\0" + capabilities + b"\n")
            refs += line(f"{_COMMIT} refs/heads/main\n".encode())
            start = line(b"# service=git-upload-pack\n") + b"0000"
            handler.answer(start + refs + b"0000", "application/x-git-upload-pack-advertisement")
            return
        question = handler.body()
        handler.send_response(200)
        handler.send_header("Content-Type", "application/x-git-upload-pack-result")
        handler.end_headers()
        handler.wfile.write(line(f"shallow {_COMMIT}".encode()) + b"0000")
        if b"done" not in question:
            return
        # A blob of 2^40 bytes, in blocks that are not compressed.
        size = bytes([0xB0, *([0x80] * 4), 0x80, 0x08])
        handler.wfile.write(line(b"NAK\n") + line(b"\x01PACK\0\0\0\x02\0\0\0\x01" + size + b"\x78\x01"))
        block = b"\x00" + (60_000).to_bytes(2, "little") + (60_000 ^ 0xFFFF).to_bytes(2, "little") + os.urandom(60_000)
        packet = line(b"\x01" + block)
        total = 0
        try:
            while total < most:
                handler.wfile.write(packet)
                total += len(packet)
        finally:
            sent.append(total)

    with _serving(serve) as address:
        yield f"{address}/endless.git", sent

"""Server-sent events out of bytes as they arrive: tolerant, linear in its input, bounded in its memory.

Follows the HTML standard, section 9.2, for what the Responses API uses of it: only `data` matters here.
Why this is not httpx-sse: docs/decisions/001-own-sse-parser.md.
"""

from __future__ import annotations

from typing import Final

from codex_py.errors import ModelError

MAX_EVENT_BYTES: Final = 64 * 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"


class SseParser:
    """Feed it chunks of any size; it gives back the data of each event that is complete, as bytes.

    Line ends may be LF, CRLF or CR, also split over two chunks; a byte order mark, comments and all fields but `data`
    are skipped; events without data are none. Raises `ModelError` for an event, or a line, of more than 64 MiB.
    """

    __slots__ = ("_after_cr", "_data", "_data_size", "_line", "_line_size", "_start")

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._line_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._after_cr = False
        self._start: bytes | None = b""

    @property
    def pending(self) -> int:
        """Bytes held for an event that is not complete yet."""
        return self._line_size + self._data_size

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take the next bytes; give back the data of the events they complete, in order."""
        if self._start is not None:
            chunk = self._without_bom(chunk)
        if self._after_cr and chunk:
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if not chunk:
            return []
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, rest = chunk.split(b"\n")
        events: list[bytes] = []
        if lines:
            if self._line:
                lines[0] = self._whole_line(lines[0])
            for line in lines:
                if line:
                    self._take(line)
                elif self._data:
                    self._dispatch(events)
        self._keep(rest)
        return events

    def finish(self) -> list[bytes]:
        """The stream has ended: what stands there without its empty line.

        The standard drops it. Each event here is one JSON text, which shows by itself whether it is whole, and the
        event a careless server ends on is the one that makes the whole answer count.
        """
        if self._start:
            self._keep(self._start)
            self._start = None
        events: list[bytes] = []
        if self._line:
            self._take(self._whole_line(b""))
        if self._data:
            self._dispatch(events)
        return events

    def _without_bom(self, chunk: bytes) -> bytes:
        start = (self._start or b"") + chunk
        if len(start) < len(_BOM) and _BOM.startswith(start):
            self._start = start
            return b""
        self._start = None
        return start.removeprefix(_BOM)

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._line.append(rest)
            self._line_size += len(rest)
            self._check_size()

    def _whole_line(self, end: bytes) -> bytes:
        self._line.append(end)
        line = b"".join(self._line)
        self._line.clear()
        self._line_size = 0
        return line

    def _take(self, line: bytes) -> None:
        if not line.startswith(b"data"):
            return
        if line.startswith(b"data: "):
            value = line[6:]
        elif line.startswith(b"data:"):
            value = line[5:]
        elif len(line) == 4:
            value = b""
        else:
            return
        self._data.append(value)
        self._data_size += len(value) + 1
        self._check_size()

    def _check_size(self) -> None:
        if self._line_size + self._data_size > MAX_EVENT_BYTES:
            limit = MAX_EVENT_BYTES // (1024 * 1024)
            raise ModelError(f"one event of the answer is over {limit} MiB", retryable=False, streaming=True)

    def _dispatch(self, events: list[bytes]) -> None:
        event = b"\n".join(self._data)
        self._data.clear()
        self._data_size = 0
        if event:
            events.append(event)

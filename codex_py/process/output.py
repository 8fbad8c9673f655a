"""Stores the output of a command in bounded memory: the first half MiB and the last."""

from __future__ import annotations

from typing import Final

from codex_py.protocol.value import Value
from codex_py.text.overwriting import shorten_overwritten, show_overwritten

HEAD_BYTES: Final = 512 * 1024
TAIL_BYTES: Final = 512 * 1024
# An unfinished line may be longer only when nothing on it was written over.
_LINE_BYTES: Final = 64 * 1024
_MAX_CHARACTER: Final = 4


class Captured(Value):
    """Output in order of arrival; `omitted` bytes between head and tail were not kept."""

    head: bytes
    tail: bytes
    omitted: int = 0

    def gap(self) -> bytes:
        """What stands between head and tail: a line that counts the bytes that were not kept, if any."""
        return f"\n... {self.omitted} bytes omitted ...\n".encode() if self.omitted else b""

    def text(self) -> str:
        """The output as text: what is not UTF-8 becomes U+FFFD, and a gap is marked on a line of its own."""
        if not self.omitted:
            return (self.head + self.tail).decode("utf-8", "replace")
        head = self.head[: len(self.head) - incomplete_suffix(self.head)]
        tail = self.tail[_continuation_prefix(self.tail) :]
        return head.decode("utf-8", "replace") + self.gap().decode() + tail.decode("utf-8", "replace")


class CappedOutput:
    """A buffer that takes any amount and keeps its two ends, with the lines that were written over as a terminal shows
    them.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._clear()

    def append(self, chunk: bytes | memoryview) -> None:
        """Append what arrived."""
        self._line += chunk
        if ended := self._line.rfind(b"\n") + 1:
            self._store(show_overwritten(bytes(self._line[:ended])))
            del self._line[:ended]
        if len(self._line) > _LINE_BYTES:
            self._shorten_line()

    def peek(self) -> Captured:
        """The output kept so far."""
        line = show_overwritten(bytes(self._line))
        head = bytes(self._head) + line[: self._head_available]
        tail = (self._ring[self._end :] + self._ring[: self._end] + line[self._head_available :])[-TAIL_BYTES:]
        return Captured(head, bytes(tail), self._total + len(line) - len(head) - len(tail))

    def take(self, *, final: bool = True) -> Captured:
        """Return the kept output and start over; unless `final`, the next call gets an incomplete character and a
        carriage return at the end, which may belong to the end of a line.
        """
        end = len(self._line) if final else len(self._line.rstrip(b"\r"))
        if not final:
            end -= incomplete_suffix(bytes(self._line[:end]))
        rest = self._line[end:]
        del self._line[end:]
        captured = self.peek()
        self._line = rest
        self._clear()
        return captured

    def _clear(self) -> None:
        self._head = bytearray()
        self._head_available = HEAD_BYTES
        self._ring = bytearray()
        self._end = 0  # where the next byte goes once the ring is full
        self._total = 0

    def _shorten_line(self) -> None:
        """Drop from an unfinished line what was written over; of a line that stays long, store all but the end."""
        self._line[:] = shorten_overwritten(bytes(self._line))
        if len(self._line) > _LINE_BYTES:
            self._store(bytes(self._line[:-_MAX_CHARACTER]))
            del self._line[:-_MAX_CHARACTER]

    def _store(self, chunk: bytes) -> None:
        self._total += len(chunk)
        if self._head_available:
            first = chunk[: self._head_available]
            self._head += first
            self._head_available -= len(first)
            chunk = chunk[len(first) :]
        if len(chunk) > TAIL_BYTES:
            chunk = chunk[-TAIL_BYTES:]
        if chunk:
            self._append_to_ring(chunk)

    def _append_to_ring(self, chunk: bytes) -> None:
        available = TAIL_BYTES - len(self._ring)
        if available:
            self._ring += chunk[:available]
            chunk = chunk[available:]
        first = min(len(chunk), TAIL_BYTES - self._end)
        self._ring[self._end : self._end + first] = chunk[:first]
        rest = len(chunk) - first
        if rest:
            self._ring[:rest] = chunk[first:]
        self._end = (self._end + len(chunk)) % TAIL_BYTES


def incomplete_suffix(raw: bytes) -> int:
    """How many bytes at the end are the beginning of a UTF-8 character whose rest is missing."""
    for back in range(1, min(3, len(raw)) + 1):
        byte = raw[-back]
        if byte & 0xC0 == 0x80:
            continue
        width = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return back if width > back else 0
    return 0


def _continuation_prefix(raw: bytes) -> int:
    count = 0
    while count < min(3, len(raw)) and raw[count] & 0xC0 == 0x80:
        count += 1
    return count

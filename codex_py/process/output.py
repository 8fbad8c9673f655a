"""Stores the output of a command in bounded memory: the first half MiB and the last."""

from __future__ import annotations

from typing import Final

from codex_py.protocol.value import Value

HEAD_BYTES: Final = 512 * 1024
TAIL_BYTES: Final = 512 * 1024


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
    """A buffer that takes any amount and keeps its two ends; each byte costs one copy."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._head_available = HEAD_BYTES
        self._ring = bytearray()
        self._end = 0  # where the next byte goes once the ring is full
        self._total = 0

    def append(self, chunk: bytes | memoryview) -> None:
        """Append what arrived."""
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

    def peek(self) -> Captured:
        """The output kept so far."""
        omitted = self._total - len(self._head) - len(self._ring)
        return Captured(bytes(self._head), bytes(self._ring[self._end :] + self._ring[: self._end]), omitted)

    def take(self, *, final: bool = True) -> Captured:
        """Return the kept output and start over; unless `final`, an incomplete character is kept for the next call."""
        captured = self.peek()
        self._head, self._head_available, self._ring, self._end, self._total = (
            bytearray(),
            HEAD_BYTES,
            bytearray(),
            0,
            0,
        )
        held = 0 if final else incomplete_suffix(captured.tail or captured.head)
        if not held:
            return captured
        self.append((captured.tail or captured.head)[-held:])
        if captured.tail:
            return captured.replace(tail=captured.tail[:-held])
        return captured.replace(head=captured.head[:-held])

    def _append_to_ring(self, chunk: bytes | memoryview) -> None:
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

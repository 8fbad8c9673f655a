"""Reading a flood: real pipes, a real thread that reads."""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections.abc import Generator
from io import FileIO

import pytest

from codex_py.process.output import HEAD_BYTES, TAIL_BYTES
from codex_py.process.soak import Soak, Soaks


class Woken:
    """Counts how often somebody was woken, and waits for it."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[None] = queue.SimpleQueue()

    def __call__(self) -> None:
        self._calls.put(None)

    def wait(self) -> None:
        self._calls.get(timeout=60)


@pytest.fixture
def switching_often() -> Generator[None]:
    """Threads take turns as often as they can: whatever may come between two steps does."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def numbered(size: int) -> bytes:
    return b"".join(number.to_bytes(4, "big") for number in range(size // 4 + 1))[:size]


def soaked(raw: bytes, woken: Woken) -> tuple[Soak, threading.Thread]:
    """A pipe that is read, and the thread that writes all of `raw` into it."""
    ours, theirs = os.pipe()
    soak = Soak(FileIO(ours), wake=woken)

    def write() -> None:
        with os.fdopen(theirs, "wb") as file:
            file.write(raw)

    writer = threading.Thread(target=write)
    writer.start()
    return soak, writer


@pytest.mark.parametrize("size", [0, 1, 100_000, TAIL_BYTES, TAIL_BYTES + 64 * 1024, 3_000_017])
def test_the_end_is_kept_and_the_rest_counted(size: int) -> None:
    raw = numbered(size)
    woken = Woken()
    soak, writer = soaked(raw, woken)
    seen, kept, ended = 0, b"", False
    while not ended:
        woken.wait()
        came = soak.take()
        assert len(came.kept) >= TAIL_BYTES or not came.skipped
        seen += len(came.head) + came.skipped + len(came.kept)
        kept = came.kept if came.skipped else kept + came.head + came.kept
        ended = came.ended
    writer.join()

    assert seen == size
    assert raw.endswith(kept)
    assert len(kept) >= min(size, TAIL_BYTES)


def test_what_was_shown_is_shown_once_and_can_still_be_taken() -> None:
    ours, theirs = os.pipe()
    woken = Woken()
    soak = Soak(FileIO(ours), wake=woken)
    with FileIO(theirs, "w") as writer:
        writer.write(b"first")
        woken.wait()
        assert [soak.latest(3), soak.latest(3)] == [b"rst", b""]
        writer.write(b"second")
        woken.wait()
        assert soak.latest(100) == b"second"
        assert soak.take().kept == b"firstsecond"
        writer.write(b"third")
        woken.wait()
        taken = soak.take()
        assert (taken.head, taken.skipped, taken.kept, taken.ended) == (b"third", 0, b"", False)
        assert soak.latest(100) == b""
    woken.wait()
    assert soak.ended


def test_who_has_stopped_closes_the_pipe_with_what_comes_next() -> None:
    ours, theirs = os.pipe()
    woken = Woken()
    soak = Soak(FileIO(ours), wake=woken)
    with FileIO(theirs, "w") as writer:
        soak.stop()
        writer.write(b"more")
        while not soak.ended:
            woken.wait()
        with pytest.raises(BrokenPipeError):
            writer.write(b"nobody reads")


def test_from_the_second_time_on_the_beginning_is_kept_too() -> None:
    raw = numbered(3_000_017)
    ours, theirs = os.pipe()
    woken = Woken()
    soak = Soak(FileIO(ours), wake=woken)
    with FileIO(theirs, "w") as writer:
        writer.write(b"before")
        woken.wait()
        assert soak.take().kept == b"before"
        left = raw
        while left:
            left = left[writer.write(left) :]
    while not soak.ended:
        woken.wait()
    came = soak.take()
    assert came.head == raw[:HEAD_BYTES]
    assert raw.endswith(came.kept)
    assert len(came.head) + came.skipped + len(came.kept) == len(raw)


def test_what_is_taken_while_more_comes_is_whole_and_in_its_place(switching_often: None) -> None:
    raw = numbered(8_000_003)
    woken = Woken()
    soak, writer = soaked(raw, woken)
    at, ended = 0, False
    while not ended:
        latest = soak.latest(8 * 1024)
        assert raw.find(latest, at) >= 0
        came = soak.take()
        assert came.head == raw[at : at + len(came.head)]
        at += len(came.head) + came.skipped
        assert came.kept == raw[at : at + len(came.kept)]
        at += len(came.kept)
        ended = came.ended
    writer.join()
    assert at == len(raw)


def test_only_so_many_floods_have_a_thread() -> None:
    soaks = Soaks()
    pipes = [os.pipe() for _ in range(6)]
    woken = Woken()
    outputs = [FileIO(ours) for ours, _ in pipes]
    for output in outputs:
        os.set_blocking(output.fileno(), False)
    started = [soaks.start(output, wake=woken) for output in outputs]
    assert [soak is not None for soak in started] == [True] * 4 + [False] * 2
    assert outputs[4].read() is None  # it still does not block
    os.close(pipes[0][1])
    while not (started[0] and started[0].ended):
        woken.wait()
    last = soaks.start(outputs[4], wake=woken)
    assert last is not None
    for _, theirs in pipes[1:]:
        os.close(theirs)
    while not all(soak.ended for soak in (*started, last) if soak is not None):
        woken.wait()
    outputs[5].close()

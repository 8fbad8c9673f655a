"""Reading a flood: real pipes, a real thread that writes."""

from __future__ import annotations

import os
import threading
from io import FileIO

import pytest

from codex_py.process.output import TAIL_BYTES
from codex_py.process.soak import SIP_BYTES, soak


@pytest.mark.parametrize("size", [0, 1, 100_000, TAIL_BYTES, TAIL_BYTES + SIP_BYTES, 3_000_017])
def test_the_end_is_kept_and_the_rest_counted(size: int) -> None:
    raw = b"".join(number.to_bytes(4, "big") for number in range(size // 4 + 1))[:size]
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)

    def write() -> None:
        with os.fdopen(theirs, "wb") as file:
            file.write(raw)

    writer = threading.Thread(target=write)
    writer.start()
    scratch = bytearray(TAIL_BYTES + SIP_BYTES)
    seen, kept = 0, b""
    with FileIO(ours) as output:
        ended = False
        while not ended:
            came = soak(output, scratch)
            pieces = b"".join(came.pieces)
            assert len(pieces) >= TAIL_BYTES or not came.skipped
            seen += came.skipped + len(pieces)
            kept = pieces if came.skipped else kept + pieces
            ended = came.ended
    writer.join()

    assert seen == size
    assert raw.endswith(kept)
    assert len(kept) >= min(size, TAIL_BYTES)


def test_silence_is_not_waited_for() -> None:
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    with FileIO(ours) as output, FileIO(theirs, "w"):
        came = soak(output, bytearray(2 * SIP_BYTES))
    assert (came.skipped, came.pieces, came.ended) == (0, (), False)

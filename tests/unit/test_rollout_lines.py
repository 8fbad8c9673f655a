from __future__ import annotations

import io
import os
import random
from itertools import chain
from pathlib import Path

import pytest

from codex_py.text.files import read_lines, read_lines_backwards


def backwards(path: Path, limit: int = 1 << 20) -> list[bytes]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return list(read_lines_backwards(descriptor, limit=limit))
    finally:
        os.close(descriptor)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (b"", []),
        (b"a\nb\n", [b"a\n", b"b\n"]),
        (b"a\nb", [b"a\n", b"b"]),
        (b"12345678\nb\n", [b"12345678\n", b"b\n"]),
        (b"123456789\nb\n", [b"123456789\n", b"b\n"]),
        (b"1234567890\nb\n", [b"1234567890\n", b"b\n"]),
        (b"12345678901234\nb\n", [b"1234567890\n", b"b\n"]),
        (b"12345678901234", [b"1234567890"]),
        (b"1234567890", [b"1234567890"]),
    ],
)
def test_long_lines_are_cut_and_the_next_one_is_whole(text: bytes, lines: list[bytes]) -> None:
    assert list(read_lines(io.BytesIO(text), limit=10)) == lines


def test_reading_backwards_gives_the_same_lines_reversed(tmp_path: Path) -> None:
    chance = random.Random(4)
    for size in (0, 1, 65535, 65536, 65537, 300_000):
        path = tmp_path / str(size)
        blocks = (chance.choices(b"\nx", (1, chance.choice((3, 90_000))), k=1000) for _ in range(0, size, 1000))
        path.write_bytes(bytes(chain.from_iterable(blocks))[:size])

        assert backwards(path) == [line for line in path.read_bytes().split(b"\n") if line][::-1]


def test_reading_backwards_keeps_the_start_of_an_endless_line(tmp_path: Path) -> None:
    path = tmp_path / "long"
    path.write_bytes(b"first\n" + b"START" + b"x" * 2_000_000 + b"\nlast")

    lines = backwards(path, limit=64)

    assert [len(lines), lines[0], lines[2]] == [3, b"last", b"first"]
    assert lines[1].startswith(b"START")
    assert 64 <= len(lines[1]) < 500_000

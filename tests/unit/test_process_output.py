"""The capped buffer of a command's output."""

from __future__ import annotations

import random

from codex_py.process.output import HEAD_BYTES, TAIL_BYTES, CappedOutput, Captured, incomplete_suffix
from codex_py.text.overwriting import show_overwritten


def _captured(*chunks: bytes) -> Captured:
    buffer = CappedOutput()
    for chunk in chunks:
        buffer.append(chunk)
    return buffer.take()


def _noise(source: random.Random, size: int) -> bytes:
    """Bytes without those that move on a line."""
    return source.randbytes(size).translate(bytes(range(256)).translate(bytes.maketrans(b"\r\b\x1b", b"...")))


def test_short_output_is_kept_whole() -> None:
    assert _captured(b"one\n", b"", b"two\n") == Captured(b"one\ntwo\n", b"")
    assert _captured(b"one\n", b"two\n").text() == "one\ntwo\n"


def test_exactly_a_mebibyte_is_kept_whole() -> None:
    raw = _noise(random.Random(1), HEAD_BYTES + TAIL_BYTES)
    captured = _captured(raw)
    assert captured.head + captured.tail == raw
    assert captured.omitted == 0


def test_the_tail_survives_a_flood() -> None:
    source = random.Random(2)
    chunks = [_noise(source, source.choice([1, 7, 4096, 100_000, 700_000])) for _ in range(60)]
    whole = b"".join(chunks)
    captured = _captured(*chunks)
    assert captured == Captured(whole[:HEAD_BYTES], whole[-TAIL_BYTES:], len(whole) - HEAD_BYTES - TAIL_BYTES)


def test_one_chunk_larger_than_everything_kept() -> None:
    raw = _noise(random.Random(3), 3 * 1024 * 1024)
    assert _captured(raw) == Captured(raw[:HEAD_BYTES], raw[-TAIL_BYTES:], len(raw) - HEAD_BYTES - TAIL_BYTES)


def test_an_unfinished_line_stays_short_however_often_and_with_what_it_is_written_over() -> None:
    source = random.Random(4)
    pieces = [b"a", b"bc", b"\r", b"\b", b"\n", b"\r\n", "é".encode(), b"\x1b[K", b"\x1b[5G", b"\x1b[2K", b"\x1b[32m"]
    for size in [200] * 200 + [400_000]:
        raw = b"\r\r" + b"".join(source.choices(pieces, [4, 4, 8, 2, 0.01, 0.01, 2, 1, 1, 1, 1], k=size))
        buffer, start = CappedOutput(), 0
        while start < len(raw):
            end = start + source.choice([1, 7, 4096, 100_000])
            buffer.append(memoryview(raw)[start:end])
            start = end
        assert buffer.take() == Captured(show_overwritten(raw), b"")


def test_a_gap_is_marked_and_no_character_is_broken_beside_it() -> None:
    raw = b"x" + "é".encode() * 1_000_000
    captured = _captured(raw)
    text = captured.text()
    assert "�" not in text
    assert f"\n... {len(raw) - 1024 * 1024} bytes omitted ...\n" in text
    assert text.startswith("xé")
    assert text.endswith("é")


def test_bytes_that_are_not_utf8_become_replacement_characters() -> None:
    assert _captured(b"a\xff\x00\x1b[1mb").text() == "a\ufffd\x00\x1b[1mb"


def test_a_character_split_between_two_looks_arrives_whole() -> None:
    buffer = CappedOutput()
    buffer.append("é€".encode()[:-1])
    first = buffer.take(final=False)
    buffer.append("€".encode()[-1:])
    assert (first.text(), buffer.take().text()) == ("é", "€")


def test_what_stays_incomplete_at_the_end_is_not_held_back() -> None:
    buffer = CappedOutput()
    buffer.append(b"a\xe2\x82")
    assert buffer.take(final=False) == Captured(b"a", b"")
    assert buffer.take() == Captured(b"\xe2\x82", b"")


def test_the_buffer_starts_afresh_after_a_take() -> None:
    buffer = CappedOutput()
    buffer.append(b"x" * 3_000_000)
    buffer.take()
    buffer.append(b"new")
    assert buffer.take() == Captured(b"new", b"")


def test_which_suffixes_are_the_beginning_of_a_character() -> None:
    cases = {b"": 0, b"a": 0, b"\xc3": 1, b"a\xe2\x82": 2, b"\xf0\x9f\x98": 3, "é".encode(): 0, b"\x80\x80\x80": 0}
    assert {raw: incomplete_suffix(raw) for raw in cases} == cases

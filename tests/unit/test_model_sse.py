"""Server-sent events: what counts as one, whatever the line ends and wherever the chunks are cut."""

from __future__ import annotations

import pytest

from codex_py.errors import ModelError
from codex_py.model.answer import MAX_EVENT_BYTES, SseParser
from tests.support.work import within


def parse(*chunks: bytes) -> list[bytes]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)] + parser.finish()


CASES: list[tuple[bytes, list[bytes]]] = [
    (b"", []),
    (b"data: a\n\n", [b"a"]),
    (b"data:a\n\n", [b"a"]),
    (b"data:  a\n\n", [b" a"]),
    (b"data: a\ndata: b\n\n", [b"a\nb"]),
    (b"data: a\n\n\n\ndata: b\n\n", [b"a", b"b"]),
    (b"event: x\ndata: a\n\n", [b"a"]),
    (b"data: a\nevent: x\nid: 1\nretry: 5\n\n", [b"a"]),
    (b": comment\n\n: more\ndata: a\n: inside\ndata: b\n\n", [b"a\nb"]),
    (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
    (b"data: a\r\rdata: b\r\r", [b"a", b"b"]),
    (b"data: a\r\n\ndata: b\n\r\n", [b"a", b"b"]),
    (b"data: a\r\ndata: b\r\r\n", [b"a\nb"]),
    (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", [b"b"]),
    (b"data: \xef\xbb\xbfa\n\n", [b"\xef\xbb\xbfa"]),
    (b"data: \xff\xfe\n\n", [b"\xff\xfe"]),
    (b"data: a\x00b\n\n", [b"a\x00b"]),
    (b"data: a\x0bb\x0cc\xc2\x85d\xe2\x80\xa8e\n\n", [b"a\x0bb\x0cc\xc2\x85d\xe2\x80\xa8e"]),
    (b"data\n\n", []),
    (b"data:\n\n", []),
    (b"data\ndata\n\n", [b"\n"]),
    (b"data: a\ndata\n\n", [b"a\n"]),
    (b"database: a\n\ndatum: b\n\n data: c\n\nData: d\n\n", []),
    (b"id: 1\n\nevent: x\n\n", []),
    (b"data: [DONE]\n\n", [b"[DONE]"]),
    (b"{junk}\n\n<html>\n\ndata: a\n\n", [b"a"]),
    (b"data: a\n", [b"a"]),
    (b"data: a", [b"a"]),
    (b"data: a\n\ndata: b\r", [b"a", b"b"]),
    (b"data: a\n: comment", [b"a"]),
    (b"\xef\xbb", []),
    (b"\n\n\ndata: a\n\n", [b"a"]),
]


@pytest.mark.parametrize(("stream", "events"), CASES)
def test_a_stream_in_one_piece(stream: bytes, events: list[bytes]) -> None:
    assert parse(stream) == events


@pytest.mark.parametrize(("stream", "events"), CASES)
def test_a_stream_byte_by_byte(stream: bytes, events: list[bytes]) -> None:
    assert parse(*(stream[at : at + 1] for at in range(len(stream)))) == events


@pytest.mark.parametrize(("stream", "events"), CASES)
def test_a_stream_cut_in_two_anywhere(stream: bytes, events: list[bytes]) -> None:
    for at in range(len(stream) + 1):
        assert parse(stream[:at], b"", stream[at:]) == events


def test_an_event_comes_as_soon_as_its_empty_line_does() -> None:
    parser = SseParser()
    assert parser.feed(b"data: a\r") == []
    assert parser.feed(b"\n\r") == [b"a"]
    assert parser.feed(b"\ndata: b\n\n") == [b"b"]


def test_pending_counts_what_an_unfinished_event_holds_and_no_comments() -> None:
    parser = SseParser()
    parser.feed(b": a comment\n: another\n")
    assert parser.pending == 0
    parser.feed(b"data: 12345\ndata: 6")
    assert parser.pending == len(b"12345\n") + len(b"data: 6")
    parser.feed(b"\n\n")
    assert parser.pending == 0


def test_an_event_of_64_mib_passes_and_one_byte_more_is_an_error_that_is_not_retried() -> None:
    block = b"x" * (1024 * 1024)
    parser = SseParser()
    parser.feed(b"data: ")
    with pytest.raises(ModelError, match="over 64 MiB") as caught:
        for _ in range(MAX_EVENT_BYTES // len(block) + 1):
            parser.feed(block)
    assert (caught.value.retryable, caught.value.streaming) == (False, True)

    parser = SseParser()
    parser.feed(b"data: ")
    for _ in range(MAX_EVENT_BYTES // len(block) - 1):
        parser.feed(block)
    [event] = parser.feed(b"\n\n")
    assert len(event) == MAX_EVENT_BYTES - len(block)


def test_many_data_lines_and_an_endless_comment_are_bounded_too() -> None:
    lines = (b"data: " + b"x" * 1018 + b"\n") * 1024
    for block in (lines, b":" + b"c" * (1024 * 1024)):
        parser = SseParser()
        with pytest.raises(ModelError, match="over 64 MiB"):
            for _ in range(66):
                parser.feed(block)


def test_a_long_stream_of_comments_never_adds_up() -> None:
    parser = SseParser()
    block = b": keep-alive\n\n" * 80_000
    for _ in range(70):
        assert parser.feed(block) == []
        assert parser.pending == 0
        block = block[:1400]
    assert parser.feed(b"data: a\n\n") == [b"a"]


HOSTILE = [b"\n", b"\r", b"data:\n", b":\n", b"data: x\r\n\r\n", b"d", b"\r\n\x00"]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_megabyte_is_read_in_linear_time(unit: bytes) -> None:
    stream = unit * (1024 * 1024 // len(unit))
    within(10 * len(stream), lambda: parse(*(stream[at : at + 65536] for at in range(0, len(stream), 65536))))


@pytest.mark.parametrize("size", [65536, 512])
def test_fifty_megabytes_in_one_event_cost_no_more_for_what_came_before(size: int) -> None:
    chunk, count = b"x" * size, 50 * 1024 * 1024 // size
    parser = SseParser()
    parser.feed(b"data: ")
    # The same few lines for the first chunk as for the last; joined at every chunk of 512, the bytes alone would be
    # two and a half terabytes.
    within(20 * count, lambda: [parser.feed(chunk) for _ in range(count)])
    [event] = parser.feed(b"\n\n")
    assert len(event) == 50 * 1024 * 1024

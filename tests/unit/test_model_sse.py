"""Server-sent events: what counts as one, whatever the line ends and wherever the chunks are cut."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence

import httpx
import pytest

from codex_py.errors import ModelError
from codex_py.model.answer import MAX_EVENT_BYTES, ResponseBody
from codex_py.model.client import ResponseEvent, StreamTextDelta
from codex_py.model.failures import Server
from tests.support.work import within


class DataDecoder:
    """The `Decoder` that shows the data of each event as it comes."""

    def decode(self, data: str) -> Sequence[ResponseEvent]:
        return [StreamTextDelta(data)]

    def decode_body(self, body: bytes) -> Sequence[ResponseEvent] | None:
        return None

    def finish(self) -> Sequence[ResponseEvent]:
        return []


async def read(chunks: Iterable[bytes]) -> AsyncGenerator[str]:
    """The data of the events in a body that arrives in these chunks."""

    async def body() -> AsyncGenerator[bytes]:
        for chunk in chunks:
            yield chunk

    response = httpx.Response(200, headers={"content-type": "text/event-stream"}, content=body())
    answer = ResponseBody(response, server=Server("http://127.0.0.1"), idle_timeout=300.0)
    async for event in answer.events(DataDecoder()):
        assert isinstance(event, StreamTextDelta)
        yield event.text


def parse(*chunks: bytes) -> list[str]:
    async def read_all() -> list[str]:
        return [data async for data in read(chunks)]

    return asyncio.run(read_all())


CASES: list[tuple[bytes, list[str]]] = [
    (b"", []),
    (b"data: a\n\n", ["a"]),
    (b"data:a\n\n", ["a"]),
    (b"data:  a\n\n", [" a"]),
    (b"data: a\ndata: b\n\n", ["a\nb"]),
    (b"data: a\n\n\n\ndata: b\n\n", ["a", "b"]),
    (b"event: x\ndata: a\n\n", ["a"]),
    (b"data: a\nevent: x\nid: 1\nretry: 5\n\n", ["a"]),
    (b": comment\n\n: more\ndata: a\n: inside\ndata: b\n\n", ["a\nb"]),
    (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
    (b"data: a\r\rdata: b\r\r", ["a", "b"]),
    (b"data: a\r\n\ndata: b\n\r\n", ["a", "b"]),
    (b"data: a\r\ndata: b\r\r\n", ["a\nb"]),
    (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
    (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", ["b"]),
    (b"data: \xef\xbb\xbfa\n\n", ["\ufeffa"]),
    (b"data: \xff\xfe\n\n", ["\ufffd\ufffd"]),
    (b"data: a\x00b\n\n", ["a\x00b"]),
    (b"data: a\x0bb\x0cc\xc2\x85d\xe2\x80\xa8e\n\n", ["a\x0bb\x0cc\x85d\u2028e"]),
    (b"data\n\n", []),
    (b"data:\n\n", []),
    (b"data\ndata\n\n", ["\n"]),
    (b"data: a\ndata\n\n", ["a\n"]),
    (b"database: a\n\ndatum: b\n\n data: c\n\nData: d\n\n", []),
    (b"id: 1\n\nevent: x\n\n", []),
    (b"data: [DONE]\n\n", ["[DONE]"]),
    (b"{junk}\n\n<html>\n\ndata: a\n\n", ["a"]),
    (b"data: a\n", ["a"]),
    (b"data: a", ["a"]),
    (b"data: a\n\ndata: b\r", ["a", "b"]),
    (b"data: a\n: comment", ["a"]),
    (b"\xef\xbb", []),
    (b"\n\n\ndata: a\n\n", ["a"]),
]


@pytest.mark.parametrize(("stream", "events"), CASES)
def test_a_stream_in_one_piece(stream: bytes, events: list[str]) -> None:
    assert parse(stream) == events


@pytest.mark.parametrize(("stream", "events"), CASES)
def test_a_stream_byte_by_byte(stream: bytes, events: list[str]) -> None:
    assert parse(*(stream[at : at + 1] for at in range(len(stream)))) == events


@pytest.mark.parametrize(("stream", "events"), CASES)
def test_a_stream_cut_in_two_anywhere(stream: bytes, events: list[str]) -> None:
    for at in range(len(stream) + 1):
        assert parse(stream[:at], b"", stream[at:]) == events


async def test_an_event_comes_as_soon_as_its_empty_line_does() -> None:
    sent: list[int] = []

    def chunks() -> Iterable[bytes]:
        for number, chunk in enumerate((b"data: a\r", b"\n\r\n", b"data: b\n\n", b"data: c\n\n")):
            sent.append(number)
            yield chunk

    seen = [(data, sent[-1]) async for data in read(chunks())]
    assert seen == [("a", 1), ("b", 2), ("c", 3)]


def blocks(first: bytes, count: int, *last: bytes) -> Iterable[bytes]:
    """A chunk, then so many of a megabyte, then the last ones."""
    yield first
    yield from [b"x" * (1024 * 1024)] * count
    yield from last


def test_an_event_of_64_mib_passes_and_a_larger_one_is_an_error_that_is_not_retried() -> None:
    count = MAX_EVENT_BYTES // (1024 * 1024)
    [event] = parse(*blocks(b"data: ", count - 1, b"\n\n"))
    assert len(event) == MAX_EVENT_BYTES - 1024 * 1024
    with pytest.raises(ModelError, match="over 64 MiB") as caught:
        parse(*blocks(b"data: ", count, b"\n\n"))
    assert (caught.value.retryable, caught.value.streaming) == (False, True)


def test_many_data_lines_and_an_endless_comment_are_bounded_too() -> None:
    lines = (b"data: " + b"x" * 1018 + b"\n") * 1024
    for block in (lines, b":" + b"c" * (1024 * 1024)):
        with pytest.raises(ModelError, match="over 64 MiB"):
            parse(*[block] * 66)


def test_a_long_stream_of_comments_never_adds_up() -> None:
    comments = b": " + b"c" * 1024 * 1024 + b"\n\n"
    assert parse(*[comments] * 70, b"data: a\n\n") == ["a"]


HOSTILE = [b"\n", b"\r", b"data:\n", b":\n", b"data: x\r\n\r\n", b"d", b"\r\n\x00"]


@pytest.mark.parametrize("unit", HOSTILE)
def test_a_hostile_megabyte_is_read_in_linear_time(unit: bytes) -> None:
    stream = unit * (1024 * 1024 // len(unit))
    within(40 * len(stream), lambda: parse(*(stream[at : at + 65536] for at in range(0, len(stream), 65536))))


@pytest.mark.parametrize("size", [65536, 512])
def test_fifty_megabytes_in_one_event_cost_no_more_for_what_came_before(size: int) -> None:
    count = 50 * 1024 * 1024 // size
    # The same few lines for the first chunk as for the last; joined at every chunk of 512, the bytes alone would be
    # two and a half terabytes.
    chunks = [b"data: ", *[b"x" * size] * count, b"\n\n"]
    events = within(200 * count, lambda: parse(*chunks))
    assert [len(event) for event in events] == [50 * 1024 * 1024]

"""The pipe to a server's client, where the timing of a client that reads late can be chosen."""

from __future__ import annotations

import asyncio
import os

from codex_py.server.pipes import Outbox


async def test_who_waits_for_a_late_reader_goes_on_when_it_has_read() -> None:
    inward, outward = os.pipe()
    outbox = Outbox(outward, lambda reason: None)
    line = b"x" * 1_000_000 + b"\n"

    outbox.put(line)
    waiting = asyncio.create_task(outbox.wait_for_capacity(0))
    # The pipe holds less than the line, so that it waits for certain once a part has come through.
    start = await asyncio.to_thread(os.read, inward, 1)
    rest = await asyncio.to_thread(_read, inward, len(line) - 1)
    await asyncio.wait_for(waiting, 30)

    assert start + rest == line
    assert outbox.waiting == 0
    await outbox.close()


async def test_whoever_waits_for_a_reader_keeps_no_thread_from_other_work() -> None:
    inward, outward = os.pipe()
    outbox = Outbox(outward, lambda reason: None)
    outbox.put(b"x" * 1_000_000)

    waiting = [asyncio.create_task(outbox.wait_for_capacity(0)) for _ in range(100)]
    await asyncio.sleep(0)
    # More threads than there are would have to wait for the reader, which comes only now.
    assert len(await asyncio.wait_for(asyncio.to_thread(_read, inward, 1_000_000), 30)) == 1_000_000
    await asyncio.wait_for(asyncio.gather(*waiting), 30)
    await outbox.close()


async def test_nobody_waits_for_the_reader_of_a_box_that_is_closed() -> None:
    inward, outward = os.pipe()
    outbox = Outbox(outward, lambda reason: None)
    outbox.put(b"x" * 1_000_000)

    waiting = asyncio.create_task(outbox.wait_for_capacity(0))
    await asyncio.sleep(0)
    closing = asyncio.create_task(outbox.close())
    await asyncio.wait_for(waiting, 30)
    os.close(inward)
    await closing


async def test_what_is_put_last_is_written_however_long_ago_the_client_has_said_its_last() -> None:
    inward, outward = os.pipe()
    outbox = Outbox(outward, lambda reason: None)
    long_ago = 0.0
    for size in (1, 1_000_000):
        outbox.put(b"x" * size)
        assert len(await asyncio.wait_for(asyncio.to_thread(_read, inward, size), 30)) == size
    outbox.put(b"y" * 100_000)

    reading = asyncio.create_task(asyncio.to_thread(_read, inward, 100_000))
    await outbox.close(long_ago)
    assert await asyncio.wait_for(reading, 30) == b"y" * 100_000


def _read(descriptor: int, size: int) -> bytes:
    read = bytearray()
    while len(read) < size:
        read += os.read(descriptor, size - len(read))
    return bytes(read)

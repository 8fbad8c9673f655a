"""How many jobs of a batch start at once."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from codex_py.batch.engine import GatedEngine, Job, OnLine

JOB = Job((), Path("/"), None, Path("/dev/null"))


class HangingEngine:
    """Jobs that print a line when they are told to, and never end by themselves."""

    def __init__(self) -> None:
        self.started: list[OnLine | None] = []

    async def run(self, job: Job, on_line: OnLine | None) -> int:
        self.started.append(on_line)
        await asyncio.Event().wait()
        return 0

    async def aclose(self) -> None:
        pass


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_no_more_jobs_start_at_once_than_there_are_cores() -> None:
    cores, engine, lines = len(os.sched_getaffinity(0)), HangingEngine(), list[bytes]()
    gated = GatedEngine(engine)
    jobs = [asyncio.create_task(gated.run(JOB, lines.append)) for _ in range(3 * cores)]
    await settle()
    assert len(engine.started) == cores
    # One that has printed something makes room once, one that has ended too, and one without lines needs none.
    first = engine.started[0]
    assert first is not None
    first(b"a")
    first(b"b")
    await settle()
    assert (len(engine.started), lines) == (cores + 1, [b"a", b"b"])
    jobs[0].cancel()
    jobs[cores].cancel()
    await settle()
    assert len(engine.started) == cores + 2
    judge = asyncio.create_task(gated.run(JOB, None))
    await settle()
    assert engine.started[-1] is None
    for job in (*jobs, judge):
        job.cancel()
    await asyncio.gather(*jobs, judge, return_exceptions=True)

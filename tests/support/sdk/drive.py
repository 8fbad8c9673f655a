"""Runs one turn through the published Python SDK, with the job and the answer of `drive.mjs`.

The job comes as JSON on stdin, what the SDK saw goes as JSON to stdout.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from openai_codex_sdk import AbortController, Codex


async def drive(job: dict[str, Any]) -> dict[str, Any]:
    """`{ codex, thread, resume?, input, turn?, abortAt?, abortOn? }` -> `{ id, events, error }`."""
    codex = Codex(job["codex"])
    options = job["thread"]
    thread = codex.resume_thread(job["resume"], options) if "resume" in job else codex.start_thread(options)
    stop = AbortController()
    events: list[dict[str, Any]] = []
    error = None

    async def abort_on(fifo: str) -> None:
        await asyncio.to_thread(Path(fifo).read_bytes)
        stop.abort()

    try:
        if "abortOn" in job:
            aborting = asyncio.create_task(abort_on(job["abortOn"]))
            await thread.run(job["input"], {**job.get("turn", {}), "signal": stop.signal})
            await aborting
        turn = await thread.run_streamed(job["input"], {**job.get("turn", {}), "signal": stop.signal})
        async for event in turn.events:
            events.append(event.model_dump(exclude_unset=True))
            if event.type == job.get("abortAt"):
                stop.abort()
    except Exception as caught:
        error = {"name": type(caught).__name__, "message": str(caught)}
    return {"id": thread.id, "events": events, "error": error}


if __name__ == "__main__":
    json.dump(asyncio.run(drive(json.load(sys.stdin))), sys.stdout)

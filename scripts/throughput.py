"""How long a batch takes beside what nobody could save: the latencies of the model, its pauses, and the cores."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.drills.batch import JOBS, RETRY_AFTER, ScriptedModel
from tests.drills.report import Report
from tests.support.home import make_place
from tests.support.process import COMMAND

_LATENCY: Final = (1.0, 3.0)
_SUBREAPER: Final = 36


def throughput_drill(root: Path, *, rounds: int, seed: int) -> Report:
    """A batch of `rounds` tasks, without kills. The least time is that of the latencies shared by the jobs, or of the
    CPU shared by the cores, whichever is longer; and the pauses that the server asks for, which hold all jobs.
    """
    report, model = Report(rounds), ScriptedModel(seed, _LATENCY)
    place = make_place(root)
    place.use_model(model.url, request_max_retries=20, stream_max_retries=20)
    tasks = root / "tasks.jsonl"
    tasks.write_text("".join(f'{{"id": "t{number}", "prompt": "task {number}."}}\n' for number in range(rounds)))
    # What the tasks leave behind becomes a child of this process, so that its time is counted.
    ctypes.CDLL(None).prctl(_SUBREAPER, 1)
    before, began = os.times(), time.monotonic()
    argv = [COMMAND, "batch", str(tasks), "--out", str(root / "out"), "--jobs", str(JOBS)]
    ended = subprocess.run(argv, env=place.env, cwd=place.repo, capture_output=True, text=True)
    seconds = time.monotonic() - began
    with suppress(ChildProcessError):
        while True:
            os.wait()
    model.close()
    spent = [after - start for after, start in zip(os.times()[:4], before[:4], strict=True)]
    cores = sum(spent) / (os.cpu_count() or 1)
    latency, paused = model.latency / JOBS, _union(model.limited_at, RETRY_AFTER)
    least = max(latency, cores) + paused
    if ended.returncode:
        report.problems.append(f"the batch ended with {ended.returncode}: {ended.stderr[-300:]}")
    report.counts["requests"] = len(model.asked)
    report.counts["rate limits"] = len(model.limited_at)
    report.counts["% of the least time"] = round(100 * seconds / least)
    for what, value in (("in all", seconds), ("of latency a job", latency), ("of CPU a core", cores)):
        report.counts[f"s {what}"] = round(value)
    report.counts["s of pauses"] = round(paused)
    return report


def _union(moments: list[float], length: float) -> float:
    """How long at least one of the intervals lasts that begin at these moments."""
    total, until = 0.0, 0.0
    for moment in sorted(moments):
        total += max(0.0, moment + length - max(moment, until))
        until = moment + length
    return total

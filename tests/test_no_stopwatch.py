"""Tests count work (`tests/support/work.py`) and never measure time: how busy a machine is says nothing about the code.

Promised figures are measured by `scripts/bench`.
"""

from __future__ import annotations

import re
from pathlib import Path

STOPWATCH = re.compile(r"\b(?:perf_counter|process_time|thread_time|timeit)(?:_ns)?\b|\bmonotonic(?:_ns)?\(\) - \w")


def test_no_test_has_a_stopwatch() -> None:
    here = Path(__file__)
    found = [
        f"{path.relative_to(here.parent)}:{number}: {line.strip()}"
        for path in sorted(here.parent.rglob("*.py"))
        if path != here
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if STOPWATCH.search(line)
    ]
    assert found == []

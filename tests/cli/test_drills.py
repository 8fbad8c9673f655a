"""A few rounds of each drill; `scripts/drill` runs as many as one likes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.drills.batch import batch_drill
from tests.drills.crash import crash_drill
from tests.drills.disk import disk_drill
from tests.drills.mutations import mutated, recorded
from tests.drills.rewind import rewind_drill
from tests.drills.sse import sse_drill
from tests.drills.streams import WIRES as STREAMED
from tests.drills.streams import streams_drill

WIRES = ("responses", "messages")
DRILL = Path(__file__).parents[2] / "scripts" / "drill"


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_sessions_lose_nothing_and_repeat_nothing(tmp_path: Path, seed: int) -> None:
    report = crash_drill(tmp_path, rounds=3, seed=seed)
    assert (report.rounds, report.problems) == (3, [])


def test_a_batch_that_is_killed_ends_every_task_once(tmp_path: Path) -> None:
    report = batch_drill(tmp_path, rounds=24, seed=1, kills=2)
    assert (report.rounds, report.problems) == (24, [])
    assert report.counts["kills of the batch"] == 1


def test_a_disk_that_fills_up_costs_the_record_and_not_the_work(tmp_path: Path) -> None:
    report = disk_drill(tmp_path, rounds=4, seed=1)
    assert (report.rounds, report.problems) == (4, [])
    assert report.counts["with a full disk"] > 0


def test_a_rewind_that_is_stopped_leaves_each_file_as_before_or_after(tmp_path: Path) -> None:
    report = rewind_drill(tmp_path, rounds=30, seed=2)
    assert (report.rounds, report.problems) == (30, [])
    assert min(report.counts["rewind killed"], report.counts["undo with a full disk"]) > 0


@pytest.mark.parametrize(("wire", "seed"), [("responses", 1), ("responses", 2), ("messages", 1)])
def test_a_mutated_answer_is_an_answer_or_one_error(tmp_path: Path, wire: str, seed: int) -> None:
    report = sse_drill(tmp_path, rounds=50, seed=seed, wire=wire)
    assert (report.rounds, report.counts.total(), report.problems) == (50, 50, [])
    assert report.counts["completed"] > 0
    assert report.counts["failed"] > 0


def test_random_streams_of_each_wire_lose_no_call_and_double_none(tmp_path: Path) -> None:
    report = streams_drill(tmp_path, rounds=300, seed=1)
    assert (report.rounds, report.problems) == (300, [])
    assert {report.counts[f"{wire} cut"] for wire in STREAMED} == {300}


def test_the_recorded_answers_are_answers(tmp_path: Path) -> None:
    for wire in WIRES:
        assert len(recorded(wire)) >= 8
        assert all(b"data: " in one for one in recorded(wire))


def test_a_seed_says_which_mutations() -> None:
    import random

    first, second = ([mutated(random.Random(seed)) for seed in range(20)] for _ in range(2))
    assert first == second


def test_the_command_runs_a_drill_and_reports(tmp_path: Path) -> None:
    command = [sys.executable, str(DRILL), "sse", "--rounds", "5", "--seed", "3"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith("sse: 5 rounds: ")
    assert "0 problems" in ended.stdout

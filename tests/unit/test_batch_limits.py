"""How many tasks of a batch run at once, when servers limit them."""

from __future__ import annotations

from pathlib import Path

from codex_py.batch.limits import Limiter
from codex_py.model.retry import Pace


def limiter(tmp_path: Path, jobs: int) -> tuple[Limiter, Pace]:
    pace = Pace(tmp_path / "pace")
    pace.create()
    return Limiter(jobs, pace), pace


def test_one_limit_in_twenty_requests_leaves_most_jobs_at_work(tmp_path: Path) -> None:
    tasks, pace = limiter(tmp_path, 16)
    lowest = 16
    for second in range(100, 2_100, 20):
        pace.note_limit(second + 1.0)
        assert tasks.wait_seconds(second) == 1.0
        lowest = min(lowest, tasks.capacity)
        for _ in range(20):
            tasks.note_success()
    assert lowest >= 12


def test_a_server_that_keeps_limiting_is_asked_less_and_less(tmp_path: Path) -> None:
    tasks, pace = limiter(tmp_path, 16)
    for second in range(100, 200, 2):
        pace.note_limit(second + 1.0)
        tasks.wait_seconds(second)
    assert tasks.capacity == 1


def test_all_limits_of_one_pause_count_once(tmp_path: Path) -> None:
    tasks, pace = limiter(tmp_path, 10)
    for _ in range(10):
        pace.note_limit(105.0)
        tasks.wait_seconds(100.0)
    assert tasks.capacity == 9

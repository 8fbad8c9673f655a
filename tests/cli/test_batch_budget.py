"""What `codex-py batch --max-usd` lets a batch do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_batch import report_of, run_batch, serving, write_tasks
from tests.support.fake_responses import Request, call, completed, repeat, say, tokens
from tests.support.home import Place
from tests.support.script import Stream


def costing(*requests: int) -> Callable[[Request], Any]:
    """A model whose tasks cost so many cents for each of their requests."""

    def answer(request: Request) -> Stream:
        step = sum(entry["type"] == "function_call_output" for entry in request.input)
        usage = completed(tokens(requests[step] * 100, 0))
        if step + 1 < len(requests):
            return [call(f"c{step}", "exec_command", {"cmd": f"echo {step}", "login": False}), usage]
        return [say("done"), usage]

    return answer


@pytest.mark.parametrize(
    ("cents", "jobs", "usd", "done"),
    [
        ((25, 25), 8, 2.0, 4),
        ((10,) * 5, 8, 2.0, 4),
        ((50,), 8, 2.2, 4),
        ((50,), 1, 2.0, 4),
        ((50,), 30, 4.9, 9),
        ((25, 25), 8, 100.0, 12),
    ],
)
def test_a_budget_finishes_as_many_tasks_as_it_covers(
    place: Place, tmp_path: Path, cents: tuple[int, ...], jobs: int, usd: float, done: int
) -> None:
    tasks = write_tasks(place, [{"id": str(number), "prompt": f"p{number}"} for number in range(12)])
    priced = "[models.'gpt-5.1-codex']\ninput_usd = 100.0\noutput_usd = 1.0\n"
    with serving(repeat(costing(*cents))) as model:
        place.use_model(model.base_url)
        place.configure((place.codex_home / "config.toml").read_text() + priced)
        ended = run_batch(place, tmp_path / "out", tasks, "--jobs", str(jobs), "--max-usd", str(usd))
    rows = report_of(tmp_path / "out").values()
    assert sum(row["status"] == "ok" for row in rows) == done, ended.err
    assert sum(float(row["cost_usd"] or 0) for row in rows) <= usd
    assert ended.status == (0 if done == 12 else 75)

"""What holds for a whole batch: how many tasks may run at once, and what all of them may cost."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Final

from codex_py.batch.records import TaskRecord
from codex_py.model.retry import Pace

_DECREASE: Final = 0.9
# Less than this buys no request.
_MIN_USD: Final = 0.000_01
_ROUNDING: Final = 0.000_000_001
# Beside others a task gets a share of so many times what it is expected to cost: half of all cost more than that.
_MARGIN: Final = 1.5
# `exec` asks for room for a token of the answer before it sends a request: a share of what a task costs is enough.
_TOLERANCE: Final = 1.01


class Limiter:
    """How many tasks may run: fewer after each rate limit that one of them meets, and slowly more again.

    The workers share a small file (`model/retry.py`): a 429 of one of them holds the requests of all until its
    `retry-after`. Here the number of tasks at work follows, as a sender follows the congestion of a network. `now` is
    in seconds since the epoch, as in that file.
    """

    def __init__(self, jobs: int, pace: Pace) -> None:
        self._jobs = jobs
        self._capacity = float(jobs)
        self._pace = pace
        self._limits_seen = pace.read().limits
        self._lowered_until = 0.0

    @property
    def capacity(self) -> int:
        """How many tasks may run at once."""
        return max(1, int(self._capacity))

    def wait_seconds(self, now: float) -> float:
        """How long no task may start; looks at what the workers have met since the last time."""
        state = self._pace.read()
        if state.limits != self._limits_seen:
            self._limits_seen = state.limits
            if now >= self._lowered_until:
                # Once for each pause: the others that meet it are the same event.
                self._capacity = max(1.0, self._capacity * _DECREASE)
                self._lowered_until = max(state.not_before, now + 1.0)
        return max(0.0, state.not_before - now)

    def note_success(self) -> None:
        """A task has ended without a rate limit: go back up, by about one task for each round of tasks."""
        self._capacity = min(float(self._jobs), self._capacity + 1.0 / self._capacity)


class BatchBudget:
    """Gives each run a share that it cannot exceed, so that all together stay below the limit.

    `limit` is in US dollars; None for no limit. The cost of earlier runs of the batch counts. A task is expected to
    cost the median of those that are done: where none is, one task runs with all that is left. A price that is not
    known counts as nothing.
    """

    def __init__(self, limit: float | None, records: Mapping[str, TaskRecord]) -> None:
        self._limit = limit
        self._spent = sum(record.cost_usd or 0.0 for record in records.values())
        self._costs = [record.cost_usd or 0.0 for record in records.values() if record.status == "ok"]
        self._reserved: dict[str, float] = {}
        # Tasks that a share of the budget was too little for: they run alone, with all that is left.
        self._needs_all: set[str] = set()

    def may_start(self, task_id: str) -> bool:
        """Whether a task may start: what is left must cover it beside those that run. False for all tasks while one
        runs with everything."""
        if self._limit is None:
            return True
        if self._reserved and (not self._costs or task_id in self._needs_all):
            return False
        least = self._least()
        return min(self._free(), self._left() - least * len(self._reserved)) >= least - _ROUNDING

    def reserve(self, task_id: str, *, slots: int) -> float | None:
        """The share of a task that starts now, when so many could; None for no limit."""
        if self._limit is None:
            return None
        free = self._free()
        share = free
        if self._costs and task_id not in self._needs_all:
            share = free / max(1, min(slots, int((free + _ROUNDING) / (self._least() * _MARGIN))))
        self._reserved[task_id] = share
        return share * _TOLERANCE

    def settle(self, task_id: str, before: TaskRecord, now: TaskRecord) -> None:
        """A run has ended; a session counts all its runs, so the cost of `before` is counted already."""
        self._reserved.pop(task_id, None)
        if now.cost_usd is not None:
            self._spent += max(0.0, now.cost_usd - (before.cost_usd or 0.0))
        if now.status == "ok":
            self._costs.append(now.cost_usd or 0.0)

    def grants_more(self, task_id: str) -> bool:
        """Whether a task that ended at its share can go on, alone, with what is left then."""
        if self._limit is None or self._left() < self._least() - _ROUNDING or task_id in self._needs_all:
            return False
        self._needs_all.add(task_id)
        return True

    def _least(self) -> float:
        """The expected cost of a task."""
        return max(_MIN_USD, median(self._costs) if self._costs else 0.0)

    def _left(self) -> float:
        return (self._limit or 0.0) - self._spent

    def _free(self) -> float:
        return self._left() - sum(self._reserved.values())

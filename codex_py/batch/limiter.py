"""How many tasks may run: one limiter for the whole batch, which every task that meets a rate limit slows down.

The workers share a small file (`model/pace.py`): a 429 of one of them holds the requests of all until its
`retry-after`. Here the number of tasks at work follows, as a sender follows the congestion of a network.
"""

from __future__ import annotations

from codex_py.model.pace import Pace

_DECREASE = 0.75


class Limiter:
    """`now` is seconds since the epoch, as in the shared file."""

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

"""Work beside a turn, such as a command that waits for an answer: it ends with the session, at the latest."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any


class SideTasks:
    """Tasks of a group that are not waited for when the session is left."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside everything else."""
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def cancel(self) -> None:
        """Stop all of it."""
        for task in tuple(self._tasks):
            task.cancel()

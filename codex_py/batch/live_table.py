"""A batch on a terminal: one live table."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, assert_never

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from codex_py.batch.progress import outcome
from codex_py.batch.records import TaskRecord
from codex_py.batch.report import Totals, count_records
from codex_py.batch.scheduler import (
    BatchEvent,
    BatchPlan,
    Paused,
    TaskActivity,
    TaskCompleted,
    TaskEnded,
    TaskRepeated,
    TaskStarted,
)
from codex_py.text.sanitize import sanitize_line

_MAX_SHOWN: Final = 20
_REFRESH_SECONDS: Final = 0.5


class TableDisplay:
    """One live table: counts, cost and time left, and what each running task does now."""

    def __init__(self, records: Callable[[], Mapping[str, TaskRecord]]) -> None:
        """On stderr; `records` gives the state of all tasks."""
        self._console = Console(stderr=True)
        self._records = records
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._running: dict[str, tuple[str, float]] = {}
        self._began = time.monotonic()
        self._todo = 0
        self._ended = 0
        self._paused_until = 0.0

    def begin(self, plan: BatchPlan) -> None:
        """As `Display` says."""
        self._todo = len(plan.todo)
        self._live.start()

    def show(self, event: BatchEvent) -> None:
        """As `Display` says."""
        match event:
            case TaskStarted(task_id, _):
                self._running[task_id] = ("", time.monotonic())
            case TaskActivity(task_id, text):
                if task_id in self._running:
                    self._running[task_id] = (text, self._running[task_id][1])
            case TaskRepeated(task_id):
                self._running.pop(task_id, None)
            case TaskEnded(task_id, record):
                self._running.pop(task_id, None)
                self._ended += 1
                if record.is_failed:
                    self.note(f"{task_id}: {outcome(record)}")
            case TaskCompleted(task_id, problem):
                self.note(f"{task_id}: {problem or 'its missing files are written'}")
            case Paused(seconds, _):
                self._paused_until = time.monotonic() + seconds
            case _:
                assert_never(event)

    async def refresh(self) -> None:
        """As `Display` says."""
        while True:
            self._live.update(self._draw(), refresh=True)
            await asyncio.sleep(_REFRESH_SECONDS)

    def note(self, message: str) -> None:
        """As `Display` says."""
        self._console.print(Text(sanitize_line(message)))

    def end(self, totals: Totals, reason: str) -> None:
        """As `Display` says."""
        with suppress(OSError):
            self._live.stop()
        self.note(totals.in_words())

    def _draw(self) -> Group:
        totals = count_records(self._records())
        now = time.monotonic()
        left = self._todo - self._ended
        pace = f"{(now - self._began) / self._ended * left / 60:.1f} min left" if self._ended else "…"
        codes = ", ".join(f"{count} {code}" for code, count in totals.failed.items())
        head = (
            f"{totals.ok} of {totals.tasks} done · {len(self._running)} running · {left - len(self._running)} waiting"
        )
        head += f" · failed: {codes}" if codes else ""
        head += f" · ${totals.cost_usd:.4f} · {pace}"
        if now < self._paused_until:
            head += f" · rate limit: {self._paused_until - now:.0f} s"
        table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
        table.add_column(no_wrap=True)
        table.add_column(justify="right", no_wrap=True)
        table.add_column(no_wrap=True, overflow="ellipsis")
        for task_id, (text, began) in list(self._running.items())[:_MAX_SHOWN]:
            table.add_row(Text(task_id), f"{now - began:.0f} s", Text(text))
        more = len(self._running) - _MAX_SHOWN
        return Group(Text(head, style="bold"), table, *([Text(f"and {more} more")] if more > 0 else []))

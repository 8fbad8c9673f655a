"""How a batch is shown while it runs: a live table on a terminal, lines elsewhere, or one JSON object an event."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol, TextIO, assert_never

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from codex_py.batch.records import TaskRecord
from codex_py.batch.report import Totals, count_records
from codex_py.batch.scheduler import BatchEvent, BatchPlan, Paused, TaskActivity, TaskEnded, TaskRepeated, TaskStarted
from codex_py.text.display import counted
from codex_py.text.sanitize import sanitize_line

_MAX_SHOWN: Final = 20
_REFRESH_SECONDS: Final = 0.5


class Display(Protocol):
    """Shows a batch."""

    def begin(self, plan: BatchPlan) -> None:
        """The batch begins."""
        ...

    def show(self, event: BatchEvent) -> None:
        """Something has happened."""
        ...

    async def refresh(self) -> None:
        """Draw what has changed, again and again, until it is cancelled."""
        ...

    def note(self, message: str) -> None:
        """Show a message of the batch itself."""
        ...

    def end(self, totals: Totals, reason: str) -> None:
        """The batch is over, for a reason where not everything could be done."""
        ...


class JsonDisplay:
    """One JSON object a line."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def begin(self, plan: BatchPlan) -> None:
        """As `Display` says."""
        done = len(plan.records) - len(plan.todo)
        self._write("batch.started", tasks=len(plan.records), to_run=len(plan.todo), skipped=done)

    def show(self, event: BatchEvent) -> None:
        """As `Display` says."""
        match event:
            case TaskStarted(task_id, attempt):
                self._write("task.started", id=task_id, attempt=attempt)
            case TaskActivity(task_id, text):
                self._write("task.activity", id=task_id, text=text)
            case TaskRepeated(task_id, code, delay):
                self._write("task.repeated", id=task_id, code=code, delay_seconds=delay)
            case TaskEnded(task_id, record):
                self._write("task.ended", id=task_id, **record._asdict())
            case Paused(seconds, jobs):
                self._write("batch.paused", seconds=round(seconds, 3), jobs=jobs)
            case _:
                assert_never(event)

    async def refresh(self) -> None:
        """As `Display` says."""

    def note(self, message: str) -> None:
        """As `Display` says."""
        self._write("batch.note", message=message)

    def end(self, totals: Totals, reason: str) -> None:
        """As `Display` says."""
        self._write("batch.ended", **totals.as_json(), stopped_by=reason or None)

    def _write(self, event_type: str, **fields: Any) -> None:
        self._out.write(json.dumps({"type": event_type, **fields}) + "\n")
        self._out.flush()


class LineDisplay:
    """A line for each task that ends, and for what holds the batch up."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._left = 0
        self._total = 0

    def begin(self, plan: BatchPlan) -> None:
        """As `Display` says."""
        self._left = self._total = len(plan.todo)
        done = len(plan.records) - len(plan.todo)
        self.note(f"{counted(len(plan.todo), 'task')} to do" + (f", {done} left as they are" if done else ""))

    def show(self, event: BatchEvent) -> None:
        """As `Display` says."""
        match event:
            case TaskEnded(task_id, record):
                self._left -= 1
                self.note(f"[{self._total - self._left}/{self._total}] {task_id}: {outcome(record)}")
            case TaskRepeated(task_id, code, delay):
                self.note(f"{task_id}: {code}; again" + (f" in {delay:g} s" if delay else ""))
            case Paused(seconds, jobs):
                self.note(f"rate limit: waiting {seconds:.1f} s, then {jobs} at once")
            case TaskStarted() | TaskActivity():
                pass
            case _:
                assert_never(event)

    async def refresh(self) -> None:
        """As `Display` says."""

    def note(self, message: str) -> None:
        """As `Display` says."""
        print(sanitize_line(message), file=self._out, flush=True)

    def end(self, totals: Totals, reason: str) -> None:
        """As `Display` says."""
        self.note(totals.in_words())


class TableDisplay:
    """One live table: counts, cost and time left, and what each running task does now."""

    def __init__(self, console: Console, records: Callable[[], Mapping[str, TaskRecord]]) -> None:
        self._console = console
        self._records = records
        self._live = Live(console=console, auto_refresh=False, transient=True)
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


def outcome(record: TaskRecord) -> str:
    """How a task has ended, in a line."""
    parts = ["done" if record.status == "ok" else f"failed: {record.code}: {record.message}"]
    parts += [f"judge: {record.verdict}"] if record.verdict else []
    parts += [f"{counted(record.files_changed, 'file')} changed"] if record.files_changed else []
    parts += [f"${record.cost_usd:.4f}"] if record.cost_usd is not None else []
    return ", ".join([*parts, f"{record.seconds:.1f} s"])

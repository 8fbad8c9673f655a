"""How a batch is shown while it runs, where that is no terminal: a line or a JSON object for each event.

For a terminal there is `live_table.py`.
"""

from __future__ import annotations

import json
from typing import Any, Protocol, TextIO, assert_never

from codex_py.batch.records import TaskRecord
from codex_py.batch.report import Totals
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
from codex_py.text.display import counted
from codex_py.text.sanitize import sanitize_line


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
            case TaskCompleted(task_id, problem):
                self._write("task.completed", id=task_id, problem=problem or None)
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
            case TaskCompleted(task_id, problem):
                self.note(f"{task_id}: {problem or 'its missing files are written'}")
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


def outcome(record: TaskRecord) -> str:
    """How a task has ended, in a line."""
    parts = ["done" if record.status == "ok" else f"failed: {record.code}: {record.message}"]
    parts += [f"judge: {record.verdict}"] if record.verdict else []
    parts += [f"{counted(record.files_changed, 'file')} changed"] if record.files_changed else []
    parts += [f"${record.cost_usd:.4f}"] if record.cost_usd is not None else []
    return ", ".join([*parts, f"{record.seconds:.1f} s"])

"""Decides which task runs when: jobs, rate limits, retries, the budget and the ends of a batch.

It holds no state that must survive: what is done is what the records say.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from codex_py.batch.limits import BatchBudget, Limiter
from codex_py.batch.records import OutputDirectory, TaskRecord
from codex_py.batch.run_task import BUSY, CRASH, TaskRunner
from codex_py.batch.tasks import Task
from codex_py.errors import UserError

# Failures that pass: the same session goes on after a while.
_PASSING: Final = frozenset((CRASH, "interrupted", "rate_limit", "overloaded", "network", "timeout"))
_MAX_ATTEMPTS: Final = 3
_FIRST_DELAY: Final = 1.0
_BUSY_DELAY: Final = 1.0
# After this long the other process is not the rest of a killed batch.
_MAX_BUSY_SECONDS: Final = 60.0
_TICK_SECONDS: Final = 1.0
RETRY_FAILED: Final = "failed"
RETRY_NONE: Final = "none"

StopReason: TypeAlias = Literal["", "interrupted", "max_failures", "max_usd"]


class TaskStarted(NamedTuple):
    """A task was started, for the `attempt`th time in this run."""

    id: str
    attempt: int


class TaskActivity(NamedTuple):
    """A running task has begun something else."""

    id: str
    text: str


class TaskRepeated(NamedTuple):
    """An attempt has failed, and the task will run again."""

    id: str
    code: str
    delay: float


class TaskEnded(NamedTuple):
    """A task is done in this run, well or not."""

    id: str
    record: TaskRecord


class TaskCompleted(NamedTuple):
    """The missing files of a task that is done are written; `problem` says why not, where that failed."""

    id: str
    problem: str


class Paused(NamedTuple):
    """A rate limit: nothing starts for this many seconds, and then `jobs` at once."""

    seconds: float
    jobs: int


BatchEvent: TypeAlias = TaskStarted | TaskActivity | TaskRepeated | TaskEnded | TaskCompleted | Paused


class BatchPlan(NamedTuple):
    """What is to be done: the tasks to run, those that are done, and the records of all."""

    todo: Sequence[Task]
    done: Sequence[Task]
    records: Mapping[str, TaskRecord]
    changed: Sequence[str]


def plan_tasks(tasks: Sequence[Task], out: OutputDirectory, retry: frozenset[str]) -> BatchPlan:
    """The tasks that are missing, and the failed ones with a code of `retry`; `changed` are done and differ since."""
    records = {task.id: out.read_record(task) for task in tasks}
    todo: list[Task] = []
    done: list[Task] = []
    changed: list[str] = []
    for task in tasks:
        record = records[task.id]
        if record.status == "ok":
            if record.digest == task.digest:
                done.append(task)
            else:
                changed.append(task.id)
        elif record.status == "pending" or RETRY_FAILED in retry or record.code in retry:
            todo.append(task)
    return BatchPlan(todo, done, records, changed)


class Scheduler:
    """Runs the tasks of a plan, at most `jobs` at once."""

    def __init__(self, plan: BatchPlan, runner: TaskRunner, limiter: Limiter, budget: BatchBudget) -> None:
        self.records = dict(plan.records)
        self.stop_reason: StopReason = ""
        self.max_failures: int | None = None
        self.on_event: Callable[[BatchEvent], None] = _ignore
        self._runner = runner
        self._limiter = limiter
        self._budget = budget
        self._done = [task for task in plan.done if runner.lacks_files(task, plan.records[task.id])]
        self._ready = deque(plan.todo)
        self._delayed: list[tuple[float, int, Task]] = []
        self._running: dict[asyncio.Task[TaskRecord], Task] = {}
        self._attempts: dict[str, int] = {}
        self._busy_since: dict[str, float] = {}
        self._failures = 0
        self._counter = 0
        self._paused_until = 0.0
        self._wake = asyncio.Event()

    async def run(self) -> None:
        """Run until everything is done, or as much as may be; first complete the tasks that are done."""
        async with asyncio.TaskGroup() as group:
            free = asyncio.Semaphore(self._limiter.capacity)
            for task in self._done:
                group.create_task(self._complete(task, free))
        try:
            while True:
                self._start_some()
                if not self._running and (self.stop_reason or not (self._ready or self._delayed)):
                    return
                await self._wait()
                for done in [job for job in self._running if job.done()]:
                    self._settle(self._running.pop(done), done)
        finally:
            for job in self._running:
                job.cancel()
            # Each of them ends its process, and waits for that.
            await asyncio.gather(*self._running, return_exceptions=True)

    def stop(self, reason: StopReason) -> None:
        """Start nothing any more; what runs goes on to its end."""
        self.stop_reason = self.stop_reason or reason
        self._wake.set()

    async def _complete(self, task: Task, free: asyncio.Semaphore) -> None:
        async with free:
            if self.stop_reason:
                return
            problem = ""
            try:
                self.records[task.id] = await self._runner.complete(task, self.records[task.id])
            except UserError as error:
                problem = str(error)
            self.on_event(TaskCompleted(task.id, problem))

    def _start_some(self) -> None:
        now = time.monotonic()
        while self._delayed and self._delayed[0][0] <= now:
            self._ready.append(heapq.heappop(self._delayed)[2])
        if self.stop_reason or not self._ready:
            return
        pause = self._limiter.wait_seconds(time.time())
        if pause > 0:
            if time.time() + pause > self._paused_until + 0.1:
                self._paused_until = time.time() + pause
                self.on_event(Paused(pause, self._limiter.capacity))
            return
        while self._ready and len(self._running) < self._limiter.capacity:
            task = self._ready[0]
            if not self._budget.may_start(task.id):
                if not self._running:
                    self.stop("max_usd")
                return
            self._ready.popleft()
            self._start(task)

    def _start(self, task: Task) -> None:
        attempt = self._attempts[task.id] = self._attempts.get(task.id, 0) + 1
        self.on_event(TaskStarted(task.id, attempt))
        slots = self._limiter.capacity - len(self._running)
        limit = self._budget.reserve(task.id, slots=min(slots, len(self._ready) + 1))
        run = self._runner.run(task, limit, lambda text: self.on_event(TaskActivity(task.id, text)))
        job = asyncio.create_task(run)
        job.add_done_callback(lambda _: self._wake.set())
        self._running[job] = task

    async def _wait(self) -> None:
        self._wake.clear()
        if any(job.done() for job in self._running):
            return
        now = time.monotonic()
        waits = [_TICK_SECONDS]
        if self._delayed:
            waits.append(self._delayed[0][0] - now)
        if self._ready and (pause := self._paused_until - time.time()) > 0:
            waits.append(pause)
        try:
            async with asyncio.timeout(max(0.001, min(waits))):
                await self._wake.wait()
        except TimeoutError:
            pass

    def _settle(self, task: Task, job: asyncio.Task[TaskRecord]) -> None:
        """Take note of the end of an attempt. A bug in it ends the batch, which can be repeated."""
        record = job.result()
        self._budget.settle(task.id, self.records[task.id], record)
        # What was spent stays known, whatever becomes of the task.
        cost = record.cost_usd if record.cost_usd is not None else self.records[task.id].cost_usd
        self.records[task.id] = record._replace(cost_usd=cost)
        delay = self._delay(task, record)
        if delay is not None and not self.stop_reason:
            self.on_event(TaskRepeated(task.id, record.code, delay))
            self._counter += 1
            heapq.heappush(self._delayed, (time.monotonic() + delay, self._counter, task))
            return
        if record.status == "ok":
            self._limiter.note_success()
        self.on_event(TaskEnded(task.id, record))
        if record.is_failed:
            self._failures += 1
            if self.max_failures is not None and self._failures >= self.max_failures:
                self.stop("max_failures")

    def _delay(self, task: Task, record: TaskRecord) -> float | None:
        """After how long the task runs again; None when this was its last attempt."""
        if record.code == BUSY:
            self._attempts[task.id] -= 1
            began = self._busy_since.setdefault(task.id, time.monotonic())
            if time.monotonic() - began < _MAX_BUSY_SECONDS:
                return _BUSY_DELAY
            self.records[task.id] = record._replace(status="failed", message="another process has its session")
            return None
        if record.code == "budget" and self._budget.grants_more(task.id):
            self._attempts[task.id] -= 1
            return 0.0
        if record.code not in _PASSING or self._attempts[task.id] >= _MAX_ATTEMPTS:
            return None
        return 0.0 if record.code == CRASH else _FIRST_DELAY * 2 ** (self._attempts[task.id] - 1)


def _ignore(_: BatchEvent) -> None:
    pass

"""The tool calls of one response: started as they arrive, answered in the order they came."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from codex_py.core.history import ABORTED
from codex_py.protocol.items import ResponseItem, ToolCall, call_output
from codex_py.tools.spec import ToolOutput

# The second argument must be called with the output before anybody hears that the call has ended.
RunTool: TypeAlias = Callable[[ToolCall, Callable[[ToolOutput], None]], Awaitable[ToolOutput]]


class _Started:
    __slots__ = ("call", "output", "task")

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.output: ToolOutput | None = None
        self.task: asyncio.Task[ToolOutput] | None = None

    def item(self) -> ResponseItem:
        return call_output(self.call, _answer(self.output))


class CallBatch:
    """Calls of one response. Parallel ones overlap; any other waits for those before it and holds up those after it.

    `append` takes the outputs in the order of the calls, the first when the response has ended. `keep` takes at once
    those that have to wait for that, so that no death of this process can lose what a command has come to.
    """

    def __init__(
        self,
        group: asyncio.TaskGroup,
        run: RunTool,
        *,
        append: Callable[[ResponseItem], None],
        save: Callable[[ResponseItem], None],
    ) -> None:
        self._group = group
        self._run = run
        self._append = append
        self._save = save
        self._started: list[_Started] = []
        self._appended = 0
        self._complete = False
        self._barrier: asyncio.Task[ToolOutput] | None = None

    def __bool__(self) -> bool:
        return bool(self._started)

    def start(self, call: ToolCall, *, parallel: bool) -> None:
        """Begin a call now, while the rest of the response is still on its way."""
        before = [self._barrier] if parallel else [started.task for started in self._started]
        started = _Started(call)
        started.task = self._group.create_task(self._run_after([task for task in before if task], started))
        if not parallel:
            self._barrier = started.task
        self._started.append(started)

    async def wait(self) -> None:
        """Wait until every call has ended; the response has, so that there will be no more of them."""
        self._complete = True
        self._append_ready()
        if tasks := [started.task for started in self._started if started.task]:
            await asyncio.wait(tasks)

    def append_rest(self) -> None:
        """Append the outputs that were not yet; `aborted` for the calls that were stopped."""
        for started in self._started[self._appended :]:
            self._append(started.item())
        self._appended = len(self._started)

    def crash(self) -> Exception | None:
        """The first bug a tool ran into."""
        return next(
            (started.output.crash for started in self._started if started.output and started.output.crash), None
        )

    def failure(self) -> str:
        """Why the turn must end after these calls, or empty."""
        return next(
            (started.output.failure for started in self._started if started.output and started.output.failure), ""
        )

    async def _run_after(self, before: list[asyncio.Task[ToolOutput]], started: _Started) -> ToolOutput:
        if before:
            await asyncio.wait(before)
        return await self._run(started.call, lambda output: self._note(started, output))

    def _note(self, started: _Started, output: ToolOutput) -> None:
        started.output = output
        self._append_ready()
        if started in self._started[self._appended :]:
            self._save(started.item())

    def _append_ready(self) -> None:
        while self._complete and self._appended < len(self._started):
            started = self._started[self._appended]
            if started.output is None:
                return
            self._append(started.item())
            self._appended += 1


def _answer(output: ToolOutput | None) -> str | Sequence[dict[str, Any]]:
    return ABORTED if output is None else output.parts or output.text

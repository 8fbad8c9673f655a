"""The tool calls of one response: started as they arrive, answered in the order they came."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias

from codex_py.core.history import ABORTED
from codex_py.protocol.items import ResponseItem, ToolCall, call_output
from codex_py.protocol.value import Value
from codex_py.tools.spec import ToolOutput

RunTool: TypeAlias = Callable[[ToolCall], Awaitable[ToolOutput]]


class _Started(Value):
    call: ToolCall
    task: asyncio.Task[ToolOutput]


class CallBatch:
    """Calls of one response. Parallel ones overlap; any other waits for those before it and holds up those after it."""

    def __init__(self, group: asyncio.TaskGroup, run: RunTool) -> None:
        self._group = group
        self._run = run
        self._started: list[_Started] = []
        self._barrier: asyncio.Task[ToolOutput] | None = None

    def __bool__(self) -> bool:
        return bool(self._started)

    def start(self, call: ToolCall, *, parallel: bool) -> None:
        """Begin a call now, while the rest of the response is still on its way."""
        if parallel:
            before = [self._barrier] if self._barrier else []
        else:
            before = [started.task for started in self._started]
        task = self._group.create_task(self._run_after(before, call))
        if not parallel:
            self._barrier = task
        self._started.append(_Started(call, task))

    async def wait(self) -> None:
        """Wait until every call has ended."""
        if self._started:
            await asyncio.wait([started.task for started in self._started])

    def outputs(self) -> list[ResponseItem]:
        """One output a call, in the order of the calls; `aborted` for those that were stopped."""
        return [call_output(started.call, _answer(_output_of(started))) for started in self._started]

    def crash(self) -> Exception | None:
        """The first bug a tool ran into."""
        return next((output.crash for output in map(_output_of, self._started) if output and output.crash), None)

    async def _run_after(self, before: list[asyncio.Task[ToolOutput]], call: ToolCall) -> ToolOutput:
        if before:
            await asyncio.wait(before)
        return await self._run(call)


def _output_of(started: _Started) -> ToolOutput | None:
    task = started.task
    return task.result() if task.done() and not task.cancelled() else None


def _answer(output: ToolOutput | None) -> str | Sequence[dict[str, Any]]:
    return ABORTED if output is None else output.parts or output.text

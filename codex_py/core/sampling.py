"""One sampling request: ask the model, record its response, run its tool calls; ask again when the stream breaks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any, TypeAlias, TypeVar

from codex_py.context.host_messages import content_filter_guidance
from codex_py.core.history import ABORTED, History
from codex_py.core.model_pool import ModelPool
from codex_py.core.turn_context import ModelSettings, TurnContext
from codex_py.errors import ModelError
from codex_py.model.client import (
    AnswerNote,
    Completed,
    ItemDone,
    Prompt,
    ResponseEvent,
    StreamReasoningDelta,
    StreamTextDelta,
    ToolCallStarted,
    TurnState,
)
from codex_py.model.failures import FILTERED, IncompleteAnswer
from codex_py.model.retry import Retry, RetryBudget, number_between
from codex_py.protocol import events
from codex_py.protocol.items import (
    Message,
    Reasoning,
    ResponseItem,
    ToolCall,
    WebSearchCall,
    call_output,
    message_of_content,
)
from codex_py.protocol.usage import RequestCost, TokenUsage
from codex_py.protocol.value import Value
from codex_py.tools.registry import ToolRegistry
from codex_py.tools.spec import ToolOutput

# The second argument must be called with the output before the event for the end of the call is emitted.
RunTool: TypeAlias = Callable[[ToolCall, Callable[[ToolOutput], None]], Awaitable[ToolOutput]]


class _Started:
    __slots__ = ("call", "output", "task")

    def __init__(self, call: ToolCall) -> None:
        self.call = call
        self.output: ToolOutput | None = None
        self.task: asyncio.Task[ToolOutput] | None = None

    def item(self) -> ResponseItem:
        return call_output(self.call, _answer(self.output), failed=self.output is not None and not self.output.ok)


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


T = TypeVar("T")


class ToolCrash(Exception):
    """A bug in a tool. Its call has been answered; the turn must not go on as if nothing had happened."""


class SampleResult:
    """The result of a request. `wants_more` asks for another one: calls were made, or the model said so; `acted` says
    that an existing tool was called.

    `usage` counts the first `covered` items of the history, the answer included. `open_text` are the pieces of a
    message that has not come as a whole, `failure` is why an answer that was paid for is none.
    """

    def __init__(self) -> None:
        self.message: str | None = None
        self.usage: TokenUsage | None = None
        self.cost: RequestCost | None = None
        self.covered = 0
        self.wants_more = False
        self.acted = False
        self.failure: ModelError | None = None
        self.open_text: list[str] = []


async def retried(
    attempt: Callable[[], Awaitable[T]], budget: RetryBudget, on_retry: Callable[[ModelError, Retry], None]
) -> T:
    """Make attempts until one succeeds or the budget is used up; `on_retry` is called before each wait."""
    while True:
        try:
            return await attempt()
        except ModelError as error:
            retry = budget.next_delay(error, now=time.monotonic(), jitter=number_between(0.9, 1.1))
            if retry is None:
                raise
            on_retry(error, retry)
            await asyncio.sleep(retry.delay)


def retry_event(error: ModelError, retry: Retry) -> events.Retrying:
    """The event for a retry."""
    return events.Retrying(str(error), retry.attempt, retry.limit, retry.delay)


def prompt_for(turn: TurnContext, history: History, tools: bytes, *, tokens: int) -> Prompt:
    """The next request of a turn; `tools` is the encoded array of their specs, `tokens` what the request takes."""
    settings = turn.settings
    return Prompt(
        model=settings.model,
        instructions=settings.instructions,
        input=history.encoded,
        tools=tools,
        thread_id=turn.thread_id,
        turn_id=turn.turn_id,
        window=history.window,
        parallel_tool_calls=settings.parallel_tool_calls,
        effort=settings.effort,
        summary=settings.summary,
        verbosity=settings.verbosity,
        service_tier=settings.service_tier,
        output_schema=turn.output_schema,
        max_output_tokens=_answer_limit(settings, tokens),
        parent=turn.parent,
        pictures=settings.pictures,
        provider=settings.provider,
    )


def _answer_limit(settings: ModelSettings, tokens: int) -> int | None:
    window, limit = settings.context_window, settings.max_output_tokens
    if window is None or limit is None:
        return limit
    # A history that takes more than nine tenths is compacted, and the count may be an estimate.
    return max(1, min(limit, max(window - tokens, window // 10)))


class Sampler(Value):
    """Makes the requests of one turn.

    `expect_call` is called when a call is on its way; `keep_output` stores an output whose place in the history has
    not come yet; `saved` returns when what was recorded so far is on disk. `tools` gives those of the next request,
    `count_tokens` what it takes.
    """

    turn: TurnContext
    history: History
    model: ModelPool
    tools: Callable[[], ToolRegistry]
    count_tokens: Callable[[], int]
    run_tool: RunTool
    emit: Callable[[events.Event], None]
    expect_call: Callable[[], object]
    keep_output: Callable[[ResponseItem], None]
    saved: Callable[[], Awaitable[None]]
    turn_state: TurnState

    async def sample(self) -> SampleResult:
        """One answered request. Raises `ModelError` when the retries are used up, `ToolCrash` for a bug in a tool."""
        is_guided = False

        def note_retry(error: ModelError, retry: Retry) -> None:
            nonlocal is_guided
            if error.code == FILTERED:
                if is_guided:
                    raise error
                is_guided = True
                self.history.append(content_filter_guidance())
            self.emit(retry_event(error, retry))

        return await retried(self._request, self.model.retry_budget(self.turn.settings.provider), note_retry)

    async def _request(self) -> SampleResult:
        """Send the history once. Items that arrived before a failure stay, and calls that began are answered."""
        answer = SampleResult()
        failure: ModelError | None = None
        group = asyncio.TaskGroup()
        batch = CallBatch(group, self.run_tool, append=self.history.append, save=self.keep_output)
        try:
            async with group:
                # Kept out of the group, which would cancel the calls under way: they are waited for.
                failure = await self._receive(batch, answer)
                await batch.wait()
        finally:
            # Also after an interrupt: what had ended by then is not lost.
            batch.append_rest()
        if batch:
            await self.saved()
        if crash := batch.crash():
            raise ToolCrash from crash
        if reason := batch.failure():
            raise ModelError(reason, retryable=False)
        if isinstance(failure, IncompleteAnswer) and not failure.retryable:
            answer.failure, answer.usage, answer.cost = failure, failure.usage, failure.cost
            answer.covered = len(self.history)
        elif failure is not None:
            raise failure
        return answer

    async def _receive(self, batch: CallBatch, answer: SampleResult) -> ModelError | None:
        try:
            tools = self.tools().encoded_specs
            prompt = prompt_for(self.turn, self.history, tools, tokens=self.count_tokens())
            async with aclosing(self.model.stream(prompt, turn_state=self.turn_state)) as stream:
                async for event in stream:
                    self._take(event, batch, answer)
        except ModelError as error:
            return error
        return None

    def _take(self, event: ResponseEvent, batch: CallBatch, answer: SampleResult) -> None:
        match event:
            case StreamTextDelta(text):
                answer.open_text.append(text)
                self.emit(events.TextDelta(text))
            case StreamReasoningDelta(text):
                self.emit(events.ReasoningDelta(text))
            case ToolCallStarted():
                self.expect_call()
            case AnswerNote(text):
                self.emit(events.Warned(text))
            case ItemDone(item):
                self._record(item, batch, answer)
            case Completed(usage, end_turn, cost):
                if text := "".join(answer.open_text):
                    # Some servers stream a message and never send it as an item: what was read counts as the message.
                    part = {"type": "output_text", "text": text}
                    self._record(message_of_content("assistant", [part]), batch, answer)
                answer.usage, answer.cost, answer.covered = usage, cost, len(self.history)
                answer.wants_more = bool(batch) or end_turn is False
            case _:
                pass

    def _record(self, item: ResponseItem, batch: CallBatch, answer: SampleResult) -> None:
        self.history.append(item)
        match item.view():
            case Message("assistant", text):
                answer.open_text.clear()
                answer.message = text
                self.emit(events.MessageDone(text))
            case Reasoning(summary, raw) if text := summary or (raw if self.turn.settings.show_raw_reasoning else ""):
                self.emit(events.ReasoningDone(text))
            case ToolCall() as call:
                tools = self.tools()
                answer.acted = answer.acted or tools.knows(call)
                batch.start(call, parallel=tools.is_parallel(call))
            case WebSearchCall(id_, query, action):
                self.emit(events.WebSearched(id_, query, action))
            case _:
                pass

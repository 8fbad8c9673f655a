"""One sampling request: ask the model, record what it answers and start its calls; ask again when the stream breaks."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

from codex_py.context.content_filter import content_filter_guidance
from codex_py.core.calls import CallBatch, RunTool
from codex_py.core.history import History
from codex_py.core.turn_context import ModelSettings, TurnContext
from codex_py.errors import ModelError
from codex_py.model.client import ModelClient, TurnState
from codex_py.model.failures import FILTERED
from codex_py.model.prompt import Prompt
from codex_py.model.retry import Retry, RetryBudget
from codex_py.model.stream import (
    Completed,
    ItemDone,
    ResponseEvent,
    StreamReasoningDelta,
    StreamTextDelta,
    ToolCallStarted,
)
from codex_py.protocol import events
from codex_py.protocol.items import Message, Reasoning, ResponseItem, ToolCall, WebSearchCall, message_of_content
from codex_py.protocol.usage import TokenUsage
from codex_py.protocol.value import Value
from codex_py.tools.registry import ToolRegistry

T = TypeVar("T")


class ToolCrash(Exception):
    """A bug in a tool. Its call has been answered; the turn must not go on as if nothing had happened."""


class SampleResult:
    """What a request came to. `wants_more` asks for another one: calls were made, or the model said so; `acted` says
    that there was a call of a tool that exists.

    `usage` counts the first `covered` items of the history, the answer included. `open_text` are the pieces of a
    message that has not come as a whole.
    """

    def __init__(self) -> None:
        self.message: str | None = None
        self.usage: TokenUsage | None = None
        self.covered = 0
        self.wants_more = False
        self.acted = False
        self.open_text: list[str] = []


async def retried(
    attempt: Callable[[], Awaitable[T]], budget: RetryBudget, on_retry: Callable[[ModelError, Retry], None]
) -> T:
    """Make attempts until one succeeds or the budget is used up; `on_retry` hears of each wait before it begins."""
    while True:
        try:
            return await attempt()
        except ModelError as error:
            retry = budget.next_delay(error, now=time.monotonic(), jitter=random.uniform(0.9, 1.1))
            if retry is None:
                raise
            on_retry(error, retry)
            await asyncio.sleep(retry.delay)


def retry_event(error: ModelError, retry: Retry) -> events.Retrying:
    """What a front end is told of a retry."""
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
    )


def _answer_limit(settings: ModelSettings, tokens: int) -> int | None:
    window, limit = settings.context_window, settings.max_output_tokens
    if window is None or limit is None:
        return limit
    # A history that takes more than nine tenths is compacted, and the count may be an estimate.
    return max(1, min(limit, max(window - tokens, window // 10)))


class Sampler(Value):
    """Makes the requests of one turn.

    `expect_call` hears that a call is on its way; `keep_output` writes down an output whose place in the history has
    not come yet; `saved` returns when what was recorded so far is on disk. `tools` gives those of the next request,
    `count_tokens` what it takes.
    """

    turn: TurnContext
    history: History
    model: ModelClient
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
        return await retried(self._request, self.model.retry_budget(), self._note_retry)

    def _note_retry(self, error: ModelError, retry: Retry) -> None:
        if error.code == FILTERED:
            self.history.append(content_filter_guidance())
        self.emit(retry_event(error, retry))

    async def _request(self) -> SampleResult:
        """Send the history once. What arrived before a failure stays, and calls that began are answered."""
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
        if failure is not None:
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
            case ItemDone(item):
                self._record(item, batch, answer)
            case Completed(_, usage, end_turn):
                if text := "".join(answer.open_text):
                    # Some servers stream a message and never send it as an item: what was read counts as said.
                    part = {"type": "output_text", "text": text}
                    self._record(message_of_content("assistant", [part]), batch, answer)
                answer.usage, answer.covered = usage, len(self.history)
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

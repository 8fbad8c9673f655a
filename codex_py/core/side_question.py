"""A question beside the conversation: the model has the history and answers, and nothing of it enters the history."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Final

from codex_py.core.conversation import TurnRunner
from codex_py.core.turn_context import TurnContext
from codex_py.errors import ModelError, UserError
from codex_py.model.client import ItemDone, Prompt, TurnState
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.items import Message, message_of_content

_ATTEMPTS: Final = 3
_REQUEST: Final = """\
{question}

(This is a side question. Answer it in a few words from what you know by now, without calling a tool. Neither it nor \
your answer will be part of the conversation.)"""


class SideQuestions:
    """Asks in a thread of its own, also while a turn runs."""

    def __init__(self, runner: TurnRunner) -> None:
        self._runner = runner

    async def ask(self, question: str) -> str:
        """The answer. Raises `UserError` when the model gives none."""
        runner = self._runner
        coming = () if runner.lock.locked() else runner.context_tracker.pending_items()
        question_item = message_of_content("user", [{"type": "input_text", "text": _REQUEST.format(question=question)}])
        items = [item.encoded for item in (*runner.history.items_answered(), *coming, question_item)]
        turn = runner.settings.now.turn(uuid7(), uuid7())
        prompt = prompt_of(turn, items, runner.runs.registry.encoded_specs)
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                answer = await self._answer(prompt)
            except ModelError as error:
                if attempt == _ATTEMPTS or not error.retryable:
                    raise UserError(f"no answer to the side question: {error}") from error
            else:
                if answer:
                    return answer
                break
        raise UserError("the model has not answered the side question in words", hint="ask it as a message")

    async def _answer(self, prompt: Prompt) -> str:
        texts: list[str] = []
        async with aclosing(self._runner.services.model.stream(prompt, turn_state=TurnState())) as stream:
            async for event in stream:
                if isinstance(event, ItemDone) and isinstance(view := event.item.view(), Message):
                    texts.append(view.text)
        return "\n\n".join(texts).strip()


def prompt_of(turn: TurnContext, items: Sequence[bytes], tools: bytes) -> Prompt:
    """A request with the settings of a turn."""
    settings = turn.settings
    return Prompt(
        model=settings.model,
        instructions=settings.instructions,
        input=items,
        tools=tools,
        thread_id=turn.thread_id,
        turn_id=turn.turn_id,
        parallel_tool_calls=settings.parallel_tool_calls,
        effort=settings.effort,
        summary=settings.summary,
        max_output_tokens=settings.max_output_tokens,
        provider=settings.provider,
    )

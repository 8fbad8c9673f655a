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
from codex_py.protocol.readable import is_host_text

_ATTEMPTS: Final = 3
_REQUEST: Final = """\
{question}

(This is a side question. Answer it in a few words from what you know by now, without calling a tool. Neither it nor \
your answer will be part of the conversation.)"""


_TITLE: Final = """\
Give the conversation below a title: what it is about, in 3 to 7 words, in the language of the user. Answer with the \
title alone, on one line, without quotes and without a full stop."""
_MAX_QUOTED: Final = 2000
_MAX_TITLE: Final = 80


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
        if answer := await self._ask(prompt, "the side question"):
            return answer
        raise UserError("the model has not answered the side question in words", hint="ask it as a message")

    async def title(self, prompt: str, answer: str) -> str:
        """A title for a conversation that begins like this. The request has nothing else in it, so it is cheap.

        Raises `UserError` when the model gives none.
        """
        quoted = f"<user>\n{prompt[:_MAX_QUOTED]}\n</user>\n\n<assistant>\n{answer[:_MAX_QUOTED]}\n</assistant>"
        question = message_of_content("user", [{"type": "input_text", "text": quoted}])
        turn = self._runner.settings.now.turn(uuid7(), uuid7())
        settings = turn.settings.replace(instructions=_TITLE, effort=turn.settings.effort and "low", summary=None)
        request = prompt_of(turn.replace(settings=settings), [question.encoded], b"[]")
        title = _clean_title(await self._ask(request, "the question for a title"))
        if not title:
            raise UserError("the model has answered without a title")
        return title

    async def title_now(self) -> str:
        """A title for the conversation as it is, by its first message and its last answer. Raises `UserError`."""
        views = [view for item in self._runner.history.items if isinstance(view := item.view(), Message)]
        prompts = (view.text for view in views if view.role == "user" and not is_host_text(view.text))
        answers = (view.text for view in reversed(views) if view.role == "assistant")
        return await self.title(next(prompts, ""), next(answers, ""))

    async def _ask(self, prompt: Prompt, name: str) -> str:
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return await self._answer(prompt)
            except ModelError as error:
                if attempt == _ATTEMPTS or not error.retryable:
                    raise UserError(f"no answer to {name}: {error}") from error
        return ""

    async def _answer(self, prompt: Prompt) -> str:
        texts: list[str] = []
        async with aclosing(self._runner.services.model.stream(prompt, turn_state=TurnState())) as stream:
            async for event in stream:
                if isinstance(event, ItemDone) and isinstance(view := event.item.view(), Message):
                    texts.append(view.text)
        return "\n\n".join(texts).strip()


def _clean_title(answer: str) -> str:
    """The first line of an answer as a name: without quotes, Markdown and what cannot be printed."""
    line = next((line for line in answer.splitlines() if line.strip()), "")
    printable = "".join(letter if letter.isprintable() else " " for letter in line)
    title = " ".join(printable.split()).removeprefix("Title:").strip(" \"'`*#_“”«»").rstrip(".")
    return title if len(title) <= _MAX_TITLE else title[:_MAX_TITLE].rpartition(" ")[0] or title[:_MAX_TITLE]


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

"""One turn, from a user's message to the model having nothing left to do; and the plan it proposes in plan mode."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Final

from codex_py.context.host_messages import schema_misfit
from codex_py.core.answer_schema import find_misfit
from codex_py.core.compaction import Compaction
from codex_py.core.sampling import Sampler, SampleResult
from codex_py.core.session_features import HookAccess
from codex_py.errors import ModelError
from codex_py.model.error_bodies import TOO_LONG
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.protocol.events import Event, MessageDone, PlanProposed, Retrying, TextDelta
from codex_py.protocol.readable import without_plan_tags
from codex_py.protocol.value import Value

# So many answers without an item and the same request again: another one would bring no more.
_MAX_SILENT: Final = 10
# So many answers that end nothing and do nothing: talk, or calls of tools that do not exist.
_MAX_IDLE: Final = 100


class Turn(Value):
    """`note_answer` is called for each answered request, after the outputs of its calls are recorded.

    `fall_back` gives the sampler of another model after a failure, if there is one. `append_pending` appends input that
    came during the turn; `has_pending_message` says whether it needs an answer. `next_sampler` gives the sampler
    of the next request.
    """

    sampler: Sampler
    fall_back: Callable[[Sampler, ModelError], Sampler | None]
    note_answer: Callable[[SampleResult], None]
    compaction: Compaction
    append_pending: Callable[[], Awaitable[None]]
    has_pending_message: Callable[[], bool]
    hooks: HookAccess
    next_sampler: Callable[[Sampler], Sampler]

    async def run(self) -> str | None:
        """Sample and run tools until a response asks for nothing; return that response's message.

        Between two requests, and when one turns out too long, the history is compacted. An answer that does not fit
        the schema of the turn is asked for once more. Raises `ModelError` when that does not fit either, and when the
        model goes on asking for more and says nothing, or does nothing.
        """
        silent = idle = 0
        misfit = False
        sampler = self.sampler
        while True:
            await self.append_pending()
            sampler = self.next_sampler(sampler)
            before = len(self.sampler.history)
            try:
                answer = await sampler.sample()
                self.note_answer(answer)
                self.compaction.remove_pictures(sampler.turn_state)
                if answer.failure is not None:
                    raise answer.failure
            except ModelError as error:
                if error.code == TOO_LONG:
                    await self.compaction.compact_after_refusal(sampler.turn, error)
                elif self.compaction.replace_refused(error):
                    continue
                elif (other := self.fall_back(sampler, error)) is not None:
                    sampler = other
                else:
                    raise
                continue
            if await self._is_over(answer):
                problem = self._find_misfit(answer)
                if problem is None:
                    return answer.message
                if misfit:
                    problem = f"the answer does not fit the output schema: {problem}"
                    raise ModelError(problem, retryable=False).counted_as("schema")
                misfit = True
                self.sampler.history.append(schema_misfit(problem))
            silent = silent + 1 if len(self.sampler.history) == before else 0
            if silent == _MAX_SILENT:
                raise ModelError(f"the model said nothing {silent} times and asked to go on", retryable=False)
            idle = idle + 1 if answer.wants_more and not answer.acted else 0
            if idle == _MAX_IDLE:
                raise ModelError(f"the model went on {idle} times and called no tool that exists", retryable=False)
            await self.compaction.between_requests(sampler.turn)

    def _find_misfit(self, answer: SampleResult) -> str | None:
        """Describe how the answer violates the turn's schema; None if it is valid or there is no schema."""
        schema = self.sampler.turn.output_schema
        if schema is None or self.hooks.runner.halted is not None:
            return None
        return find_misfit(answer.message or "", as_object(decode_json(schema)))

    async def _is_over(self, answer: SampleResult) -> bool:
        if self.hooks.runner.halted is not None:
            return True
        if answer.wants_more or self.has_pending_message():
            return False
        more = await self.hooks.stop(answer.message)
        self.sampler.history.append(*more)
        # Hooks take their time, and the user may have sent something meanwhile.
        return self.hooks.runner.halted is not None or not (more or self.has_pending_message())


_TAGS: Final = ("<proposed_plan>", "</proposed_plan>")
_PLAN: Final = r"(?m)^[ \t]*<proposed_plan>[ \t]*\n"
_PLAN_END: Final = r"(?m)^[ \t]*</proposed_plan>[ \t]*$"


def proposed_plan(text: str) -> str | None:
    """The plan in a message, without its tags; None when there is none, or an empty one."""
    begins = list(re.finditer(_PLAN, text))
    if not begins:
        return None
    # A plan that was cut short is shown as far as it goes.
    end = re.compile(_PLAN_END).search(text, begins[-1].end())
    return text[begins[-1].end() : end.start() if end else len(text)].strip() or None


def plan_accepted(request: str) -> str:
    """The message for the model when the user accepts its plan."""
    more = f"\n\n{request.strip()}" if request.strip() else ""
    return f"The plan is accepted. Carry it out.{more}"


class PlanReader:
    """Passes on what a model says in plan mode: its plan as an event of its own, the text without the tags."""

    def __init__(self, turn_id: str, emit: Callable[[Event], None]) -> None:
        self._turn_id = turn_id
        self._emit = emit
        # The line that is coming, as long as it may be a tag; None once it is known not to be one.
        self._line: str | None = ""

    def __call__(self, event: Event) -> None:
        match event:
            case TextDelta(text):
                if shown := "".join(map(self._feed, text.splitlines(keepends=True))):
                    self._emit(TextDelta(shown))
            case MessageDone(text):
                self._end_text()
                self._emit(MessageDone(without_plan_tags(text)))
                if plan := proposed_plan(text):
                    self._emit(PlanProposed(self._turn_id, plan))
            case Retrying():
                self._end_text()
                self._emit(event)
            case _:
                self._emit(event)

    def _feed(self, piece: str) -> str:
        """The text that can be shown after this piece, which has no line break except at its end."""
        ends = piece.endswith("\n")
        if self._line is None:
            self._line = "" if ends else None
            return piece
        line = self._line + piece
        if ends:
            self._line = ""
            return "" if line.strip() in _TAGS else line
        if any(tag.startswith(line.strip()) for tag in _TAGS):
            self._line = line
            return ""
        self._line = None
        return line

    def _end_text(self) -> None:
        rest, self._line = self._line or "", ""
        if rest and rest.strip() not in _TAGS:
            self._emit(TextDelta(rest))

"""Writes a session to its rollout, in the order that the format requires."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from codex_py.core.turn_context import TurnContext
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.events import UsageReported
from codex_py.protocol.items import Message, ResponseItem
from codex_py.protocol.ops import TextInput, UserInput
from codex_py.protocol.readable import without_pictures
from codex_py.protocol.usage import RequestCost
from codex_py.rollout import format as records
from codex_py.rollout.recorder import Recorder

_EVENT = "event_msg"


class Transcript:
    """The rollout of one session. Nothing here raises: a disk that fails costs a warning, not the work.

    `redact` takes the known secrets out of encoded JSON; what the model says of one is not written either.
    """

    def __init__(self, recorder: Recorder, redact: Callable[[bytes], bytes]) -> None:
        self._recorder = recorder
        self._redact = redact
        self._turn_began = time.monotonic()

    @property
    def path(self) -> Path | None:
        return self._recorder.path

    def item(self, item: ResponseItem) -> None:
        """Keep an item in which no secret stands."""
        self._recorder.record("response_item", item.encoded)
        if item.type == "message" and isinstance(view := item.view(), Message) and view.role == "assistant":
            # Codex CLI shows a resumed session by these.
            self._event(records.agent_message_payload(view.text))

    def early_output(self, item: ResponseItem) -> None:
        """Keep an output that cannot enter the history yet: only a run that is killed before then makes it count."""
        self._recorder.record(records.EARLY_OUTPUT, self._redact(item.encoded))

    def early_message(self, item: ResponseItem) -> None:
        """Keep a message of the user while the history is made ready for it: only a killed run makes it count."""
        self._recorder.record(records.EARLY_INPUT, self._redact(item.encoded))

    def turn_started(self, turn: TurnContext) -> None:
        self._turn_began = time.monotonic()
        window = turn.settings.context_window
        self._event(records.task_started_payload(turn.turn_id, window=window))

    def record(self, record_type: str, payload: dict[str, Any]) -> None:
        """Write a record in which no secret stands."""
        self._recorder.record(record_type, payload)

    def turn_settings(self, turn: TurnContext) -> None:
        settings = turn.settings
        reasoning = {"effort": settings.effort, "summary": settings.summary}
        self._recorder.record(
            "turn_context",
            records.turn_context_payload(
                turn.turn_id,
                turn.cwd,
                model=settings.model,
                reasoning={key: value for key, value in reasoning.items() if value is not None},
                approval=turn.approval,
                sandbox=turn.sandbox_policy,
            ),
        )

    def user_message(self, item: ResponseItem, inputs: Sequence[UserInput] = ()) -> None:
        view = item.view()
        if isinstance(view, Message):
            text = without_pictures(view.text)
            shortened = [part for part in inputs if isinstance(part, TextInput) and part.elements]
            elements = shortened[0].elements if [part.text for part in shortened] == [text] else ()
            task = next((part.task for part in inputs if isinstance(part, TextInput) and part.task), "")
            self._event(records.user_message_payload(text, elements, task=task))

    def usage(self, report: UsageReported, request: RequestCost | None) -> None:
        """Record the usage of a request and the totals of the session."""
        self._event(records.token_count_payload(report.last, report.total, window=report.context_window))
        if request is not None:
            self._recorder.record(records.REQUEST_COST, records.request_cost_payload(request, report.costs.session))

    def turn_completed(self, turn: TurnContext, last_message: str | None) -> None:
        elapsed = round((time.monotonic() - self._turn_began) * 1000)
        payload = records.task_complete_payload(turn.turn_id, last_message, duration_ms=elapsed)
        self._event(payload)

    def turn_failed(self, turn: TurnContext, message: str) -> None:
        self._event(records.error_payload(message))
        elapsed = round((time.monotonic() - self._turn_began) * 1000)
        self._event(records.task_complete_payload(turn.turn_id, None, duration_ms=elapsed))

    def turn_interrupted(self, turn: TurnContext) -> None:
        self._event(records.turn_aborted_payload(turn.turn_id))

    def compacted(
        self, summary: str, items: Sequence[ResponseItem], *, window: int, work_state: Mapping[str, Any]
    ) -> None:
        """From here on the history is `items`; all that stands before stays in the file."""
        payload = records.compacted_payload(summary, items, window=window, work_state=work_state)
        self._recorder.record("compacted", self._redact(payload))

    async def saved(self) -> None:
        """Return when everything recorded so far is on disk."""
        await self._recorder.sync()

    def close(self) -> None:
        self._recorder.close()

    def _event(self, payload: dict[str, Any]) -> None:
        self._recorder.record(_EVENT, self._redact(encode_json(payload)))

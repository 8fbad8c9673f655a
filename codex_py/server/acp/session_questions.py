"""The questions of one session, put to its client. None is left without an answer, and none outlives its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from codex_py.protocol.questions import ApprovalQuestion, ChoiceQuestion, Question, SecretQuestion
from codex_py.render.questions import CARRY_OUT, CARRY_OUT_NO, CARRY_OUT_YES, secret_text
from codex_py.server.acp.content import Json, text_content
from codex_py.server.acp.forms import answer_form, read_answer, read_server_form, server_form
from codex_py.server.acp.permissions import WRITE, PermissionOption, PermissionRequest, answer_of, permission_request_of
from codex_py.server.acp.session_updates import SessionUpdates
from codex_py.server.peer import AcpPeer
from codex_py.server.threads import LiveThread

_PLAN: Final = PermissionRequest(
    CARRY_OUT,
    "switch_mode",
    (
        PermissionOption("yes", CARRY_OUT_YES, "allow_once", "yes"),
        PermissionOption("no", CARRY_OUT_NO, "reject_once"),
    ),
)


class SessionQuestions:
    """`update` sends the client an update of the session; `is_stopped` says that the client has stopped the work."""

    def __init__(
        self,
        thread: LiveThread,
        peer: AcpPeer,
        *,
        updates: SessionUpdates,
        writes: bool,
        update: Callable[[Json], None],
        is_stopped: Callable[[], bool],
    ) -> None:
        self._thread = thread
        self._peer = peer
        self._updates = updates
        self._update = update
        self._writes = writes
        self._is_stopped = is_stopped
        self._open: dict[str, asyncio.Task[None]] = {}

    def begin(self, question: Question) -> None:
        """Put a question to the client; its answer goes to the session when it comes."""
        task = self._open[question.id] = self._thread.answer_by(question.id, self._ask(question))
        task.add_done_callback(lambda _: self._open.pop(question.id, None))

    def withdraw(self, question_id: str) -> None:
        """Nobody needs the answer any more."""
        if (task := self._open.pop(question_id, None)) is not None:
            task.cancel()

    async def plan_is_accepted(self, plan: str) -> bool:
        """Whether a plan is to be carried out."""
        request = _PLAN._replace(content=(text_content(plan),))
        chosen = await self._put(f"plan {self._thread.id}", request)
        return chosen is not None and chosen.answer == "yes"

    async def _ask(self, question: Question) -> None:
        if self._writes and isinstance(question, ChoiceQuestion) and question.form is not None:
            form = server_form(question.form)
            if form is not None:
                await self._thread.answer(question.id, read_server_form(await self._filled(form)))
                return
        request = permission_request_of(question, writes=self._writes)
        if request is None:
            if isinstance(question, SecretQuestion):
                self._update(self._updates.note(_unseen(question)))
            await self._thread.answer(question.id, None)
            return
        if question.agent:
            request = request._replace(title=f"{question.agent}: {request.title}")
        of_call = isinstance(question, ApprovalQuestion) and not question.agent
        call_id = question.call_id if isinstance(question, ApprovalQuestion) and of_call else f"question {question.id}"
        chosen = await self._put(call_id, request, of_call=of_call)
        answer = chosen.answer if chosen else None
        if chosen is not None and chosen.id == WRITE and isinstance(question, ChoiceQuestion):
            answer = read_answer(await self._filled(answer_form(question)))
        await self._thread.answer(question.id, answer)

    async def _put(self, call_id: str, request: PermissionRequest, *, of_call: bool = False) -> PermissionOption | None:
        """Show a question and wait for what is chosen. One of a call that goes on leaves that to the call's events."""
        calls, content = self._updates.calls, list(request.content)
        wire, update = calls.ask(call_id, request.title, request.kind, content=content, **request.details)
        if update is not None:
            self._update(update)
        about = {
            "toolCallId": wire,
            "title": request.title,
            "kind": request.kind,
            "status": "pending",
            **request.details,
        }
        params = {
            "sessionId": self._thread.id,
            "toolCall": {**about, "content": content},
            "options": request.options(),
        }
        try:
            result = await self._peer.request("session/request_permission", params, is_stopped=self._is_stopped)
        except asyncio.CancelledError:
            if not of_call and (ended := calls.end(call_id, "failed", content=[text_content("no longer needed")])):
                self._update(ended)
            raise
        chosen = answer_of(request, (result or {}).get("outcome"))
        if not of_call:
            ending = "completed" if chosen is not None and chosen.kind.startswith("allow") else "failed"
            answered = [*content, text_content(f"Answer: {chosen.name if chosen else 'none'}")]
            if ended := calls.end(call_id, ending, content=answered):
                self._update(ended)
        return chosen

    async def _filled(self, form: Json) -> Mapping[str, Any] | None:
        """What the user has filled in."""
        params = {"sessionId": self._thread.id, **form}
        return await self._peer.request("elicitation/create", params, is_stopped=self._is_stopped)


def _unseen(question: SecretQuestion) -> str:
    return (
        f"{secret_text(question)} This protocol has no way to ask for a secret: set it where codex-py is started, and"
        " begin a new session."
    )

"""Sends the questions of one thread to the client as requests, and passes its answers to the session."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, NamedTuple

from codex_py.protocol import events
from codex_py.protocol.questions import (
    ApprovalQuestion,
    ChoiceQuestion,
    McpForm,
    McpInstallQuestion,
    ModelAsks,
    PermissionsQuestion,
    ProjectServersQuestion,
    Question,
    QuestionAnswer,
    SecretQuestion,
)
from codex_py.rollout.patch_text import changes_in_patch
from codex_py.server.app import answers, items
from codex_py.server.app.event_translator import EventTranslator
from codex_py.server.messages import RequestId
from codex_py.server.peer import AppServerPeer
from codex_py.server.threads import LiveThread
from codex_py.text.sanitize import sanitize_line

_APPROVAL = "waitingOnApproval"
_INPUT = "waitingOnUserInput"


class _Form(NamedTuple):
    """A request to the client, and the function that reads its answer; `refused` is used for an error."""

    method: str
    params: dict[str, Any]
    read: answers.AnswerReader
    flag: str = _INPUT
    refused: QuestionAnswer | None = None


class _OpenQuestion(NamedTuple):
    """An open question: our request, None where the client is not asked, and the task that waits for the answer."""

    request_id: RequestId | None
    waiting: asyncio.Task[None]


class ClientQuestions:
    """Asks the client. `installs` says whether this client may be asked to add MCP servers that a skill needs."""

    def __init__(self, connection: AppServerPeer, translator: EventTranslator, *, installs: bool) -> None:
        self._connection = connection
        self._translator = translator
        self._installs = installs
        self._open: dict[str, _OpenQuestion] = {}
        # The items that agents ask about, by question. They are started and ended here: an agent's work has no events.
        self._agents_items: dict[str, str] = {}

    def note_event(self, thread: LiveThread, event: events.Event) -> None:
        """Ask what the session asks, and withdraw questions that it has closed."""
        match event:
            case events.QuestionRaised(question):
                self._ask(thread, question)
            case events.QuestionClosed(question_id) if (opened := self._open.pop(question_id, None)) is not None:
                opened.waiting.cancel()
                self._translator.wait_no_longer(question_id)
                if opened.request_id is not None:
                    self._connection.take_back(opened.request_id)
                    resolved = {"threadId": thread.id, "requestId": opened.request_id}
                    self._connection.notify("serverRequest/resolved", resolved)
                if (item_id := self._agents_items.pop(question_id, None)) is not None:
                    self._translator.end_item(item_id, "declined")
            case _:
                pass

    def _ask(self, thread: LiveThread, question: Question) -> None:
        form = self._form(thread, question)
        if form is None:
            waiting = thread.answer_by(question.id, thread.answer(question.id, None))
            self._open[question.id] = _OpenQuestion(None, waiting)
            return
        self._translator.wait_for(question.id, form.flag)
        agent = {"agent": question.agent} if question.agent else {}
        request_id, answer = self._connection.send_request(form.method, {**form.params, **agent})
        waiting = thread.answer_by(question.id, self._wait(thread, question, answer, form))
        self._open[question.id] = _OpenQuestion(request_id, waiting)

    async def _wait(
        self, thread: LiveThread, question: Question, answer: asyncio.Future[Mapping[str, Any] | None], form: _Form
    ) -> None:
        reply = await answer
        meant = form.refused if reply is None else form.read(reply)
        if meant is not None and (item_id := self._agents_items.pop(question.id, None)) is not None:
            self._translator.end_item(item_id, "completed")
        await thread.answer(question.id, meant)
        if reply is not None and reply.get("decision") == "cancel":
            self._translator.pending.forget()
            thread.interrupt()

    def _form(self, thread: LiveThread, question: Question) -> _Form | None:
        """The request that asks this; None where this client is not asked."""
        scope = {"threadId": thread.id, "turnId": self._translator.turn_id}
        match question:
            case ApprovalQuestion() if question.server:
                return _choice(scope, question.call_id, answers.tool_choice(question))
            case ApprovalQuestion():
                return self._approval(scope, question)
            case PermissionsQuestion():
                params = {
                    **scope,
                    "itemId": question.id,
                    "environmentId": None,
                    "startedAtMs": items.now_ms(),
                    "cwd": str(thread.session.settings.cwd),
                    "reason": question.reason or None,
                    "permissions": answers.permissions_payload(question),
                }
                read = answers.permissions_reader(question)
                return _Form("item/permissions/requestApproval", params, read, _APPROVAL)
            case ChoiceQuestion(form=McpForm() as form):
                params = {**scope, "serverName": form.server, "_meta": None, **answers.form_payload(question.id, form)}
                return _Form("mcpServer/elicitation/request", params, answers.read_form)
            case ChoiceQuestion(asks=ModelAsks() as asks):
                item_id = f"{question.agent}-{asks.call_id}" if question.agent else asks.call_id
                return _choice(scope, item_id, answers.model_asks(asks))
            case ChoiceQuestion():
                return _choice(scope, question.id, answers.server_choice(question))
            case SecretQuestion():
                return _choice(scope, question.id, answers.secret(question))
            case ProjectServersQuestion():
                return _choice(scope, question.id, answers.project_servers(question))
            case McpInstallQuestion():
                item_id = f"mcp-deps-{self._translator.turn_id}"
                return _choice(scope, item_id, answers.install(question)) if self._installs else None

    def _approval(self, scope: dict[str, str], question: ApprovalQuestion) -> _Form:
        item_id, reason = question.call_id, _reason(question)
        if question.agent:
            item_id, reason = f"{question.agent}-{question.call_id}", f"[agent {question.agent}] {reason}"
            self._agents_items[question.id] = item_id
        about = {**scope, "itemId": item_id, "startedAtMs": items.now_ms()}
        if question.files:
            changes = changes_in_patch(question.command, question.cwd) or tuple(
                events.FileChange(file, "update") for file in question.files
            )
            item = items.file_change(item_id, changes, "inProgress")
            self._translator.begin_item(item, of_agent=bool(question.agent))
            params = {**about, "reason": reason, "grantRoot": None}
            return _Form("item/fileChange/requestApproval", params, answers.approval_reader(question), _APPROVAL)
        started = items.command_started(item_id, question.command, question.cwd)
        self._translator.begin_item(started, of_agent=bool(question.agent))
        params = {
            **about,
            "kind": "command",
            "environmentId": None,
            "reason": reason,
            "command": question.command,
            "cwd": str(question.cwd),
            "commandActions": started["commandActions"],
            **({"proposedExecpolicyAmendment": list(question.pattern)} if question.pattern else {}),
            "availableDecisions": answers.decisions_for(question),
        }
        return _Form("item/commandExecution/requestApproval", params, answers.approval_reader(question), _APPROVAL)


def _choice(scope: dict[str, str], item_id: str, choice: answers.QuestionPayload) -> _Form:
    params = {**scope, "itemId": item_id, "questions": choice.questions, "isBlocking": True, "autoResolutionMs": None}
    return _Form("item/tool/requestUserInput", params, choice.read, refused=choice.refused)


def _reason(question: ApprovalQuestion) -> str:
    """Why the user is asked, followed by the model's justification, marked as such."""
    words = sanitize_line(question.justification)
    return f"{question.reason}; model: {words}" if words else question.reason

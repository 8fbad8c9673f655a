"""Sends the questions of one thread to the client as requests, and passes its answers to the session.

An answer that makes no sense is a no.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeAlias

from codex_py.protocol import events
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.questions import (
    ApprovalQuestion,
    ApprovalReply,
    ApprovalScope,
    ChoiceQuestion,
    FormReply,
    McpForm,
    McpInstallQuestion,
    ModelAnswers,
    ModelAsks,
    PermissionsQuestion,
    ProjectServersQuestion,
    Question,
    QuestionAnswer,
    SecretQuestion,
)
from codex_py.render.questions import MEMORY_NOTE, secret_text, word_project_servers
from codex_py.rollout.patch_text import changes_in_patch
from codex_py.server.app import items
from codex_py.server.app.event_translator import EventTranslator
from codex_py.server.messages import RequestId, read_form_content
from codex_py.server.peer import AppServerPeer
from codex_py.server.threads import LiveThread
from codex_py.text.sanitize import sanitize_line

_APPROVAL: Final = "waitingOnApproval"
_INPUT: Final = "waitingOnUserInput"


_AnswerReader: TypeAlias = Callable[[Mapping[str, Any]], QuestionAnswer | None]


class _Form(NamedTuple):
    """A request to the client, and the function that reads its answer; `refused` is used for an error."""

    method: str
    params: dict[str, Any]
    read: _AnswerReader
    flag: str = _INPUT
    refused: QuestionAnswer | None = None


class _QuestionPayload(NamedTuple):
    """Questions with options, and the function that reads the client's answer; `refused` is used if there is none."""

    questions: list[dict[str, Any]]
    read: _AnswerReader
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
                return _choice(scope, question.call_id, _tool_choice(question))
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
                    "permissions": _permissions_payload(question),
                }
                read = _permissions_reader(question)
                return _Form("item/permissions/requestApproval", params, read, _APPROVAL)
            case ChoiceQuestion(form=McpForm() as form):
                params = {**scope, "serverName": form.server, "_meta": None, **_form_payload(question.id, form)}
                return _Form("mcpServer/elicitation/request", params, _read_form)
            case ChoiceQuestion(asks=ModelAsks() as asks):
                item_id = f"{question.agent}-{asks.call_id}" if question.agent else asks.call_id
                return _choice(scope, item_id, _model_choice(asks))
            case ChoiceQuestion():
                return _choice(scope, question.id, _server_choice(question))
            case SecretQuestion():
                return _choice(scope, question.id, _secret_choice(question))
            case ProjectServersQuestion():
                return _choice(scope, question.id, _project_servers_choice(question))
            case McpInstallQuestion():
                item_id = f"mcp-deps-{self._translator.turn_id}"
                return _choice(scope, item_id, _install_choice(question)) if self._installs else None

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
            return _Form("item/fileChange/requestApproval", params, _approval_reader(question), _APPROVAL)
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
            "availableDecisions": _decisions_for(question),
        }
        return _Form("item/commandExecution/requestApproval", params, _approval_reader(question), _APPROVAL)


def _choice(scope: dict[str, str], item_id: str, choice: _QuestionPayload) -> _Form:
    params = {**scope, "itemId": item_id, "questions": choice.questions, "isBlocking": True, "autoResolutionMs": None}
    return _Form("item/tool/requestUserInput", params, choice.read, refused=choice.refused)


def _reason(question: ApprovalQuestion) -> str:
    """Why the user is asked, followed by the model's justification, marked as such."""
    words = sanitize_line(question.justification)
    return f"{question.reason}; model: {words}" if words else question.reason


_INSTALL: Final = "skill_mcp_dependency_install"
_AMENDED: Final = "acceptWithExecpolicyAmendment"
_PATTERN: Final = "execpolicy_amendment"


def _decisions_for(question: ApprovalQuestion) -> list[Any]:
    """The decisions that a client may make about a command."""
    decisions: list[Any] = ["accept"]
    if "session" in question.scopes:
        decisions.append("acceptForSession")
    if "always" in question.scopes and question.pattern:
        decisions.append({_AMENDED: {_PATTERN: list(question.pattern)}})
    return [*decisions, "decline", "cancel"]


def _approval_reader(question: ApprovalQuestion) -> _AnswerReader:
    """The function that reads the `decision` about a command or a patch."""

    def read(answer: Mapping[str, Any]) -> QuestionAnswer | None:
        match answer.get("decision"):
            case "accept":
                return "once"
            case "acceptForSession":
                return "session" if "session" in question.scopes else "once"
            case dict():
                amended = as_object(as_object(answer["decision"]).get(_AMENDED))
                words = as_list(amended.get(_PATTERN))
                if not words or "always" not in question.scopes or not all(isinstance(word, str) for word in words):
                    return None
                return ApprovalReply("always", tuple(words))
            case _:
                return None

    return read


def _tool_choice(question: ApprovalQuestion) -> _QuestionPayload:
    """A call of an MCP server's tool."""
    labels: dict[str, ApprovalScope] = {
        "Allow once": "once",
        "Allow for this session": "session",
        "Always allow": "always",
    }
    offered = {label: scope for label, scope in labels.items() if scope in question.scopes}
    text = f"{question.reason}: {question.command}"
    options = [(label, "") for label in offered] + [("Decline", "the call is not made")]
    question_id = f"mcp_tool_call_approval_{question.call_id}"
    return _single(_question_object(question_id, "Approve app tool call?", text, options), offered.get)


def _model_choice(asks: ModelAsks) -> _QuestionPayload:
    """All questions of one call of the model, with its ids; the user may also write an answer."""
    questions = [
        _question_object(
            question.id,
            question.header,
            question.question,
            [(it.label, it.description) for it in question.options],
            is_other=True,
        )
        for question in asks.questions
    ]

    def read(answer: Mapping[str, Any]) -> QuestionAnswer:
        return ModelAnswers(tuple(tuple(_all_answers(answer, question.id)) for question in asks.questions))

    return _QuestionPayload(questions, read, read({}))


def _server_choice(question: ChoiceQuestion) -> _QuestionPayload:
    """A choice that an MCP server asks for; the user may also write an answer."""
    options = [(option.label, option.description) for option in question.options]
    payload = _question_object(question.id, question.header, question.question, options, is_other=True)
    return _single(payload, lambda answer: answer)


def _form_payload(question_id: str, form: McpForm) -> dict[str, Any]:
    """The form or address that an MCP server asks with, as it was sent."""
    if form.url:
        return {"mode": "url", "message": form.message, "url": form.url, "elicitationId": question_id}
    schema: dict[str, Any] = {"type": "object", "properties": {}, **(form.schema or {})}
    return {"mode": "form", "message": form.message, "requestedSchema": schema}


def _read_form(answer: Mapping[str, Any]) -> FormReply | None:
    """Read the `action` on a form and its `content`."""
    match answer.get("action"):
        case "accept":
            return read_form_content(answer.get("content"))
        case "decline":
            return FormReply("decline")
        case _:
            return None


def _secret_choice(question: SecretQuestion) -> _QuestionPayload:
    text = f"{secret_text(question)} {MEMORY_NOTE}"
    payload = _question_object(question.id, question.name, text, None, is_secret=True)
    return _single(payload, lambda answer: answer or None)


def _project_servers_choice(question: ProjectServersQuestion) -> _QuestionPayload:
    wording = word_project_servers(question, str)
    text = "; ".join((*map(sanitize_line, wording.subject), *(fact.text for fact in wording.facts)))
    starts = [("Start", "now, and as long as they stay what they are", "yes")]
    if question.has_commands:
        starts[0] = ("Start", "in the sandbox, now and as long as they stay what they are", "yes")
        starts += [
            ("Start with network", "in the sandbox, with network access", "network"),
            ("Start outside", "outside the sandbox, as you", "outside"),
        ]
    never = ("Never", "not as they are now", "never")
    options = [(label, about) for label, about, _ in (*starts, ("Not now", "not in this session", ""), never)]
    meaning = {label: answer for label, _, answer in (*starts, never)}
    return _single(_question_object(question.id, wording.title, text, options), meaning.get)


def _install_choice(question: McpInstallQuestion) -> _QuestionPayload:
    names = ", ".join(sorted(server.name for server in question.servers))
    targets = "; ".join(f"{server.name}: {server.target}" for server in question.servers)
    text = f"The skills you named need MCP servers that are not configured: {names} ({targets}). Add them now?"
    options = [("Install", "adds them to config.toml and starts them"), ("Continue anyway", "goes on without them")]
    return _single(_question_object(_INSTALL, "Install MCP servers?", text, options), {"Install": "yes"}.get)


def _permissions_payload(question: PermissionsQuestion) -> dict[str, Any]:
    """The permissions that commands would get."""
    return {
        "network": {"enabled": True} if question.network else None,
        "fileSystem": {"read": None, "write": [str(directory) for directory in question.write]}
        if question.write
        else None,
    }


def _permissions_reader(question: PermissionsQuestion) -> _AnswerReader:
    """The function that reads a grant: it must cover everything that was asked for, or it counts as a no."""

    def read(answer: Mapping[str, Any]) -> str | None:
        granted = as_object(answer.get("permissions"))
        network = as_object(granted.get("network")).get("enabled") is True
        write = as_list(as_object(granted.get("fileSystem")).get("write"))
        if question.network and not network:
            return None
        return "yes" if {str(directory) for directory in question.write} <= {str(path) for path in write} else None

    return read


def _single(question: dict[str, Any], meaning: Callable[[str], str | None]) -> _QuestionPayload:
    """A single question; `meaning` is what its first answer means, a label or text that the user wrote."""

    def read(answer: Mapping[str, Any]) -> str | None:
        answers = _all_answers(answer, question["id"])
        return meaning(answers[0]) if answers else None

    return _QuestionPayload([question], read)


def _question_object(
    question_id: str,
    header: str,
    text: str,
    options: Sequence[tuple[str, str]] | None,
    *,
    is_other: bool = False,
    is_secret: bool = False,
) -> dict[str, Any]:
    return {
        "id": question_id,
        "header": header,
        "question": text,
        "isOther": is_other,
        "isSecret": is_secret,
        "options": None if options is None else [{"label": label, "description": about} for label, about in options],
    }


def _all_answers(answer: Mapping[str, Any], question_id: str) -> list[str]:
    """All answers to a question, labels and written text, up to the first that is not text."""
    answers = as_list(as_object(as_object(answer.get("answers")).get(question_id)).get("answers"))
    texts = takewhile(lambda text: isinstance(text, str), answers)
    return list(texts)

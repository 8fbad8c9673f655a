"""Puts the questions of a session to its client, and reads the answers: as permission requests, or as forms."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.questions import (
    ApprovalQuestion,
    ChoiceQuestion,
    FormReply,
    McpForm,
    McpInstallQuestion,
    PermissionsQuestion,
    ProjectServersQuestion,
    Question,
    SecretQuestion,
)
from codex_py.render.questions import (
    CARRY_OUT,
    CARRY_OUT_NO,
    CARRY_OUT_YES,
    NO_ANSWER,
    WRITE_ANSWER,
    QuestionWording,
    choice_title,
    secret_text,
    word_install,
    word_permissions,
    word_project_servers,
    word_scopes,
)
from codex_py.rollout.patch_text import changes_in_patch
from codex_py.server.acp.content import Json, change_locations, diff_content, ends, fenced, text_content
from codex_py.server.acp.tool_calls import ToolKind, command_title, patch_title
from codex_py.server.acp.updates import SessionUpdates
from codex_py.server.messages import read_form_content
from codex_py.server.peer import AcpPeer
from codex_py.server.threads import LiveThread
from codex_py.text.display import script_and_shell
from codex_py.text.sanitize import sanitize_line

PermissionOptionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]

# The option to write an answer, for clients with forms.
WRITE: Final = "write"


class PermissionOption(NamedTuple):
    """An option: `answer` is what the session gets when it is chosen."""

    id: str
    name: str
    kind: PermissionOptionKind
    answer: str | None = None


class PermissionRequest(NamedTuple):
    """A question as a client shows it: about which call, and with which options."""

    title: str
    kind: ToolKind
    choices: tuple[PermissionOption, ...]
    content: tuple[Json, ...] = ()
    details: Mapping[str, Any] = {}

    def options(self) -> list[Json]:
        return [{"optionId": offer.id, "name": offer.name, "kind": offer.kind} for offer in self.choices]


def permission_request_of(question: Question, *, writes: bool = False) -> PermissionRequest | None:
    """A question as a permission request; None where options cannot express it. `writes` offers a written answer."""
    match question:
        case ApprovalQuestion():
            return _approval(question)
        case PermissionsQuestion():
            wording = word_permissions(question, str)
            request = _worded(wording, "allow_once")
            title = f"Let commands {' and '.join(wording.subject)} for the rest of this turn"
            return request._replace(title=title, content=_notes(_justified(wording.justification)))
        case McpInstallQuestion():
            return _worded(word_install(question), "allow_always")
        case ProjectServersQuestion():
            return _worded(word_project_servers(question, str), "allow_always")
        case ChoiceQuestion():
            return _choice(question, writes=writes)
        case SecretQuestion():
            return None


def answer_of(request: PermissionRequest, outcome: object) -> PermissionOption | None:
    """The option that was chosen; None when none was, or the answer is invalid."""
    match as_object(outcome):
        case {"outcome": "selected", "optionId": str(chosen)}:
            return next((offer for offer in request.choices if offer.id == chosen), None)
        case _:
            return None


_NO: Final = PermissionOption("no", "No", "reject_once")


def _worded(wording: QuestionWording, yes: PermissionOptionKind) -> PermissionRequest:
    """A question in its standard wording; `yes` is the option kind of an approval."""
    kinds: dict[str | None, PermissionOptionKind] = {None: "reject_once", "never": "reject_always"}
    options = [
        PermissionOption(choice.value or "no", choice.label, kinds.get(choice.value, yes), choice.value)
        for choice in wording.choices
    ]
    subject = [f"`{sanitize_line(line)}`" for line in wording.subject]
    facts = [fact.text for fact in wording.facts]
    return PermissionRequest(wording.title, "other", tuple(options), _notes([*subject, *facts]))


def _justified(words: str) -> list[str]:
    return [f"Model: {sanitize_line(words)}"] if words else []


def _approval(question: ApprovalQuestion) -> PermissionRequest:
    offers = (*_scopes(question), _NO)
    reason = f"{sanitize_line(question.reason)}{' (outside the sandbox)' if question.outside else ''}"
    notes = [reason, *_justified(question.justification)]
    if question.server:
        return PermissionRequest(question.command, "other", offers, _notes(notes))
    if question.files:
        changes = changes_in_patch(question.command, question.cwd)
        locations = change_locations(changes) or [{"path": str(file)} for file in question.files]
        shown = diff_content(changes) or [text_content(fenced(ends(question.command), "diff"))]
        return PermissionRequest(
            patch_title(changes), "edit", offers, (*shown, *_notes(notes)), {"locations": locations}
        )
    script, shell = script_and_shell(question.command)
    raw_input = {"command": script, "cwd": str(question.cwd), **({"shell": shell} if shell else {})}
    shown = [text_content(fenced(ends(script), "sh"))] if "\n" in script else []
    return PermissionRequest(
        command_title(question.command), "execute", offers, (*shown, *_notes(notes)), {"rawInput": raw_input}
    )


def _scopes(question: ApprovalQuestion) -> Iterator[PermissionOption]:
    for scope, choice in zip(question.scopes, word_scopes(question), strict=True):
        name = f"{choice.label} ({choice.note})" if choice.note else choice.label
        yield PermissionOption(scope, name, "allow_once" if scope == "once" else "allow_always", scope)


def _choice(question: ChoiceQuestion, *, writes: bool) -> PermissionRequest:
    options = [
        PermissionOption(f"option_{index}", option.label, "allow_once", option.label)
        for index, option in enumerate(question.options)
    ]
    if writes:
        options.append(PermissionOption(WRITE, WRITE_ANSWER, "allow_once"))
    about = [f"- {option.label}: {option.description}" for option in question.options if option.description]
    return PermissionRequest(
        choice_title(question),
        "other",
        (*options, PermissionOption("no", NO_ANSWER, "reject_once")),
        _notes([question.question, *(["\n".join(about)] if about else [])]),
    )


def _notes(lines: Sequence[str]) -> tuple[Json, ...]:
    return (text_content("\n\n".join(lines)),) if lines else ()


_MAX_ANSWER_LENGTH: Final = 16 * 1024
_OF_SCHEMA: Final = ("title", "description", "required")


def answer_form(question: ChoiceQuestion) -> Json:
    """A form for a written answer to a question."""
    field = {"type": "string", "title": question.header or "Answer", "maxLength": _MAX_ANSWER_LENGTH}
    schema = {"type": "object", "properties": {"answer": field}, "required": ["answer"]}
    return {"mode": "form", "message": question.question, "requestedSchema": schema}


def read_answer(result: Mapping[str, Any] | None) -> str | None:
    """The written answer; None if there is none."""
    match result:
        case {"action": "accept", "content": content}:
            answer = as_object(content).get("answer")
            return answer[:_MAX_ANSWER_LENGTH].strip() or None if isinstance(answer, str) else None
        case _:
            return None


def server_form(form: McpForm) -> Json | None:
    """The form of an MCP server for the client; None where there are no fields, as for an address to open."""
    form_schema = form.schema or {}
    fields = {name: _field(as_object(field)) for name, field in as_object(form_schema.get("properties")).items()}
    if not fields:
        return None
    schema = {name: form_schema[name] for name in _OF_SCHEMA if name in form_schema}
    message = f"The MCP server {form.server} asks: {form.message}"
    return {"mode": "form", "message": message, "requestedSchema": {**schema, "type": "object", "properties": fields}}


def _field(field: Json) -> Json:
    """A field in this protocol's form, where titled choices are always `oneOf`."""
    values, names = as_list(field.get("enum")), as_list(field.get("enumNames"))
    if not names or len(names) != len(values):
        return field
    titled = [{"const": value, "title": str(name)} for value, name in zip(values, names, strict=True)]
    return {**{key: value for key, value in field.items() if key not in ("enum", "enumNames")}, "oneOf": titled}


def read_server_form(result: Mapping[str, Any] | None) -> FormReply:
    """The reply to an MCP server's form."""
    match result:
        case {"action": "accept", "content": content}:
            return read_form_content(content)
        case {"action": "decline"}:
            return FormReply("decline")
        case _:
            return FormReply("cancel")


_PLAN: Final = PermissionRequest(
    CARRY_OUT,
    "switch_mode",
    (
        PermissionOption("yes", CARRY_OUT_YES, "allow_once", "yes"),
        PermissionOption("no", CARRY_OUT_NO, "reject_once"),
    ),
)


class SessionQuestions:
    """Asks the client. `update` sends it an update; `is_stopped` says whether it has cancelled the work."""

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
        """Ask the client a question; its answer is passed to the session."""
        task = self._open[question.id] = self._thread.answer_by(question.id, self._ask(question))
        task.add_done_callback(lambda _: self._open.pop(question.id, None))

    def withdraw(self, question_id: str) -> None:
        """Withdraw a question whose answer is no longer needed."""
        if (task := self._open.pop(question_id, None)) is not None:
            task.cancel()

    async def plan_is_accepted(self, plan: str) -> bool:
        """Ask whether a plan is to be carried out."""
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
        """Show a question and wait for the choice. A question of a call leaves the call's end to its events."""
        calls, content = self._updates.calls, list(request.content)
        wire, update = calls.ask(call_id, request.title, request.kind, content=content, **request.details)
        if update is not None:
            self._update(update)
        call = {"toolCallId": wire, "title": request.title, "kind": request.kind, "status": "pending"}
        params = {
            "sessionId": self._thread.id,
            "toolCall": {**call, **request.details, "content": content},
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
        """Show a form; gives back what the user has filled in."""
        params = {"sessionId": self._thread.id, **form}
        return await self._peer.request("elicitation/create", params, is_stopped=self._is_stopped)


def _unseen(question: SecretQuestion) -> str:
    return (
        f"{secret_text(question)} This protocol has no way to ask for a secret: set it where codex-py is started, and"
        " begin a new session."
    )

"""Questions of a session as requests for permission, and what the user chose there as our answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from codex_py.protocol.encoding import as_object
from codex_py.protocol.questions import (
    ApprovalQuestion,
    ChoiceQuestion,
    McpInstallQuestion,
    PermissionsQuestion,
    ProjectServersQuestion,
    Question,
    SecretQuestion,
)
from codex_py.render.questions import (
    NO_ANSWER,
    WRITE_ANSWER,
    QuestionWording,
    choice_title,
    word_install,
    word_permissions,
    word_project_servers,
    word_scopes,
)
from codex_py.rollout.patch_text import changes_in_patch
from codex_py.server.acp.content import Json, change_locations, diff_content, ends, fenced, text_content
from codex_py.server.acp.tool_calls import ToolKind, command_title, patch_title
from codex_py.text.display import script_and_shell
from codex_py.text.sanitize import sanitize_line

PermissionOptionKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]

# The answer in words of the user's own, for clients that have a form for it.
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
    """How a question is put to the user; None for one that options cannot carry. `writes` offers an answer in words."""
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
    """The option a client says was chosen; None when none was, whatever it says instead."""
    match as_object(outcome):
        case {"outcome": "selected", "optionId": str(chosen)}:
            return next((offer for offer in request.choices if offer.id == chosen), None)
        case _:
            return None


_NO: Final = PermissionOption("no", "No", "reject_once")


def _worded(wording: QuestionWording, yes: PermissionOptionKind) -> PermissionRequest:
    """A question with its wording as it is; `yes` says how long a yes counts."""
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

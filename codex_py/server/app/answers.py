"""Questions in the protocol's words, and how the client's answers are read. An answer that makes no sense is a no."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple, TypeAlias

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
    QuestionAnswer,
    SecretQuestion,
)
from codex_py.render.questions import secret_text, word_project_servers
from codex_py.server.messages import read_form_content
from codex_py.text.sanitize import sanitize_line

_INSTALL: Final = "skill_mcp_dependency_install"
_AMENDED: Final = "acceptWithExecpolicyAmendment"
_PATTERN: Final = "execpolicy_amendment"


AnswerReader: TypeAlias = Callable[[Mapping[str, Any]], QuestionAnswer | None]


class QuestionPayload(NamedTuple):
    """Questions with options, and the function that reads the client's answer; `refused` is used if there is none."""

    questions: list[dict[str, Any]]
    read: AnswerReader
    refused: QuestionAnswer | None = None


def decisions_for(question: ApprovalQuestion) -> list[Any]:
    """The decisions that a client may make about a command."""
    decisions: list[Any] = ["accept"]
    if "session" in question.scopes:
        decisions.append("acceptForSession")
    if "always" in question.scopes and question.pattern:
        decisions.append({_AMENDED: {_PATTERN: list(question.pattern)}})
    return [*decisions, "decline", "cancel"]


def approval_reader(question: ApprovalQuestion) -> AnswerReader:
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


def tool_choice(question: ApprovalQuestion) -> QuestionPayload:
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


def model_asks(asks: ModelAsks) -> QuestionPayload:
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

    return QuestionPayload(questions, read, read({}))


def server_choice(question: ChoiceQuestion) -> QuestionPayload:
    """A choice that an MCP server asks for; the user may also write an answer."""
    options = [(option.label, option.description) for option in question.options]
    payload = _question_object(question.id, question.header, question.question, options, is_other=True)
    return _single(payload, lambda answer: answer)


def form_payload(question_id: str, form: McpForm) -> dict[str, Any]:
    """The form or address that an MCP server asks with, as it was sent."""
    if form.url:
        return {"mode": "url", "message": form.message, "url": form.url, "elicitationId": question_id}
    schema: dict[str, Any] = {"type": "object", "properties": {}, **(form.schema or {})}
    return {"mode": "form", "message": form.message, "requestedSchema": schema}


def read_form(answer: Mapping[str, Any]) -> FormReply | None:
    """Read the `action` on a form and its `content`."""
    match answer.get("action"):
        case "accept":
            return read_form_content(answer.get("content"))
        case "decline":
            return FormReply("decline")
        case _:
            return None


def secret(question: SecretQuestion) -> QuestionPayload:
    payload = _question_object(question.id, question.name, secret_text(question), None, is_secret=True)
    return _single(payload, lambda answer: answer or None)


def project_servers(question: ProjectServersQuestion) -> QuestionPayload:
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


def install(question: McpInstallQuestion) -> QuestionPayload:
    names = ", ".join(sorted(server.name for server in question.servers))
    targets = "; ".join(f"{server.name}: {server.target}" for server in question.servers)
    text = f"The skills you named need MCP servers that are not configured: {names} ({targets}). Add them now?"
    options = [("Install", "adds them to config.toml and starts them"), ("Continue anyway", "goes on without them")]
    return _single(_question_object(_INSTALL, "Install MCP servers?", text, options), {"Install": "yes"}.get)


def permissions_payload(question: PermissionsQuestion) -> dict[str, Any]:
    """The permissions that commands would get."""
    return {
        "network": {"enabled": True} if question.network else None,
        "fileSystem": {"read": None, "write": [str(directory) for directory in question.write]}
        if question.write
        else None,
    }


def permissions_reader(question: PermissionsQuestion) -> AnswerReader:
    """The function that reads a grant: it must cover everything that was asked for, or it counts as a no."""

    def read(answer: Mapping[str, Any]) -> str | None:
        granted = as_object(answer.get("permissions"))
        network = as_object(granted.get("network")).get("enabled") is True
        write = as_list(as_object(granted.get("fileSystem")).get("write"))
        if question.network and not network:
            return None
        return "yes" if {str(directory) for directory in question.write} <= {str(path) for path in write} else None

    return read


def _single(question: dict[str, Any], meaning: Callable[[str], str | None]) -> QuestionPayload:
    """A single question; `meaning` is what its first answer means, a label or text that the user wrote."""

    def read(answer: Mapping[str, Any]) -> str | None:
        answers = _all_answers(answer, question["id"])
        return meaning(answers[0]) if answers else None

    return QuestionPayload([question], read)


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

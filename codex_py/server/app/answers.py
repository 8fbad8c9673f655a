"""Questions as the protocol puts them, and what an answer of the client means. Whatever makes no sense is a no."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final, NamedTuple

from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.questions import (
    ApprovalQuestion,
    ApprovalReply,
    ApprovalScope,
    ChoiceQuestion,
    FormReply,
    McpForm,
    McpInstallQuestion,
    ModelAsks,
    PermissionsQuestion,
    ProjectServersQuestion,
    SecretQuestion,
    answered_all,
)
from codex_py.server.filled_forms import filled_in

_INSTALL: Final = "skill_mcp_dependency_install"
_AMENDED: Final = "acceptWithExecpolicyAmendment"
_PATTERN: Final = "execpolicy_amendment"


class Choosing(NamedTuple):
    """Questions with options, and what of the client's answer is the answer; `refused` is it where there is none."""

    told: list[dict[str, Any]]
    read: Callable[[Mapping[str, Any]], str | None]
    refused: str | None = None


def decisions_for(question: ApprovalQuestion) -> list[Any]:
    """What a client may decide about a command."""
    decisions: list[Any] = ["accept"]
    if "session" in question.scopes:
        decisions.append("acceptForSession")
    if "always" in question.scopes and question.pattern:
        decisions.append({_AMENDED: {_PATTERN: list(question.pattern)}})
    return [*decisions, "decline", "cancel"]


def approval_reader(question: ApprovalQuestion) -> Callable[[Mapping[str, Any]], str | None]:
    """Reads the `decision` about a command or a patch."""

    def read(answer: Mapping[str, Any]) -> str | None:
        match answer.get("decision"):
            case "accept":
                return _scope(question, "once")
            case "acceptForSession":
                return _scope(question, "session") or _scope(question, "once")
            case dict():
                amended = as_object(as_object(answer["decision"]).get(_AMENDED))
                words = as_list(amended.get(_PATTERN))
                if not words or "always" not in question.scopes or not all(isinstance(word, str) for word in words):
                    return None
                return ApprovalReply("always", tuple(words)).written()
            case _:
                return None

    return read


def tool_choice(question: ApprovalQuestion) -> Choosing:
    """A call of an MCP server's tool."""
    labels: dict[str, ApprovalScope] = {
        "Allow once": "once",
        "Allow for this session": "session",
        "Always allow": "always",
    }
    offered = {label: scope for label, scope in labels.items() if scope in question.scopes}
    text = f"{question.reason}: {question.command}"
    options = [(label, "") for label in offered] + [("Decline", "the call is not made")]
    return _choosing(f"mcp_tool_call_approval_{question.call_id}", "Approve app tool call?", text, options, offered.get)


def model_asks(asks: ModelAsks) -> Choosing:
    """All that one call of the model's asks, by its own ids; the user may write something else."""
    told = [
        _told(one.id, one.header, one.question, [(it.label, it.description) for it in one.options], is_other=True)
        for one in asks.questions
    ]

    def read(answer: Mapping[str, Any]) -> str | None:
        return answered_all([_all_said(answer, one.id) for one in asks.questions]).written()

    return Choosing(told, read, read({}))


def own_choice(question: ChoiceQuestion) -> Choosing:
    """Something an MCP server wants decided; the user may write something else."""
    options = [(one.label, one.description) for one in question.options]
    return _choosing(question.id, question.header, question.question, options, lambda said: said, is_other=True)


def form_told(question_id: str, form: McpForm) -> dict[str, Any]:
    """What an MCP server asks, as it asked."""
    if form.url:
        return {"mode": "url", "message": form.message, "url": form.url, "elicitationId": question_id}
    schema: dict[str, Any] = {"type": "object", "properties": {}, **(form.schema or {})}
    return {"mode": "form", "message": form.message, "requestedSchema": schema}


def read_form(answer: Mapping[str, Any]) -> str | None:
    """The `action` on a form, with its `content`."""
    match answer.get("action"):
        case "accept":
            return filled_in(answer.get("content")).written()
        case "decline":
            return FormReply("decline").written()
        case _:
            return None


def secret(question: SecretQuestion) -> Choosing:
    text = f"The skill `{question.skill}` needs the environment variable `{question.name}`. {question.why}".strip()
    told = _told(question.id, question.name, text, None, is_secret=True)

    def read(answer: Mapping[str, Any]) -> str | None:
        return _said(answer, question.id) or None

    return Choosing([told], read)


def project_servers(question: ProjectServersQuestion) -> Choosing:
    shown = "; ".join(_server(one.name, one.target, one.passes, changed=one.changed) for one in question.servers)
    text = f"The files of {question.project} name MCP servers: {shown}"
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
    return _choosing(question.id, "Start the project's MCP servers?", text, options, meaning.get)


def install(question: McpInstallQuestion) -> Choosing:
    names = ", ".join(sorted(one.name for one in question.servers))
    targets = "; ".join(f"{one.name}: {one.target}" for one in question.servers)
    text = f"The skills you named need MCP servers that are not configured: {names} ({targets}). Add them now?"
    options = [("Install", "adds them to config.toml and starts them"), ("Continue anyway", "goes on without them")]
    return _choosing(_INSTALL, "Install MCP servers?", text, options, {"Install": "yes"}.get)


def permissions_told(question: PermissionsQuestion) -> dict[str, Any]:
    """What commands would be allowed."""
    return {
        "network": {"enabled": True} if question.network else None,
        "fileSystem": {"read": None, "write": [str(folder) for folder in question.write]} if question.write else None,
    }


def permissions_reader(question: PermissionsQuestion) -> Callable[[Mapping[str, Any]], str | None]:
    """A yes has to grant all that was asked for: what is granted in part is not granted."""

    def read(answer: Mapping[str, Any]) -> str | None:
        granted = as_object(answer.get("permissions"))
        network = as_object(granted.get("network")).get("enabled") is True
        write = as_list(as_object(granted.get("fileSystem")).get("write"))
        if question.network and not network:
            return None
        return "yes" if {str(folder) for folder in question.write} <= {str(one) for one in write} else None

    return read


def _choosing(
    question_id: str,
    header: str,
    text: str,
    options: Sequence[tuple[str, str]],
    meaning: Callable[[str], str | None],
    *,
    is_other: bool = False,
) -> Choosing:
    told = _told(question_id, header, text, options, is_other=is_other)

    def read(answer: Mapping[str, Any]) -> str | None:
        said = _said(answer, question_id)
        return None if said is None else meaning(said)

    return Choosing([told], read)


def _told(
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


def _said(answer: Mapping[str, Any], question_id: str) -> str | None:
    """The first answer to a question: a label, or what the user wrote."""
    said = _all_said(answer, question_id)
    return said[0] if said else None


def _all_said(answer: Mapping[str, Any], question_id: str) -> list[str]:
    """All of them: labels, and what the user wrote beside. What is no text ends them."""
    said = as_list(as_object(as_object(answer.get("answers")).get(question_id)).get("answers"))
    return list(takewhile(_is_text, said))


def _is_text(said: object) -> bool:
    return isinstance(said, str)


def _scope(question: ApprovalQuestion, scope: ApprovalScope) -> ApprovalScope | None:
    return scope if scope in question.scopes else None


def _server(name: str, target: str, passes: Sequence[str], *, changed: bool) -> str:
    more = f", gets {', '.join(passes)} of your environment" if passes else ""
    return f"{name}: {target}{more}" + (" (not what you agreed to before)" if changed else "")

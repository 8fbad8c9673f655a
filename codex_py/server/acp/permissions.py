"""Questions of a session as requests for permission, and what the user chose there as our answers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from codex_py.protocol.encoding import as_object
from codex_py.protocol.questions import (
    ApprovalQuestion,
    ApprovalScope,
    ChoiceQuestion,
    McpInstallQuestion,
    PermissionsQuestion,
    ProjectServer,
    ProjectServersQuestion,
    Question,
    SecretQuestion,
)
from codex_py.rollout.patch_text import changes_in_patch
from codex_py.server.acp.content import Json, change_locations, diff_content, ends, fenced, text_content
from codex_py.server.acp.titles import command_title, patch_title
from codex_py.server.acp.tool_calls import ToolKind
from codex_py.text.sanitize import sanitize_line
from codex_py.text.shell_line import script_and_shell

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
            wanted = [
                *(["use the network"] if question.network else []),
                *(f"write below `{sanitize_line(str(server))}`" for server in question.write),
            ]
            return PermissionRequest(
                f"Let commands {' and '.join(wanted)} for the rest of this turn",
                "other",
                (PermissionOption("yes", "Yes, until the turn ends", "allow_once", "yes"), _NO),
                _notes([f"Model: {sanitize_line(question.reason)}"] if question.reason else []),
            )
        case McpInstallQuestion():
            names = ", ".join(sanitize_line(server.name) for server in question.servers)
            lines = [
                f"{sanitize_line(server.name)} ({server.transport}): `{sanitize_line(server.target)}`"
                for server in question.servers
            ]
            skills = dict.fromkeys(skill for server in question.servers for skill in server.skills)
            needed = (
                f"Needed by {', '.join(f'${sanitize_line(server)}' for server in skills)}; added to your config.toml"
            )
            return PermissionRequest(
                f"Add the MCP server {names}", "other", _installing("Yes, install now"), _notes([*lines, needed])
            )
        case ProjectServersQuestion():
            names = ", ".join(sanitize_line(server.name) for server in question.servers)
            lines = [line for server in question.servers for line in _server_lines(server)]
            project = sanitize_line(str(question.project))
            named = f"Named by the files of `{project}`; remembered until what would run changes"
            return PermissionRequest(
                f"Start the project's MCP server {names}", "other", _starting(question), _notes([*lines, named])
            )
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


def _approval(question: ApprovalQuestion) -> PermissionRequest:
    offers = (*_scopes(question), _NO)
    reason = f"{sanitize_line(question.reason)}{' (outside the sandbox)' if question.outside else ''}"
    notes = [reason, *([f"Model: {sanitize_line(question.justification)}"] if question.justification else [])]
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
    again = "these files" if question.files else "this command"
    pattern = f"`{sanitize_line(shlex.join(question.pattern))} …`"
    if question.server:
        again = pattern = "this tool"
    offers: dict[ApprovalScope, PermissionOption] = {
        "once": PermissionOption("once", "Yes, this once", "allow_once", "once"),
        "session": PermissionOption(
            "session", f"Yes, and {again} for the rest of this session", "allow_always", "session"
        ),
        "project": PermissionOption(
            "project", f"Yes, and {pattern} from now on in this project", "allow_always", "project"
        ),
        "always": PermissionOption("always", f"Yes, and {pattern} from now on everywhere", "allow_always", "always"),
    }
    return (offers[scope] for scope in question.scopes)


def _starting(question: ProjectServersQuestion) -> tuple[PermissionOption, ...]:
    if not question.has_commands:
        return _installing("Yes, start")
    more = (
        PermissionOption("network", "Yes, in the sandbox with network access", "allow_always", "network"),
        PermissionOption("outside", "Yes, outside the sandbox, as you", "allow_always", "outside"),
    )
    return _installing("Yes, start in the sandbox", *more)


def _installing(yes: str, *more: PermissionOption) -> tuple[PermissionOption, ...]:
    return (
        PermissionOption("yes", yes, "allow_always", "yes"),
        *more,
        PermissionOption("no", "No, not in this session", "reject_once"),
        PermissionOption("never", "Never", "reject_always", "never"),
    )


def _server_lines(server: ProjectServer) -> Iterator[str]:
    name = sanitize_line(server.name)
    if server.changed:
        yield f"{name} is not what you agreed to before"
    where = "runs on your machine" if server.transport == "stdio" else "will be connected to"
    yield f"{name} {where}: `{sanitize_line(server.target)}`"
    if server.cwd is not None:
        yield f"{name} runs in `{sanitize_line(str(server.cwd))}`"
    if server.passes:
        yield f"{name} gets {', '.join(map(sanitize_line, server.passes))} of your environment"
    if server.sets:
        yield f"{name} is given {', '.join(map(sanitize_line, server.sets))}"


def _choice(question: ChoiceQuestion, *, writes: bool) -> PermissionRequest:
    options = [
        PermissionOption(f"option_{index}", option.label, "allow_once", option.label)
        for index, option in enumerate(question.options)
    ]
    if writes:
        options.append(PermissionOption(WRITE, "Write an answer…", "allow_once"))
    about = [f"- {option.label}: {option.description}" for option in question.options if option.description]
    count = f" ({question.count})" if question.count else ""
    return PermissionRequest(
        (question.header or "A question") + count,
        "other",
        (*options, PermissionOption("no", "No answer", "reject_once")),
        _notes([question.question, *(["\n".join(about)] if about else [])]),
    )


def _notes(lines: Sequence[str]) -> tuple[Json, ...]:
    return (text_content("\n\n".join(lines)),) if lines else ()

"""Questions of a session as requests for permission, and what the user chose there as our answers."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from codex_py.core.past_turns import changes_in_patch
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
from codex_py.server.acp.content import Json, change_locations, diff_content, ends, fenced, text_content
from codex_py.server.acp.titles import command_title, patch_title
from codex_py.server.acp.tool_calls import Kind
from codex_py.text.sanitize import sanitize_line
from codex_py.text.shell_line import script_and_shell

OfferKind: TypeAlias = Literal["allow_once", "allow_always", "reject_once", "reject_always"]

# The answer in words of the user's own, for clients that have a form for it.
WRITE: Final = "write"


class Offer(NamedTuple):
    """An option: `answer` is what the session is told when it is chosen."""

    id: str
    name: str
    kind: OfferKind
    answer: str | None = None


class Asked(NamedTuple):
    """A question as a client shows it: about which call, and with which options."""

    title: str
    kind: Kind
    offers: tuple[Offer, ...]
    content: tuple[Json, ...] = ()
    details: Mapping[str, Any] = {}

    def options(self) -> list[Json]:
        return [{"optionId": one.id, "name": one.name, "kind": one.kind} for one in self.offers]


def asked_about(question: Question, *, writes: bool = False) -> Asked | None:
    """How a question is put to the user; None for one that options cannot carry. `writes` offers an answer in words."""
    match question:
        case ApprovalQuestion():
            return _approval(question)
        case PermissionsQuestion():
            wanted = [
                *(["use the network"] if question.network else []),
                *(f"write below `{sanitize_line(str(one))}`" for one in question.write),
            ]
            return Asked(
                f"Let commands {' and '.join(wanted)} for the rest of this turn",
                "other",
                (Offer("yes", "Yes, until the turn ends", "allow_once", "yes"), _NO),
                _notes([f"Model: {sanitize_line(question.reason)}"] if question.reason else []),
            )
        case McpInstallQuestion():
            names = ", ".join(sanitize_line(one.name) for one in question.servers)
            lines = [
                f"{sanitize_line(one.name)} ({one.transport}): `{sanitize_line(one.target)}`"
                for one in question.servers
            ]
            skills = dict.fromkeys(skill for one in question.servers for skill in one.skills)
            needed = f"Needed by {', '.join(f'${sanitize_line(one)}' for one in skills)}; added to your config.toml"
            return Asked(
                f"Add the MCP server {names}", "other", _installing("Yes, install now"), _notes([*lines, needed])
            )
        case ProjectServersQuestion():
            names = ", ".join(sanitize_line(one.name) for one in question.servers)
            lines = [line for one in question.servers for line in _server_lines(one)]
            project = sanitize_line(str(question.project))
            named = f"Named by the files of `{project}`; remembered until what would run changes"
            return Asked(
                f"Start the project's MCP server {names}", "other", _starting(question), _notes([*lines, named])
            )
        case ChoiceQuestion():
            return _choice(question, writes=writes)
        case SecretQuestion():
            return None


def answer_of(asked: Asked, outcome: object) -> Offer | None:
    """The option a client says was chosen; None when none was, whatever it says instead."""
    match as_object(outcome):
        case {"outcome": "selected", "optionId": str(chosen)}:
            return next((one for one in asked.offers if one.id == chosen), None)
        case _:
            return None


_NO: Final = Offer("no", "No", "reject_once")


def _approval(question: ApprovalQuestion) -> Asked:
    offers = (*_scopes(question), _NO)
    reason = f"{sanitize_line(question.reason)}{' (outside the sandbox)' if question.outside else ''}"
    notes = [reason, *([f"Model: {sanitize_line(question.justification)}"] if question.justification else [])]
    if question.server:
        return Asked(question.command, "other", offers, _notes(notes))
    if question.files:
        changes = changes_in_patch(question.command, question.cwd)
        places = change_locations(changes) or [{"path": str(file)} for file in question.files]
        shown = diff_content(changes) or [text_content(fenced(ends(question.command), "diff"))]
        return Asked(patch_title(changes), "edit", offers, (*shown, *_notes(notes)), {"locations": places})
    script, shell = script_and_shell(question.command)
    given = {"command": script, "cwd": str(question.cwd), **({"shell": shell} if shell else {})}
    shown = [text_content(fenced(ends(script), "sh"))] if "\n" in script else []
    return Asked(command_title(question.command), "execute", offers, (*shown, *_notes(notes)), {"rawInput": given})


def _scopes(question: ApprovalQuestion) -> Iterator[Offer]:
    again = "these files" if question.files else "this command"
    pattern = f"`{sanitize_line(shlex.join(question.pattern))} …`"
    if question.server:
        again = pattern = "this tool"
    offers: dict[ApprovalScope, Offer] = {
        "once": Offer("once", "Yes, this once", "allow_once", "once"),
        "session": Offer("session", f"Yes, and {again} for the rest of this session", "allow_always", "session"),
        "project": Offer("project", f"Yes, and {pattern} from now on in this project", "allow_always", "project"),
        "always": Offer("always", f"Yes, and {pattern} from now on everywhere", "allow_always", "always"),
    }
    return (offers[scope] for scope in question.scopes)


def _starting(question: ProjectServersQuestion) -> tuple[Offer, ...]:
    if not question.has_commands:
        return _installing("Yes, start")
    more = (
        Offer("network", "Yes, in the sandbox with network access", "allow_always", "network"),
        Offer("outside", "Yes, outside the sandbox, as you", "allow_always", "outside"),
    )
    return _installing("Yes, start in the sandbox", *more)


def _installing(yes: str, *more: Offer) -> tuple[Offer, ...]:
    return (
        Offer("yes", yes, "allow_always", "yes"),
        *more,
        Offer("no", "No, not in this session", "reject_once"),
        Offer("never", "Never", "reject_always", "never"),
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


def _choice(question: ChoiceQuestion, *, writes: bool) -> Asked:
    options = [
        Offer(f"option_{place}", one.label, "allow_once", one.label) for place, one in enumerate(question.options)
    ]
    if writes:
        options.append(Offer(WRITE, "Write an answer…", "allow_once"))
    about = [f"- {one.label}: {one.description}" for one in question.options if one.description]
    count = f" ({question.count})" if question.count else ""
    return Asked(
        (question.header or "A question") + count,
        "other",
        (*options, Offer("no", "No answer", "reject_once")),
        _notes([question.question, *(["\n".join(about)] if about else [])]),
    )


def _notes(lines: Sequence[str]) -> tuple[Json, ...]:
    return (text_content("\n\n".join(lines)),) if lines else ()

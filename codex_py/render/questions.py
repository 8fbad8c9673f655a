"""The wording of a session's questions: title, subject and choices. Front ends decide how to show them.

Texts from outside are sanitized, except in `subject`, which a front end quotes as a whole.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.protocol.questions import (
    ApprovalQuestion,
    ApprovalScope,
    ChoiceQuestion,
    McpInstallQuestion,
    PermissionsQuestion,
    ProjectServer,
    ProjectServersQuestion,
    SecretQuestion,
)
from codex_py.text.sanitize import sanitize_line

WRITE_ANSWER: Final = "Write an answer…"
NO_ANSWER: Final = "No answer"
CARRY_OUT: Final = "Carry out this plan?"
CARRY_OUT_YES: Final = "Yes, leave plan mode and do it"
CARRY_OUT_NO: Final = "No, go on planning"


class Choice(NamedTuple):
    """A choice: its `value` for the session, None for a no, and the key that selects it in a terminal."""

    value: str | None
    label: str
    note: str = ""
    key: str = ""


class Fact(NamedTuple):
    text: str
    is_warning: bool = False


class QuestionWording(NamedTuple):
    """A question. `subject` is what an approval allows, in lines; the choice without a value is the default.

    `justification` is the model's reason for asking.
    """

    title: str
    subject: tuple[str, ...]
    facts: tuple[Fact, ...]
    choices: tuple[Choice, ...]
    justification: str = ""


def word_permissions(question: PermissionsQuestion, show_path: Callable[[Path], str]) -> QuestionWording:
    """Whether commands may do more."""
    network = ("use the network",) if question.network else ()
    return QuestionWording(
        "Let commands do more for the rest of this turn?",
        (*network, *(sanitize_line(f"write below {show_path(directory)}") for directory in question.write)),
        (),
        (Choice("yes", "Yes, until the turn ends", key="y"), Choice(None, "No", key="n")),
        sanitize_line(question.reason),
    )


def word_install(question: McpInstallQuestion) -> QuestionWording:
    """Whether MCP servers are added to the configuration."""
    servers = question.servers
    is_single = len(servers) == 1
    skills = list(dict.fromkeys(skill for server in servers for skill in server.skills))
    transports = {server.transport for server in servers}
    facts = [Fact(sanitize_line(f"needed by {', '.join(f'${skill}' for skill in skills)}"))]
    facts += [Fact("a command will run on your machine", True)] if "stdio" in transports else []
    facts += [Fact("an address will be connected to", True)] if transports - {"stdio"} else []
    return QuestionWording(
        sanitize_line(f"Add the MCP server {servers[0].name}?") if is_single else f"Add {len(servers)} MCP servers?",
        tuple(
            f"{server.transport if is_single else f'{server.name}, {server.transport}'}: {server.target}"
            for server in servers
        ),
        (*facts, Fact("added to your config.toml")),
        (
            Choice("yes", "Yes, install now", key="y"),
            Choice(None, "No, go on without", key="n"),
            Choice("never", "Never for this skill" if len(skills) == 1 else "Never for these skills", key="d"),
        ),
    )


def word_project_servers(question: ProjectServersQuestion, show_path: Callable[[Path], str]) -> QuestionWording:
    """Whether servers that the project names are started."""
    servers = question.servers
    is_single = len(servers) == 1
    name = sanitize_line(servers[0].name)
    facts = [fact for server in servers for fact in _server_facts(server, show_path)]
    project = sanitize_line(show_path(question.project))
    return QuestionWording(
        f"Start the project's MCP server {name}?" if is_single else "Start the project's MCP servers?",
        tuple(server.target if is_single else f"{server.name}: {server.target}" for server in servers),
        (Fact(f"named by the files of {project}"), *facts, Fact("remembered until what would run changes")),
        (
            *_start_choices(question),
            Choice(None, "No, not in this session", key="n"),
            Choice("never", "Never as it is now" if is_single else "Never as they are now", key="d"),
        ),
    )


def word_scopes(question: ApprovalQuestion) -> Iterator[Choice]:
    """The ways to say yes to an approval."""
    again = "the same files" if question.files else "exactly this command"
    pattern = sanitize_line(f"{shlex.join(question.pattern)} …")
    if question.server:
        again = pattern = "all calls of this tool"
    choices: dict[ApprovalScope, Choice] = {
        "once": Choice("once", "Yes, this once", key="y"),
        "session": Choice("session", "Yes, and for the rest of this session", again, "s"),
        "project": Choice("project", "Yes, and from now on in this project", pattern, "p"),
        "always": Choice("always", "Yes, and from now on everywhere", pattern, "a"),
    }
    return (choices[scope] for scope in question.scopes)


def choice_title(question: ChoiceQuestion) -> str:
    """The heading of a question with options, and its position among several."""
    return " · ".join(filter(None, [question.header or "A question", question.count]))


# What becomes of a value that the user types.
MEMORY_NOTE: Final = "The value is kept in memory for this session only; the model does not see it."


def secret_text(question: SecretQuestion) -> str:
    """The variable that a skill needs, and why, for front ends without a form of their own."""
    return f"The skill `{question.skill}` needs the environment variable `{question.name}`. {question.why}".strip()


def _start_choices(question: ProjectServersQuestion) -> Iterator[Choice]:
    if not question.has_commands:
        yield Choice("yes", "Yes, start", key="y")
        return
    yield Choice("yes", "Yes, start in the sandbox", key="y")
    yield Choice("network", "Yes, in the sandbox with network access", key="w")
    yield Choice("outside", "Yes, outside the sandbox, as you", key="o")


def _server_facts(server: ProjectServer, show_path: Callable[[Path], str]) -> Iterator[Fact]:
    name = sanitize_line(server.name)
    if server.changed:
        yield Fact(f"{name} is not what you agreed to before", True)
    where = "runs on your machine" if server.transport == "stdio" else "is an address that will be connected to"
    yield Fact(f"{name} {where}", True)
    if server.cwd is not None:
        yield Fact(sanitize_line(f"in {show_path(server.cwd)}"))
    if server.passes:
        yield Fact(sanitize_line(f"gets {', '.join(server.passes)} of your environment"), True)
    if server.sets:
        yield Fact(sanitize_line(f"with {', '.join(server.sets)}"))

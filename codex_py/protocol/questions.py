"""Questions a session puts to the user while a turn waits; a front end answers by the question's `id`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, TypeAlias

from codex_py.protocol.value import Value

ApprovalScope: TypeAlias = Literal["once", "session", "project", "always"]


class SecretQuestion(Value):
    """The value of an environment variable, to be typed unseen and kept in memory for this session only.

    `skill` is the skill that needs the variable `name`; `why` is what that skill says about it, or empty.
    """

    id: str
    name: str
    skill: str
    why: str = ""


class McpInstallQuestion(Value):
    """Whether to add the MCP server `name`, which `skills` need and the configuration lacks.

    `transport` is `streamable_http`, where `target` is the URL, or `stdio`, where it is the command that would run.
    """

    id: str
    name: str
    transport: str
    target: str
    skills: tuple[str, ...]


class Choice(Value):
    """One of the answers offered, and what choosing it leads to."""

    label: str
    description: str


class ChoiceQuestion(Value):
    """Something the model wants decided. The answer is the label of an option, or whatever else the user writes."""

    id: str
    header: str
    question: str
    options: tuple[Choice, ...]


class PermissionsQuestion(Value):
    """Whether commands may do more for the rest of the turn: use the network, write below these folders.

    `reason` is what the model says about it, or empty. Only the answer `yes` grants it.
    """

    id: str
    network: bool
    write: tuple[Path, ...]
    reason: str = ""


class ApprovalQuestion(Value):
    """Whether a command may run, or a patch be written. The answer is one of `scopes`; anything else is a no.

    `command` is the exact command line, shell-quoted, or the patch; hidden characters in it are marked, so it may be
    drawn as it is. `files` are what a patch changes, none for a command. `outside` says that a yes takes it out of
    the sandbox. `reason` is why it is asked about, `justification` what the model says. `pattern` is what a yes for
    the project or for good would allow: every command that begins with these words.
    """

    id: str
    call_id: str
    command: str
    cwd: Path
    reason: str
    justification: str = ""
    outside: bool = False
    files: tuple[Path, ...] = ()
    pattern: tuple[str, ...] = ()
    scopes: tuple[ApprovalScope, ...] = ("once", "session")


Question: TypeAlias = SecretQuestion | McpInstallQuestion | ChoiceQuestion | PermissionsQuestion | ApprovalQuestion

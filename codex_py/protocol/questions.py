"""Questions a session puts to the user while a turn waits; a front end answers by the question's `id`.

`agent` is the name of the agent that asks, empty where it is the session itself.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from codex_py.protocol.value import Value

ApprovalScope: TypeAlias = Literal["once", "session", "project", "always"]

_MAX_TEXT_LENGTH: Final = 4000


class SecretQuestion(Value):
    """The value of an environment variable, to be typed unseen and kept in memory for this session only.

    `skill` is the skill that needs the variable `name`; `why` is what that skill says about it, or empty.
    """

    id: str
    name: str
    skill: str
    why: str = ""
    agent: str = ""


class McpServerWanted(Value):
    """An MCP server that `skills` need and the configuration lacks.

    `transport` is `streamable_http`, where `target` is the URL, or `stdio`, where it is the command that would run.
    """

    name: str
    transport: str
    target: str
    skills: tuple[str, ...]


class McpInstallQuestion(Value):
    """Whether to add these MCP servers to the configuration.

    The answer is `yes`, or `never` for going on without them now and whenever these skills are used; anything else is
    a no for this session.
    """

    id: str
    servers: tuple[McpServerWanted, ...]
    agent: str = ""


class ProjectServer(Value):
    """An MCP server that a project's own files name. `target` is the URL, or the command that would run, with `cwd`.

    `passes` are the variables of the user's environment that it would get; `sets` those that it is given as written.
    `changed` says that the user has agreed to another one of this name.
    """

    name: str
    transport: str
    target: str
    cwd: Path | None = None
    passes: tuple[str, ...] = ()
    sets: tuple[str, ...] = ()
    changed: bool = False


class ProjectServersQuestion(Value):
    """Whether these MCP servers of the project may be started, now and as long as they stay exactly what they are.

    The answer is `yes` for those with a command to run in the sandbox, `network` to have network access there,
    `outside` to run as the user; or `never` for a no that is remembered. Anything else is a no for this session.
    """

    id: str
    project: Path
    servers: tuple[ProjectServer, ...]
    agent: str = ""

    @property
    def has_commands(self) -> bool:
        """Whether one of them is started here, and not just connected to."""
        return any(server.transport == "stdio" for server in self.servers)


class QuestionOption(Value):
    """One of the answers offered, and what choosing it leads to."""

    label: str
    description: str


class McpForm(Value):
    """What an MCP server asks, whole: the fields of a JSON schema, or a `url` to be opened."""

    server: str
    message: str
    schema: dict[str, Any] | None = None
    url: str = ""


class ModelQuestion(Value):
    """One of the questions of a call, by the id that the model gave it."""

    id: str
    header: str
    question: str
    options: tuple[QuestionOption, ...]


class ModelAsks(Value):
    """All that the model asks by one call, in its order. `ModelAnswers` answer all of it."""

    call_id: str
    questions: tuple[ModelQuestion, ...]


class ChoiceQuestion(Value):
    """Something the model wants decided. The answer is the label of an option, or whatever else the user writes.

    `count` says which of several it is: `1 of 3`. With a `form` it is the first of what an MCP server asks, and a
    `FormReply` answers all of that; with `asks` it is the first of what the model asks, and `ModelAnswers` do.
    """

    id: str
    header: str
    question: str
    options: tuple[QuestionOption, ...]
    agent: str = ""
    form: McpForm | None = None
    count: str = ""
    asks: ModelAsks | None = None


class FormReply(Value):
    """An answer to a whole form; `content` has the values of its fields when it is accepted."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class ModelAnswers(Value):
    """The answers to each of `ModelAsks`, in their order; one that is left open has none."""

    answers: tuple[tuple[str, ...], ...]


class PermissionsQuestion(Value):
    """Whether commands may do more for the rest of the turn: use the network, write below these directories.

    `reason` is what the model says about it, or empty. Only the answer `yes` grants it.
    """

    id: str
    network: bool
    write: tuple[Path, ...]
    reason: str = ""
    agent: str = ""


class FileChange(Value):
    """One file of a patch: its absolute path, what happens to it, where it moves, and the unified diff."""

    path: Path
    kind: Literal["add", "delete", "update"]
    move_path: Path | None = None
    diff: str = ""


class ApprovalMissing(Value):
    """An event: a call was refused only because it needs an approval, and nobody can be asked for one."""

    call_id: str
    reason: str


class ApprovalQuestion(Value):
    """Whether a command may run, or a patch be written. The answer is one of `scopes`; anything else is a no.

    An `ApprovalReply` is an answer too: it can change the pattern, and tell the model why not.

    `command` is the exact command line, shell-quoted, or the patch; hidden characters in it are marked, so it may be
    drawn as it is. `files` are what a patch changes, none for a command; `changes` is the same with the diffs,
    where they could be made before the question. `outside` says that it would run outside of
    the sandbox. `reason` is why it is asked about, `justification` what the model says. `pattern` is what an approval
    for the project or a lasting one allows: every command that begins with these words.

    With a `server` it is about a call of that MCP server's tool, and a longer approval covers all calls of the tool.
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
    agent: str = ""
    server: str = ""
    changes: tuple[FileChange, ...] = ()


class ApprovalReply(Value):
    """An answer to an approval question: the scope of the approval, or None for a refusal.

    A `pattern` replaces the question's in an approval for the project or a lasting one; `message` is what the model is
    told with a refusal. A refusal that is not the user's own has `refusal` instead: who declined, and why.
    """

    scope: ApprovalScope | None = None
    pattern: tuple[str, ...] = ()
    message: str = ""
    refusal: str = ""


def approval_reply(answer: QuestionAnswer | None, scopes: Sequence[ApprovalScope]) -> ApprovalReply:
    """Read an answer to an approval that offers `scopes`; an answer that grants none of them is a refusal."""
    match answer:
        case ApprovalReply(scope, pattern, message, refusal):
            texts = (text[:_MAX_TEXT_LENGTH].strip() for text in (message, refusal))
            return ApprovalReply(_scope(scope, scopes), pattern, *texts)
        case _:
            return ApprovalReply(_scope(answer, scopes))


def answer_text(answer: QuestionAnswer | None) -> str | None:
    """The answer in words; None where there is none, or it is one to a form."""
    return answer if isinstance(answer, str) else None


def _scope(word: object, scopes: Sequence[ApprovalScope]) -> ApprovalScope | None:
    return next((scope for scope in scopes if scope == word), None)


Question: TypeAlias = (
    SecretQuestion
    | McpInstallQuestion
    | ProjectServersQuestion
    | ChoiceQuestion
    | PermissionsQuestion
    | ApprovalQuestion
)
# A text is the label that was chosen, the scope of an approval, or what the user wrote.
QuestionAnswer: TypeAlias = str | ApprovalReply | FormReply | ModelAnswers
AskUser: TypeAlias = Callable[[Question], Awaitable[QuestionAnswer | None]]

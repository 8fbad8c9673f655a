"""Questions a session puts to the user while a turn waits; a front end answers by the question's `id`.

`agent` is the name of the agent that asks, empty where it is the session itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from codex_py.protocol.encoding import as_list, as_object, decode_json, encode_json
from codex_py.protocol.value import Value

ApprovalScope: TypeAlias = Literal["once", "session", "project", "always"]

_MAX_TEXT_LENGTH: Final = 4000
_ANSWERS: Final = "answers"


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
    """All that the model asks by one call, in its order. A `FormReply` to it is what `answer_all` makes."""

    call_id: str
    questions: tuple[ModelQuestion, ...]


class ChoiceQuestion(Value):
    """Something the model wants decided. The answer is the label of an option, or whatever else the user writes.

    `count` says which of several it is: `1 of 3`. With a `form` it is the first of what an MCP server asks, with `asks`
    the first of what the model does: a `FormReply` in writing answers all of that at once.
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

    def written(self) -> str:
        """The reply as the value of an `Answer` op."""
        return encode_json({"action": self.action, "content": self.content}).decode()


def read_form_reply(value: str | None) -> FormReply | None:
    """What `FormReply.written` has made; None for any other answer."""
    if value is None or not value.startswith('{"action":'):
        return None
    try:
        reply = as_object(decode_json(value))
    except ValueError:
        return None
    match reply.get("action"):
        case "accept" | "decline" | "cancel" as action:
            return FormReply(action, as_object(reply.get("content")) if action == "accept" else None)
        case _:
            return None


def answer_all(answers: Sequence[Sequence[str]]) -> FormReply:
    """The answers to each of `ModelAsks`, in their order; one that is left open has none."""
    return FormReply("accept", {_ANSWERS: [list(answer) for answer in answers]})


def read_answers(value: str | None, count: int) -> list[list[str]] | None:
    """What `answer_all` has made for so many questions; none at all where the user turned all of them down.

    None for any other answer, which is one to the first of them.
    """
    reply = read_form_reply(value)
    if reply is None:
        return None
    answers = [as_list(group) for group in as_list((reply.content or {}).get(_ANSWERS))[:count]]
    texts = [[text for text in group if isinstance(text, str)] for group in answers]
    return [*texts, *([] for _ in range(count - len(texts)))]


class PermissionsQuestion(Value):
    """Whether commands may do more for the rest of the turn: use the network, write below these directories.

    `reason` is what the model says about it, or empty. Only the answer `yes` grants it.
    """

    id: str
    network: bool
    write: tuple[Path, ...]
    reason: str = ""
    agent: str = ""


class ApprovalQuestion(Value):
    """Whether a command may run, or a patch be written. The answer is one of `scopes`; anything else is a no.

    An `ApprovalReply` in writing is an answer too: it can change the pattern, and tell the model why not.

    `command` is the exact command line, shell-quoted, or the patch; hidden characters in it are marked, so it may be
    drawn as it is. `files` are what a patch changes, none for a command. `outside` says that a yes takes it out of
    the sandbox. `reason` is why it is asked about, `justification` what the model says. `pattern` is what a yes for
    the project or for good would allow: every command that begins with these words.

    With a `server` it is about a call of that MCP server's tool, and a yes for longer is one to all calls of the tool.
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


class ApprovalReply(Value):
    """An answer to an approval: the scope of a yes, or None for a no.

    A `pattern` stands in place of the question's in a yes for the project or for good; `message` is what the model is
    told with a no. A no that is not the user's own has a `refusal` instead: who declined, and why.
    """

    scope: ApprovalScope | None = None
    pattern: tuple[str, ...] = ()
    message: str = ""
    refusal: str = ""

    def written(self) -> str | None:
        """The reply as the value of an `Answer` op."""
        if not (self.pattern or self.message or self.refusal):
            return self.scope
        fields = {"scope": self.scope, "pattern": list(self.pattern), "message": self.message}
        if self.refusal:
            fields["refusal"] = self.refusal
        return encode_json(fields).decode()


def read_reply(value: str | None, scopes: Sequence[ApprovalScope]) -> ApprovalReply:
    """What an answer says to an approval that offers `scopes`: one of them, or a reply in writing; else it is a no."""
    if value is None or not value.startswith("{"):
        return ApprovalReply(_scope(value, scopes))
    try:
        fields = as_object(decode_json(value))
    except ValueError:
        return ApprovalReply()
    words = as_list(fields.get("pattern"))
    return ApprovalReply(
        _scope(fields.get("scope"), scopes),
        tuple(words) if all(isinstance(word, str) for word in words) else (),
        _words(fields.get("message")),
        _words(fields.get("refusal")),
    )


def _words(value: object) -> str:
    return value[:_MAX_TEXT_LENGTH].strip() if isinstance(value, str) else ""


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

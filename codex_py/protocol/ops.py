"""Ops: everything a front end can ask of a session, and the input that a user hands to a turn."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeAlias

from codex_py.protocol.policy import ApprovalPolicy, SandboxMode, SandboxPolicy
from codex_py.protocol.questions import QuestionAnswer
from codex_py.protocol.value import Value


class TextElement(Value):
    """A part of a text, by its bytes in UTF-8, and what is shown for it."""

    start: int
    end: int
    placeholder: str


class TextInput(Value):
    """A text by the user. `elements` are the parts for which something shorter is shown, such as a paste.

    `task` is recorded with the message, so that a later run finds what became of the same task.
    """

    text: str
    elements: tuple[TextElement, ...] = ()
    task: str = ""


class ImageInput(Value):
    """A picture on disk, read when the turn starts."""

    path: Path


class ImageUrlInput(Value):
    """A picture at an `https:` address that the provider fetches, or in a `data:` address."""

    url: str


# In the order of the catalogue.
SkillScope: TypeAlias = Literal["repo", "user", "system", "admin"]


class SkillInput(Value):
    """A skill picked in a front end: its name, and the path of its `SKILL.md`."""

    name: str
    path: Path


UserInput: TypeAlias = TextInput | ImageInput | ImageUrlInput | SkillInput


class UserTurn(Value):
    """Start a turn. `output_schema` is a JSON schema the last message must satisfy."""

    input: tuple[UserInput, ...]
    output_schema: dict[str, Any] | None = None


class Steer(Value):
    """Say something to the running turn: the model reads it with its next request, and the turn goes on for it.

    A turn that ends without one, because it was stopped or failed, is followed by a turn that begins with what was
    said. Where no turn runs it begins one at once. `Steered` tells when it reaches the model.
    """

    input: tuple[UserInput, ...]


class UserShell(Value):
    """Run a command line as the user, outside every sandbox, and put its result into the context.

    It may run during a turn, whose next request then includes the result. An `Interrupt` stops it.
    """

    command: str


class AcceptPlan(Value):
    """Leave plan mode and begin a turn that carries the plan out; `instructions` is what the user wants besides."""

    instructions: str = ""


class Begin(Value):
    """Emit the settings and the warnings of the session now, not when the first turn begins."""


class Interrupt(Value):
    """Stop the running turn; what was done is kept, what was not is answered `aborted`."""


class StopWork(Value):
    """Stop the running turn, the agents and every command; it is carried out when none of them runs any more."""


class Compact(Value):
    """Replace the history by a summary and by what must not be lost; `focus` is what the summary should dwell on."""

    focus: str = ""


class OverrideTurnContext(Value):
    """Other settings from the next turn on; None leaves one as it is. The model is sent an item for each change.

    A model may be named `PROVIDER/MODEL`; with a `provider` its name is taken as it is. Another model brings its own
    effort along, unless one is given; an empty one is the model's own. A sandbox is a policy, or a mode with what the
    configuration says of it. In plan mode (`plan`) nothing is written: commands run in a read-only sandbox, whatever
    the other settings say, and nobody is asked about more.
    """

    model: str | None = None
    provider: str | None = None
    effort: str | None = None
    summary: str | None = None
    sandbox: SandboxMode | SandboxPolicy | None = None
    approval: ApprovalPolicy | None = None
    cwd: Path | None = None
    plan: bool | None = None


class ReloadSkills(Value):
    """Forget the loaded skills: the next turn reads all of them again."""


class AnswerQuestion(Value):
    """The user's answer to a question, None for no answer."""

    question_id: str
    value: QuestionAnswer | None


Op: TypeAlias = (
    UserTurn
    | Steer
    | UserShell
    | AcceptPlan
    | Begin
    | Interrupt
    | StopWork
    | Compact
    | OverrideTurnContext
    | ReloadSkills
    | AnswerQuestion
)

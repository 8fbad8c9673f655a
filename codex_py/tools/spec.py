"""The interface of tools: the context they get with a call, and their output."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from codex_py.errors import ToolError
from codex_py.protocol.encoding import decode_json
from codex_py.protocol.events import Event
from codex_py.protocol.items import ToolCall, ToolType
from codex_py.protocol.ops import UserInput
from codex_py.protocol.policy import ApprovalPolicy, SandboxPolicy
from codex_py.protocol.questions import AskUser
from codex_py.protocol.status import AgentState
from codex_py.protocol.value import Value
from codex_py.tools.arguments import read_arguments

if TYPE_CHECKING:
    from codex_py.process.manager import ProcessManager
    from codex_py.sandbox.command import Sandbox
    from codex_py.shell.command_line import CommandLine
    from codex_py.shell.reader import CommandLineReader
    from codex_py.tools.approval import Approvals


NO_AGENTS: Final = "agents are not available in this session: do the work yourself"
PLANNING: Final = "in plan mode nothing is written until the user has accepted the plan"


class SpawnRequest(Value):
    """The model's request for a new agent; without `model` it uses that of the session.

    `skills` names skills to load first, `fork` says that it begins with the history of its parent.
    """

    task: tuple[UserInput, ...]
    role: str = ""
    model: str | None = None
    effort: str | None = None
    skills: tuple[str, ...] = ()
    fork: bool = False


class SkillCall(Value):
    """The model's request for a skill by its name; `arguments` is what it is to be used on, "" for nothing."""

    name: str
    arguments: str = ""


class AgentControl(Protocol):
    """Starts sessions for the model, and talks to them. A target is an agent's id or its name.

    What an agent may do comes from the session that starts it: nothing here can widen it. All of it raises `ToolError`.
    """

    async def spawn(self, request: SpawnRequest) -> AgentState:
        """Start an agent; it works on when this returns."""
        raise ToolError(NO_AGENTS)

    async def send(self, target: str, inputs: tuple[UserInput, ...], *, interrupt: bool) -> AgentState:
        """Send an agent a message; with `interrupt` it drops what it does. Gives back its state before."""
        raise ToolError(NO_AGENTS)

    async def wait(self, targets: Sequence[str], seconds: float) -> Sequence[AgentState]:
        """Wait until one of them is no longer at work: those that are not, in the order given; none after so long."""
        raise ToolError(NO_AGENTS)

    async def close(self, target: str) -> AgentState:
        """Stop an agent and all it has started; its state before."""
        raise ToolError(NO_AGENTS)

    def find(self, target: str) -> AgentState | None:
        """The agent as it is now; None when there is none."""
        return None

    def states(self) -> Sequence[AgentState]:
        """Every agent of the session, the oldest first, each followed by its own."""
        return ()


class CommandRunner(Protocol):
    """Runs the commands of tool calls; `fields` are the arguments of a call. All of it raises `ToolError`."""

    async def run_until_yield(
        self, fields: dict[str, Any], context: ToolContext, *, allow_login_shell: bool
    ) -> ToolOutput:
        """Run a command line until it ends or `yield_time_ms` is over; a patch in it is applied instead."""
        ...

    async def run_to_end(self, fields: dict[str, Any], context: ToolContext, *, allow_login_shell: bool) -> ToolOutput:
        """Run the command line, or the argument vector, in `command`; it is killed when it has not ended in time."""
        ...

    async def type_and_wait(self, fields: dict[str, Any], context: ToolContext, poll_ms: tuple[int, int]) -> ToolOutput:
        """Type, wait until the command ends or the time is over, and answer with the new output.

        `poll_ms` is the shortest and the longest time in milliseconds that a call without typing waits.
        """
        ...


class ToolContext(Value):
    """The state and services that a tool may use during one call; `commands` runs the command of one.

    `output_tokens` is the model's cap for one tool output; `env` is the environment tool processes get, already
    filtered by the policy. `ask` puts a question to the user and waits; it is None where nobody can answer. `widen`
    puts a policy the user agreed to in place of `sandbox_policy` for the rest of the turn. `approvals` is what the
    user has allowed and forbidden so far. `shortfall` is what the sandbox here cannot hold, unless the user has
    accepted that. `plan` says that the turn is one of plan mode: nothing may be written, whatever a rule or an answer
    would allow. `allowed` says that a hook, or the user asked by one, has agreed to the call: that saves the
    question about it, and lifts no sandbox. `fixed_path` is what a command finds its programs by, whatever a profile
    says; None where that is left to its shell. `agents` gives what starts agents, `use_skill` the text of a skill by
    its name, `search_skills` skills for a query or, with a name, passages of one. `before_write` returns when files may
    be changed.
    Everything here comes from the session, never from the call's arguments.
    """

    call_id: str
    cwd: Path
    sandbox_policy: SandboxPolicy
    approval: ApprovalPolicy
    sandbox: Sandbox
    processes: ProcessManager
    env: Mapping[str, str]
    output_tokens: int
    emit: Callable[[Event], None]
    command_lines: CommandLineReader
    commands: CommandRunner
    ask: AskUser | None = None
    widen: Callable[[SandboxPolicy], None] | None = None
    approvals: Approvals | None = None
    shortfall: str | None = None
    plan: bool = False
    allowed: bool = False
    fixed_path: str | None = None
    agents: Callable[[], AgentControl] | None = None
    use_skill: Callable[[SkillCall], Awaitable[str]] | None = None
    search_skills: Callable[[str, str | None, int], Awaitable[str]] | None = None
    before_write: Callable[[Sequence[Path]], Awaitable[None]] | None = None

    async def expect_write(self, paths: Sequence[Path] = ()) -> None:
        """Wait until the state before the turn is on record; `paths` are what a patch is about to write."""
        if self.before_write is not None:
            await self.before_write(paths)

    def read_command_line(self, text: str, directory: Path) -> CommandLine:
        """A command line as the call would run it, read once for all who judge it."""
        return self.command_lines.read(text, str(directory), self.env)


class ToolOutput(Value):
    """What the model reads: a text, or content parts (`input_text`, `input_image`) when `parts` is not empty.

    `crash` is set by the registry alone, for a bug in a tool: the call is answered and then the turn fails. `failure`
    is a line about the model that ends the turn in the same way. `ended` is the event that tells of the end of the
    call; it is emitted once the output is on disk.
    """

    text: str
    ok: bool = True
    parts: tuple[dict[str, Any], ...] = ()
    crash: Exception | None = None
    failure: str = ""
    ended: Event | None = None


class CallFailed(ToolError):
    """A failure whose call has an event of its own for its end."""

    def __init__(self, message: str, ended: Event) -> None:
        super().__init__(message)
        self.ended = ended


def failed_output(error: ToolError) -> ToolOutput:
    """The output for the model after a failure."""
    return ToolOutput(str(error), ok=False, ended=error.ended if isinstance(error, CallFailed) else None)


class OtherFields(Value):
    """Hooks see the arguments. `aliases` are names other programs have for the tool, `fields` their names of fields,
    each with ours.
    """

    aliases: tuple[str, ...] = ()
    fields: tuple[tuple[str, str], ...] = ()


class CommandField(Value):
    """Hooks see a command line, which is in this field: a text, or an argument vector."""

    name: str


class TypedText(Value):
    """Hooks see what is typed into a running command, which is in this field, as a command line."""

    name: str


class PatchText(Value):
    """Hooks see a patch, and the files it names."""


class EditedFile(Value):
    """Hooks see an edit of one file, under the name that other programs have for it, and a patch that shows it."""

    alias: str


HookView: TypeAlias = OtherFields | CommandField | TypedText | PatchText | EditedFile


class WantedChange(Value):
    """A change of files: a patch, or the fields of a plain edit, which `text` shows as a patch."""

    text: str
    tool: str
    fields: Mapping[str, Any] | None = None


class Tool:
    """A tool says everything about itself. Its spec is `NAME.json` in `spec_directory`.

    `parallel` says that calls may overlap with other parallel calls, `polls` that making the same call again and again
    is a legitimate way to wait. `aliases` are other names of fields, each with ours; `hook_view` is what hooks see;
    `other_names` are names that it is called by too.
    """

    name: str
    type: ToolType = "other"
    parallel: bool = False
    polls: bool = False
    aliases: tuple[tuple[str, str], ...] = ()
    other_names: tuple[str, ...] = ()
    hook_view: HookView = OtherFields()
    spec_directory = Path(__file__).parent

    def spec(self) -> dict[str, Any]:
        """The JSON shown to the model. Must be stable: it is part of the cached prefix."""
        return decode_json((self.spec_directory / f"{self.name}.json").read_bytes())

    def read(self, call: ToolCall) -> dict[str, Any]:
        """The arguments of a call, by the spec. Raises `ToolError` for those that do not fit."""
        return read_arguments(call, self.spec()["parameters"], self.aliases)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Do the work. Raise `ToolError` for failures the model can act on."""
        raise NotImplementedError


# What may stand around a call: it runs the tool or does not.
AroundCall: TypeAlias = Callable[[ToolCall, ToolContext, Tool], Awaitable[ToolOutput]]

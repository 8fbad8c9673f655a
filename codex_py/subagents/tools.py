"""The roles of a session, and the tools for its agents: to start, list, close, wait for and write to them.

What reads roles and starts agents is imported when it is needed: most sessions start none.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from codex_py.config.schema import Config
from codex_py.core.session_request import SessionRequest
from codex_py.core.turn_context import texts_of
from codex_py.errors import ToolError
from codex_py.paths import is_directory
from codex_py.protocol.encoding import encode_json, uuid7
from codex_py.protocol.events import AgentCallFinished, AgentCallStarted
from codex_py.protocol.items import ToolCall
from codex_py.protocol.ops import ImageInput, SkillInput, TextInput, UserInput
from codex_py.protocol.status import AgentState, AgentTool, status_payload
from codex_py.subagents.role_files import read_roles
from codex_py.subagents.roles import BUILT_IN, AgentRole, SessionRoles
from codex_py.text.display import first_words
from codex_py.text.tokens import truncate_middle
from codex_py.tools.arguments import read_arguments
from codex_py.tools.spec import NO_AGENTS, AgentControl, OtherFields, SpawnRequest, Tool, ToolContext, ToolOutput

# What an event shows of the prompt, in characters.
_SHOWN_PROMPT: Final = 8000
_USUAL_MS: Final = 30_000
_MAX_MS: Final = 3_600_000
_MAX_AGENTS: Final = 100
_TASK_SHOWN: Final = 200
# In place of a `message`: a form that other programs have and that is not shown.
_ITEMS: Final[Mapping[str, Any]] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("type", "text", "path", "name")},
        "required": ["type"],
    },
}


def session_roles(request: SessionRequest) -> SessionRoles:
    """The roles of a session: built-in, the user's, and those of a trusted project."""
    if not request.loaded.config.features.multi_agent:
        return SessionRoles({})
    entries = request.loaded.config.agents.roles
    directories: list[tuple[Path, Path | None]] = [(request.home / "agents", None)]
    root = request.loaded.project_root or request.cwd
    if request.loaded.trust == "trusted":
        directories.append((root / ".codex" / "agents", root))
    directories = [(path, inside) for path, inside in directories if is_directory(path)]
    if not (directories or entries):
        return SessionRoles({role.name: role for role in BUILT_IN})
    return read_roles(directories, entries)


def make_agent_tools(config: Config, roles: SessionRoles) -> tuple[Tool, ...]:
    """The tools for agents, in the order they are shown; none where the configuration switches agents off."""
    if not (config.features.multi_agent and config.agents.max_depth):
        return ()
    return (SpawnAgent(roles.roles), SendInput(), WaitAgent(), CloseAgent(), ListAgents())


@asynccontextmanager
async def report_agent_call(
    tool: AgentTool, context: ToolContext, *, targets: Sequence[str] = (), prompt: str | None = None
) -> AsyncGenerator[Callable[[Sequence[AgentState]], None]]:
    """Emit the events of a call about these subagents. The block gets a function that takes their states at its end."""
    spawner = spawner_of(context)
    known = [(target, spawner.find(target)) for target in targets]
    shown = None if prompt is None else prompt[:_SHOWN_PROMPT]
    ids = tuple(state.id if state else target for target, state in known)
    context.emit(AgentCallStarted(context.call_id, tool, ids, shown))

    def end(agents: Sequence[AgentState], error: str | None = None) -> None:
        context.emit(AgentCallFinished(context.call_id, tool, tuple(agents), shown, error))

    ended: list[AgentState] = []
    try:
        yield ended.extend
    except ToolError as error:
        end([state or AgentState(target, "", "", 0, "", "not_found") for target, state in known], str(error))
        raise
    except BaseException:
        # Interrupted: a call whose begin was emitted has its end emitted too.
        end([state for _, state in known if state], "interrupted")
        raise
    end(ended)


def spawner_of(context: ToolContext) -> AgentControl:
    """The spawner of agents. Raises `ToolError` when the session has none."""
    if context.agents is None:
        raise ToolError(NO_AGENTS)
    return context.agents()


class _AgentTool(Tool):
    type = "delegates"
    spec_directory = Path(__file__).parent


class _MessageTool(_AgentTool):
    """A tool that sends an agent a `message`, or `items`."""

    def read(self, call: ToolCall) -> dict[str, Any]:
        """The arguments of a call, with the `inputs` for the agent. Raises `ToolError`."""
        schema = self.spec()["parameters"]
        schema["properties"]["items"] = _ITEMS
        arguments = read_arguments(call, schema, self.aliases)
        return {**arguments, "inputs": _inputs_of(arguments.get("message"), arguments.get("items"))}


class SpawnAgent(_MessageTool):
    """`spawn_agent`, whose spec lists the roles."""

    name = "spawn_agent"
    parallel = True
    hook_view = OtherFields(("Task", "Agent"), (("prompt", "message"), ("subagent_type", "agent_type")))

    def __init__(self, roles: Mapping[str, AgentRole]) -> None:
        self._roles = roles

    def spec(self) -> dict[str, Any]:
        """The JSON shown to the model; the same for the same roles."""
        spec = super().spec()
        choice = spec["parameters"]["properties"]["agent_type"]
        choice["description"] += "".join(f"\n- `{role.name}`: {role.about}" for role in self._roles.values())
        return spec

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Start an agent and return its name at once. Raises `ToolError` for what cannot be started."""
        arguments = self.read(call)
        request = SpawnRequest(
            task=arguments["inputs"],
            role=arguments.get("agent_type", ""),
            model=arguments.get("model") or None,
            effort=arguments.get("reasoning_effort") or None,
            skills=arguments.get("skills", ()),
            fork=arguments.get("fork_context", False),
        )
        async with report_agent_call("spawn_agent", context, prompt="\n".join(texts_of(request.task))) as ended:
            state = await spawner_of(context).spawn(request)
            ended([state])
        return _as_output({"agent_id": state.id, "nickname": state.name})


class SendInput(_MessageTool):
    """`send_input`. Not in parallel: input sent in the same response counts before the wait starts."""

    name = "send_input"
    aliases = (("id", "target"),)
    hook_view = OtherFields(("SendMessage",), (("prompt", "message"),))

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Send it and return a receipt at once. Raises `ToolError` for an agent that does not exist."""
        arguments = self.read(call)
        target, inputs = arguments["target"], arguments["inputs"]
        prompt = "\n".join(texts_of(inputs))
        async with report_agent_call("send_input", context, targets=[target], prompt=prompt) as ended:
            ended([await spawner_of(context).send(target, inputs, interrupt=arguments.get("interrupt", False))])
        return _as_output({"submission_id": uuid7()})


class WaitAgent(_AgentTool):
    """`wait_agent`."""

    name = "wait_agent"
    polls = True
    aliases = (("ids", "targets"),)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Wait for the first of them; the status of all that have ended. Raises `ToolError` without a target."""
        arguments = self.read(call)
        targets = list(dict.fromkeys(arguments["targets"]))
        if not targets:
            raise ToolError("`targets` is empty: name the agents to wait for")
        spawner = spawner_of(context)
        seconds = min(arguments.get("timeout_ms", _USUAL_MS), _MAX_MS) / 1000
        async with report_agent_call("wait", context, targets=targets) as ended:
            states = await spawner.wait(targets, seconds)
            ended(states)
        # As the model has named them.
        target_names = {state.id if (state := spawner.find(target)) else target: target for target in targets}
        budget = context.output_tokens // max(1, len(states))
        statuses = {target_names.get(state.id, state.id): _status_of(state, budget) for state in states}
        return _as_output({"status": statuses, "timed_out": not states})


class CloseAgent(_AgentTool):
    """`close_agent`."""

    name = "close_agent"
    aliases = (("id", "target"),)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Stop an agent and return its status before. Raises `ToolError` for one that does not exist."""
        target = self.read(call)["target"]
        async with report_agent_call("close_agent", context, targets=[target]) as ended:
            before = await spawner_of(context).close(target)
            ended([before])
        return _as_output({"previous_status": _status_of(before, context.output_tokens)})


class ListAgents(_AgentTool):
    """`list_agents`: the last hundred agents of the session."""

    name = "list_agents"
    polls = True

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """List them, the oldest first."""
        self.read(call)
        states = spawner_of(context).states()[-_MAX_AGENTS:]
        budget = context.output_tokens // max(1, 2 * len(states))
        entries = [
            {
                "agent_id": state.id,
                "nickname": state.name,
                **({"agent_type": state.role} if state.role else {}),
                "task": first_words(state.task, _TASK_SHOWN),
                "agent_status": _status_of(state, budget),
            }
            for state in states
        ]
        return _as_output({"agents": entries})


AGENT_TOOLS: Final[tuple[type[Tool], ...]] = (SpawnAgent, SendInput, WaitAgent, CloseAgent, ListAgents)


def _inputs_of(message: str | None, items: Sequence[Mapping[str, str]] | None) -> tuple[UserInput, ...]:
    if message is not None and items:
        raise ToolError("give either `message` or `items`, not both")
    if message is None and not items:
        raise ToolError("`message` is missing")
    inputs = tuple(map(_input_of, items)) if items else (TextInput(message or ""),)
    if all(isinstance(content, TextInput) and not content.text.strip() for content in inputs):
        raise ToolError("an agent cannot be sent an empty `message`")
    return inputs


def _input_of(item: Mapping[str, str]) -> UserInput:
    match item:
        case {"type": "text", "text": text}:
            return TextInput(text)
        case {"type": "local_image", "path": path}:
            return ImageInput(Path(path))
        case {"type": "skill", "path": path}:
            return SkillInput(item.get("name") or Path(path).parent.name, Path(path))
        case {"type": "mention", "name": name}:
            return TextInput(f"${name}")
        case _:
            raise ToolError(f"an item of the type `{item['type']}` cannot be sent to an agent: use `text`")


def _status_of(state: AgentState, output_tokens: int) -> str | dict[str, Any]:
    """The status of an agent for the model, its last message cut to `output_tokens`."""
    message = None if state.message is None else truncate_middle(state.message, output_tokens)
    return status_payload(state.status, message)


def _as_output(answer: dict[str, Any]) -> ToolOutput:
    return ToolOutput(encode_json(answer).decode())

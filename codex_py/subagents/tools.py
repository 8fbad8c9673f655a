"""What runs the calls of the tools for agents: to start, list, close, wait for and write to them.

Imports pydantic: loaded at the first call of one of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from pydantic import AliasChoices, BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from codex_py.core.user_input import texts_of
from codex_py.errors import ToolError
from codex_py.protocol.encoding import encode_json, uuid7
from codex_py.protocol.events import AgentCallFinished, AgentCallStarted
from codex_py.protocol.items import ToolCall
from codex_py.protocol.ops import ImageInput, SkillInput, TextInput, UserInput
from codex_py.protocol.status import AgentState, AgentTool, status_payload
from codex_py.text.display import first_words
from codex_py.text.tokens import truncate_middle
from codex_py.tools.arguments import parse_arguments
from codex_py.tools.spec import AgentControl, RunCall, SpawnRequest, ToolContext, ToolOutput

# What an event shows of the prompt, in characters.
_SHOWN_PROMPT: Final = 8000


class ItemArguments(BaseModel):
    type: str
    text: str | None = None
    path: str | None = None
    name: str | None = None


class InputArguments(BaseModel):
    """A `message`, or `items` in its place, a form that other programs have and that is not shown."""

    message: str | None = None
    items: SkipJsonSchema[list[ItemArguments] | None] = None

    def to_inputs(self) -> tuple[UserInput, ...]:
        """The inputs for the subagent. Raises `ToolError` for none, and for both forms at once."""
        if self.message is not None and self.items:
            raise ToolError("give either `message` or `items`, not both")
        if self.items:
            inputs = tuple(_input_of(item) for item in self.items)
        elif self.message is not None:
            inputs = (TextInput(self.message),)
        else:
            raise ToolError("`message` is missing")
        if all(isinstance(content, TextInput) and not content.text.strip() for content in inputs):
            raise ToolError("an agent cannot be sent an empty `message`")
        return inputs


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
    """What starts agents. Raises `ToolError` where there is nothing that does."""
    if context.agents is None:
        raise ToolError("agents are not available in this session: do the work yourself")
    return context.agents()


def status_of(state: AgentState, output_tokens: int) -> str | dict[str, Any]:
    """The status of an agent for the model, its last word within so many tokens."""
    message = None if state.message is None else truncate_middle(state.message, output_tokens)
    return status_payload(state.status, message)


def as_output(answer: dict[str, Any]) -> ToolOutput:
    """An answer as JSON."""
    return ToolOutput(encode_json(answer).decode())


def _input_of(item: ItemArguments) -> UserInput:
    match item:
        case ItemArguments(type="text", text=str(text)):
            return TextInput(text)
        case ItemArguments(type="local_image", path=str(path)):
            return ImageInput(Path(path))
        case ItemArguments(type="skill", path=str(path)):
            return SkillInput(item.name or Path(path).parent.name, Path(path))
        case ItemArguments(type="mention", name=str(name)):
            return TextInput(f"${name}")
        case _:
            raise ToolError(f"an item of the type `{item.type}` cannot be sent to an agent: use `text`")


class SpawnAgentArguments(InputArguments):
    agent_type: str | None = None
    fork_context: bool = False
    skills: list[str] = Field(default_factory=list[str])
    model: str | None = None
    reasoning_effort: str | None = None


async def spawn_agent(call: ToolCall, context: ToolContext) -> ToolOutput:
    """Start an agent, and give back what it is called at once. Raises `ToolError` for what cannot be started."""
    arguments = parse_arguments(call, SpawnAgentArguments)
    request = SpawnRequest(
        task=arguments.to_inputs(),
        role=arguments.agent_type or "",
        model=arguments.model or None,
        effort=arguments.reasoning_effort or None,
        skills=tuple(arguments.skills),
        fork=arguments.fork_context,
    )
    async with report_agent_call("spawn_agent", context, prompt="\n".join(texts_of(request.task))) as ended:
        state = await spawner_of(context).spawn(request)
        ended([state])
    return as_output({"agent_id": state.id, "nickname": state.name})


class SendInputArguments(InputArguments):
    target: str = Field(validation_alias=AliasChoices("target", "id"))
    interrupt: bool = False


async def send_input(call: ToolCall, context: ToolContext) -> ToolOutput:
    """Hand it over and give back a receipt at once. Raises `ToolError` for an agent that there is not."""
    arguments = parse_arguments(call, SendInputArguments)
    inputs = arguments.to_inputs()
    prompt = "\n".join(texts_of(inputs))
    async with report_agent_call("send_input", context, targets=[arguments.target], prompt=prompt) as ended:
        ended([await spawner_of(context).send(arguments.target, inputs, interrupt=arguments.interrupt)])
    return as_output({"submission_id": uuid7()})


_USUAL_MS: Final = 30_000.0
_MAX_MS: Final = 3_600_000.0


class WaitAgentArguments(BaseModel):
    targets: list[str] = Field(validation_alias=AliasChoices("targets", "ids"))
    timeout_ms: float | None = None


async def wait_agent(call: ToolCall, context: ToolContext) -> ToolOutput:
    """Wait for the first of them, and tell the status of all that have ended. Raises `ToolError` without a target."""
    arguments = parse_arguments(call, WaitAgentArguments)
    targets = list(dict.fromkeys(arguments.targets))
    if not targets:
        raise ToolError("`targets` is empty: name the agents to wait for")
    spawner = spawner_of(context)
    seconds = min(_USUAL_MS if arguments.timeout_ms is None else arguments.timeout_ms, _MAX_MS) / 1000
    async with report_agent_call("wait", context, targets=targets) as ended:
        states = await spawner.wait(targets, seconds)
        ended(states)
    # As the model has named them.
    target_names = {state.id if (state := spawner.find(target)) else target: target for target in targets}
    budget = context.output_tokens // max(1, len(states))
    statuses = {target_names.get(state.id, state.id): status_of(state, budget) for state in states}
    return as_output({"status": statuses, "timed_out": not states})


class CloseAgentArguments(BaseModel):
    target: str = Field(validation_alias=AliasChoices("target", "id"))


async def close_agent(call: ToolCall, context: ToolContext) -> ToolOutput:
    """Stop it, and tell what it was doing before. Raises `ToolError` for an agent that there is not."""
    target = parse_arguments(call, CloseAgentArguments).target
    async with report_agent_call("close_agent", context, targets=[target]) as ended:
        before = await spawner_of(context).close(target)
        ended([before])
    return as_output({"previous_status": status_of(before, context.output_tokens)})


_MAX_AGENTS: Final = 100
_TASK_SHOWN: Final = 200


class ListAgentsArguments(BaseModel):
    """There are none."""


async def list_agents(call: ToolCall, context: ToolContext) -> ToolOutput:
    """The agents of the session, the last hundred of them."""
    parse_arguments(call, ListAgentsArguments)
    states = spawner_of(context).states()[-_MAX_AGENTS:]
    budget = context.output_tokens // max(1, 2 * len(states))
    entries = [
        {
            "agent_id": state.id,
            "nickname": state.name,
            **({"agent_type": state.role} if state.role else {}),
            "task": first_words(state.task, _TASK_SHOWN),
            "agent_status": status_of(state, budget),
        }
        for state in states
    ]
    return as_output({"agents": entries})


CALLS: Final[Mapping[str, RunCall]] = {
    "spawn_agent": spawn_agent,
    "send_input": send_input,
    "wait_agent": wait_agent,
    "close_agent": close_agent,
    "list_agents": list_agents,
}

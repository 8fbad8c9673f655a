"""What the tools for agents share: what an agent is told, the news of a call, and states as the model reads them.

Imports pydantic: loaded at the first call of one of them.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import SkipJsonSchema

from codex_py.errors import ToolError
from codex_py.protocol.agents import AgentState, AgentTool, status_payload
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.events import AgentCallFinished, AgentCallStarted
from codex_py.protocol.input import ImageInput, SkillInput, TextInput, UserInput
from codex_py.text.truncate import truncate_middle
from codex_py.tools.spec import AgentSpawner, ToolContext, ToolOutput

# What a call is about is shown, not sent: no more of it than somebody reads.
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


class AgentCall:
    """One call while it runs: tells that it began, and in the end which agents it was about."""

    def __init__(self, tool: AgentTool, context: ToolContext, prompt: str | None) -> None:
        self._tool: AgentTool = tool
        self._context = context
        self._prompt = None if prompt is None else prompt[:_SHOWN_PROMPT]

    def begin(self, targets: Sequence[str]) -> None:
        self._context.emit(AgentCallStarted(self._context.call_id, self._tool, tuple(targets), self._prompt))

    def end(self, agents: Sequence[AgentState], error: str | None = None) -> None:
        call_id = self._context.call_id
        self._context.emit(AgentCallFinished(call_id, self._tool, tuple(agents), self._prompt, error))


@asynccontextmanager
async def report_agent_call(
    tool: AgentTool, context: ToolContext, *, targets: Sequence[str] = (), prompt: str | None = None
) -> AsyncGenerator[Callable[[Sequence[AgentState]], None]]:
    """Emit the events of a call about these subagents. The block gets a function that takes their states at its end."""
    spawner = spawner_of(context)
    known = [(target, spawner.find(target)) for target in targets]
    call = AgentCall(tool, context, prompt)
    call.begin([state.id if state else target for target, state in known])
    ended: list[AgentState] = []
    try:
        yield ended.extend
    except ToolError as error:
        call.end([state or _missing(target) for target, state in known], str(error))
        raise
    except BaseException:
        # Interrupted: whoever hears that a call began hears of its end.
        call.end([state for _, state in known if state], "interrupted")
        raise
    call.end(ended)


def spawner_of(context: ToolContext) -> AgentSpawner:
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


def texts_in(inputs: Sequence[UserInput]) -> str:
    """The texts among the inputs for a subagent."""
    return "\n".join(item.text for item in inputs if isinstance(item, TextInput))


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


def _missing(target: str) -> AgentState:
    return AgentState(target, "", "", 0, "", "not_found")

"""The `request_user_input` tool: questions of the model to the user. Imports pydantic: loaded at the first call."""

from __future__ import annotations

from pydantic import BaseModel, Field

from codex_py.errors import ToolError
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.ids import uuid7
from codex_py.protocol.items import ToolCall
from codex_py.protocol.questions import Choice, ChoiceQuestion
from codex_py.tools.arguments import parse_arguments
from codex_py.tools.spec import ToolContext, ToolOutput

_NOBODY = (
    "request_user_input is not available: nobody can answer in this session; "
    "decide yourself, and say in your answer what you assumed"
)


class OptionArguments(BaseModel):
    label: str
    description: str


class QuestionArguments(BaseModel):
    id: str
    header: str
    question: str
    options: list[OptionArguments] = Field(min_length=1)


class RequestUserInputArguments(BaseModel):
    questions: list[QuestionArguments] = Field(min_length=1, max_length=3)


async def request_user_input(call: ToolCall, context: ToolContext) -> ToolOutput:
    """Ask one question after the other; the answers as JSON by question id, an empty list for one left unanswered.

    Raises `ToolError` for wrong arguments and where nobody can be asked.
    """
    arguments = parse_arguments(call, RequestUserInputArguments)
    if context.ask is None:
        raise ToolError(_NOBODY)
    asked = arguments.questions
    if len({one.id for one in asked}) < len(asked):
        raise ToolError("failed to parse function arguments: `questions` must each have an `id` of their own")
    answers: dict[str, dict[str, list[str]]] = {}
    for number, one in enumerate(asked, 1):
        count = f"{number} of {len(asked)}" if len(asked) > 1 else ""
        options = tuple(Choice(option.label, option.description) for option in one.options)
        said = await context.ask(ChoiceQuestion(uuid7(), one.header, one.question, options, count=count))
        answers[one.id] = {"answers": [] if said is None else [said]}
    return ToolOutput(encode_json({"answers": answers}).decode())

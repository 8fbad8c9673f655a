"""The `send_input` tool: something more for an agent. Imports pydantic: loaded at the first call."""

from __future__ import annotations

from pydantic import AliasChoices, Field

from codex_py.protocol.ids import uuid7
from codex_py.protocol.items import ToolCall
from codex_py.tools.agent_calls import InputArguments, as_output, report_agent_call, spawner_of, texts_in
from codex_py.tools.arguments import parse_arguments
from codex_py.tools.spec import ToolContext, ToolOutput


class SendInputArguments(InputArguments):
    target: str = Field(validation_alias=AliasChoices("target", "id"))
    interrupt: bool = False


async def send_input(call: ToolCall, context: ToolContext) -> ToolOutput:
    """Hand it over and give back a receipt at once. Raises `ToolError` for an agent that there is not."""
    arguments = parse_arguments(call, SendInputArguments)
    inputs = arguments.to_inputs()
    async with report_agent_call("send_input", context, targets=[arguments.target], prompt=texts_in(inputs)) as ended:
        ended([await spawner_of(context).send(arguments.target, inputs, interrupt=arguments.interrupt)])
    return as_output({"submission_id": uuid7()})

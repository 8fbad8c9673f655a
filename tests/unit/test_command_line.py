"""Arguments of commands are read without pydantic, by the rules of the tools that use it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.errors import ToolError
from codex_py.protocol.items import ToolCall
from codex_py.tools.arguments import parse_arguments
from codex_py.tools.command_line import CommandArguments, StdinArguments, command_of, read_command, read_text
from tests.support.argument_models import ExecCommandArguments, WriteStdinArguments

ODD = [
    None,
    True,
    False,
    0,
    1,
    -5,
    10**30,
    2.5,
    500.0,
    "",
    "x",
    "ü",
    "500.0",
    "12",
    "1.5",
    "yes",
    "OFF",
    "use_default",
    "require_escalated",
]
ODDER: list[Any] = [[], ["npm", "ci"], [1], {}, {"a": 1}]


def called(arguments: object) -> ToolCall:
    return ToolCall("c", "exec_command", json.dumps(arguments))


def outcome(read: Any, call: ToolCall) -> object:
    try:
        return read(call)
    except ToolError as error:
        return str(error)


def judged_command(call: ToolCall) -> CommandArguments:
    return command_of(parse_arguments(call, ExecCommandArguments).model_dump())


def judged_text(call: ToolCall) -> StdinArguments:
    return StdinArguments(**parse_arguments(call, WriteStdinArguments).model_dump())


@pytest.mark.parametrize("field", [*CommandArguments.__match_args__, "unknown"])
def test_a_command_is_read_as_pydantic_reads_it(field: str) -> None:
    for value in [*ODD, *ODDER]:
        for arguments in ({"cmd": "ls", field: value}, {field: value}):
            call = called(arguments)
            assert outcome(read_command, call) == outcome(judged_command, call), arguments


@pytest.mark.parametrize("field", [*StdinArguments.__match_args__, "unknown"])
def test_typed_text_is_read_as_pydantic_reads_it(field: str) -> None:
    for value in [*ODD, *ODDER]:
        for arguments in ({"session_id": 3, field: value}, {field: value}):
            call = called(arguments)
            assert outcome(read_text, call) == outcome(judged_text, call), arguments


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '"ls"', '{"cmd": "ls"} x'])
def test_what_is_no_object_is_told_alike(text: str) -> None:
    call = ToolCall("c", "exec_command", text)
    assert outcome(read_command, call) == outcome(judged_command, call)


@pytest.mark.parametrize("field", ["cmd", "workdir", "shell", "justification", "login", "prefix_rule"])
def test_half_a_surrogate_pair_is_refused_in_one_line(field: str) -> None:
    value = ["\ud800"] if field == "prefix_rule" else "\ud800"
    message = outcome(read_command, called({"cmd": "ls", field: value}))
    assert isinstance(message, str)
    assert message.startswith(f"failed to parse function arguments: `{field}")
    assert message.endswith("found `\\ud800`")

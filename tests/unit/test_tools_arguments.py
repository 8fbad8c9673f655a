"""Arguments are read by the schema that is shown, without pydantic, and as pydantic reads them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from codex_py.errors import ToolError
from codex_py.protocol.items import ToolCall
from codex_py.protocol.ops import SkillInput, TextInput
from codex_py.subagents.tools import SendInput
from codex_py.tools.ask_user import RequestUserInput
from codex_py.tools.exec_command import ExecCommand, WriteStdin
from codex_py.tools.session_tools import UpdatePlan
from codex_py.tools.spec import Tool
from tests.support.argument_models import (
    ExecCommandArguments,
    RequestUserInputArguments,
    UpdatePlanArguments,
    WriteStdinArguments,
    judged,
)

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


QUESTION: dict[str, Any] = {"id": "a", "header": "b", "question": "c", "options": [{"label": "d", "description": "e"}]}
STEP = {"step": "a", "status": "pending"}
# A tool, its model, and arguments that are right.
READ: list[tuple[Tool, type[BaseModel], dict[str, Any]]] = [
    (ExecCommand(), ExecCommandArguments, {"cmd": "ls"}),
    (WriteStdin(), WriteStdinArguments, {"session_id": 3}),
    (RequestUserInput(), RequestUserInputArguments, {"questions": [QUESTION]}),
    (UpdatePlan(), UpdatePlanArguments, {"plan": [STEP]}),
]


def called(arguments: object) -> ToolCall:
    return ToolCall("c", "a_tool", json.dumps(arguments))


def reader_of(model: type[BaseModel]) -> Callable[[ToolCall], object]:
    return lambda call: judged(call, model)


def outcome(read: Callable[[ToolCall], object], call: ToolCall) -> object:
    try:
        # An array is a tuple to one and a list to the other.
        return json.dumps(read(call))
    except ToolError as error:
        return str(error)


@pytest.mark.parametrize(("tool", "model", "right"), READ)
def test_arguments_are_read_as_pydantic_reads_them(tool: Tool, model: type[BaseModel], right: dict[str, Any]) -> None:
    for field in [*model.model_fields, "unknown"]:
        for value in [*ODD, *ODDER]:
            for arguments in ({**right, field: value}, {field: value}):
                call = called(arguments)
                kept = {name: value for name, value in arguments.items() if value is not None}
                assert outcome(tool.read, call) == outcome(reader_of(model), called(kept)), arguments


DEEP: list[tuple[object, object]] = [
    ([STEP, {"step": 5, "status": "done"}], [QUESTION, {**QUESTION, "options": []}, {"id": 1}]),
    ([{"status": "completed"}, "x", [1]], [QUESTION] * 4),
    ([], [{**QUESTION, "options": [{"label": 1}, 2]}]),
]


@pytest.mark.parametrize(("plan", "questions"), DEEP)
def test_faults_deep_inside_are_named_alike(plan: object, questions: object) -> None:
    call = called({"plan": plan, "questions": questions})
    assert outcome(UpdatePlan().read, call) == outcome(reader_of(UpdatePlanArguments), call)
    assert outcome(RequestUserInput().read, call) == outcome(reader_of(RequestUserInputArguments), call)


@pytest.mark.parametrize("text", ["", "[]", "{", "null", '"ls"', '{"cmd": "ls"} x'])
def test_what_is_no_object_is_reported_alike(text: str) -> None:
    call = ToolCall("c", "exec_command", text)
    # Each JSON reader has its own words for what is no JSON.
    ours, theirs = outcome(ExecCommand().read, call), outcome(reader_of(ExecCommandArguments), call)
    assert isinstance(ours, str)
    assert isinstance(theirs, str)
    assert ours.startswith(theirs)


@pytest.mark.parametrize("field", ["cmd", "workdir", "shell", "justification", "login", "prefix_rule"])
def test_half_a_surrogate_pair_is_refused_in_one_line(field: str) -> None:
    value = ["\ud800"] if field == "prefix_rule" else "\ud800"
    message = outcome(ExecCommand().read, called({"cmd": "ls", field: value}))
    assert isinstance(message, str)
    assert message.startswith(f"failed to parse function arguments: `{field}")
    assert message.endswith("found `\\ud800`")


@pytest.mark.parametrize("field", ["target", "id"])
def test_an_agent_is_sent_items_as_other_programs_write_them(field: str) -> None:
    items = [
        {"type": "text", "text": "look"},
        {"type": "skill", "path": "/s/lint/SKILL.md"},
        {"type": "mention", "name": "a"},
    ]
    arguments = SendInput().read(called({field: "agent-1", "items": items}))
    assert arguments["target"] == "agent-1"
    skill = SkillInput("lint", Path("/s/lint/SKILL.md"))
    assert arguments["inputs"] == (TextInput("look"), skill, TextInput("$a"))
    for wrong, message in [
        ({"items": [{"text": "a"}]}, "missing field `items.0.type`"),
        ({"items": [{"type": "text"}]}, "an item of the type `text` cannot be sent"),
        ({"items": items, "message": "a"}, "give either `message` or `items`"),
        ({}, "`message` is missing"),
    ]:
        assert message in str(outcome(SendInput().read, called({field: "agent-1", **wrong})))

"""What the model is shown of each tool, held against what is read of its calls."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from codex_py.protocol.encoding import as_object, decode_json
from codex_py.tools.apply_patch import ApplyPatch
from codex_py.tools.exec_command import ExecCommand
from codex_py.tools.lazy import make_hidden_tools, make_shown_tools
from codex_py.tools.registry import ToolRegistry
from codex_py.tools.request_permissions import RequestPermissionsArguments
from codex_py.tools.request_user_input import RequestUserInputArguments
from codex_py.tools.shell import ShellArguments
from codex_py.tools.shell_command import ShellCommandArguments
from codex_py.tools.spec import Tool
from codex_py.tools.update_plan import UpdatePlanArguments
from codex_py.tools.view_image import ViewImageArguments
from codex_py.tools.write_stdin import WriteStdin
from tests.support.argument_models import ExecCommandArguments, WriteStdinArguments

MODELS: dict[str, type[BaseModel]] = {
    "exec_command": ExecCommandArguments,
    "write_stdin": WriteStdinArguments,
    "update_plan": UpdatePlanArguments,
    "view_image": ViewImageArguments,
    "request_user_input": RequestUserInputArguments,
    "request_permissions": RequestPermissionsArguments,
    "shell": ShellArguments,
    "shell_command": ShellCommandArguments,
}
FIRST: list[Tool] = [ExecCommand(), WriteStdin(), ApplyPatch(freeform=False)]
SHOWN = [*FIRST, *make_shown_tools(pictures=True, questions=True, permissions=True)]
ALL = {tool.name: tool for tool in [*SHOWN, *make_hidden_tools(allow_login_shell=True)]}


def shape_of(shown: dict[str, Any]) -> dict[str, Any]:
    """A JSON schema without what is only said to the model."""
    kept = {key: shown[key] for key in ("type", "enum", "minItems", "maxItems") if key in shown}
    if "items" in shown:
        kept["items"] = shape_of(shown["items"])
    if shown["type"] == "object":
        assert shown["additionalProperties"] is False
        kept["properties"] = {name: shape_of(field) for name, field in shown["properties"].items()}
        kept["required"] = sorted(shown.get("required", []))
    return kept


def shape_read(schema: dict[str, Any], defs: dict[str, Any]) -> dict[str, Any]:
    """The same of what pydantic generates."""
    for wrapped in ("allOf", "anyOf"):
        if wrapped in schema:
            [schema] = [one for one in schema[wrapped] if one.get("type") != "null"]
    if "$ref" in schema:
        schema = defs[schema["$ref"].rpartition("/")[2]]
    kind = {"integer": "number"}.get(schema["type"], schema["type"])
    kept = {"type": kind} | {key: schema[key] for key in ("enum", "minItems", "maxItems") if key in schema}
    if "items" in schema:
        kept["items"] = shape_read(schema["items"], defs)
    if kind == "object":
        kept["properties"] = {name: shape_read(field, defs) for name, field in schema["properties"].items()}
        kept["required"] = sorted(schema.get("required", []))
    return kept


@pytest.mark.parametrize("name", sorted(MODELS))
def test_the_spec_shown_is_what_is_read(name: str) -> None:
    spec = ALL[name].spec()
    assert (spec["type"], spec["name"], spec["strict"]) == ("function", name, False)
    assert spec["description"]
    schema = MODELS[name].model_json_schema()
    assert shape_of(spec["parameters"]) == shape_read(schema, schema.get("$defs", {}))
    assert list(spec["parameters"]["properties"]) == list(schema["properties"])
    assert all(field["description"] for field in spec["parameters"]["properties"].values())


def test_every_tool_but_the_one_without_json_arguments_has_a_model() -> None:
    assert ALL.keys() - MODELS.keys() == {"apply_patch"}
    assert as_object(ALL["apply_patch"].spec()["parameters"])["required"] == ["input"]


def test_the_order_is_fixed_and_the_provider_s_own_come_last() -> None:
    hosted = {"type": "web_search", "external_web_access": False}
    registry = ToolRegistry(SHOWN, hidden=make_hidden_tools(allow_login_shell=True), hosted=[hosted])
    specs: list[dict[str, Any]] = decode_json(registry.encoded_specs)
    assert [spec.get("name", spec["type"]) for spec in specs] == [
        "exec_command",
        "write_stdin",
        "apply_patch",
        "update_plan",
        "view_image",
        "request_user_input",
        "request_permissions",
        "web_search",
    ]


def test_what_nobody_could_use_is_not_shown() -> None:
    tools = make_shown_tools(pictures=False, questions=False, permissions=False)
    assert [tool.name for tool in tools] == ["update_plan"]


def test_the_specs_stay_small() -> None:
    # They go along with every request; here is where a longer description shows.
    in_exec = ToolRegistry([*FIRST, *make_shown_tools(pictures=True, questions=False, permissions=False)])
    assert len(in_exec.encoded_specs) < 6000
    assert len(ToolRegistry(SHOWN).encoded_specs) < 8000

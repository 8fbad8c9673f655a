"""What the model is shown of each tool, held against what is read of its calls."""

from __future__ import annotations

from typing import Any

import pytest

from codex_py.protocol.encoding import decode_json
from codex_py.tools.apply_patch import ApplyPatch
from codex_py.tools.ask_user import RequestPermissions, RequestUserInput
from codex_py.tools.exec_command import ExecCommand, Shell, ShellCommandTool, WriteStdin
from codex_py.tools.registry import ToolRegistry
from codex_py.tools.session_tools import LoadSkill, UpdatePlan
from codex_py.tools.spec import Tool
from codex_py.tools.view_image import ViewImage

IN_EXEC: list[Tool] = [ExecCommand(), WriteStdin(), ApplyPatch(freeform=False), UpdatePlan(), ViewImage()]
SHOWN = [*IN_EXEC, RequestUserInput(), RequestPermissions()]
HIDDEN = [Shell(), ShellCommandTool(), RequestUserInput(), RequestPermissions()]
# What `read_arguments` understands of a schema.
KEYS = {
    "type",
    "description",
    "properties",
    "required",
    "additionalProperties",
    "items",
    "enum",
    "minItems",
    "maxItems",
}


def check(schema: dict[str, Any], name: str) -> None:
    assert schema.keys() <= KEYS, name
    assert schema["type"] in ("object", "array", "string", "number", "boolean"), name
    if schema["type"] == "object":
        assert schema["additionalProperties"] is False
        assert set(schema.get("required", [])) <= schema["properties"].keys(), name
        for inner_name, inner in schema["properties"].items():
            check(inner, f"{name}.{inner_name}")
    if "items" in schema:
        check(schema["items"], f"{name}[]")


@pytest.mark.parametrize("tool", [*SHOWN, *HIDDEN, LoadSkill()], ids=lambda tool: tool.name)
def test_the_spec_shown_is_what_is_read(tool: Tool) -> None:
    spec = tool.spec()
    assert (spec["type"], spec["name"]) == ("function", tool.name)
    assert spec["description"]
    assert all(field["description"] for field in spec["parameters"]["properties"].values())
    check(spec["parameters"], tool.name)


def test_the_order_is_fixed_and_the_provider_s_own_come_last() -> None:
    hosted = {"type": "web_search", "external_web_access": False}
    registry = ToolRegistry(SHOWN, hidden=HIDDEN, hosted=[hosted])
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


def test_the_specs_stay_small() -> None:
    # They go along with every request; here is where a longer description shows.
    assert len(ToolRegistry(IN_EXEC).encoded_specs) < 6000
    assert len(ToolRegistry(SHOWN).encoded_specs) < 8000


def test_what_has_come_to_a_namespace_since_stands_outside_of_it_and_last() -> None:
    def function(name: str) -> dict[str, Any]:
        return {"type": "function", "name": name}

    specs = [
        {"type": "namespace", "name": "mcp__a", "tools": [function("new"), function("old")]},
        {"type": "namespace", "name": "mcp__b", "tools": [function("x"), function("y")]},
    ]
    shown = ["mcp__b", "mcp__b/y", "mcp__b/x", "gone", "mcp__a", "mcp__a/old"]
    ordered = ToolRegistry((), hosted=specs).in_order(shown)
    assert decode_json(ordered.encoded_specs) == [
        {"type": "namespace", "name": "mcp__b", "tools": [function("y"), function("x")]},
        {"type": "namespace", "name": "mcp__a", "tools": [function("old")]},
        function("mcp__a__new"),
    ]

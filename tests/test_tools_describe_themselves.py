"""A tool says everything about itself: no other module names it."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Final

import pytest

from codex_py.core.tool_set import BUILT_IN
from codex_py.hooks.matching import misspelt
from codex_py.protocol.encoding import as_object
from codex_py.protocol.readable import tool_type_of
from codex_py.tools.spec import Tool

ROOT: Final = Path(__file__).parents[1] / "codex_py"

# Common words, which say nothing about a tool where they stand.
WORDS: Final = {"shell", "skill"}
# Features that bring tools: their modules are the tools' own.
FEATURES: Final = {"mcp", "subagents"}
# Who names tools beside the module of the tool, and why.
NAMED: Final = {
    "protocol/readable.py": "names in session files, which have no registry; a test below holds them to the tools",
    "protocol/status.py": "the values of an event's field",
    "protocol/policy.py": "a key of the approval policy",
    "core/tool_set.py": "a key of the approval policy",
    "server/app/settings.py": "a key of the approval policy",
    "server/app/items.py": "the values of an event's field, in the words of the wire",
    "server/acp/updates.py": "the values of an event's field, as titles",
    "render/event.py": "the values of an event's field",
    "render/agents.py": "reads the answers of stored calls about agents",
    "tools/hook_calls.py": "names that hooks of other programs are written for",
    "hooks/matching.py": "names that hooks are written for; a test below holds them to the tools",
    "tools/mcp_tools.py": "the tools of a feature",
    "tools/patch_in_command.py": "the program that a command line names",
    "cli/commands.py": "the program that a command line names",
    "offline/steps.py": "a model names the tools it calls",
    "core/skill_runs.py": "the tool that runs the commands in a skill's text",
    "telemetry/session.py": "the kinds of span of a trace",
}


def tool_names() -> set[str]:
    specs = [as_object(json.loads(path.read_text())) for path in ROOT.rglob("*.json")]
    return {spec["name"] for spec in specs if spec.get("type") == "function"}


def named_in(source: str, names: set[str]) -> set[str]:
    """The tools that a module names without being theirs."""
    if not any(name in source for name in names):
        return set()
    tree = ast.parse(source)
    constants = {
        node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    own = {
        statement.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant)
    }
    return (constants & names) - own


def test_no_module_names_the_tools_of_another() -> None:
    names = tool_names() - WORDS
    assert len(names) > 12
    found = {
        path.relative_to(ROOT).as_posix(): named
        for path in ROOT.rglob("*.py")
        if path.parent.name not in FEATURES and (named := named_in(path.read_text(), names))
    }
    assert {module: named for module, named in found.items() if module not in NAMED} == {}


def test_a_module_that_names_a_tool_is_found() -> None:
    assert named_in('TABLE = {"exec_command": 1}', {"exec_command"}) == {"exec_command"}
    assert named_in('class ExecCommand(Tool):\n    name = "exec_command"', {"exec_command"}) == set()


@pytest.mark.parametrize("tool", BUILT_IN, ids=lambda tool: tool.name)
def test_stored_calls_have_the_type_that_their_tool_states(tool: type[Tool]) -> None:
    assert tool_type_of(tool.name) == tool.type


def test_no_tool_is_taken_for_the_misspelt_name_of_another() -> None:
    assert list(misspelt(sorted(tool_names()), "tool_name")) == []

"""Tool calls in the words of hooks, and hooks' changes in the words of tool calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.config.schema import Config
from codex_py.core.tool_set import BUILT_IN
from codex_py.hooks.matching import Matcher
from codex_py.protocol.items import ToolCall
from codex_py.shell.reading import read_command_line
from codex_py.subagents.roles import SessionRoles
from codex_py.subagents.tools import make_agent_tools
from codex_py.tools.hook_calls import hook_calls_of, rewritten
from codex_py.tools.spec import HookView, Tool

CWD = Path("/repo")
PATCH = (
    "*** Begin Patch\n*** Add File: new.py\n+a\n*** Update File: src/../old.py\n*** Move to: moved.py\n"
    "@@\n keep\n-b\n+c\n*** Delete File: /etc/gone\n*** End Patch\n"
)
FILES = ["/repo/new.py", "/repo/old.py", "/repo/moved.py", "/etc/gone"]


VIEWS = {tool.name: tool.hook_view for tool in (*BUILT_IN, *make_agent_tools(Config(), SessionRoles({})))}


def view_of(call: ToolCall) -> HookView:
    return VIEWS.get(call.name, Tool.hook_view)


def function(tool: str, /, **arguments: Any) -> ToolCall:
    return ToolCall("c1", tool, json.dumps(arguments))


def seen(call: ToolCall, matcher: str) -> list[tuple[str, dict[str, Any]]]:
    """The names and inputs that hooks with this matcher are run with."""
    deeds = hook_calls_of(call, view_of(call), CWD)
    return [(name, dict(inputs)) for deed in deeds for name, inputs in deed.inputs_for(Matcher(matcher).fits)]


@pytest.mark.parametrize("matcher", ["", "*", "Bash", "^Bash$", "Bash|Edit"])
@pytest.mark.parametrize(
    "call",
    [
        function("exec_command", cmd="git push"),
        function("shell_command", command="git push"),
        function("shell", command=["git", "push"]),
        function("shell", command=["bash", "-lc", "git push"]),
    ],
)
def test_every_tool_for_commands_is_bash(call: ToolCall, matcher: str) -> None:
    assert seen(call, matcher) == [("Bash", {"command": "git push"})]


@pytest.mark.parametrize("matcher", ["exec_command", "shell", "local_shell"])
def test_a_hook_gets_the_name_it_is_written_for(matcher: str) -> None:
    call = function("exec_command", cmd="ls", workdir="/x")
    assert seen(call, matcher) == [(matcher, {"command": "ls", "workdir": "/x"})]


@pytest.mark.parametrize("matcher", ["", "*", ".*"])
def test_a_hook_written_for_another_tool_alone_gets_the_names_of_that(matcher: str) -> None:
    calls = [
        ToolCall("c1", "apply_patch", PATCH, custom=True),
        function("update_plan", plan=[]),
        function("exec_command", cmd="ls"),
        function("mcp__a__b"),
        function("list_agents"),
    ]
    fits = Matcher(matcher).fits
    names = [
        name
        for call in calls
        for deed in hook_calls_of(call, view_of(call), CWD)
        for name, _ in deed.inputs_for(fits, prefer_alias=True)
    ]
    assert names == ["Write", "Edit", "Edit", "Edit", "TodoWrite", "Bash", "mcp__a__b", "list_agents"]


def test_a_hook_for_edits_sees_each_file_of_a_patch() -> None:
    call = ToolCall("c1", "apply_patch", PATCH, custom=True)
    inputs = seen(call, "Edit|Write")
    assert [one["file_path"] for _, one in inputs] == FILES
    assert [name for name, _ in inputs] == ["Write", "Edit", "Edit", "Edit"]
    assert (inputs[0][1]["content"], inputs[1][1]["old_string"], inputs[1][1]["new_string"]) == (
        "a\n",
        "keep\nb",
        "keep\nc",
    )
    assert [name for name, _ in seen(call, "Write")] == ["Write"] * 4
    assert [name for name, _ in seen(call, "")] == ["apply_patch"] * 4


def test_a_hook_for_patches_sees_the_patch_once() -> None:
    call = ToolCall("c1", "apply_patch", PATCH, custom=True)
    whole = {"command": PATCH, "file_path": FILES[0], "file_paths": FILES}
    assert seen(call, "apply_patch") == [("apply_patch", whole)]
    assert seen(function("apply_patch", input=PATCH), "apply_patch") == seen(call, "apply_patch")


def test_what_is_no_patch_is_one_all_the_same() -> None:
    nothing: dict[str, Any] = {"command": "junk", "file_path": None, "file_paths": []}
    assert seen(ToolCall("c1", "apply_patch", "junk", custom=True), "Edit") == [("Edit", nothing)]


def test_a_patch_in_a_command_is_both() -> None:
    call = function("exec_command", cmd=f"cd sub && apply_patch <<'EOF'\n{PATCH}EOF")
    assert [name for name, _ in seen(call, "Bash")] == ["Bash"]
    assert [one["file_path"] for _, one in seen(call, "Edit")][:2] == ["/repo/sub/new.py", "/repo/sub/old.py"]


@pytest.mark.parametrize(
    ("call", "matcher", "name"),
    [
        (function("mcp__memory__save", a=1), "mcp__memory__.*", "mcp__memory__save"),
        (function("save", a=1).replace(namespace="mcp__memory"), "mcp__memory__save", "mcp__memory__save"),
        (function("update_plan", a=1), "TodoWrite", "TodoWrite"),
        (function("update_plan", a=1), "", "update_plan"),
        (function("something_new", a=1), ".*", "something_new"),
    ],
)
def test_every_other_tool_has_its_own_name(call: ToolCall, matcher: str, name: str) -> None:
    assert seen(call, matcher) == [(name, {"a": 1})]


def test_fields_have_the_names_that_other_tools_give_them() -> None:
    call = function("spawn_agent", message="look", agent_type="explorer")
    more = {"prompt": "look", "subagent_type": "explorer"}
    assert seen(call, "Task") == [("Task", {"message": "look", "agent_type": "explorer", **more})]
    changed = rewritten(call, view_of(call), {**more, "prompt": "look closer"})
    assert json.loads(changed.arguments) == {"message": "look closer", "agent_type": "explorer"}


def test_what_is_typed_is_a_command_with_what_was_typed_before() -> None:
    call = function("write_stdin", session_id=3, chars="sh\n")
    [deed] = hook_calls_of(call, view_of(call), CWD, "git pu")
    assert (deed.name, deed.tool_input["command"]) == ("Bash", "git push")
    assert seen(function("write_stdin", session_id=3, chars=""), "Bash") == []
    assert seen(function("write_stdin", session_id=3, chars="\x03"), "Bash") == []


@pytest.mark.parametrize("arguments", ["", "{", "[]", "null", '{"cmd": 5}', '{"command": [1, null]}', "{" * 100_000])
@pytest.mark.parametrize("tool", ["exec_command", "shell", "apply_patch", "write_stdin", "spawn_agent", "mcp__a__b"])
def test_arguments_of_any_kind_are_reported(tool: str, arguments: str) -> None:
    call = ToolCall("c1", tool, arguments)
    assert hook_calls_of(call, view_of(call), CWD)
    assert rewritten(call, view_of(call), {"x": 1}).name == tool


@pytest.mark.parametrize(
    ("command", "scripts"),
    [
        ("ls | wc -l", []),
        ("bash -c 'git push'", ["git push"]),
        ("sudo -u me sh -ec 'a; b'", ["a; b"]),
        ("bash -c \"bash -c 'git push'\"", ["bash -c 'git push'", "git push"]),
        ("if true; then eval git push; fi", ["git push"]),
        ("setsid bash -c 'git push'", ["git push"]),
        ("ls | xargs -I{} sh -c 'git push'", ["git push"]),
        ("find . -exec sh -c 'git push' \\;", ["git push"]),
        ("bash <<< 'git push'", ["git push"]),
        ("cat <<END | sudo sh\ngit push\nEND\n", ["git push"]),
        ("sh -s <<'END' > log\ncd x\ngit push\nEND", ["cd x\ngit push"]),
        ("echo git push | sh", ["git push"]),
        ("bash -c \"sh <<< 'git push'\"", ["sh <<< 'git push'", "git push"]),
        ("cat <<END > script\ngit push\nEND", []),
    ],
)
def test_the_scripts_inside_a_command_are_found(command: str, scripts: list[str]) -> None:
    assert list(read_command_line(command, str(CWD), {}).scripts) == scripts


@pytest.mark.parametrize(
    ("call", "updated", "arguments"),
    [
        (function("exec_command", cmd="a", tty=True), {"command": "b"}, {"cmd": "b", "tty": True}),
        (
            function("exec_command", cmd="a", workdir="/x"),
            {"command": "b", "workdir": "/y", "timeout": 600, "run_in_background": True},
            {"cmd": "b", "workdir": "/y"},
        ),
        (
            function("exec_command", cmd="a"),
            {"command": "b", "workdir": "/y", "yield_time_ms": 5, "description": "c"},
            {"cmd": "b", "workdir": "/y", "yield_time_ms": 5},
        ),
        (function("shell", command=["zsh", "-lc", "a"]), {"command": "b"}, {"command": ["zsh", "-lc", "b"]}),
        (function("shell", command=["a", "x"]), {"command": "b"}, {"command": ["bash", "-c", "b"]}),
        (function("mcp__a__b", x=1, y=2), {"y": 3, "z": 4}, {"x": 1, "y": 3, "z": 4}),
        (function("write_stdin", session_id=1, chars="a\n"), {"command": "b"}, {"session_id": 1, "chars": "b\n"}),
        (function("exec_command", cmd="a"), {"command": None}, {"cmd": None}),
        (function("shell", command=["a"]), {"command": None}, {"command": None}),
        (function("write_stdin", session_id=1, chars="a\n"), {"command": None}, {"session_id": 1, "chars": None}),
        (function("apply_patch", input=PATCH), {"command": 5}, {"input": "5"}),
    ],
)
def test_a_hooks_changes_are_carried_back(call: ToolCall, updated: dict[str, Any], arguments: dict[str, Any]) -> None:
    assert json.loads(rewritten(call, view_of(call), updated).arguments) == arguments


def test_a_command_that_is_no_text_takes_the_place_of_the_call_s_own() -> None:
    for tool, field in (("exec_command", "cmd"), ("shell", "command"), ("write_stdin", "chars")):
        call = function(tool, **{field: "git push\n"})
        assert json.loads(rewritten(call, view_of(call), {"command": 5}).arguments) == {field: 5}


def test_a_patch_is_changed_as_a_whole() -> None:
    call = ToolCall("c1", "apply_patch", PATCH, custom=True)
    assert rewritten(call, view_of(call), {"command": "other"}) == call.replace(arguments="other")
    assert rewritten(call, view_of(call), {"file_path": "/else"}) == call

"""What tools of servers are called, and the way back."""

from __future__ import annotations

import pytest

from codex_py.mcp.names import McpToolRef, ToolNames

LONG = "a_tool_with_a_name_that_goes_on_and_on_and_on_until_nobody_reads_it"


@pytest.mark.parametrize(
    ("server", "tool", "namespace", "inside", "flat"),
    [
        ("files", "read", "mcp__files", "read", "mcp__files__read"),
        ("my-files", "read-it", "mcp__my_files", "read-it", "mcp__my_files__read-it"),
        ("a.b/c", "x y", "mcp__a_b_c", "x_y", "mcp__a_b_c__x_y"),
        ("größe", "ö", "mcp__gr__e", "_", "mcp__gr__e___"),
    ],
)
def test_names_are_those_a_provider_takes(server: str, tool: str, namespace: str, inside: str, flat: str) -> None:
    names = ToolNames({server: [tool]})
    assert (names.namespaces[server], names.inside(server, tool), names.flat(server, tool)) == (namespace, inside, flat)
    assert names.find(namespace, inside) == names.find(None, flat) == McpToolRef(server, tool)


def test_a_long_name_ends_in_a_hash_and_is_found_by_it() -> None:
    names = ToolNames({"server": [LONG, f"{LONG}2"]})
    flat = [names.flat("server", LONG), names.flat("server", f"{LONG}2")]
    assert [len(name) for name in flat] == [64, 64]
    assert flat[0] != flat[1]
    assert names.find(None, flat[1]) == McpToolRef("server", f"{LONG}2")


def test_names_that_would_meet_are_distinguished() -> None:
    names = ToolNames({"a-b": ["x"], "a_b": ["x"], "c": ["y z", "y_z"]})
    found = {names.find(None, names.flat(server, tool)) for server, tool in [("a-b", "x"), ("a_b", "x")]}
    assert found == {McpToolRef("a-b", "x"), McpToolRef("a_b", "x")}
    assert names.flat("c", "y z") != names.flat("c", "y_z")


def test_a_tool_nobody_has_heard_of_is_one_of_its_server() -> None:
    names = ToolNames({"a": [], "a__b": []})
    assert names.find(None, "mcp__a__new") == McpToolRef("a", "new")
    assert names.find(None, "mcp__a__b__new") == McpToolRef("a__b", "new")
    assert names.find("mcp__a", "new") == McpToolRef("a", "new")
    assert names.find(None, "exec_command") is None
    assert names.find("mcp__other", "new") is None

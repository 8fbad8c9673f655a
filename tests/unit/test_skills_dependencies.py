from __future__ import annotations

import pytest

from codex_py.skills.dependencies import DependencyPlan, McpNeed, mcp_key, plan_dependencies
from codex_py.skills.model import Skill, ToolDependency
from tests.unit.skill_builders import skill

DOCS = ToolDependency("mcp", "docs", "the docs", None, None, "https://docs/mcp")
DOCS_NEED = McpNeed(
    "mcp__streamable_http__https://docs/mcp", "docs", "streamable_http", "https://docs/mcp", None, ("lint",)
)


def needing(*needs: ToolDependency, name: str = "lint") -> Skill:
    return skill(name, dependencies=needs)


@pytest.mark.parametrize("name", ["", "A=B", "1A", "A B", "É", "A" * 200])
def test_a_name_that_no_variable_can_have_is_noted(name: str) -> None:
    plan = plan_dependencies([needing(ToolDependency("env_var", name))], env=(), configured_mcp=())
    assert plan == DependencyPlan(notes=(f"skill `lint` needs `{name}`, which is not a valid variable name",))


def test_a_server_under_two_names_is_missing_once() -> None:
    plan = plan_dependencies(
        [needing(DOCS), needing(DOCS._replace(value="other"), name="fmt")], env=(), configured_mcp=()
    )
    files = tuple(str(needing(name=name).canonical_path) for name in ("lint", "fmt"))
    assert plan.missing_mcp == (DOCS_NEED.replace(skills=("lint", "fmt"), files=files),)


@pytest.mark.parametrize(
    ("need", "fault"),
    [
        (ToolDependency("mcp", "docs"), "it has no `url`"),
        (ToolDependency("mcp", "docs", None, None, "run"), "it has no `url`"),
        (ToolDependency("mcp", "docs", url="file:///etc/passwd"), "its `url` is no `https://` or `http://` address"),
        (ToolDependency("mcp", "docs", None, "stdio", " ", "https://x"), "it has no `command`"),
        (ToolDependency("mcp", "docs", None, "sse"), "its transport `sse` is none of `streamable_http`, `stdio`"),
    ],
)
def test_a_server_that_is_not_described_is_noted(need: ToolDependency, fault: str) -> None:
    assert plan_dependencies([needing(need)], env=(), configured_mcp=()) == DependencyPlan(
        notes=(f"skill `lint` needs the MCP server `docs`: {fault}",)
    )


def test_keys_of_servers() -> None:
    assert mcp_key("a", url=" https://x ") == "mcp__streamable_http__https://x"
    assert mcp_key("a", command="run") == "mcp__stdio__run"
    assert mcp_key("a", url=" ") == mcp_key("a") == "a"

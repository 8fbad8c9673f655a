from __future__ import annotations

import pytest

from codex_py.skills.dependencies import (
    DependencyPlan,
    EnvNeed,
    McpNeed,
    mcp_key,
    missing_env_warning,
    plan_dependencies,
)
from codex_py.skills.model import Skill, ToolDependency
from tests.unit.skill_builders import skill

DOCS = ToolDependency("mcp", "docs", "the docs", None, None, "https://docs/mcp")
DOCS_NEED = McpNeed(
    "mcp__streamable_http__https://docs/mcp", "docs", "streamable_http", "https://docs/mcp", None, ("lint",)
)


def needing(*needs: ToolDependency, name: str = "lint") -> Skill:
    return skill(name, dependencies=needs)


def test_skills_without_needs_lack_nothing() -> None:
    needs = (ToolDependency("cli", "gh"), ToolDependency("anything", "x"))
    assert plan_dependencies([skill(), needing(*needs)], env=(), configured_mcp=()) == DependencyPlan()


def test_variables_that_are_not_set_are_missing_once() -> None:
    one = needing(
        ToolDependency("env_var", "API_KEY", "the key"),
        ToolDependency("ENV_VAR", " HOST "),
        ToolDependency("env_var", "PATH"),
    )
    two = needing(ToolDependency("env_var", "API_KEY", "another"), name="fmt")
    assert plan_dependencies([one, two], env={"PATH": "x"}, configured_mcp=()) == DependencyPlan(
        (EnvNeed("API_KEY", "the key", ("lint", "fmt")), EnvNeed("HOST", "", ("lint",)))
    )


@pytest.mark.parametrize("name", ["", "A=B", "1A", "A B", "É", "A" * 200])
def test_a_name_that_no_variable_can_have_is_noted(name: str) -> None:
    plan = plan_dependencies([needing(ToolDependency("env_var", name))], env=(), configured_mcp=())
    assert plan == DependencyPlan(notes=(f"skill `lint` needs `{name}`, which is not a valid variable name",))


@pytest.mark.parametrize(
    ("need", "missing"),
    [
        (DOCS, DOCS_NEED),
        (ToolDependency("MCP", " docs ", None, " Streamable_HTTP ", None, " https://docs/mcp "), DOCS_NEED),
        (
            ToolDependency("mcp", "gh", None, "stdio", " gh-mcp --x "),
            McpNeed("mcp__stdio__gh-mcp --x", "gh", "stdio", None, "gh-mcp --x", ("lint",)),
        ),
    ],
)
def test_servers_that_are_not_configured_are_missing(need: ToolDependency, missing: McpNeed) -> None:
    found = missing.replace(files=(str(needing().canonical_path),))
    assert plan_dependencies([needing(need)], env=(), configured_mcp=()) == DependencyPlan(missing_mcp=(found,))
    assert plan_dependencies([needing(need)], env=(), configured_mcp={missing.key}) == DependencyPlan()
    assert missing.target == (missing.url or missing.command)


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


def test_the_warning_says_what_is_missing_and_for_whom() -> None:
    assert missing_env_warning(EnvNeed("KEY", "from\nthe site", ("lint",))) == (
        "environment variable `KEY` (from␊the site) is not set; skill `lint` may not work without it"
    )
    assert missing_env_warning(EnvNeed("KEY", "", ("a", "b"))) == (
        "environment variable `KEY` is not set; skills `a`, `b` may not work without it"
    )

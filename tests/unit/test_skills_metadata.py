"""`agents/openai.yaml`."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.skills.metadata import Metadata, parse_metadata
from codex_py.skills.model import Interface, ToolDependency
from codex_py.skills.record import InterfaceText, resolve_interface

DIRECTORY = Path("/plugin/skills/a")


def interface(text: str) -> InterfaceText:
    return parse_metadata(f"interface:\n  {text}\n").interface


def icon(text: str, plugin_root: Path | None = None) -> str | None:
    found = resolve_interface(interface(f"icon_small: {text}"), DIRECTORY, plugin_root)
    return str(found.icon_small) if found else None


def test_everything_a_file_can_say() -> None:
    text = """
interface:
  display_name: "  Nice   name "
  short_description: short
  icon_small: ./assets/./small.png
  icon_large: assets/large.svg
  brand_color: " #aB12fF "
  default_prompt: Use $a to
  other: [1]
dependencies:
  tools:
    - {type: mcp, value: docs, description: d, transport: streamable_http, url: 'https://x/mcp'}
    - {type: env_var, value: API_KEY}
    - {type: cli, value: jq, command: jq, more: 1}
    - {type: mcp}
    - {value: x}
policy:
  allow_implicit_invocation: false
  products: [CODEX, atlas]
extra: 1
"""
    assert parse_metadata(text) == Metadata(
        InterfaceText("Nice name", "short", "assets/small.png", "assets/large.svg", "#aB12fF", "Use $a to"),
        (
            ToolDependency("mcp", "docs", "d", "streamable_http", None, "https://x/mcp"),
            ToolDependency("env_var", "API_KEY"),
            ToolDependency("cli", "jq", command="jq"),
        ),
        False,
        ("codex", "atlas"),
    )


@pytest.mark.parametrize(
    "text", ["", "{}", "# nothing", "\ufeffinterface:\n", '{"interface": null, "policy": {"products": null}}', "a: 1"]
)
def test_a_file_may_say_nothing(text: str) -> None:
    assert parse_metadata(text) == Metadata()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("interface: x", "`interface` is not a mapping"),
        ("interface: {display_name: [a]}", "`interface.display_name` is a list, not a text"),
        ("interface: {icon_small: {a: b}}", "`interface.icon_small` is a mapping, not a text"),
        ("dependencies: {tools: x}", "`dependencies.tools` is not a list"),
        ("dependencies: {tools: [Read, Write]}", "`dependencies.tools` has an item that is not a mapping"),
        ("dependencies: {tools: [{url: [a]}]}", "`dependencies.tools.url` is a list, not a text"),
    ],
)
def test_a_wrong_value_is_left_out_by_itself(text: str, reason: str) -> None:
    assert parse_metadata(text) == Metadata(faults=(reason,))


def test_what_is_right_beside_it_counts() -> None:
    text = "interface: {display_name: [a], default_prompt: go}\ndependencies: {tools: [Read, {type: a, value: b}]}"
    found = parse_metadata(text)
    assert found.interface == InterfaceText(default_prompt="go")
    assert found.dependencies == (ToolDependency("a", "b"),)
    assert found.faults == (
        "`interface.display_name` is a list, not a text",
        "`dependencies.tools` has an item that is not a mapping",
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("products: codex", "`policy.products` is not a list"),
        ("products: [Codex]", "`policy.products` has an unknown product `Codex`"),
        ("products: [other]", "`policy.products` has an unknown product `other`"),
    ],
)
def test_a_policy_without_a_restriction_costs_only_its_wrong_value(text: str, reason: str) -> None:
    found = parse_metadata(f"policy: {{{text}}}\ninterface: {{display_name: A}}")
    assert found == Metadata(InterfaceText("A"), faults=(reason,))


@pytest.mark.parametrize("written", ["true", "True", "TRUE"])
def test_a_boolean_has_three_spellings(written: str) -> None:
    assert parse_metadata(f"policy: {{allow_implicit_invocation: {written}}}").allow_implicit is True


def test_a_text_that_is_too_long_or_empty_leaves_its_field_out() -> None:
    assert interface(f"display_name: {'a' * 64}") == InterfaceText("a" * 64)
    assert interface(f"display_name: {'a' * 65}") == InterfaceText()
    assert interface(f"default_prompt: {'a' * 1025}") == InterfaceText()
    assert interface("short_description: '  '") == InterfaceText()
    for color in ("red", "'#12345'", "'#1234567'", "'#12345g'", "'#１２３４５６'"):
        assert interface(f"brand_color: {color}") == InterfaceText()
    tools = f"[{{type: {'a' * 65}, value: b}}, {{type: a, value: b, url: {'c' * 1025}}}]"
    assert parse_metadata(f"dependencies: {{tools: {tools}}}").dependencies == (ToolDependency("a", "b"),)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("assets/a.png", "/plugin/skills/a/assets/a.png"),
        ("./assets//./a.png", "/plugin/skills/a/assets/a.png"),
        ("assets", "/plugin/skills/a/assets"),
        ("images/a.png", None),
        ("/assets/a.png", None),
        ("assets/../../x", None),
        ("../assets/a.png", None),
        ("https://x/a.png", None),
        ("''", None),
    ],
)
def test_an_icon_lies_in_the_assets_of_its_skill(text: str, path: str | None) -> None:
    assert icon(text) == path


def test_an_icon_of_a_plugin_may_lie_in_the_assets_of_the_plugin() -> None:
    assert icon("../../assets/a.png", Path("/plugin")) == "/plugin/assets/a.png"
    assert icon("../../other/a.png", Path("/plugin")) is None
    assert icon("assets/../../../assets/a.png", Path("/plugin")) == "/plugin/assets/a.png"
    assert icon("../../../plugin2/assets/a.png", Path("/plugin")) is None


def test_an_interface_without_fields_is_none() -> None:
    assert resolve_interface(InterfaceText(), DIRECTORY, None) is None
    assert resolve_interface(InterfaceText("a"), DIRECTORY, None) == Interface("a")


def test_what_a_file_does_not_say_is_taken_from_the_other() -> None:
    mine = Metadata(InterfaceText("a", brand_color="#000000"), (), None, ("atlas",))
    other = Metadata(InterfaceText("b", "c"), (ToolDependency("x", "y"),), False, ("codex",))
    assert mine.over(other) == Metadata(
        InterfaceText("a", "c", brand_color="#000000"), (ToolDependency("x", "y"),), False, ("atlas",)
    )
    assert Metadata(allow_implicit=True).over(other).allow_implicit is True


def test_dependencies_are_bounded_as_a_whole() -> None:
    tool = f"{{type: a, value: {'b' * 1000}, url: {'c' * 1000}}}"
    assert len(parse_metadata(f"dependencies: {{tools: [{', '.join([tool] * 20)}]}}").dependencies) == 8

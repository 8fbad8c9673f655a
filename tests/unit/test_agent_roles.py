"""Files with roles: what is read of them, and that nothing in one can do more than leave it out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_py.subagents.role_files import MAX_BYTES, choose_tools, read_role, read_roles
from codex_py.subagents.roles import BUILT_IN, AgentRole, ToolChoice

HEAD = "---\nname: a\n---\n"


def role_of(tmp_path: Path, text: str | bytes, name: str = "a.md") -> AgentRole:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_role(path).replace(path=None)


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("---\nname: reviewer\ndescription: reads\n---\nLook.\n", {"name": "reviewer", "about": "reads"}),
        ("---\r\ndescription: |\r\n  one\r\n  two\r\n---\r\nLook.\r\n", {"about": "one two"}),
        ("\ufeff---\nmodel: inherit\n---\nLook.\n", {}),
        ("---\nmodel: Sonnet\n---\nLook.", {}),
        ("---\nmodel: gpt-5.5\neffort: high\n---\nLook.", {"model": "gpt-5.5", "effort": "high"}),
        ("---\nskills: lint, deploy\n---\nLook.", {"skills": ("lint", "deploy")}),
        ("---\nskills: [lint, [7], '']\n---\nLook.", {"skills": ("lint",)}),
        ("---\nname: [1]\ndescription: {a: 1}\nmodel: [3]\ncolor: red\nhooks: [1]\n---\nLook.", {}),
        ("---\nsandbox_mode: read-only\n---\nLook.", {"sandbox": "read-only"}),
        ("---\nmodel: sonnet[1m]\npermissionMode: plan\n---\nLook.", {"sandbox": "read-only"}),
        ("---\npermissionMode: bypassPermissions\n---\nLook.", {}),
        ("---\npermissionMode: acceptEdits\n---\nLook.", {}),
        ("---\npermissionMode:\n---\nLook.", {}),
        ("---\npermissionMode: ' Plan '\n---\nLook.", {"sandbox": "read-only"}),
        ("---\npermissionMode: plan\nsandbox_mode: workspace-write\n---\nLook.", {"sandbox": "read-only"}),
        ("---\npermissionMode: dontAsk\n---\nLook.", {"may_ask": False}),
        (
            '---\ndescription: Use it so: <example>user: "hi"</example>\ncolor: red\n---\nLook.',
            {"about": 'Use it so: <example>user: "hi"</example>'},
        ),
        ('---\nname: "red\\e[31m"\n---\nLook.', {"name": "red␛[31m"}),
        (f"---\nname: {'x ' * 500}\n---\nLook.", {"name": ("x " * 32)[:64]}),
    ],
)
def test_what_a_markdown_file_says(tmp_path: Path, text: str, fields: dict[str, Any]) -> None:
    assert role_of(tmp_path, text) == AgentRole("a", instructions="Look.").replace(**fields)


@pytest.mark.parametrize(
    ("name", "text", "warning"),
    [
        ("a.toml", 'modle = "x"', "unknown key `modle` in the agent role `PATH` is ignored; did you mean `model`?"),
        (
            "a.toml",
            'instructions = "x"',
            "unknown key `instructions` in the agent role `PATH` is ignored; did you mean `developer_instructions`?",
        ),
        (
            "a.md",
            "---\nefort: low\n---\n",
            "unknown key `efort` in the agent role `PATH` is ignored; did you mean `effort`?",
        ),
        (
            "a.toml",
            'sandbox_mod = "read-only"',
            "the agent role `PATH` is left out: unknown key `sandbox_mod`; did you mean `sandbox_mode`?",
        ),
        (
            "a.md",
            "---\nallowed-tools: Read\n---\n",
            "the agent role `PATH` is left out: unknown key `allowed-tools`; did you mean `tools`?",
        ),
    ],
)
def test_a_misspelt_key_is_named_and_one_that_narrows_leaves_the_role_out(
    tmp_path: Path, name: str, text: str, warning: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert read_roles([(tmp_path, None)], {}).warnings == (warning.replace("PATH", str(path)),)


def test_what_a_toml_file_says(tmp_path: Path) -> None:
    text = (
        'description = "reads"\ndeveloper_instructions = """\nLook.\n"""\nmodel = "gpt-5.5"\n'
        'model_reasoning_effort = "low"\nsandbox_mode = "workspace-write"\nunknown = 1\n'
    )
    assert role_of(tmp_path, text, "scout.toml") == AgentRole(
        "scout", "reads", "Look.", "gpt-5.5", "low", "workspace-write"
    )


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.md", b"no head", "no frontmatter"),
        ("a.md", b"---\n- a\n---\n", "its frontmatter must be lines of `key: value`"),
        ("a.md", b"---\na: [\n---\n", "its frontmatter is not YAML"),
        ("a.md", b"---\na: " + b"[" * 5000 + b"\n---\n", "its frontmatter is not YAML"),
        ("a.md", b"---\na: &x 1\nb: *x\n---\n", "its frontmatter is not YAML"),
        ("a.md", b"---\nname: \xff\n---\n", "not UTF-8 at byte 10"),
        ("a.md", HEAD.encode() + b"x" * MAX_BYTES, "over 64 KiB"),
        ("a.md", b"---\nsandbox_mode: none\n---\n", "`sandbox_mode` is `none`: allowed are `read-only`"),
        ("a.md", b"---\nsandbox_mode: [read-only]\n---\n", "`sandbox_mode` is `['read-only']`"),
        ("a.md", b"---\ntools: {Read: true, Write: false}\n---\n", "`tools` is neither a list of names"),
        ("a.md", b"---\ntools: [Read, [Write]]\n---\n", "`tools` is neither a list of names"),
        ("a.md", b"---\ndisallowedTools: {Write: true}\n---\n", "`disallowedTools` is neither a list of names"),
        ("a.md", b"---\npermissionMode: plann\n---\n", "`permissionMode` is `plann`"),
        ("a.md", b"---\npermissionMode: [plan]\n---\n", "`permissionMode` is `['plan']`"),
        ("a.toml", b'sandbox_mode = ["read-only"]', "`sandbox_mode` is `['read-only']`"),
        ("a.toml", b"a = ", "line 1 column 5: invalid value in `a =`"),
        ("a.toml", b"a = " + b"[" * 5000, "nested too deeply"),
    ],
)
def test_a_file_that_is_no_role_is_left_out_with_a_line(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(content)
    found = read_roles([(tmp_path, None)], {})
    assert list(found.roles) == [role.name for role in BUILT_IN]
    [warning] = found.warnings
    assert warning.startswith(f"the agent role `{tmp_path / name}` is left out: ")
    assert why in warning


def test_a_projects_roles_are_files_inside_it(tmp_path: Path) -> None:
    (outside := tmp_path / "outside.md").write_text(f"{HEAD}Look.")
    directory = tmp_path / "project" / ".codex" / "agents"
    directory.mkdir(parents=True)
    (directory / "out.md").symlink_to(outside)
    (directory / "zero.md").symlink_to("/dev/zero")
    (directory / ".hidden.md").write_text(HEAD)
    (directory / "notes.txt").write_text(HEAD)
    (directory / "in.md").write_text("---\nname: in\n---\nLook.")
    found = read_roles([(directory, tmp_path / "project")], {})
    assert [name for name in found.roles if name not in {role.name for role in BUILT_IN}] == ["in"]
    assert len(found.warnings) == 2


def test_of_two_roles_of_one_name_the_later_one_counts(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "a.md").write_text(f"---\nname: explorer\n---\nLook {number}.")
    found = read_roles([(tmp_path / "1", None), (tmp_path / "2", None)], {})
    assert found.roles["explorer"].instructions == "Look 2."
    entry = {"explorer": {"description": "mine", "config_file": str(tmp_path / "1" / "a.md")}, "bare": {}}
    found = read_roles([(tmp_path / "2", None)], entry)
    assert (found.roles["explorer"].about, found.roles["explorer"].instructions) == ("mine", "Look 1.")
    assert found.roles["bare"] == AgentRole("bare")


def test_what_the_model_is_shown_of_many_roles_has_a_limit(tmp_path: Path) -> None:
    for number in range(105):
        about = "short" if number % 2 else "é" * 1000
        (tmp_path / f"r{number:03}.md").write_text(f"---\ndescription: {about}\n---\nLook.")
    found = read_roles([(tmp_path, None)], {})
    assert found.warnings == (
        f"only the first 100 of 105 agent roles in `{tmp_path}` are used",
        "50 descriptions of agent roles are cut for the model: all are over 16 KiB",
    )
    shown = {name: role.about for name, role in found.roles.items()}
    assert (len(shown), shown["r001"], shown["explorer"]) == (102, "short", BUILT_IN[0].about)
    assert shown["r000"].endswith("é…")
    assert 15 * 1024 < sum(len(about.encode()) for about in shown.values()) <= 16 * 1024


@pytest.mark.parametrize(
    ("names", "denied", "allowed", "refused", "reads_only"),
    [
        (["Read", "Grep"], [], {"exec_command", "view_image"}, {"apply_patch", "update_plan", "mcp__a__b"}, True),
        (["Bash(git:*)"], [], {"exec_command", "write_stdin"}, {"apply_patch"}, False),
        (["Read", "Edit"], [], {"apply_patch", "exec_command"}, {"spawn_agent"}, False),
        (["mcp__docs"], [], {"mcp__docs__search"}, {"mcp__docsx__a", "exec_command"}, True),
        (["mcp__*"], [], {"mcp__a__b"}, {"exec_command"}, True),
        ([], [], set[str](), {"exec_command", "apply_patch"}, True),
        (["*"], ["Write"], {"exec_command", "spawn_agent"}, {"apply_patch"}, False),
        (None, ["Bash"], {"apply_patch", "view_image"}, {"exec_command", "shell"}, False),
        (["Read", "Bash"], ["Bash", "Write"], {"exec_command", "view_image"}, {"apply_patch"}, True),
        (["Write", "Bash"], ["Bash"], {"apply_patch", "exec_command"}, {"update_plan"}, False),
        (["Bash", "TodoWrite"], ["Bash"], {"update_plan"}, {"exec_command", "view_image"}, True),
        (["Read"], ["exec_command"], {"view_image"}, {"exec_command", "shell"}, True),
        (None, ["Task"], {"exec_command"}, {"spawn_agent", "wait_agent"}, False),
        (["Nonsense"], [], {"Nonsense"}, {"exec_command"}, True),
    ],
)
def test_which_tools_the_lists_of_a_role_leave(
    names: list[str] | None, denied: list[str], allowed: set[str], refused: set[str], reads_only: bool
) -> None:
    choice = choose_tools(names, denied)
    assert isinstance(choice, ToolChoice)
    assert {name for name in allowed | refused if choice.allows(name)} == allowed
    assert choice.reads_only == reads_only


@pytest.mark.parametrize(("names", "denied"), [(None, []), (["*"], []), (["Read", "*"], [])])
def test_lists_that_say_nothing_leave_all(names: list[str] | None, denied: list[str]) -> None:
    assert choose_tools(names, denied) is None

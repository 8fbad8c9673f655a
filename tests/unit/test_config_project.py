"""A project's own settings: whose trust they need, what they may tighten, and what is never taken from them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codex_py.config.layers import Layer
from tests.unit.config_builders import Machine, write

ASKING = "approval_policy = { granular = { sandbox_approval = true, rules = true, mcp_elicitations = false } }"


def test_an_untrusted_project_is_ignored_with_one_warning(machine: Machine) -> None:
    file = machine.project('this is = not even [ TOML\nnotify = ["evil"]')
    inner = machine.project('model = "x"', "a/b")
    loaded = machine.load(cwd=machine.repo / "a" / "b")

    assert (loaded.trust, loaded.config.model, loaded.config.notify) == ("unknown", None, ())
    assert loaded.warnings == (
        f"`{file}` and 1 more like it are ignored: you have not trusted `{machine.repo}` yet "
        f'(`--trust`, or `[projects."{machine.repo}"] trust_level = "trusted"` in `{machine.user_file}`)',
    )
    inner.unlink()
    machine.user(f'[projects."{machine.repo}"]\ntrust_level = "untrusted"\n')
    loaded = machine.load()
    assert loaded.trust == "untrusted"
    assert loaded.warnings == (f"`{file}` is ignored: you marked the project as untrusted",)


def test_an_untrusted_project_stays_read_only_unless_the_command_line_says_otherwise(machine: Machine) -> None:
    untrusted = f'[projects."{machine.repo}"]\ntrust_level = "untrusted"\n'
    for mode in ("workspace-write", "danger-full-access"):
        machine.user(f'sandbox_mode = "{mode}"\n{untrusted}')
        loaded = machine.load()
        assert loaded.config.sandbox_mode == "read-only"
        assert loaded.origins["sandbox_mode"] == Layer("user", machine.user_file)
        assert loaded.warnings == (
            "commands only read here, whatever `sandbox_mode` says in your settings: you marked the project as "
            "untrusted (`-s workspace-write` lets one session write)",
        )
        loaded = machine.load(flags={"sandbox_mode": mode})
        assert (loaded.config.sandbox_mode, loaded.warnings) == (mode, ())
    machine.user(untrusted)
    assert (machine.load().config.sandbox_mode, machine.load().warnings) == (None, ())


def test_a_project_does_not_trust_itself(machine: Machine) -> None:
    machine.project(f'model = "x"\n[projects."{machine.repo}"]\ntrust_level = "trusted"\n')
    assert machine.load().trust == "unknown"
    assert machine.load().config.model is None


def test_the_nearest_directory_wins_and_each_one_counts(machine: Machine) -> None:
    machine.trusted()
    machine.project('model = "root"\nmodel_verbosity = "low"\nreview_model = "root"\n')
    machine.project('model = "middle"\nmodel_verbosity = "high"\n', "a")
    nearest = machine.project('model = "near"\n', "a/b")
    machine.project('model = "elsewhere"\n', "other")
    loaded = machine.load(cwd=machine.repo / "a" / "b")

    config = loaded.config
    assert (config.model, config.model_verbosity, config.review_model) == ("near", "high", "root")
    assert loaded.origins["model"] == Layer("project", nearest)
    assert [layer.layer_type for layer in loaded.layers] == ["project", "project", "project", "user", "defaults"]


def test_a_directory_that_is_no_repository_counts_alone(machine: Machine) -> None:
    place = machine.root / "plain" / "inner"
    write(place / ".codex" / "config.toml", 'model = "inner"\n')
    write(place.parent / ".codex" / "config.toml", 'review_model = "outer"\n')
    machine.user(
        f'[projects."{place}"]\ntrust_level = "trusted"\n[projects."{place.parent}"]\ntrust_level = "trusted"\n'
    )
    loaded = machine.load(cwd=place)

    assert (loaded.config.model, loaded.config.review_model, loaded.project_root) == ("inner", None, None)


def test_trust_of_a_plain_directory_is_not_inherited_from_the_one_around_it(machine: Machine) -> None:
    machine.user(f'[projects."{machine.root}"]\ntrust_level = "trusted"\n')
    plain = machine.root / "plain"
    plain.mkdir()

    assert machine.load(cwd=plain).trust == "unknown"
    assert machine.load(cwd=machine.repo).trust == "unknown"
    assert machine.load(cwd=machine.root).trust == "trusted"


def test_the_nearest_entry_inside_the_repository_decides(machine: Machine) -> None:
    vendor = machine.repo / "vendor" / "lib"
    vendor.mkdir(parents=True)
    machine.trusted(f'[projects."{machine.repo}/vendor"]\ntrust_level = "untrusted"\n')
    machine.project('model = "root"\n')
    file = machine.project('model = "vendor"\n', "vendor")
    loaded = machine.load(cwd=vendor)

    assert (loaded.trust, loaded.config.model) == ("untrusted", "root")
    assert loaded.warnings == (f"`{file}` is ignored: you marked the project as untrusted",)


def test_trust_is_keyed_by_the_real_path(machine: Machine) -> None:
    machine.trusted()
    machine.project('model = "x"\n')
    link = machine.root / "link"
    link.symlink_to(machine.repo)

    assert machine.load(cwd=link).config.model == "x"
    machine.user(f'[projects."{link}"]\ntrust_level = "trusted"\n')
    assert machine.load(cwd=link).trust == "unknown"


def test_a_trusted_directory_may_be_written_with_a_tilde(machine: Machine) -> None:
    place = machine.root / "user" / "code"
    place.mkdir()
    machine.user('[projects."~/code/"]\ntrust_level = "trusted"\n')
    assert machine.load(cwd=place).trust == "trusted"


def worktree(machine: Machine, *, back: str | None) -> Path:
    """A worktree of the repository; `back` is what the repository says about where it is."""
    place = machine.root / "tree"
    store = machine.repo / ".git" / "worktrees" / "tree"
    store.mkdir(parents=True)
    place.mkdir()
    (place / ".git").write_text(f"gitdir: {store}\n")
    if back is not None:
        (store / "gitdir").write_text(back)
    return place


def test_a_worktree_has_the_trust_of_its_checkout(machine: Machine) -> None:
    machine.trusted()
    assert machine.load(cwd=worktree(machine, back=f"{machine.root}/tree/.git\n")).trust == "trusted"


def test_a_worktree_with_relative_pointers_is_known_too(machine: Machine) -> None:
    machine.trusted()
    place = worktree(machine, back="../../../../tree/.git\n")
    (place / ".git").write_text("gitdir: ../repo/.git/worktrees/tree\n")
    assert machine.load(cwd=place).trust == "trusted"


@pytest.mark.parametrize("back", [None, "", "/elsewhere/.git\n", "\0", "../../..\n"])
def test_a_checkout_that_does_not_know_the_worktree_gives_no_trust(machine: Machine, back: str | None) -> None:
    machine.trusted()
    assert machine.load(cwd=worktree(machine, back=back)).trust == "unknown"


def test_a_copied_git_pointer_gives_no_trust(machine: Machine) -> None:
    machine.trusted()
    real = worktree(machine, back=f"{machine.root}/tree/.git\n")
    thief = machine.root / "thief"
    thief.mkdir()
    (thief / ".git").write_bytes((real / ".git").read_bytes())
    (thief / ".codex").mkdir()
    (thief / ".codex" / "config.toml").write_text('model = "thief"\n')

    loaded = machine.load(cwd=thief)
    assert (loaded.trust, loaded.config.model) == ("unknown", None)


def test_a_store_inside_the_thief_itself_gives_no_trust(machine: Machine) -> None:
    machine.trusted()
    thief = machine.root / "thief"
    store = thief / "x" / "worktrees" / "tree"
    store.mkdir(parents=True)
    (thief / ".git").write_text("gitdir: x/worktrees/tree\n")
    (store / "gitdir").write_text(f"{thief}/.git\n")
    (store / "commondir").write_text(f"{machine.repo}/.git\n")
    assert machine.load(cwd=thief).trust == "unknown"


@pytest.mark.parametrize(
    "pointer", [b"", b"gitdir:", b"gitdir: ", b"gitdir: \xff\xfe", b"gitdir: " + b"a/" * 5000, b"\0" * 9000]
)
def test_a_strange_git_file_does_no_harm(machine: Machine, pointer: bytes) -> None:
    place = machine.root / "odd"
    place.mkdir()
    (place / ".git").write_bytes(pointer)
    assert machine.load(cwd=place).trust == "unknown"


@pytest.mark.parametrize(
    ("user", "project", "kept"),
    [
        ('sandbox_mode = "workspace-write"', 'sandbox_mode = "read-only"', True),
        ('sandbox_mode = "workspace-write"', 'sandbox_mode = "workspace-write"', True),
        ('sandbox_mode = "read-only"', 'sandbox_mode = "workspace-write"', False),
        ("", 'sandbox_mode = "read-only"', True),
        ("", 'sandbox_mode = "workspace-write"', False),
        ("", 'sandbox_mode = "danger-full-access"', False),
        ('approval_policy = "never"', 'approval_policy = "on-failure"', True),
        ('approval_policy = "on-failure"', 'approval_policy = "on-request"', True),
        ("", 'approval_policy = "untrusted"', True),
        ("", 'approval_policy = "on-failure"', False),
        ('approval_policy = "untrusted"', 'approval_policy = "never"', False),
        ('approval_policy = "never"', ASKING, True),
        ("", ASKING, True),
        ('approval_policy = "untrusted"', ASKING, False),
        (ASKING, ASKING.replace("rules = true", "rules = false"), True),
        (ASKING.replace("rules = true", "rules = false"), ASKING, False),
        (ASKING, 'approval_policy = "on-request"', False),
        ("", "sandbox.allow_partial = true", False),
        ("sandbox.allow_partial = true", "sandbox.allow_partial = false", True),
        ("", 'web_search = "disabled"', True),
        ("", 'web_search = "live"', False),
        ("", "allow_login_shell = false", True),
        ("allow_login_shell = false", "allow_login_shell = true", False),
        ("sandbox_workspace_write.network_access = true", "sandbox_workspace_write.network_access = false", True),
        ("sandbox_workspace_write.network_access = true", 'sandbox_workspace_write.network_access = "loopback"', False),
        ("", "sandbox_workspace_write.network_access = true", False),
        ("", "sandbox_workspace_write.exclude_slash_tmp = true", True),
        ("", "sandbox_workspace_write.git = true", False),
        ("sandbox_workspace_write.git = true", "sandbox_workspace_write.git = false", True),
        (
            "sandbox_workspace_write.exclude_tmpdir_env_var = true",
            "sandbox_workspace_write.exclude_tmpdir_env_var = false",
            False,
        ),
        ("", 'sandbox_workspace_write.writable_roots = ["/"]', False),
        ("", 'shell_environment_policy.inherit = "none"', True),
        ('shell_environment_policy.inherit = "core"', 'shell_environment_policy.inherit = "all"', False),
        ("", "shell_environment_policy.ignore_default_excludes = true", False),
        (
            "shell_environment_policy.ignore_default_excludes = true",
            "shell_environment_policy.ignore_default_excludes = false",
            True,
        ),
        ("", "shell_environment_policy.set.PATH = '/evil'", False),
        ("", "shell_environment_policy.include_only = ['X']", False),
        ("", "skills.include_instructions = false", True),
        ("", "skills.max_context_tokens = 5", True),
        ("", "skills.roots = ['/']", False),
        ("", "skills.bundled.enabled = false", False),
        ("", "skills.config = [{ name = 'x', enabled = false }]", True),
        ("", "skills.config = [{ name = 'x', enabled = true }]", False),
        ("", 'developer_instructions = "x"', True),
        ("", "project_doc_max_bytes = 0", True),
        ("", "tool_output_token_limit = 5", True),
        ("", "service_tier = 'priority'", False),
        ("", "model_provider = 'ollama'", False),
        ("", "model_providers.x.base_url = 'http://evil'", False),
        ("", "openai_base_url = 'http://evil'", False),
        ("", "chatgpt_base_url = 'http://evil'", False),
        ("", "notify = ['evil']", False),
        ("", "model_providers.x.auth.command = 'evil'", False),
        ("", "shell_environment_policy.set.BASH_ENV = 'evil'", False),
        ("", "tui.notifications = true", False),
        ("", "file_opener = 'cursor'", False),
        ("", "plugins.x.mcp_servers.y.sandbox = 'outside'", False),
        ("", "projects.x.trust_level = 'trusted'", False),
        ("", "model_instructions_file = '/etc/passwd'", False),
        ("", "model_catalog_json = '/x'", False),
        ("", "log_dir = '/x'", False),
        ("", "features.x = true", False),
        ("", "otel.x = true", False),
        ("", "agents.x = true", False),
        ("", "plugins.x.enabled = true", False),
        ("", "project_root_markers = []", False),
        ("", "cli_auth_credentials_store = 'auto'", False),
        ("", "hide_agent_reasoning = true", False),
        ("", "approvals_reviewer = 'auto_review'", False),
        ("", "permissions.x = {}", False),
    ],
)
def test_a_trusted_project_may_only_tighten(machine: Machine, user: str, project: str, kept: bool) -> None:
    machine.trusted(user)
    plain = machine.load().config
    file = machine.project(f"\n{project}\n")
    loaded = machine.load()

    if kept:
        assert loaded.warnings == ()
        assert loaded.config != plain or project == user
        return
    assert loaded.config == plain
    [warning] = loaded.warnings
    assert warning.startswith("`")
    assert f"` in `{file}` line 2 is ignored: a project may " in warning


def test_lists_that_deny_are_added_to(machine: Machine) -> None:
    machine.trusted('sandbox.deny_read = ["/a"]\nshell_environment_policy.exclude = ["A*"]\n')
    machine.project('sandbox.deny_read = ["/b", "/a"]\nshell_environment_policy.exclude = ["B*"]\n')
    machine.project('sandbox.deny_read = ["~/c"]\n', "inner")
    config = machine.load(cwd=machine.repo / "inner").config

    assert config.sandbox.deny_read == ("/a", "/b", "~/c")
    assert config.shell_environment_policy.exclude == ("A*", "B*")


def test_an_inner_directory_cannot_loosen_what_an_outer_one_tightened(machine: Machine) -> None:
    machine.trusted('sandbox_mode = "danger-full-access"\n')
    machine.project('sandbox_mode = "read-only"\n')
    machine.project('sandbox_mode = "workspace-write"\n', "inner")
    loaded = machine.load(cwd=machine.repo / "inner")

    assert loaded.config.sandbox_mode == "read-only"
    assert loaded.warnings[0].endswith('a project may only tighten it, and it is `"read-only"`')


def test_a_flag_beats_what_a_project_tightens(machine: Machine) -> None:
    machine.trusted()
    machine.project('sandbox_mode = "read-only"\n')
    assert machine.load(flags={"sandbox_mode": "workspace-write"}).config.sandbox_mode == "workspace-write"


def test_each_refused_key_is_one_warning_and_the_rest_counts(machine: Machine) -> None:
    machine.trusted()
    file = machine.project(
        'model = "x"\nnotify = ["evil"]\n[model_providers.a]\nbase_url = "http://a"\nenv_key = "K"\n'
        '[model_providers.b]\nbase_url = "http://b"\n[profiles.x]\n[typo]\n'
    )
    loaded = machine.load()

    assert loaded.config.model == "x"
    assert loaded.warnings == (
        f"`notify` in `{file}` line 2 is ignored: a project may not set it",
        f"`model_providers` in `{file}` line 3 is ignored: a project may not set it",
        f"`profiles` in `{file}` line 8 is ignored: a profile is a file of its own, "
        "`$CODEX_HOME/NAME.config.toml`, chosen with `-p NAME`",
        f"unknown key `typo` in `{file}` line 9 is ignored",
    )


def test_a_refused_key_is_refused_whatever_its_value(machine: Machine) -> None:
    machine.trusted()
    machine.project("notify = 5\n")
    assert len(machine.load().warnings) == 1


def test_servers_and_hooks_of_a_project_are_kept_apart(machine: Machine) -> None:
    machine.trusted("[mcp_servers.mine]\ncommand = 'mine'\n")
    machine.project(
        "[mcp_servers.a]\ncommand = 'outer'\nargs = ['x']\n[mcp_servers.b]\nurl = 'http://b'\n[hooks]\nStop = [1]\n"
    )
    machine.project("[mcp_servers.a]\ncommand = 'inner'\n", "inner")
    loaded = machine.load(cwd=machine.repo / "inner")

    assert dict(loaded.config.mcp_servers) == {"mine": {"command": "mine"}}
    assert loaded.config.hooks == {}
    assert loaded.project_mcp_servers == {"a": {"command": "inner"}, "b": {"url": "http://b"}}
    assert loaded.warnings == ()


def test_a_file_that_leads_out_of_the_project_is_ignored(machine: Machine) -> None:
    machine.trusted()
    outside = write(machine.root / "outside.toml", 'model = "outside"\n')
    file = machine.repo / ".codex" / "config.toml"
    file.parent.mkdir()
    file.symlink_to(outside)
    loaded = machine.load()

    assert loaded.config.model is None
    assert loaded.warnings == (f"`{file}` is ignored: it is a link that leads out of the project",)


def test_a_directory_that_leads_out_of_the_project_is_ignored(machine: Machine) -> None:
    machine.trusted()
    write(machine.root / "other" / "config.toml", 'model = "outside"\n')
    (machine.repo / ".codex").symlink_to(machine.root / "other")

    assert machine.load().config.model is None
    assert len(machine.load().warnings) == 1


def test_a_link_inside_the_project_is_fine(machine: Machine) -> None:
    machine.trusted()
    write(machine.repo / "shared.toml", 'model = "shared"\n')
    (machine.repo / ".codex").mkdir()
    (machine.repo / ".codex" / "config.toml").symlink_to("../shared.toml")
    assert machine.load().config.model == "shared"


def test_what_is_no_regular_file_is_ignored(machine: Machine) -> None:
    machine.trusted()
    file = machine.repo / ".codex" / "config.toml"
    file.parent.mkdir()
    os.mkfifo(file)
    assert machine.load().warnings == (f"`{file}` is ignored: it is not a regular file",)
    file.unlink()
    file.mkdir()
    assert machine.load().warnings == (f"`{file}` is ignored: it is not a regular file",)
    file.rmdir()
    file.symlink_to("nowhere")
    assert machine.load().warnings == (f"`{file}` is ignored: no such file or directory",)


def test_the_user_s_own_home_is_no_project(machine: Machine) -> None:
    home = machine.root / "user"
    machine.user(f'model = "x"\nnotify = ["mine"]\n[projects."{home}"]\ntrust_level = "trusted"\n')
    loaded = machine.load(cwd=home)

    assert loaded.config.notify == ("mine",)
    assert [layer.layer_type for layer in loaded.layers] == ["user", "defaults"]
    assert loaded.warnings == ()


def test_markers_come_from_the_user_and_decide_where_a_project_begins(machine: Machine) -> None:
    inner = machine.repo / "a" / "b"
    inner.mkdir(parents=True)
    (machine.repo / "a" / "MARK").touch()
    machine.trusted('project_root_markers = ["MARK"]\n')
    machine.project('model = "root"\n')
    machine.project('review_model = "a"\n', "a")
    loaded = machine.load(cwd=inner)

    assert loaded.project_root == machine.repo / "a"
    assert (loaded.config.model, loaded.config.review_model) == (None, "a")
    assert machine.load("project_root_markers=[]", cwd=inner).project_root is None


def test_a_working_directory_that_is_gone_does_no_harm(machine: Machine) -> None:
    assert machine.load(cwd=machine.root / "gone").trust == "unknown"

"""Settings that can be said in another way: what counts, and where it is said to come from."""

from __future__ import annotations

import pytest

from codex_py.config.sections import SandboxWorkspaceWrite
from codex_py.errors import UserError
from tests.unit.config_builders import Machine


@pytest.mark.parametrize(
    ("user", "overrides", "mode", "layer"),
    [
        ('default_permissions = ":read-only"', [], "read-only", "user"),
        ('default_permissions = ":workspace"', [], "workspace-write", "user"),
        ('default_permissions = ":danger-full-access"', [], "danger-full-access", "user"),
        ('default_permissions = ":read-only"\nsandbox_mode = "workspace-write"', [], "read-only", "user"),
        ('default_permissions = ":read-only"', ["sandbox_mode=workspace-write"], "workspace-write", "flags"),
        ('sandbox_mode = "workspace-write"', ['default_permissions=":read-only"'], "read-only", "flags"),
        ('default_permissions = "mine"', ["sandbox_mode=read-only"], "read-only", "flags"),
    ],
)
def test_default_permissions_are_a_sandbox_mode(
    machine: Machine, user: str, overrides: list[str], mode: str, layer: str
) -> None:
    machine.user(user)
    loaded = machine.load(*overrides)

    assert (loaded.config.sandbox_mode, loaded.origins["sandbox_mode"].layer_type) == (mode, layer)


def test_a_named_set_is_whole(machine: Machine) -> None:
    machine.user('default_permissions = ":workspace"\n[sandbox_workspace_write]\nnetwork_access = true\n')
    assert machine.load().config.sandbox_workspace_write == SandboxWorkspaceWrite()


def test_a_set_that_cannot_be_kept_stops_the_program(machine: Machine) -> None:
    file = machine.user('default_permissions = "mine"\n[permissions.mine.filesystem]\n":root" = "read"\n')
    with pytest.raises(UserError) as caught:
        machine.load()

    assert str(caught.value) == (
        f'cannot use `default_permissions = "mine"` in `{file}` line 1: allowed are `:read-only`, `:workspace`, '
        "`:danger-full-access`"
    )


def test_what_an_administrator_requires_holds_for_default_permissions(machine: Machine) -> None:
    machine.machine("requirements.toml", 'allowed_sandbox_modes = ["read-only"]\n')
    machine.user('default_permissions = ":danger-full-access"\n')

    assert machine.load().config.sandbox_mode == "read-only"


def test_a_project_sets_neither(machine: Machine) -> None:
    machine.trusted()
    machine.project('default_permissions = ":danger-full-access"\n[features]\nweb_search_request = true\n')
    loaded = machine.load()

    assert (loaded.config.sandbox_mode, loaded.config.web_search) == (None, "cached")
    assert len(loaded.warnings) == 2


@pytest.mark.parametrize(
    ("user", "overrides", "search"),
    [
        ("", ["features.web_search_request=true"], "live"),
        ("", ["features.web_search_request=false"], "cached"),
        ("", ["features.web_search_cached=true"], "cached"),
        ('web_search = "disabled"', ["features.web_search_request=true"], "disabled"),
        ("[features]\nweb_search_request = true", ['web_search="cached"'], "cached"),
        ("[features]\nweb_search_request = true", [], "live"),
        ("[features]\nweb_search_request = true", ["features.web_search_request=false"], "cached"),
    ],
)
def test_older_switches_for_the_search_count_where_nobody_says_more(
    machine: Machine, user: str, overrides: list[str], search: str
) -> None:
    machine.user(user)
    assert machine.load(*overrides).config.web_search == search


def test_a_feature_nobody_knows_is_a_typing_error(machine: Machine) -> None:
    file = machine.user("[features]\nshel_tool = false\n")
    assert machine.load().warnings == (
        f"unknown key `features.shel_tool` in `{file}` line 2 is ignored; did you mean `features.shell_tool`?",
    )


def test_a_reviewer_that_is_not_the_user_is_reported_as_unknown(machine: Machine) -> None:
    file = machine.user('approvals_reviewer = "auto_review"\n')
    assert machine.load().warnings == (
        f"`approvals_reviewer` in `{file}` line 1 has no effect: questions go to the user",
    )

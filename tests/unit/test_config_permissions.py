"""What others can write may not make us run something."""

from __future__ import annotations

import pytest

from tests.unit.config_builders import Machine, write

RUNNING = """
model = "m"
notify = ["run"]
[mcp_servers.a]
command = "run"
[hooks]
Stop = []
[model_providers.p]
base_url = "http://127.0.0.1:1"
auth = { command = "run" }
"""


def test_a_private_file_may_run_things(machine: Machine) -> None:
    machine.user(RUNNING)
    loaded = machine.load()

    assert loaded.warnings == ()
    assert loaded.config.notify == ("run",)
    assert loaded.config.model_providers["p"].auth == {"command": "run"}


@pytest.mark.parametrize("mode", [0o660, 0o606, 0o777, 0o620])
def test_a_file_others_can_write_runs_nothing_and_the_rest_counts(machine: Machine, mode: int) -> None:
    machine.user(RUNNING).chmod(mode)
    loaded = machine.load()
    config = loaded.config

    assert (config.model, config.notify, config.mcp_servers, config.hooks) == ("m", (), {}, {})
    assert (config.model_providers["p"].base_url, config.model_providers["p"].auth) == ("http://127.0.0.1:1", None)
    assert loaded.warnings == (
        f"`{machine.user_file}` can be written by others: run `chmod go-w {machine.user_file}`; until then "
        "these keys are ignored: `notify`, `mcp_servers`, `hooks`, `model_providers.p.auth`",
    )


def test_a_file_others_can_write_trusts_no_project_and_enables_no_plugin(machine: Machine) -> None:
    text = '[plugins."p@m"]\nenabled = true\n[projects."/a"]\ntrust_level = "trusted"\n'
    machine.user(text + '[projects."/b"]\ntrust_level = "untrusted"\n').chmod(0o660)
    loaded = machine.load()

    assert loaded.config.plugins == {}
    assert {name: entry.trust_level for name, entry in loaded.config.projects.items()} == {"/b": "untrusted"}
    assert "these keys are ignored: `plugins`, `projects./a`" in loaded.warnings[0].replace('"', "")


def test_a_home_others_can_write_is_reported_once_for_all_files_in_it(machine: Machine) -> None:
    machine.user(RUNNING)
    write(machine.home / "p.config.toml", 'notify = ["run"]\n')
    machine.home.chmod(0o770)
    loaded = machine.load(profile="p")

    assert loaded.config.notify == ()
    [warning] = loaded.warnings
    assert warning.startswith(f"`{machine.home}` can be written by others: run `chmod go-w {machine.home}`")


def test_readable_for_others_is_fine(machine: Machine) -> None:
    machine.user(RUNNING).chmod(0o644)
    machine.home.chmod(0o755)
    assert machine.load().warnings == ()


def test_a_linked_file_is_judged_where_it_lies(machine: Machine) -> None:
    target = write(machine.root / "dotfiles" / "codex.toml", RUNNING)
    machine.user_file.symlink_to(target)
    assert machine.load().config.notify == ("run",)
    target.chmod(0o666)
    assert machine.load().config.notify == ()


def test_flags_are_the_user_s_own(machine: Machine) -> None:
    machine.user(RUNNING).chmod(0o666)
    assert machine.load("notify=['mine']").config.notify == ("mine",)


def test_odd_shapes_are_dropped_without_harm(machine: Machine) -> None:
    machine.user("notify = 1\nmcp_servers = 2\n[model_providers.x]\nauth = 3\n").chmod(0o666)
    assert machine.load().config.notify == ()

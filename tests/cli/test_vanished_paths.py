"""Whatever we start in a sandbox starts although a path that the sandbox needs vanishes while it is set up."""

from __future__ import annotations

import sys

import pytest

from codex_py.programs import ProbeResults
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.linux import find_bwrap
from codex_py.services.git import GitReader
from codex_py.services.working_tree import working_changes
from tests.cli.test_hooks_held import work
from tests.support.app_client import app_server
from tests.support.home import Place
from tests.support.hooks import entry, use_project_hooks
from tests.support.process import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the backends are Linux's")
SETTINGS = """sandbox.deny_read = ["private"]
[sandbox_workspace_write]
exclude_slash_tmp = true
exclude_tmpdir_env_var = true
"""


@pytest.fixture
def disturbed(place: Place) -> Place:
    """A machine on which another program removes a directory right before the first sandbox is set up."""
    bwrap, _ = find_bwrap(place.env, (), ProbeResults())
    assert bwrap is not None
    private = place.repo / "private"
    private.mkdir()
    program = place.home / "bin" / "bwrap"
    program.parent.mkdir()
    # Sandboxes are tried out with `echo held`, before the mounts of the first command are laid out or after it.
    program.write_text(
        f'#!/bin/sh\ncase "$*" in *"echo held") exec {bwrap} "$@";; esac\n'
        f"rmdir {private} 2>/dev/null && echo >> {place.home}/vanished\n"
        f'exec {bwrap} "$@"\n'
    )
    program.chmod(0o755)
    return place.with_env(PATH=f"{program.parent}:{place.env['PATH']}")


def has_vanished(place: Place) -> bool:
    return (place.home / "vanished").exists()


def test_a_hook_runs_although_a_path_vanishes(disturbed: Place) -> None:
    disturbed.write("check.sh", "cat >> inside\n")
    use_project_hooks(disturbed, PreToolUse=[entry("sh check.sh", "Bash")])
    assert run(disturbed, "hooks", "trust", "--yes").status == 0
    ended, _ = work(disturbed, "true", top=SETTINGS)
    assert has_vanished(disturbed)
    assert "bwrap" not in ended.err
    assert (disturbed.repo / "inside").read_text().count("PreToolUse") == 1


def test_a_single_command_runs_although_a_path_vanishes(disturbed: Place) -> None:
    disturbed.configure(SETTINGS)
    with app_server(disturbed) as client:
        ended = client.ask("command/exec", command=["sh", "-c", "echo ran; exit 1"], cwd=str(disturbed.repo))
        client.close()
    assert has_vanished(disturbed)
    assert (ended["exitCode"], ended["stdout"], ended["stderr"]) == (1, "ran\n", "")


def test_git_runs_although_a_path_vanishes(disturbed: Place) -> None:
    sandbox = Sandbox(disturbed.env, deny_read=(str(disturbed.repo / "private"),), backends=("bubblewrap",))
    changes = working_changes(GitReader(disturbed.repo, disturbed.env, sandbox=sandbox))
    assert has_vanished(disturbed)
    assert changes == ()

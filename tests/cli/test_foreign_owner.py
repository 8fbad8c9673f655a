"""Root in a repository of another user: what works there, and the reason for what does not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fake_responses import FakeResponses, call, custom_call, say
from tests.support.home import Place
from tests.support.process import run

pytestmark = pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root has such a sandbox")
OWNER = 4321
PATCH = "*** Begin Patch\n*** Update File: README.md\n@@\n-# Demo\n+# Changed\n*** End Patch\n"
NARROW = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
REASON = "because inside the sandbox root has no rights over files of other users"


@pytest.fixture
def foreign(place: Place) -> Place:
    commands = "git checkout -qb side && git commit -q --allow-empty -m more"
    subprocess.run(commands, shell=True, cwd=place.repo, env=place.env, check=True)
    place.write("README.md", "# Demo\n\nA small demo.\n")
    subprocess.run(["chown", "-R", f"{OWNER}:{OWNER}", place.repo], check=True)
    return place


@pytest.mark.parametrize("cmd", ["echo x >> README.md", "touch new", "git status", "mkdir deep && cd deep"])
def test_the_user_and_the_model_hear_why_a_command_cannot_write(foreign: Place, cmd: str) -> None:
    with FakeResponses([call("c", "exec_command", {"cmd": cmd, "login": False})], [say("done")]) as model:
        foreign.use_model(model.base_url, NARROW)
        ended = run(foreign, "exec", "-s", "workspace-write", "go")
    output = model.requests[-1].output_of("c")
    assert REASON in output, output
    assert f"--user {OWNER}:{OWNER}" in output
    assert ended.err.count(REASON) == 1, ended.err


def test_a_command_in_the_sandbox_says_it_too(foreign: Place) -> None:
    ended = run(
        foreign,
        "sandbox",
        "-s",
        "workspace-write",
        "-c",
        "sandbox_workspace_write.exclude_slash_tmp=true",
        "--",
        "true",
    )
    assert REASON in ended.err


@pytest.mark.parametrize("mode", [0o755, 0o777])
def test_nothing_is_said_where_commands_can_write(place: Place, mode: int) -> None:
    place.repo.chmod(mode)
    if mode == 0o777:
        os.chown(place.repo, OWNER, OWNER)
    with FakeResponses([call("c", "exec_command", {"cmd": "touch new", "login": False})], [say("done")]) as model:
        place.use_model(model.base_url, NARROW)
        ended = run(place, "exec", "-s", "workspace-write", "go")
    assert (place.repo / "new").exists()
    assert REASON not in ended.err


def test_patches_checkpoints_and_reviews_work_there(foreign: Place) -> None:
    with FakeResponses([custom_call("p", "apply_patch", PATCH)], [say("done")]) as model:
        foreign.use_model(model.base_url, NARROW)
        ended = run(foreign, "exec", "-s", "workspace-write", "go")
    readme = foreign.repo / "README.md"
    assert readme.read_text().startswith("# Changed"), ended.err
    assert readme.stat().st_uid == OWNER
    session = foreign.rollouts()[0].stem[-36:]
    assert run(foreign, "sessions", "rewind", session, "--to", "1").status == 0
    assert readme.read_text().startswith("# Demo")
    assert readme.stat().st_uid == OWNER
    readme.write_text("# Other\n")
    with FakeResponses([say("fine")]) as model:
        foreign.use_model(model.base_url)
        ended = run(foreign, "exec", "review", "--base", "main")
    assert (ended.status, ended.out) == (0, "fine\n"), ended.err


def test_the_changes_of_a_run_are_collected_there(foreign: Place, tmp_path: Path) -> None:
    with FakeResponses([custom_call("p", "apply_patch", PATCH)], [say("done")]) as model:
        foreign.use_model(model.base_url, NARROW)
        ended = run(foreign, "exec", "-s", "workspace-write", "--artifacts", tmp_path / "art", "go")
    assert ended.status == 0, ended.err
    [patch] = (tmp_path / "art").rglob("*.patch")
    assert "+# Changed" in patch.read_text()

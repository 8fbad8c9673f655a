"""The directory of the administrator, `/etc/codex/skills`, with an `/etc` of the test's own put over the real one."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from codex_py.programs import ProbeResults
from codex_py.sandbox.linux import find_bwrap
from tests.support.fake_responses import fake_model, say
from tests.support.home import Place
from tests.support.machine import need
from tests.support.process import COMMAND, Finished, Running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")


@pytest.fixture
def bwrap() -> str:
    found, _ = find_bwrap(os.environ, (), ProbeResults())
    assert found, "bubblewrap is missing: `scripts/setup dev` installs it"
    need([found, "--dev-bind", "/", "/", "true"], "namespaces for bubblewrap")
    return found


@pytest.fixture
def etc(tmp_path: Path) -> Path:
    """What a process finds in `/etc`: the accounts, and a skill of the administrator's."""
    etc = tmp_path / "etc"
    skill = etc / "codex/skills/rollout/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: rollout\ndescription: Roll a release out.\n---\nAsk first.\n")
    for name in ("passwd", "group"):
        shutil.copy(f"/etc/{name}", etc / name)
    return etc


def run_with(bwrap: str, etc: Path, place: Place, *arguments: str) -> Finished:
    argv = [bwrap, "--dev-bind", "/", "/", "--bind", str(etc), "/etc", COMMAND, *arguments]
    with Running(argv, env=place.env, cwd=place.repo) as running:
        return running.wait()


def test_skills_of_the_administrator_are_listed_and_mentionable(place: Place, etc: Path, bwrap: str) -> None:
    path = "/etc/codex/skills/rollout/SKILL.md"
    with fake_model(place, [say("done")], top="[skills.bundled]\nenabled = false\n") as model:
        ended = run_with(bwrap, etc, place, "exec", "use $rollout")
    assert ended.status == 0, ended.err
    assert f"- rollout: Roll a release out. (file: {path})" in model.requests[0].texts("developer")[0]
    body = (etc / "codex/skills/rollout/SKILL.md").read_text()
    assert model.requests[0].texts("user")[-2:] == [
        f"<skill>\n<name>rollout</name>\n<path>{path}</path>\n{body}\n</skill>",
        "use $rollout",
    ]


def test_they_come_after_the_users_own_and_are_switched_off_like_them(place: Place, etc: Path, bwrap: str) -> None:
    place.configure("[skills.bundled]\nenabled = false\n")
    own = place.codex_home / "skills/zebra/SKILL.md"
    own.parent.mkdir(parents=True)
    own.write_text("---\nname: zebra\ndescription: Mine.\n---\n")
    ended = run_with(bwrap, etc, place, "skills", "disable", "rollout")
    assert ended.status == 0, ended.err
    found = json.loads(run_with(bwrap, etc, place, "skills", "list", "--json").out)["skills"]
    assert [(one["name"], one["scope"], one["enabled"]) for one in found] == [
        ("zebra", "user", True),
        ("rollout", "admin", False),
    ]

"""The bundled `$skill-installer`: the model installs with `codex-py skills`, in the sandbox and with approvals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.fake_responses import Request, call, fake_model, say
from tests.support.home import Place
from tests.support.process import Finished, run
from tests.support.skill_sources import records_of, skill_files, usable, user_root, write_files

INSTALLER = Path(__file__).parents[2] / "skills/skill-installer"


def follow(place: Place, *commands: str, options: tuple[str, ...] = ()) -> tuple[Finished, list[Request]]:
    """A run with the skill, in which the model runs these commands."""
    calls = [[call(f"c{n}", "exec_command", {"cmd": cmd, "login": False})] for n, cmd in enumerate(commands)]
    with fake_model(place, *calls, [say("done")]) as model:
        ended = run(place, "exec", *options, "use $skill-installer to install spell")
    return ended, model.requests


def test_it_fetches_nothing_by_itself() -> None:
    text = (INSTALLER / "SKILL.md").read_text()
    assert not (INSTALLER / "scripts").exists()
    assert 'codex-py skills install "<source>"' in text


def test_the_model_looks_and_installs_into_the_project(place: Place, tmp_path: Path) -> None:
    source = write_files(tmp_path / "packs/spell", skill_files())
    ended, requests = follow(
        place,
        f"codex-py skills install {source.parent} --dry-run",
        f"codex-py skills install {source.parent} --skill spell --scope project --yes",
        "codex-py skills list --installed",
        options=("-s", "workspace-write", "--allow-skills"),
    )
    assert ended.status == 0, ended.err
    assert "# Skill installer" in str(requests[0].body)
    outputs = [requests[-1].output_of(f"c{n}") for n in range(3)]
    assert "scripts: scripts/check.sh" in outputs[0]
    assert "installed the skill `spell`" in outputs[1], outputs[1]
    assert f"from {source.parent}" in outputs[2]
    root = place.repo / ".agents/skills"
    # The model has agreed to nothing for the user.
    assert "consent is not recorded" in outputs[1]
    assert records_of(place, root) == {}
    assert list(json.loads((place.repo / "skills-lock.json").read_text())["skills"]) == ["spell"]
    assert "spell" in usable(place)


@pytest.mark.parametrize("scope", ["user", "project"])
def test_without_permission_the_sandbox_keeps_skills_out(place: Place, tmp_path: Path, scope: str) -> None:
    source = write_files(tmp_path / "packs/spell", skill_files())
    (place.repo / ".agents").mkdir()
    ended, requests = follow(
        place,
        f"codex-py skills install {source.parent} --scope {scope} --yes; echo status $?",
        # The home of the test lies in `/tmp`, where commands may write.
        options=("-s", "workspace-write", "-c", "sandbox_workspace_write.exclude_slash_tmp=true"),
    )
    assert ended.status == 0, ended.err
    output = requests[-1].output_of("c0")
    assert "status 1" in output
    assert "Traceback" not in output
    assert "spell" not in usable(place)


def test_what_is_installed_is_listed_with_its_source(place: Place, tmp_path: Path) -> None:
    source = write_files(tmp_path / "packs/spell", skill_files())
    assert "no skills are installed" in run(place, "skills", "list", "--installed").err
    assert run(place, "skills", "install", str(source.parent), "--yes").status == 0
    (user_root(place) / "spell/SKILL.md").write_text(skill_files(body="Mine.")["SKILL.md"])
    [listed] = json.loads(run(place, "skills", "list", "--installed", "--json").out)
    assert (listed["name"], listed["edited"]) == ("spell", True)
    assert "edited since" in run(place, "skills", "list", "--installed").out

"""What skills need, tried out; the servers that were written for them, and what is left when they are gone."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_responses import fake_model, say
from tests.support.home import Place
from tests.support.mcp_servers import odd_words
from tests.support.process import run
from tests.support.skill_sources import skill_files, skills, write_files
from tests.support.skills import NO_BUNDLED

MINE = '\n# about mine\n[mcp_servers.mine]\ncommand = "true" # as it is\nenabled = false\n'


def needy(place: Place, name: str, *needs: str) -> Path:
    tools = "".join(f"    - {need}\n" for need in needs)
    files = skill_files(name) | {"agents/openai.yaml": f"dependencies:\n  tools:\n{tools}"}
    return write_files(place.codex_home / "skills" / name, files)


def odd_need(name: str, mode: str = "good") -> str:
    return f"{{type: mcp, value: {name}, transport: stdio, command: '{shlex.join(odd_words(mode))}'}}"


def use_skill(place: Place, name: str, top: str = "", *flags: str) -> str:
    """Name a skill in a session; what was said on stderr."""
    with fake_model(place, [say("done")], top=f"{top}{NO_BUNDLED}{MINE}"):
        ended = run(place, "exec", *flags, f"use ${name}")
        assert ended.status == 0, ended.err
    return ended.err


def config(place: Place) -> str:
    return (place.codex_home / "config.toml").read_text()


def servers(place: Place) -> dict[str, Any]:
    return tomllib.loads(config(place))["mcp_servers"]


def orphans(place: Place) -> list[dict[str, str]]:
    return json.loads(skills(place, "doctor", "--json").out)["orphans"]


def test_what_a_skill_needs_is_shown_with_what_a_look_tells(place: Place) -> None:
    skill = needy(
        place,
        "good",
        odd_need("odd", "crash"),
        "{type: env_var, value: SPELL_KEY}",
        "{type: cli, value: git, description: for history}",
        "{type: cli, value: no-such-program}",
        "{type: cli, value: 'rm -rf /'}",
        "{type: magic, value: wand}",
    )
    use_skill(place, "good", "", "--install-dependencies")
    expected = [
        ("mcp", "odd", "configured"),
        ("env_var", "SPELL_KEY", "missing"),
        ("cli", "git", "found"),
        ("cli", "no-such-program", "missing"),
        ("cli", "rm -rf /", "not the name of a program"),
        ("unknown", "wand", "its type is none of `mcp`, `env_var`, `cli`"),
    ]
    for arguments in ((), ("good",), (str(skill),)):
        ended = skills(place, "show", *arguments, "--json")
        written = json.loads(ended.out)[0]["needs"] if arguments else json.loads(ended.out)
        mine = [need for need in written if need["skill"] == "good"]
        assert [(need["kind"], need["name"], need["status"]) for need in mine] == expected
    shown = skills(place, "show", "good").out
    assert "cli git (for history): found" in shown
    assert "there" not in skills(place, "show").out
    # A server that dies is configured; only a try tells that it is dead.
    checked = skills(place, "show", "good", "--check")
    assert checked.status == 1
    [row] = [line for line in checked.out.splitlines() if " mcp " in line]
    assert "fails: " in row


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("deps --json", "show"),
        ("outdated", "update --check"),
        ("diff", "update --diff"),
        ("accept", "update --accept"),
    ],
)
def test_an_old_name_works_and_names_the_new_one(place: Place, old: str, new: str) -> None:
    name, *options = old.split()
    ended = skills(place, name, *options)
    assert ended.err.splitlines()[0] == f"`skills {name}` is now `codex-py skills {new}`"
    same = skills(place, *new.split(), *options)
    assert (ended.status, ended.out) == (same.status, same.out)
    assert f"  {name} " not in skills(place, "--help").out


def test_what_a_skill_needs_is_tried_out(place: Place) -> None:
    needy(place, "good", odd_need("odd"), "{type: env_var, value: SPELL_KEY}", "{type: cli, value: git}")
    needy(place, "bad", odd_need("gone"), "{type: env_var, value: NO_KEY}", "{type: cli, value: no-such-program}")
    use_skill(place, "good", "", "--install-dependencies")
    ended = skills(place.with_env(SPELL_KEY="secret-of-mine"), "show", "--check", "--json")
    found = {(need["skill"], need["kind"]): (need["works"], need["detail"]) for need in json.loads(ended.out)}
    assert ended.status == 1
    assert found["good", "env_var"] == (True, "set")
    assert found["good", "cli"][0] is True
    assert found["good", "cli"][1].startswith("git version")
    assert found["good", "mcp"][0] is True
    assert "tools" in found["good", "mcp"][1]
    assert found["bad", "env_var"] == (False, "not set")
    assert found["bad", "cli"][0] is False
    assert "secret-of-mine" not in ended.out


def test_a_server_of_a_removed_skill_is_an_orphan_and_exactly_it_is_removed(place: Place) -> None:
    skill = needy(place, "helper", odd_need("odd"))
    use_skill(place, "helper", "", "--install-dependencies")
    place.configure(config(place) + '\n# about the last\n[mcp_servers.last]\ncommand = "true"\nenabled = false\n')
    assert f'["{skill}/SKILL.md"]' in config(place)
    assert orphans(place) == []
    assert skills(place, "doctor", "--fix", "--yes").status == 0
    before = servers(place)
    assert set(before) == {"mine", "odd", "last"}
    for path in sorted(skill.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    assert [orphan["name"] for orphan in orphans(place)] == ["odd"]
    assert "`odd`: the skill" in skills(place, "doctor").out
    refused = skills(place, "doctor", "--fix")
    assert (refused.status, servers(place)) == (2, before)
    assert skills(place, "doctor", "--fix", "--yes").status == 0
    assert set(servers(place)) == {"mine", "last"}
    for comment in ("# about mine", "# as it is", "# about the last"):
        assert comment in config(place)


def test_a_server_is_an_orphan_when_its_skill_is_off_or_needs_it_no_more(place: Place) -> None:
    skill = needy(place, "helper", odd_need("odd"))
    use_skill(place, "helper", "", "--install-dependencies")
    assert skills(place, "disable", "helper").status == 0
    assert "switched off" in orphans(place)[0]["reason"]
    assert skills(place, "enable", "helper").status == 0
    assert orphans(place) == []
    (skill / "agents/openai.yaml").write_text("policy: {}\n")
    assert "does not need it any more" in orphans(place)[0]["reason"]


def test_one_setting_decides_about_missing_servers(place: Place) -> None:
    needy(place, "helper", odd_need("odd"))
    use_skill(place, "helper", '[skills]\ninstall_mcp_dependencies = "never"\n')
    assert set(servers(place)) == {"mine"}
    use_skill(place, "helper", '[skills]\ninstall_mcp_dependencies = "always"\n')
    assert set(servers(place)) == {"mine", "odd"}

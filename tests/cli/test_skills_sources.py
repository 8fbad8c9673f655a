"""Skills from servers on the loopback, beside the lock of another program, and a repository that is too large."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.home import Place
from tests.support.skill_servers import endless_repository, git_daemon, git_over_http, npm_registry
from tests.support.skill_sources import (
    git,
    lock_of,
    npm_archive,
    repository,
    save,
    skill_files,
    skills,
    usable,
    write_files,
)
from tests.support.skills import NO_BUNDLED


@pytest.fixture
def user(place: Place) -> Place:
    place.configure(NO_BUNDLED)
    return place


@pytest.mark.parametrize("server", [git_over_http, git_daemon])
def test_a_skill_comes_from_a_git_server_and_is_updated_from_it(user: Place, tmp_path: Path, server: object) -> None:
    repository(user, tmp_path / "packs")
    serve = git_over_http if server is git_over_http else git_daemon
    with serve(tmp_path, user.env) as address:
        ended = skills(user, "install", f"{address}/packs/.git#main:skills/spell", "--yes")
        assert ended.status == 0, ended.err
        write_files(tmp_path / "packs/skills/spell", skill_files(body="Read it once."))
        commit = save(user, tmp_path / "packs")
        assert skills(user, "update", "--check").status == 1
        ended = skills(user, "update", "--yes")
        assert ended.status == 0, ended.err
    assert "Read it once." in usable(user)["spell"]
    entry = lock_of(user.codex_home / "skills")["spell"]
    assert (entry["source"], entry["commit"]) == (f"{address}/packs/.git", commit)


def test_a_package_of_a_registry_is_fetched_without_running_anything(user: Place, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    script = f"touch {ran}"
    archives: dict[str, Path] = {}
    for version, body in (("1.0.0", "Read it twice."), ("1.1.0", "Read it once.")):
        manifest = {
            "name": "spell-skill",
            "version": version,
            "scripts": dict.fromkeys(
                ("preinstall", "install", "postinstall", "prepare", "prepack", "postpack"), script
            ),
        }
        directory = write_files(tmp_path / version / "skills/spell", skill_files(body=body)).parents[1]
        (directory / "package.json").write_text(json.dumps(manifest))
        archives[version] = npm_archive(directory, tmp_path / f"{version}.tgz")
    with npm_registry("spell-skill", archives) as address:
        user = user.with_env(npm_config_registry=address)
        ended = skills(user, "install", "npm:spell-skill@1.0.0", "--yes")
        assert ended.status == 0, ended.err
        entry = lock_of(user.codex_home / "skills")["spell"]
        assert (entry["kind"], entry["source"], entry["version"]) == ("npm", "spell-skill", "1.0.0")
        assert "Read it twice." in usable(user)["spell"]
        assert skills(user, "remove", "spell").status == 0
        ended = skills(user, "install", "npm:spell-skill", "--yes")
        assert ended.status == 0, ended.err
        assert lock_of(user.codex_home / "skills")["spell"]["version"] == "1.1.0"
        missing = skills(user, "install", "npm:no-such-package", "--yes")
        assert (missing.status, len(missing.err.splitlines())) == (1, 1)
    assert "Read it once." in usable(user)["spell"]
    assert not ran.exists()


def test_a_repository_that_is_too_large_is_refused_while_it_is_downloaded(user: Place, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with endless_repository(600 * 1024 * 1024) as (address, sent):
        ended = skills(user.with_env(TMPDIR=str(work)), "install", address, "--yes")
    assert (ended.status, ended.err) == (
        1,
        "error: the repository is refused: more than 256 MiB would be downloaded\n",
    )
    assert 0 < max(sent) < 600 * 1024 * 1024
    assert not list(work.iterdir())


# As version 1.7.4 of the program writes it for this skill; only the address differs.
OTHER_LOCK = """\
{
  "version": 1,
  "skills": {
    "spell": {
      "source": "ADDRESS",
      "sourceUrl": "ADDRESS",
      "sourceType": "git",
      "skillPath": "skills/spell/SKILL.md",
      "computedHash": "27106afb00409242194230926cdf03e6f0abcb48939329687c4a73c24f1ae408"
    }
  }
}
"""
OTHER_FILES = {
    "SKILL.md": "---\nname: spell\ndescription: Check the spelling. Use when a text is published.\n---\n"
    "Read it twice.\n",
    "scripts/check.sh": "#!/bin/sh\necho fine\n",
}


def test_the_lock_of_the_skills_program_is_read_and_kept(user: Place, tmp_path: Path) -> None:
    address = repository(user, tmp_path / "packs", OTHER_FILES)
    written = OTHER_LOCK.replace("ADDRESS", address)
    lock = user.write("skills-lock.json", written)
    write_files(user.repo / ".agents/skills/spell", OTHER_FILES)
    [listed] = json.loads(skills(user, "list", "--installed", "--json").out)
    assert (listed["name"], listed["source"], listed["path"]) == ("spell", address, "skills/spell")
    # An install of the same version writes the same entry, hash and all.
    ended = skills(user, "install", f"{address}#main:skills", "--scope", "project", "--yes")
    assert ended.status == 0, ended.err
    assert skills(user, "install", address, "--scope", "project", "--yes").status == 0
    assert lock.read_text() == written
    write_files(tmp_path / "packs/skills/spell", {"SKILL.md": OTHER_FILES["SKILL.md"] + "And once more.\n"})
    save(user, tmp_path / "packs")
    ended = skills(user, "update", "--yes")
    assert ended.status == 0, ended.err
    entry = json.loads(lock.read_text())["skills"]["spell"]
    assert {**entry, "computedHash": ""} == {**json.loads(written)["skills"]["spell"], "computedHash": ""}
    assert entry["computedHash"] != json.loads(written)["skills"]["spell"]["computedHash"]
    assert skills(user, "remove", "spell").status == 0
    assert json.loads(lock.read_text()) == {"version": 1, "skills": {}}


# As version 1.7.4 of the program writes it for the user; the addresses differ, and the one of GitHub is not reached.
USER_LOCK = """\
{
  "version": 3,
  "skills": {
    "spell": {
      "source": "acme/packs",
      "sourceType": "github",
      "sourceUrl": "ADDRESS",
      "skillPath": "skills/spell/SKILL.md",
      "skillFolderHash": "0000000000000000000000000000000000000000",
      "pluginName": "words",
      "installedAt": "2026-11-23T17:54:53.357Z",
      "updatedAt": "2026-11-23T17:54:53.357Z"
    },
    "count": {
      "source": "ADDRESS",
      "sourceType": "git",
      "sourceUrl": "ADDRESS",
      "ref": "main",
      "skillPath": "skills/count/SKILL.md",
      "skillFolderHash": "27106afb00409242194230926cdf03e6f0abcb48939329687c4a73c24f1ae408",
      "installedAt": "2026-11-23T17:54:53.357Z",
      "updatedAt": "2026-11-23T17:54:54.796Z"
    },
    "near": {
      "source": "LOCAL",
      "sourceType": "local",
      "sourceUrl": "LOCAL",
      "skillFolderHash": "27106afb00409242194230926cdf03e6f0abcb48939329687c4a73c24f1ae408",
      "installedAt": "2026-11-23T17:53:30.341Z",
      "updatedAt": "2026-11-23T17:53:30.341Z"
    },
    "elsewhere": {
      "source": "example.com",
      "sourceType": "well-known",
      "sourceUrl": "https://example.com/.well-known/skills/elsewhere",
      "skillFolderHash": ""
    }
  },
  "dismissed": {
    "findSkillsPrompt": true
  },
  "lastSelectedAgents": [
    "codex"
  ]
}"""


@pytest.mark.parametrize("state", ["", "state"], ids=["in .agents", "in XDG_STATE_HOME"])
def test_the_users_lock_of_the_skills_program_is_read_and_kept(user: Place, tmp_path: Path, state: str) -> None:
    address = repository(user, tmp_path / "packs", OTHER_FILES)
    write_files(tmp_path / "packs/skills/count", skill_files("count"))
    write_files(tmp_path / "local/near", skill_files("near"))
    root, lock = user.home / ".agents/skills", user.home / ".agents/.skill-lock.json"
    if state:
        user = user.with_env(XDG_STATE_HOME=str(user.home / state))
        lock = user.home / state / "skills/.skill-lock.json"
    before = USER_LOCK.replace("ADDRESS", address).replace("LOCAL", str(tmp_path / "local"))
    write_files(lock.parent, {lock.name: before})
    write_files(root / "spell", OTHER_FILES)
    for name in ("count", "near", "elsewhere"):
        write_files(root / name, skill_files(name))
    listed = {entry["name"]: entry["source"] for entry in json.loads(skills(user, "list", "--installed", "--json").out)}
    assert listed == {"spell": address, "count": address, "near": str(tmp_path / "local")}
    write_files(tmp_path / "packs/skills/spell", {"SKILL.md": OTHER_FILES["SKILL.md"] + "And once more.\n"})
    save(user, tmp_path / "packs")
    ended = skills(user, "update", "--yes")
    assert ended.status == 0, ended.err
    assert "And once more." in usable(user)["spell"]
    after, entries = json.loads(lock.read_text()), json.loads(before)["skills"]
    written = after["skills"]
    # What GitHub says of the directory, which the program compares it with.
    assert written["spell"]["skillFolderHash"] == git(user, tmp_path / "packs", "rev-parse", "HEAD:skills/spell")
    for name in ("spell", "count", "near"):
        assert written[name]["installedAt"] == entries[name]["installedAt"]
        assert list(written[name]) == list(entries[name])
    changed = dict.fromkeys(("skillFolderHash", "updatedAt"))
    assert {name: {**entry, **changed} for name, entry in written.items()} == {
        name: {**entry, **changed} for name, entry in entries.items()
    }
    assert {**after, "skills": entries} == json.loads(before)
    assert skills(user, "update", "--check").status == 0
    assert skills(user, "remove", "spell").status == 0
    assert sorted(json.loads(lock.read_text())["skills"]) == ["count", "elsewhere", "near"]
    assert sorted(usable(user)) == ["count", "elsewhere", "near"]


def test_a_local_source_in_the_lock_of_the_skills_program_starts_at_the_lock(user: Place) -> None:
    """As version 1.7.4 writes it for `skills add ./packs`."""
    entry = {"source": "./packs", "sourceType": "local", "computedHash": "0" * 64}
    lock = user.write("skills-lock.json", json.dumps({"version": 1, "skills": {"spell": entry}}, indent=2) + "\n")
    write_files(user.repo / "packs/spell", OTHER_FILES)
    write_files(user.repo / ".agents/skills/spell", OTHER_FILES)
    (user.repo / "inner").mkdir()
    ended = skills(user, "update", "--yes", cwd=user.repo / "inner")
    assert ended.status == 0, ended.err
    [written] = json.loads(lock.read_text())["skills"].values()
    assert written == {**entry, "computedHash": "27106afb00409242194230926cdf03e6f0abcb48939329687c4a73c24f1ae408"}

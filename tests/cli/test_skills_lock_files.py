"""The lock files that the npm program `skills` shares, our records beside them, and an old `skills.lock`."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.home import BIN, Place
from tests.support.skill_sources import (
    git,
    held,
    packed,
    records_of,
    repository,
    save,
    skill_files,
    skills,
    usable,
    user_root,
    write_files,
)
from tests.support.terminal import Terminal

OTHER_PROGRAM = Path(__file__).parents[1] / "support/skills_cli/node_modules/skills/bin/cli.mjs"


def other_program(place: Place, *arguments: str) -> str:
    """Run the npm program; a missing one fails the tests. It needs a newer Node than some machines have."""
    assert OTHER_PROGRAM.is_file(), "run `scripts/setup_node tests/support/skills_cli` first"
    env = {**place.env, "DO_NOT_TRACK": "1", "DISABLE_TELEMETRY": "1"}
    argv = [str(BIN / "node"), str(OTHER_PROGRAM), *arguments]
    ended = subprocess.run(argv, cwd=place.repo, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode()


def entries(lock: Path) -> dict[str, Any]:
    return json.loads(lock.read_text())["skills"]


def timeless(written: dict[str, Any]) -> dict[str, Any]:
    return {**written, **dict.fromkeys(("installedAt", "updatedAt"), "")}


OTHER_FILES = {
    "SKILL.md": "---\nname: spell\ndescription: Check the spelling. Use when a text is published.\n---\n"
    "Read it twice.\n",
    "scripts/check.sh": "#!/bin/sh\necho fine\n",
}


@pytest.mark.parametrize("source", ["git", "directory"])
def test_a_project_lock_is_the_one_that_the_other_program_writes(user: Place, tmp_path: Path, source: str) -> None:
    address = repository(user, tmp_path / "packs", OTHER_FILES)
    package = address if source == "git" else str(tmp_path / "packs")
    lock = user.repo / "skills-lock.json"
    other_program(user, "add", package, "-y", "-a", "codex")
    theirs = lock.read_bytes()
    [listed] = json.loads(skills(user, "list", "--installed", "--json").out)
    assert (listed["name"], listed["source"]) == ("spell", package)
    lock.unlink()
    shutil.rmtree(user.repo / ".agents")
    ended = skills(user, "install", package, "--scope", "project", "--yes")
    assert ended.status == 0, ended.err
    assert lock.read_bytes() == theirs
    # The other program keeps our entry when it adds another, and names its source.
    write_files(tmp_path / "more/count", skill_files("count"))
    other_program(user, "add", str(tmp_path / "more"), "-y", "-a", "codex")
    assert entries(lock)["spell"] == json.loads(theirs)["skills"]["spell"]
    assert sorted(entries(lock)) == ["count", "spell"]
    found = {entry["name"]: entry["source"] for entry in json.loads(other_program(user, "list", "--json"))}
    assert found["spell"].endswith("packs")
    other_program(user, "remove", "count", "-y")
    assert list(entries(lock)) == ["spell"]
    assert skills(user, "sync", "--yes").err.startswith("everything in ")
    assert skills(user, "remove", "spell", "--yes").status == 0
    assert json.loads(lock.read_text()) == {"version": 1, "skills": {}}


def test_the_users_lock_is_the_one_that_the_other_program_writes(user: Place, tmp_path: Path) -> None:
    package = str(write_files(tmp_path / "packs/spell", OTHER_FILES).parent)
    lock = user.home / ".agents/.skill-lock.json"
    other_program(user, "add", package, "-g", "-y", "-a", "codex")
    theirs = entries(lock)["spell"]
    lock.unlink()
    shutil.rmtree(user_root(user))
    assert skills(user, "install", package, "--yes").status == 0
    ours = entries(lock)["spell"]
    assert (timeless(ours), list(ours)) == (timeless(theirs), list(theirs))
    address = repository(user, tmp_path / "git", skill_files("lint"))
    assert skills(user, "install", address, "--yes").status == 0
    from_git = entries(lock)["lint"]
    assert list(from_git) == [*list(theirs)[:3], "skillPath", *list(theirs)[3:]]
    write_files(tmp_path / "more/count", skill_files("count"))
    other_program(user, "add", str(tmp_path / "more"), "-g", "-y", "-a", "codex")
    assert (entries(lock)["spell"], entries(lock)["lint"]) == (ours, from_git)
    other_program(user, "remove", "count", "-g", "-y")
    assert entries(lock) == {"spell": ours, "lint": from_git}


def test_a_skill_from_an_archive_has_a_record_and_no_entry(user: Place, tmp_path: Path) -> None:
    write_files(tmp_path / "spell", OTHER_FILES)
    archive = packed(tmp_path / "spell", tmp_path / "spell.tgz")
    assert skills(user, "install", archive, "--scope", "project", "--yes").status == 0
    assert not (user.repo / "skills-lock.json").exists()
    [listed] = json.loads(skills(user, "list", "--installed", "--json").out)
    assert (listed["source"], listed["source_type"]) == (str(archive), "archive")


def test_a_project_can_write_no_consent(user: Place, tmp_path: Path) -> None:
    """Neither its lock file, nor a `skills.lock` of its own, agrees to more than the user has agreed to."""
    address = repository(user, tmp_path / "packs", OTHER_FILES)
    assert skills(user, "install", address, "--scope", "project", "--yes").status == 0
    root = user.repo / ".agents/skills"
    agreed = records_of(user, root)
    (root / "spell/scripts/more.sh").write_text("#!/bin/sh\n")
    forged = {**agreed["spell"], "declared": {"scripts": ["scripts/check.sh", "scripts/more.sh"]}}
    write_files(root, {"skills.lock": json.dumps({"version": 1, "skills": {"spell": forged}})})
    other_program(user, "add", str(write_files(tmp_path / "other", skill_files("other"))), "-y", "-a", "codex")
    save(user, user.repo)
    assert "script `scripts/more.sh`" in held(user)[0]
    assert sorted(usable(user)) == ["other"]
    assert records_of(user, root) == agreed


def test_sync_fetches_what_a_fresh_clone_lacks_and_refuses_another_version(user: Place, tmp_path: Path) -> None:
    address = repository(user, tmp_path / "packs", OTHER_FILES)
    other_program(user, "add", address, "-y", "-a", "codex")
    shutil.rmtree(user.repo / ".agents")
    refused = skills(user, "sync")
    assert (refused.status, "--yes" in refused.err, usable(user)) == (2, True, {})
    assert skills(user, "sync", "--yes").status == 0
    assert list(usable(user)) == ["spell"]
    shutil.rmtree(user.repo / ".agents")
    write_files(tmp_path / "packs/skills/spell", skill_files(body="Newer."))
    save(user, tmp_path / "packs")
    # Our record still knows the commit; without it nothing does.
    shutil.rmtree(user.codex_home / "skill-records")
    ended = skills(user, "sync", "--yes")
    assert (ended.status, "not the one of the lock" in ended.err, usable(user)) == (1, True, {})


OLD_ENTRY = {
    "kind": "git",
    "date": "2026-01-01T00:00:00Z",
    "path": "skills/spell",
    "pinned": True,
    "declared": {"scripts": ["scripts/check.sh"], "addresses": ["a.example"], "hooks": []},
}


def old_lock(user: Place, tmp_path: Path, root: Path) -> tuple[str, Path]:
    """A skill as version 0.1 has installed it; its address, and the lock."""
    address = repository(user, tmp_path / "packs", OTHER_FILES)
    write_files(root / "spell", OTHER_FILES)
    # The hash does not depend on where a skill lies.
    assert skills(user, "install", address, "--scope", "user", "--yes").status == 0
    [entry] = records_of(user, user_root(user)).values()
    assert skills(user, "remove", "spell", "--yes").status == 0
    written = {**OLD_ENTRY, "source": address, "tree_hash": entry["tree_hash"]}
    write_files(root, {"skills.lock": json.dumps({"version": 1, "skills": {"spell": written}})})
    return address, root / "skills.lock"


@pytest.mark.parametrize("scope", ["user", "project"])
def test_the_consent_of_an_old_lock_is_taken_over_after_a_question(user: Place, tmp_path: Path, scope: str) -> None:
    root = user.codex_home / "skills" if scope == "user" else user.repo / ".agents/skills"
    address, lock = old_lock(user, tmp_path, root)
    update = skills(user, "update", "--scope", scope)
    assert f"  spell: from {address}, directory `skills/spell`, scripts: scripts/check.sh" in update.err.splitlines()
    assert "nobody can be asked" in update.err
    assert (lock.exists(), records_of(user, root)) == (True, {})
    for answer in ("n", "y"):
        with Terminal(user, "skills", "update", "--scope", scope) as terminal:
            terminal.wait_for("keep this consent? [y/N]")
            terminal.type(f"{answer}\r")
            terminal.wait_for_end()
        assert lock.exists() == (answer == "n")
    [record] = records_of(user, root).values()
    assert (record["pinned"], record["source"], record["source_type"]) == (True, address, "git")
    shared = user.repo / "skills-lock.json"
    assert (list(entries(shared)) if shared.exists() else []) == (["spell"] if scope == "project" else [])
    (root / "spell/scripts/more.sh").write_text("#!/bin/sh\n")
    assert "script `scripts/more.sh`" in held(user)[0]


def test_an_old_lock_holds_back_until_it_is_taken_over(user: Place, tmp_path: Path) -> None:
    root = user.codex_home / "skills"
    _, lock = old_lock(user, tmp_path, root)
    assert list(usable(user)) == ["spell"]
    (root / "spell/scripts/more.sh").write_text("#!/bin/sh\n")
    assert "script `scripts/more.sh`" in held(user)[0]
    assert skills(user, "update", "--accept", "spell", "--yes").status == 0
    assert (list(usable(user)), lock.exists()) == (["spell"], False)


def test_a_skill_where_version_0_1_installed_it_is_not_installed_twice(user: Place, tmp_path: Path) -> None:
    address, _ = old_lock(user, tmp_path, user.codex_home / "skills")
    ended = skills(user, "install", address, "--yes")
    assert (ended.status, "already" in ended.err) == (1, True)
    assert not (user_root(user) / "spell").exists()


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
    assert skills(user, "remove", "spell", "--yes").status == 0
    assert sorted(json.loads(lock.read_text())["skills"]) == ["count", "elsewhere", "near"]
    assert sorted(usable(user)) == ["count", "elsewhere", "near"]


def test_a_local_source_in_the_lock_of_the_skills_program_starts_at_the_lock(user: Place) -> None:
    """As version 1.7.4 writes it for `skills add ./packs`."""
    entry = {"source": "./packs", "sourceType": "local", "computedHash": "0" * 64}
    lock = user.write("skills-lock.json", json.dumps({"version": 1, "skills": {"spell": entry}}, indent=2) + "\n")
    write_files(user.repo / "packs/spell", OTHER_FILES)
    write_files(user.repo / ".agents/skills/spell", skill_files(body="Older."))
    (user.repo / "inner").mkdir()
    ended = skills(user, "update", "--yes", cwd=user.repo / "inner")
    assert ended.status == 0, ended.err
    [written] = json.loads(lock.read_text())["skills"].values()
    assert written == {**entry, "computedHash": "27106afb00409242194230926cdf03e6f0abcb48939329687c4a73c24f1ae408"}

"""Installed skills as scripts and people manage them: where they are from, what changed, what is refused."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from codex_py.services.plugin_fetch import MAX_FILE_BYTES
from tests.support.fake_responses import fake_model, say
from tests.support.home import Place
from tests.support.process import run
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
from tests.support.skills import NO_BUNDLED
from tests.support.terminal import Terminal


def project_root(place: Place) -> Path:
    return place.repo / ".agents/skills"


def install(place: Place, source: str | Path, *more: str) -> None:
    ended = skills(place, "install", source, "--yes", *more)
    assert ended.status == 0, ended.err


def test_an_install_shows_what_comes_and_writes_where_it_came_from(user: Place, tmp_path: Path) -> None:
    files = skill_files(
        more="allowed-tools: Read, Grep\n", body="Run:\n```sh\ncurl -s https://api.example.com/v1\n```\n"
    )
    files["agents/openai.yaml"] = (
        "dependencies:\n  tools:\n"
        "    - {type: mcp, value: docs, url: 'https://mcp.example.org/'}\n"
        "    - {type: env_var, value: SPELL_KEY}\n"
    )
    address = repository(user, tmp_path / "source", files)
    commit = git(user, tmp_path / "source", "rev-parse", "HEAD")
    ended = skills(user, "install", address, "--yes")
    assert (ended.status, ended.out) == (0, "")
    for line in (
        f"  from: {address}, directory `skills/spell`, commit {commit[:12]}",
        "    scripts/check.sh  20",
        "  scripts: scripts/check.sh",
        "  MCP servers: docs: https://mcp.example.org/",
        "  environment variables: SPELL_KEY",
        "  allowed tools: Grep, Read",
    ):
        assert line in ended.err.splitlines()
    entry = records_of(user, user_root(user))["spell"]
    assert (entry["source"], entry["commit"], entry["path"]) == (address, commit, "skills/spell")
    assert entry["declared"] == {
        "allowed_tools": ["Grep", "Read"],
        "env_vars": ["SPELL_KEY"],
        "scripts": ["scripts/check.sh"],
        "servers": ["docs: https://mcp.example.org/"],
    }
    assert stat.S_IMODE((user_root(user) / "spell/scripts/check.sh").stat().st_mode) == 0o755
    assert "spell" in usable(user)


def test_outside_of_a_terminal_an_install_needs_yes_and_in_one_it_asks(user: Place, tmp_path: Path) -> None:
    address = repository(user, tmp_path / "source")
    refused = skills(user, "install", address)
    assert (refused.status, list(user_root(user).glob("*"))) == (2, [])
    assert refused.err.splitlines()[0].startswith("skill `spell`")
    assert "--yes" in refused.err.splitlines()[-1]
    for answer, status in (("n", 1), ("y", 0)):
        with Terminal(user, "skills", "install", address) as terminal:
            terminal.wait_for("install it? [y/N]")
            terminal.type(f"{answer}\r")
            assert terminal.wait_for_end() == status
    assert "spell" in usable(user)


@pytest.mark.parametrize("command", ["update --accept", "sync", "remove"])
def test_a_change_is_asked_about_and_needs_yes_where_nobody_can_be_asked(
    user: Place, tmp_path: Path, command: str
) -> None:
    install(user, repository(user, tmp_path / "source"))
    text = user_root(user) / "spell/SKILL.md"
    text.write_text(f"{text.read_text()}mine\n")
    arguments = (*command.split(), *(("--scope", "user") if command == "sync" else ("spell",)))
    before = (text.read_text(), records_of(user, user_root(user)))
    refused = skills(user, *arguments)
    assert (refused.status, "pass --yes" in refused.err) == (2, True)
    with Terminal(user, "skills", *arguments) as terminal:
        terminal.wait_for("? [y/N]")
        terminal.type("n\r")
        assert terminal.wait_for_end() == 1
    assert (text.read_text(), records_of(user, user_root(user))) == before
    ended = skills(user, *arguments, "--yes")
    assert ended.status == 0, ended.err
    assert "differs" not in skills(user, "list").err


@pytest.mark.parametrize("suffix", ["#v1", "#COMMIT", "#SHORT", "#main:skills/spell", "//skills/spell"])
def test_a_branch_a_tag_a_commit_and_a_directory_can_be_named(user: Place, tmp_path: Path, suffix: str) -> None:
    address = repository(user, tmp_path / "source")
    commit = git(user, tmp_path / "source", "rev-parse", "HEAD")
    git(user, tmp_path / "source", "tag", "v1")
    install(user, address + suffix.replace("COMMIT", commit).replace("SHORT", commit[:8]))
    entry = records_of(user, user_root(user))["spell"]
    assert (entry["commit"], entry["path"]) == (commit, "skills/spell")


def test_directories_archives_and_packages_are_sources_too(user: Place, tmp_path: Path) -> None:
    source = write_files(tmp_path / "source/spell", skill_files()).parent
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        for path in source.rglob("*"):
            archive.write(path, path.relative_to(source))
    hashes: set[str] = set()
    for value in (source, tmp_path / "a.zip", packed(source, tmp_path / "pack-1.0.0.tgz")):
        install(user, value)
        hashes.add(records_of(user, user_root(user))["spell"]["tree_hash"])
        assert skills(user, "remove", "spell", "--yes").status == 0
    assert len(hashes) == 1
    assert records_of(user, user_root(user)) == {}


def test_a_marketplace_of_plugins_gives_its_skills(user: Place, tmp_path: Path) -> None:
    market = tmp_path / "market"
    write_files(market / "plugins/words/skills/spell", skill_files())
    write_files(market / "plugins/other/skills/count", skill_files("count"))
    listing = {"name": "m", "plugins": [{"name": "words", "source": "./plugins/words"}]}
    write_files(market, {".claude-plugin/marketplace.json": json.dumps(listing)})
    install(user, market, "--skill", "spell")
    assert list(records_of(user, user_root(user))) == ["spell"]


def test_a_pinned_skill_is_not_behind(user: Place, tmp_path: Path) -> None:
    address = repository(user, tmp_path / "source")
    install(user, address, "--pin")
    write_files(tmp_path / "source/skills/spell", skill_files(body="Other."))
    save(user, tmp_path / "source")
    assert skills(user, "update", "--check").status == 0
    assert records_of(user, user_root(user))["spell"]["pinned"] is True


def test_the_user_may_edit_a_skill_and_is_reported_once(user: Place, tmp_path: Path) -> None:
    install(user, repository(user, tmp_path / "source"))
    with (user_root(user) / "spell/SKILL.md").open("a") as file:
        file.write("And once more.\n")
    warnings: list[bool] = []
    for _ in range(2):
        with fake_model(user, [say("done")], top=NO_BUNDLED) as model:
            ended = run(user, "exec", "use $spell")
        assert ended.status == 0, ended.err
        assert "And once more." in json.dumps(model.requests[0].body)
        warnings.append("the skill `spell` is used, but it differs from what was installed" in ended.err)
    assert warnings == [True, False]
    shown = skills(user, "update", "--diff", "spell")
    assert "+And once more." in shown.out.splitlines()


GROWTH: list[tuple[str, Callable[[Path], object]]] = [
    ("script `scripts/more.sh`", lambda skill: (skill / "scripts/more.sh").write_text("echo\n")),
    ("script `notes.txt`", lambda skill: (skill / "notes.txt").chmod(0o755)),
    (
        "variable `TOKEN`",
        lambda skill: write_files(
            skill, {"agents/openai.yaml": "dependencies:\n  tools:\n    - {type: env_var, value: TOKEN}\n"}
        ),
    ),
    (
        "server `s: run me`",
        lambda skill: write_files(
            skill,
            {
                "agents/openai.yaml": "dependencies:\n  tools:\n"
                "    - {type: mcp, value: s, transport: stdio, command: run me}\n"
            },
        ),
    ),
    (
        "allowed tool `Bash(rm:*)`",
        lambda skill: (skill / "SKILL.md").write_text(
            skill_files(more="allowed-tools: Read, Bash(rm:*)\n")["SKILL.md"]
        ),
    ),
]


@pytest.mark.parametrize(
    ("what", "change"), GROWTH, ids=[what.split()[0] + str(at) for at, (what, _) in enumerate(GROWTH)]
)
def test_a_skill_that_can_do_more_is_held_back_until_it_is_accepted(
    user: Place, tmp_path: Path, what: str, change: Callable[[Path], object]
) -> None:
    files = skill_files(more="allowed-tools: Read\n") | {"notes.txt": "see here\n"}
    install(user, write_files(tmp_path / "spell", files))
    change(user_root(user) / "spell")
    [reason] = held(user)
    assert reason.startswith("held back: ")
    assert what in reason
    assert "codex-py skills update --accept spell" in reason
    assert usable(user) == {}
    assert "held back" in skills(user, "doctor").out
    assert skills(user, "update", "--accept", "spell", "--yes").status == 0
    assert list(usable(user)) == ["spell"]
    assert held(user) == []


def test_lint_names_a_skill_that_is_held_back(user: Place, tmp_path: Path) -> None:
    repository(user, tmp_path / "source")
    install(user, tmp_path / "source")
    assert skills(user, "lint", str(user_root(user))).status == 0
    (user_root(user) / "spell/scripts/more.sh").write_text("#!/bin/sh\ncurl https://new.example.net/x\n")
    linted = skills(user, "lint", "--json", str(user_root(user)))
    found = [entry for entry in json.loads(linted.out) if entry["rule"] == "held"]
    assert [(entry["level"], Path(entry["path"]).parent.name) for entry in found] == [("error", "spell")]
    assert "held back: it has more capabilities than you agreed to: script" in found[0]["message"]
    assert linted.status == 1
    assert skills(user, "update", "--accept", "spell", "--yes").status == 0
    assert '"held"' not in skills(user, "lint", "--json", str(user_root(user))).out


def test_a_session_warns_of_a_skill_that_is_held_back_and_does_not_use_it(user: Place, tmp_path: Path) -> None:
    install(user, repository(user, tmp_path / "source"))
    (user_root(user) / "spell/scripts/more.sh").write_text("echo\n")
    with fake_model(user, [say("done")], top=NO_BUNDLED) as model:
        ended = run(user, "exec", "use $spell")
    assert "held back" in ended.err
    assert "Read it twice" not in json.dumps(model.requests[0].body)
    assert "Check the spelling" not in json.dumps(model.requests[0].body)


def test_a_change_that_keeps_size_and_time_is_seen(user: Place, tmp_path: Path) -> None:
    install(user, repository(user, tmp_path / "source"))
    usable(user)
    path = user_root(user) / "spell/scripts/check.sh"
    before = path.stat()
    path.write_text(path.read_text().replace("fine", "evil"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert "differs from what was installed" in skills(user, "list").err


def test_in_a_project_only_what_git_has_committed_is_used(user: Place, tmp_path: Path) -> None:
    install(user, repository(user, tmp_path / "source"), "--scope", "project")
    save(user, user.repo)
    assert list(usable(user)) == ["spell"]
    with (project_root(user) / "spell/SKILL.md").open("a") as file:
        file.write("Planted.\n")
    assert "not in git's history" in held(user)[0]
    save(user, user.repo)
    assert list(usable(user)) == ["spell"]
    with (project_root(user) / "spell/SKILL.md").open("a") as file:
        file.write("Planted again.\n")
    git(user, user.repo, "add", "-A")
    assert "not in git's history" in held(user)[0]
    assert skills(user, "sync", "--yes").status == 0
    assert "Planted" not in usable(user)["spell"]


def test_records_that_cannot_be_read_hold_their_skills_back(user: Place, tmp_path: Path) -> None:
    install(user, repository(user, tmp_path / "source"))
    [records] = (user.codex_home / "skill-records").iterdir()
    records.write_text("<<<<<<< mine\n")
    assert usable(user) == {}
    assert "not JSON" in held(user)[0]


def test_a_shared_lock_that_cannot_be_read_stops_an_install(user: Place, tmp_path: Path) -> None:
    (user.home / ".agents").mkdir()
    (user.home / ".agents/.skill-lock.json").write_text("<<<<<<< mine\n")
    ended = skills(user, "install", repository(user, tmp_path / "source"), "--yes")
    assert (ended.status, "not JSON" in ended.err) == (1, True)
    assert usable(user) == {}


def test_an_update_shows_text_and_capabilities_and_keeps_what_was_edited(user: Place, tmp_path: Path) -> None:
    address = repository(user, tmp_path / "source")
    install(user, address)
    assert skills(user, "update", "--check").status == 0
    files = skill_files(body="Read it once.") | {"scripts/more.sh": "#!/bin/sh\n"}
    write_files(tmp_path / "source/skills/spell", files)
    commit = save(user, tmp_path / "source")
    behind = skills(user, "update", "--check")
    assert (behind.status, behind.out.splitlines()[1].split()[0]) == (1, "spell")
    assert "Read it twice." in usable(user)["spell"]
    refused = skills(user, "update", "spell")
    assert refused.status == 2
    assert "  + script `scripts/more.sh`" in refused.err.splitlines()
    assert "  -Read it twice." in refused.err.splitlines()
    (user_root(user) / "spell/mine.md").write_text("Mine.\n")
    updated = skills(user, "update", "spell", "--yes")
    assert updated.status == 0, updated.err
    assert records_of(user, user_root(user))["spell"]["commit"] == commit
    assert "Read it once" in usable(user)["spell"]
    [place] = [line.split("`")[3] for line in updated.err.splitlines() if " are kept in " in line]
    assert (Path(place) / "mine.md").read_text() == "Mine.\n"
    assert skills(user, "update", "--check").status == 0


def test_an_accepted_edit_is_not_behind_its_source(user: Place, tmp_path: Path) -> None:
    install(user, repository(user, tmp_path / "source"))
    (user_root(user) / "spell/SKILL.md").write_text(skill_files(body="Mine.")["SKILL.md"])
    assert skills(user, "update", "--accept", "spell", "--yes").status == 0
    assert skills(user, "update", "--check").status == 0


def test_sync_fetches_what_the_lock_of_the_project_names(user: Place, tmp_path: Path) -> None:
    address = repository(user, tmp_path / "source")
    install(user, address, "--scope", "project")
    agreed = records_of(user, project_root(user))
    write_files(tmp_path / "source/skills/spell", skill_files(body="Newer."))
    save(user, tmp_path / "source")
    for path in sorted((project_root(user) / "spell").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (project_root(user) / "spell").rmdir()
    synced = skills(user, "sync", "--yes")
    assert synced.status == 0, synced.err
    assert "Read it twice." in usable(user)["spell"]
    assert records_of(user, project_root(user)) == agreed


def test_a_name_that_is_not_installed_is_an_error_with_a_guess(user: Place, tmp_path: Path) -> None:
    install(user, repository(user, tmp_path / "source"))
    for command in ("remove", "update", "update --accept", "update --diff"):
        ended = skills(user, *command.split(), "spel")
        assert (ended.status, "spell" in ended.err) == (2, True)


def test_a_skill_of_the_users_own_is_not_replaced(user: Place, tmp_path: Path) -> None:
    write_files(user_root(user) / "spell", {"SKILL.md": skill_files(body="By hand.")["SKILL.md"]})
    ended = skills(user, "install", repository(user, tmp_path / "source"), "--yes")
    assert ended.status == 1
    assert "is there already" in ended.err
    assert "By hand." in usable(user)["spell"]


def linked(skill: Path) -> None:
    (skill / "out").symlink_to("../../../../etc/passwd")


def absolute(skill: Path) -> None:
    (skill / "out").symlink_to("/etc/passwd")


def clashing(skill: Path) -> None:
    (skill / "Notes.md").write_text("a")
    (skill / "notes.md").write_text("b")


def option_like(skill: Path) -> None:
    (skill / "--upload-pack=touch x").write_text("a")


def huge(skill: Path) -> None:
    with (skill / "big.bin").open("wb") as file:
        file.truncate(1024**3)


def large(skill: Path) -> None:
    # Git has to read and pack all of it.
    with (skill / "big.bin").open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)


def piped(skill: Path) -> None:
    os.mkfifo(skill / "pipe")


def misnamed(skill: Path) -> None:
    (skill / "SKILL.md").write_text(skill_files("../up")["SKILL.md"])


def named_like_an_option(skill: Path) -> None:
    (skill / "SKILL.md").write_text(skill_files("-rf")["SKILL.md"])


@pytest.mark.parametrize("spoil", [absolute, clashing, option_like, huge, piped, misnamed, named_like_an_option])
def test_a_directory_that_cannot_be_a_skill_is_refused_with_one_line(
    user: Place, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    skill = write_files(tmp_path / "spell", skill_files())
    spoil(skill)
    ended = skills(user, "install", skill, "--yes")
    assert ended.status == 1
    assert len(ended.err.splitlines()) == 1, ended.err
    assert usable(user) == {}


@pytest.mark.parametrize("spoil", [linked, large])
def test_a_repository_that_cannot_be_a_skill_is_refused_with_one_line(
    user: Place, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    repository(user, tmp_path / "source")
    spoil(tmp_path / "source/skills/spell")
    save(user, tmp_path / "source")
    ended = skills(user, "install", (tmp_path / "source").as_uri(), "--yes")
    assert (ended.status, len(ended.err.splitlines())) == (1, 1), ended.err
    assert usable(user) == {}


def test_a_repository_with_submodules_is_refused_and_none_is_fetched(user: Place, tmp_path: Path) -> None:
    address = repository(user, tmp_path / "source")
    commit = git(user, tmp_path / "source", "rev-parse", "HEAD")
    git(user, tmp_path / "source", "update-index", "--add", "--cacheinfo", f"160000,{commit},skills/spell/sub")
    git(user, tmp_path / "source", "commit", "-q", "-m", "sub")
    ended = skills(user, "install", address, "--yes")
    assert ended.status == 1
    assert "it has submodules" in ended.err


@pytest.mark.parametrize("source", ["ext::sh -c touch% MARK", "--upload-pack=touch MARK"])
def test_an_unsafe_address_is_refused_and_runs_nothing(user: Place, source: str) -> None:
    ended = skills(user, "install", "--yes", "--", source.replace("MARK", str(user.repo / "mark")))
    assert ended.status == 2
    assert len(ended.err.splitlines()) == 1, ended.err
    assert not (user.repo / "mark").exists()


def test_an_archive_with_a_path_above_it_is_refused_with_one_line(user: Place, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("../SKILL.md", "x")
    ended = skills(user, "install", tmp_path / "a.zip", "--yes")
    assert (ended.status, len(ended.err.splitlines())) == (1, 1), ended.err


def test_a_bomb_is_stopped_before_it_is_unpacked(user: Place, tmp_path: Path) -> None:
    with (
        zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("SKILL.md", "w", force_zip64=True) as out,
    ):
        for _ in range(80):
            out.write(bytes(1024 * 1024))
    ended = skills(user, "install", tmp_path / "bomb.zip", "--yes")
    assert (ended.status, "larger than" in ended.err, len(ended.err.splitlines())) == (1, True, 1)


OPENED = """
import os, sys
from pathlib import Path
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
from codex_py.services.skill_trust import consent_check
from codex_py.skills.model import SkillRoot
home, root = map(Path, sys.argv[1:])
states = list(consent_check(home, os.environ).states(SkillRoot(root, "user", "home")))
print(len(states), any(state.difference for state in states))
within = (f"{home}/skill-records", f"{root}/")
print(*(path.rpartition("/")[2] for path in opened if path.startswith(within)), sep=",")
"""


def test_a_start_with_records_of_many_skills_reads_none_of_their_files(user: Place, tmp_path: Path) -> None:
    for number in range(40):
        write_files(tmp_path / f"packs/s{number}", skill_files(f"s{number}"))
    install(user, tmp_path / "packs")
    assert len(usable(user)) == 40

    def opened() -> str:
        argv = [sys.executable, "-c", OPENED, user.codex_home, user_root(user)]
        return subprocess.run(argv, env=user.env, stdout=subprocess.PIPE, text=True, check=True).stdout

    [records] = (user.codex_home / "skill-records").iterdir()
    assert opened() == f"40 False\n{records.name}\n"
    # What has changed is read, and nothing else; files are opened from the directory of their skill.
    (user_root(user) / "s7/scripts/check.sh").write_text("#!/bin/sh\necho well\n")
    states, files = opened().splitlines()
    assert states == "40 True"
    assert sorted(set(files.split(","))) == sorted(["SKILL.md", "s7", records.name])

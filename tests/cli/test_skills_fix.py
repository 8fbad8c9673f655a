"""`codex-py skills doctor --fix`: lists each change, and asks for edits of skills and the removal of servers apart."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from tests.support.home import Place
from tests.support.process import run
from tests.support.terminal import Terminal

BROKEN = (
    "---\nname: mend\ndescription: Mends: socks and gloves. Use when they have holes.\nargument-hnt: FILE\n---\n"
    "Read `references/guide.md` and `references/lost.md`.\n"
)
SERVERS = '# mine\n[mcp_servers.mine]\ncommand = "true"\nenabled = false\n'


@pytest.fixture
def broken(place: Place) -> Path:
    """A skill of the project with four faults that can be repaired, and a server of a skill that is gone."""
    gone = place.codex_home / "skills/gone/SKILL.md"
    orphan = f'[mcp_servers.odd] # needed by skills ["{gone}"]\ncommand = "true"\nenabled = false\n'
    place.configure(f"[skills.bundled]\nenabled = false\n{SERVERS}{orphan}")
    place.write(".agents/skills/mend/references/deep/guide.md", "# Guide\n")
    return place.write(".agents/skills/mend/skill.md", BROKEN)


def servers(place: Place) -> set[str]:
    return set(tomllib.loads((place.codex_home / "config.toml").read_text())["mcp_servers"])


def check_mended(path: Path) -> None:
    text = path.with_name("SKILL.md").read_text()
    assert "description: 'Mends: socks and gloves. Use when they have holes.'" in text
    assert "argument-hint: FILE" in text
    assert "`references/deep/guide.md` and `references/lost.md`" in text
    assert sorted(entry.name for entry in path.parent.iterdir()) == ["SKILL.md", "references"]


def test_each_change_is_listed_and_nothing_changes_where_nobody_can_be_asked(place: Place, broken: Path) -> None:
    ended = run(place, "skills", "doctor", "--fix")
    assert (ended.status, ended.out) == (2, "")
    lines = ended.err.splitlines()
    assert lines[:-1] == [
        f"{broken}: rename it to `SKILL.md`",
        *(line for line in lines if ": line " in line),
    ]
    assert len(lines) == 5
    assert lines[-1] == "error: editing skills needs approval, and nobody can be asked; pass --yes"
    assert (broken.read_text(), servers(place)) == (BROKEN, {"mine", "odd"})


def test_yes_makes_both(place: Place, broken: Path) -> None:
    ended = run(place, "skills", "doctor", "--fix", "--yes")
    assert ended.status == 0, ended.err
    check_mended(broken)
    assert "remove the MCP server `odd` from " in ended.err
    assert servers(place) == {"mine"}
    again = run(place, "skills", "doctor", "--fix")
    assert (again.status, again.err) == (0, "nothing to fix\n")


@pytest.mark.parametrize("edits", [True, False])
def test_edits_and_servers_are_asked_about_apart(place: Place, broken: Path, edits: bool) -> None:
    with Terminal(place, "skills", "doctor", "--fix", width=200) as terminal:
        terminal.wait_for("edit these skills? [y/N]")
        terminal.type(f"{'y' if edits else 'n'}\r")
        terminal.wait_for("remove it? [y/N]")
        terminal.type(f"{'n' if edits else 'y'}\r")
        terminal.wait_for("no server was removed" if edits else "removed `odd`")
        assert terminal.wait_for_end() == 1
    if edits:
        check_mended(broken)
    else:
        assert broken.read_text() == BROKEN
    assert servers(place) == ({"mine", "odd"} if edits else {"mine"})


def test_with_paths_only_the_skills_there_are_edited(place: Place, broken: Path) -> None:
    other = place.write("elsewhere/mend/skill.md", BROKEN)
    assert run(place, "skills", "doctor", "--fix", "--yes", "elsewhere").status == 0
    assert other.with_name("SKILL.md").exists()
    assert (broken.read_text(), servers(place)) == (BROKEN, {"mine", "odd"})


@pytest.mark.parametrize("arguments", [["--yes"], ["elsewhere"], ["--fix", "--json"]])
def test_a_wrong_command_line_is_refused(place: Place, arguments: list[str]) -> None:
    assert run(place, "skills", "doctor", *arguments).status == 2


def test_the_old_names_work_and_name_the_new_one(place: Place, broken: Path) -> None:
    linted = run(place, "skills", "lint", "--fix", broken.parent)
    assert linted.err == "`skills lint --fix` is now `codex-py skills doctor --fix`\nrepaired 4 findings\n"
    assert linted.out.count("\n") == 1
    assert "names `references/lost.md`, which does not exist" in linted.out
    check_mended(broken)
    pruned = run(place, "skills", "prune", "--yes")
    assert pruned.status == 0
    assert pruned.err.startswith("`skills prune` is now `codex-py skills doctor --fix`\nremove the MCP server `odd`")
    assert servers(place) == {"mine"}


def test_skills_of_the_system_and_files_behind_links_stay(place: Place, tmp_path: Path) -> None:
    outside = tmp_path / "SKILL.md"
    outside.write_text(BROKEN)
    skill = place.repo / ".agents/skills/mend"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").symlink_to(outside)
    system = place.codex_home / "skills/.system/mend/SKILL.md"
    system.parent.mkdir(parents=True)
    system.write_text(BROKEN)
    run(place, "skills", "doctor", "--fix", "--yes")
    assert (outside.read_text(), system.read_text()) == (BROKEN, BROKEN)

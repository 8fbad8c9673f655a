"""`codex-py skills` as scripts and people see it: stdout is what was asked for, stderr is talk."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.support.home import Place
from tests.support.process import Finished, run
from tests.support.skills import NO_BUNDLED, add_skill, repo_root

BUNDLED = ["code-review", "fix-tests", "repo-tour", "skill-creator", "skill-installer"]
GOOD = "Check the spelling of a text. Use when something is to be published."


@pytest.fixture
def lean(place: Place) -> Place:
    """A place without the bundled skills."""
    place.configure("[skills.bundled]\nenabled = false\n")
    return place


def add(place: Place, name: str, frontmatter: str | None = None, *, at: str = ".agents/skills") -> Path:
    """A skill in the repository, by default a good one."""
    text = f"name: {name}\ndescription: {GOOD}" if frontmatter is None else frontmatter
    return place.write(f"{at}/{name}/SKILL.md", f"---\n{text}\n---\n# Steps\n")


def skills(place: Place, *arguments: str | Path, cwd: Path | None = None) -> Finished:
    return run(place, "skills", *arguments, cwd=cwd)


def listed(place: Place, *arguments: str) -> dict[str, Any]:
    ended = skills(place, "list", "--json", *arguments)
    assert ended.status == 0, ended.err
    return json.loads(ended.out)


def states(place: Place) -> dict[str, bool]:
    return {skill["name"]: skill["enabled"] for skill in listed(place)["skills"]}


def rules(place: Place) -> list[dict[str, Any]]:
    return tomllib.loads((place.codex_home / "config.toml").read_text())["skills"]["config"]


def test_a_setting_may_stand_before_the_command(lean: Place) -> None:
    add(lean, "spell")
    ended = run(lean, "-c", "skills.config=[{name='spell',enabled=false}]", "skills", "list", "--json")
    assert ended.status == 0, ended.err
    [skill] = json.loads(ended.out)["skills"]
    assert not skill["enabled"]


def test_the_list_shows_what_there_is_and_why_the_rest_is_not(lean: Place) -> None:
    good = add(lean, "spell")
    hidden = add(lean, "quiet", f"name: quiet\ndescription: {GOOD}\ndisable-model-invocation: true")
    bad = add(lean, "broken", "name: broken")
    ended = skills(lean, "list")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == (
        "NAME   SCOPE  ENABLED  IMPLICIT  PATH\n"
        f"quiet  repo   yes      no        {hidden}\n"
        f"spell  repo   yes      yes       {good}\n"
        "\nnot loaded:\n"
        f"  {bad}: missing field `description`\n"
    )


def test_the_json_of_the_list_has_stable_fields(lean: Place) -> None:
    good = add(lean, "spell")
    bad = add(lean, "broken", "name: broken")
    assert listed(lean) == {
        "skills": [
            {
                "name": "spell",
                "description": GOOD,
                "short_description": None,
                "scope": "repo",
                "path": str(good),
                "canonical_path": str(good),
                "enabled": True,
                "implicit": True,
                "user_invocable": True,
                "plugin": None,
                "decided_by": None,
            }
        ],
        "not_loaded": [{"path": str(bad), "scope": "repo", "reason": "missing field `description`"}],
        "ignored": [],
        "notes": [],
    }


def test_the_bundled_skills_are_there_from_the_first_call(place: Place) -> None:
    found = listed(place)["skills"]
    assert [(skill["name"], skill["scope"]) for skill in found] == [(name, "system") for name in BUNDLED]
    assert {Path(skill["path"]).parents[1] for skill in found} == {place.codex_home / "skills" / ".system"}


def test_nothing_to_show_is_said(lean: Place) -> None:
    ended = skills(lean, "list")
    assert (ended.status, ended.out) == (0, "")
    assert ended.err == "no skills found; looked in: none of the usual directories exists\n"
    assert skills(lean, "report").err == "no skills found\n"


def test_another_directory_can_be_asked_about(lean: Place, tmp_path: Path) -> None:
    add(lean, "spell")
    assert listed(lean, "--cwd", str(tmp_path))["skills"] == []
    ended = skills(lean, "list", "--cwd", lean.repo, cwd=tmp_path)
    assert "spell" in ended.out
    missing = skills(lean, "list", "--cwd", "nowhere")
    assert (missing.status, missing.out) == (2, "")
    assert missing.err == "error: cannot look from `nowhere`: it is not a directory\n"


PLUGINS = """
[plugins."tools@market"]
enabled = true
[plugins."off@market"]
enabled = false
[plugins."../x@market"]
enabled = true
[plugins."out@market"]
enabled = true
"""


def test_the_skills_of_a_plugin_bear_its_name(lean: Place) -> None:
    lean.configure((lean.codex_home / "config.toml").read_text() + PLUGINS)
    market = lean.codex_home / "plugins/cache/market"
    for place, name in (
        ("tools/9.0.0/skills", "old"),
        ("tools/10.0.0-beta/skills", "early"),
        ("tools/10.0.0/own", "lint"),
        ("tools/.draft/skills", "draft"),
        ("off/local/skills", "off"),
        ("out/1.0/skills", "out"),
    ):
        skill = market / place / name / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text(f"---\nname: {name}\ndescription: {GOOD}\n---\n")
    for version, manifest in (("tools/10.0.0", {"name": "kit", "skills": "./own"}), ("out/1.0", {"skills": "../.."})):
        file = market / version / ".codex-plugin/plugin.json"
        file.parent.mkdir()
        file.write_text(json.dumps(manifest))
    found = [(skill["name"], skill["scope"], skill["plugin"]) for skill in listed(lean)["skills"]]
    assert found == [("kit:lint", "user", "tools@market")]


def test_a_skill_is_shown_whole(lean: Place) -> None:
    path = add(
        lean,
        "spell",
        f"name: spell\ndescription: {GOOD}\nallowed-tools: Read, Bash(git:*)\n"
        "dependencies:\n  tools:\n    - type: env_var\n      value: DICT\n      description: a dictionary",
    )
    lean.write(".agents/skills/spell/scripts/a.py", "")
    ended = skills(lean, "show", "spell")
    assert ended.out == (
        "name:         spell\n"
        f"description:  {GOOD}\n"
        "scope:        repo\n"
        "enabled:      yes\n"
        "implicit:     yes\n"
        f"path:         {path}\n"
        "tools:        Read, Bash(git:*)\n"
        "needs:        env_var DICT (a dictionary): missing\n"
        "files:        scripts/a.py\n"
        "tokens:       60\n"
        f"\n{path.read_text()}"
    )
    (shown,) = json.loads(skills(lean, "show", "$spell", "--json").out)
    assert (shown["files"], shown["content"]) == (["scripts/a.py"], path.read_text())
    assert shown["dependencies"][0]["value"] == "DICT"


@pytest.mark.parametrize(
    ("question", "result"),
    [
        ("spel", "error: no skill `spel`; did you mean `spell`?\n"),
        ("SPELL", "error: no skill `SPELL`; did you mean `spell`?\n"),
        ("zzzzzzzz", "error: no skill `zzzzzzzz`; see `codex-py skills list`\n"),
    ],
)
def test_an_unknown_name_gets_the_closest_ones(lean: Place, question: str, result: str) -> None:
    add(lean, "spell")
    for command in ("show", "enable", "disable"):
        ended = skills(lean, command, question)
        assert (ended.status, ended.out, ended.err) == (2, "", result)


def test_a_skill_that_could_not_be_loaded_is_named_with_the_reason(lean: Place) -> None:
    path = add(lean, "broken", "name: broken")
    ended = skills(lean, "show", "broken")
    assert ended.status == 1
    assert ended.err == f"error: the skill `broken` could not be loaded: `{path}`: missing field `description`\n"


def test_switching_by_name_is_written_once_and_keeps_comments(lean: Place) -> None:
    add(lean, "spell")
    lean.configure("# mine\n[skills.bundled]\nenabled = false # no\n")
    off = skills(lean, "disable", "spell")
    config = lean.codex_home / "config.toml"
    assert (off.status, off.out) == (0, "")
    assert off.err == f"disabled `spell` (repo) in `{config}`; this counts from the next turn on\n"
    assert states(lean) == {"spell": False}
    assert skills(lean, "disable", "spell").err == "`spell` (repo) is disabled already\n"
    assert skills(lean, "enable", "spell").status == 0
    assert states(lean) == {"spell": True}
    assert skills(lean, "disable", "spell").status == 0
    assert rules(lean) == [{"name": "spell", "enabled": False}]
    assert config.read_text().startswith("# mine\n[skills.bundled]\nenabled = false # no\n")
    assert config.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "target", [".agents/skills/spell/SKILL.md", ".agents/skills/spell", "{repo}/.agents/skills/spell"]
)
def test_switching_by_path_means_that_skill_alone(lean: Place, target: str) -> None:
    path = add(lean, "spell")
    other = add(lean, "spell", at=".codex/skills")
    assert skills(lean, "disable", target.format(repo=lean.repo)).status == 0
    assert rules(lean) == [{"path": str(path), "enabled": False}]
    found = {skill["path"]: skill["enabled"] for skill in listed(lean)["skills"]}
    assert found == {str(path): False, str(other): True}


def test_a_name_that_several_skills_have_switches_them_all_and_beats_an_earlier_path(lean: Place) -> None:
    path = add(lean, "spell")
    add(lean, "spell", at=".codex/skills")
    skills(lean, "disable", path)
    ended = skills(lean, "enable", "spell")
    assert ended.err.startswith("enabled 2 skills called `spell` in ")
    assert [skill["enabled"] for skill in listed(lean)["skills"]] == [True, True]
    skills(lean, "disable", "spell")
    assert [skill["enabled"] for skill in listed(lean)["skills"]] == [False, False]
    assert len(rules(lean)) == 2


def test_the_doctor_tells_about_every_file_in_reach(lean: Place) -> None:
    good = add(lean, "spell")
    twin = add(lean, "spell", at=".codex/skills")
    bad = add(lean, "broken", "name: broken")
    hidden = add(lean, "deep", at=".agents/skills/.hidden")
    ended = skills(lean, "doctor")
    assert (ended.status, ended.err) == (0, "")
    for line in (
        f"  spell  loaded and listed  {good}\n",
        f"  {bad}: missing field `description`\n",
        f"  {hidden}: in the hidden directory `{hidden.parents[1]}`\n",
        f"  `spell`: {good}, {twin}\n",
    ):
        assert line in ended.out
    result = json.loads(skills(lean, "doctor", "--json").out)
    assert sorted(result) == ["budget", "files", "ignored", "name_clashes", "notes", "orphans", "roots"]
    assert {file["path"]: file["loaded"] for file in result["files"]} == {
        str(good): True,
        str(twin): True,
        str(bad): False,
        str(hidden): False,
    }
    assert result["budget"]["limit"] == 5440 and len(result["budget"]["skills"]) == 2


def test_lint_fails_on_errors_alone(lean: Place) -> None:
    good, bad = add(lean, "spell"), add(lean, "broken", "name: broken")
    fine = skills(lean, "lint", good)
    assert (fine.status, fine.out, fine.err) == (0, "", "nothing to complain about\n")
    broken = skills(lean, "lint", good.parent, bad.parent)
    assert (broken.status, broken.out) == (
        1,
        f"error: {bad}:1: missing field `description` (add `description: …` to the front matter)\n",
    )
    advice = skills(lean, "lint", add(lean, "Odd", "name: Odd\ndescription: odd"), "--json")
    assert advice.status == 0
    assert {finding["level"] for finding in json.loads(advice.out)} == {"advice"}
    absent = skills(lean, "lint", "nowhere")
    hint = "give a `SKILL.md`, a skill's directory, or a directory of skills"
    assert (absent.status, absent.err) == (2, f"error: no such file: `nowhere`; {hint}\n")


def test_nothing_a_skill_says_reaches_the_terminal_as_it_is(lean: Place) -> None:
    add(lean, "spell", f'name: spell\ndescription: "{GOOD} \\e[31mred\\u202e"')
    lean.write(".agents/skills/bad\x1b[2J/SKILL.md", "no")
    for arguments in (["list"], ["show", "spell"], ["doctor"], ["list", "--json"], ["lint", ".agents/skills"]):
        ended = skills(lean, *arguments)
        assert "\x1b" not in ended.out + ended.err
        assert "\u202e" not in ended.out + ended.err


def test_a_wrong_command_line_is_one_line_and_status_2(lean: Place) -> None:
    nothing = skills(lean)
    assert nothing.status == 2 and "disable" in nothing.out
    for arguments in (["frobnicate"], ["enable"], ["list", "--nope"]):
        ended = skills(lean, *arguments)
        assert (ended.status, ended.out, len(ended.err.splitlines())) == (2, "", 1)
    assert skills(lean, "--help").status == 0


def test_a_home_that_cannot_take_the_bundled_skills_costs_one_warning(place: Place) -> None:
    (place.codex_home / "skills").write_text("in the way")
    ended = skills(place, "list")
    assert ended.status == 0
    assert ended.err.splitlines()[0] == (
        f"warning: cannot install the bundled skills in `{place.codex_home}/skills`: not a directory"
    )


@pytest.mark.parametrize("command", ["list", "doctor"])
def test_refresh_reads_every_skill_again(lean: Place, command: str) -> None:
    add(lean, "spell")
    # What was written only just now is not known to stay as it is: the first list may keep nothing of it.
    listed(lean)
    before = listed(lean)
    [kept] = (lean.codex_home / "cache/skills").iterdir()
    written = kept.stat().st_ino, kept.stat().st_mtime_ns
    assert listed(lean) == before
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) == written
    ended = skills(lean, command, "--refresh")
    assert ended.status == 0, ended.err
    assert (kept.stat().st_ino, kept.stat().st_mtime_ns) != written
    assert listed(lean) == before


def test_the_list_shows_which_layer_has_decided(place: Place) -> None:
    for name in ("lint", "team-a", "fmt"):
        add_skill(repo_root(place), name)
    project = place.write(".codex/config.toml", 'skills.only = ["lint", "team-*"]\n')
    trusted = f'[projects."{place.repo}"]\ntrust_level = "trusted"\n'
    config = place.codex_home / "config.toml"
    config.write_text(f'{NO_BUNDLED}[[skills.config]]\nname = "team-a"\nenabled = false\n{trusted}')
    listed = json.loads(run(place, "skills", "list", "--json").out)["skills"]
    assert {one["name"]: (one["enabled"], one["decided_by"]) for one in listed} == {
        "lint": (True, None),
        "team-a": (False, {"layer": "user", "file": str(config), "rule": "skills.config"}),
        "fmt": (False, {"layer": "project", "file": str(project), "rule": "skills.only"}),
    }
    shown = [row.split()[:5] for row in run(place, "skills", "list").out.splitlines()]
    assert shown[1:] == [
        ["fmt", "repo", "no", "project", "(skills.only)"],
        ["lint", "repo", "yes", "default", "yes"],
        ["team-a", "repo", "no", "user", "(skills.config)"],
    ]
    assert f"switched off by `skills.only` in `{project}`" in run(place, "skills", "doctor").out
    assert run(place, "skills", "enable", "fmt").status == 0
    listed = json.loads(run(place, "skills", "list", "--json").out)["skills"]
    assert [one["decided_by"]["layer"] for one in listed if one["name"] == "fmt"] == ["user"]


def test_list_and_show_have_the_short_description_of_the_interface(place: Place) -> None:
    place.configure(NO_BUNDLED)
    path = add_skill(repo_root(place), "lint")
    (path.parent / "agents").mkdir()
    (path.parent / "agents/openai.yaml").write_text("interface:\n  short_description: Tidy the code\n")
    [listed] = json.loads(run(place, "skills", "list", "--json").out)["skills"]
    assert listed["short_description"] == "Tidy the code"
    assert "Tidy the code" in run(place, "skills", "show", "lint").out

"""Switching a skill on and off in `config.toml`: one entry, the last word, all else as it was."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from codex_py.config.entries import SkillSelector, set_skill_rule
from codex_py.errors import UserError

LINT = SkillSelector(name="lint")


def switch(home: Path, selector: SkillSelector, enabled: bool) -> str:
    path = set_skill_rule(home, selector, enabled=enabled, user_home=str(home))
    assert path == home / "config.toml"
    return path.read_text()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[[skills.config]]\nname = "lint"\nenabled = false\n'),
        ('model = "x" # why\n', 'model = "x" # why\n\n[[skills.config]]\nname = "lint"\nenabled = false\n'),
        (
            "# top\n[[skills.config]] # first\nname = 'lint' # n\nenabled = true # yet\n\n# next\n[tui]\na = 1\n",
            "# top\n[[skills.config]] # first\nname = 'lint' # n\nenabled = false # yet\n\n# next\n[tui]\na = 1\n",
        ),
        (
            "[[skills.config]]\nname = 'lint'\nenabled = true\n[[skills.config]]\nname = 'other'\nenabled = true\n",
            "[[skills.config]]\nname = 'lint'\nenabled = false\n[[skills.config]]\nname = 'other'\nenabled = true\n",
        ),
        (
            "[skills]\nconfig = [\n  {name = 'b', enabled = true}, # b\n]\n",
            "[skills]\nconfig = [\n  {name = 'b', enabled = true}, # b\n  {name = \"lint\",enabled = false},\n]\n",
        ),
    ],
    ids=["empty", "other keys", "in place", "another name behind it", "inline"],
)
def test_the_file_changes_where_it_must_and_nowhere_else(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "config.toml").write_text(before)
    assert switch(tmp_path, LINT, False) == after


@pytest.mark.parametrize(
    "before",
    [
        "",
        "skills = { config = [{ name = 'b', enabled = true }] }\n",
        "[skills.bundled]\nenabled = true\n[tui]\na = 1\n[[skills.config]]\nname = 'b'\nenabled = true\n",
        "skills.include_instructions = true\n[tui]\na = 1\n",
        "[[skills.config]]\nname = 'lint'\nenabled = true\n[[skills.config]]\npath = '~/x/SKILL.md'\nenabled = true\n",
    ],
)
@pytest.mark.parametrize("selector", [LINT, SkillSelector(path=Path("/x/SKILL.md"))], ids=["name", "path"])
def test_toggling_leaves_one_entry_which_no_later_one_overrules(
    tmp_path: Path, before: str, selector: SkillSelector
) -> None:
    (tmp_path / "config.toml").write_text(before)
    key, value = ("name", "lint") if selector.name else ("path", "/x/SKILL.md")
    for enabled in (False, True, False, True):
        entries = tomllib.loads(switch(tmp_path, selector, enabled))["skills"]["config"]
        assert [entry["enabled"] for entry in entries if entry.get(key) == value] == [enabled]
    at = next(number for number, entry in enumerate(entries) if entry.get(key) == value)
    assert all(key in entry for entry in entries[at:])
    others = [one for one in tomllib.loads(before).get("skills", {}).get("config", []) if one.get(key) != value]
    assert [one for one in entries if one.get(key) != value] == others


def test_a_path_is_the_same_however_it_is_written(tmp_path: Path) -> None:
    file = tmp_path / "x" / "SKILL.md"
    file.parent.mkdir()
    file.write_text("")
    for written in ("x/SKILL.md", "~/x/SKILL.md", str(file), "x/../x/SKILL.md"):
        (tmp_path / "config.toml").write_text(f'[[skills.config]]\npath = "{written}"\nenabled = true\n')
        after = switch(tmp_path, SkillSelector(path=file), False)
        assert after == f'[[skills.config]]\npath = "{written}"\nenabled = false\n'


@pytest.mark.parametrize("before", ["skills = 1\n", "[skills]\nconfig = 1\n", "[skills.config]\na = 1\n", "[skills\n"])
def test_a_file_of_another_shape_is_refused_and_stays(tmp_path: Path, before: str) -> None:
    (tmp_path / "config.toml").write_text(before)
    with pytest.raises(UserError):
        switch(tmp_path, LINT, False)
    assert (tmp_path / "config.toml").read_text() == before


def test_a_selector_is_a_name_or_a_path(tmp_path: Path) -> None:
    for selector in (SkillSelector(), SkillSelector("x", tmp_path)):
        with pytest.raises(UserError, match="a name or a path"):
            switch(tmp_path, selector, False)
    assert list(tmp_path.iterdir()) == []

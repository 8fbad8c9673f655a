"""`[[skills.config]]`, and what a catalogue answers."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.skills.model import Skill, SkillCatalog, SkillRoot, SkillScope, catalogue_key
from codex_py.skills.rules import SkillSwitch, apply_rules


def skill(
    name: str, path: str, scope: SkillScope = "user", *, canonical: str | None = None, listed: bool = True
) -> Skill:
    file = Path(path) / "SKILL.md"
    real = Path(canonical) / "SKILL.md" if canonical else file
    return Skill(name, "d", None, file, real, SkillRoot(Path("/r"), scope, "home"), allow_implicit=listed)


A1 = skill("a", "/r/one")
A2 = skill("a", "/r/two")
B = skill("b", "/r/b")
PLUGIN = skill("p:a", "/r/p")
SKILLS = (A1, A2, B, PLUGIN)


def off(*rules: SkillSwitch) -> set[str]:
    return {path.parent.name for path in apply_rules(SKILLS, rules)}


@pytest.mark.parametrize(
    ("rules", "disabled"),
    [
        ([], set[str]()),
        ([SkillSwitch(name="a")], {"one", "two"}),
        ([SkillSwitch(name=" a ")], {"one", "two"}),
        ([SkillSwitch(name="A")], set[str]()),
        ([SkillSwitch(name="p:a")], {"p"}),
        ([SkillSwitch(path=Path("/r/one/SKILL.md"))], {"one"}),
        ([SkillSwitch(path=Path("/r/x/../one//SKILL.md"))], {"one"}),
        ([SkillSwitch(path=Path("/r/one"))], set[str]()),
        ([SkillSwitch(path=Path("/r/one/SKILL.md\0"))], set[str]()),
        ([SkillSwitch(path=Path("/r/one/SKILL.md"), name="a")], set[str]()),
        ([SkillSwitch()], set[str]()),
        ([SkillSwitch(name="a"), SkillSwitch(path=Path("/r/two/SKILL.md"), enabled=True)], {"one"}),
        ([SkillSwitch(path=Path("/r/two/SKILL.md"), enabled=True), SkillSwitch(name="a")], {"one", "two"}),
        ([SkillSwitch(name="a"), SkillSwitch(name="a", enabled=True)], set[str]()),
        ([SkillSwitch(name="b"), SkillSwitch(name="a", enabled=True)], {"b"}),
    ],
)
def test_of_two_rules_that_meet_the_later_counts(rules: list[SkillSwitch], disabled: set[str]) -> None:
    assert off(*rules) == disabled


def test_a_rule_by_path_follows_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "SKILL.md").touch()
    (tmp_path / "link").symlink_to("real")
    one = skill("a", f"{tmp_path}/link", canonical=f"{tmp_path.resolve()}/real")
    assert apply_rules([one], [SkillSwitch(path=tmp_path / "link" / "SKILL.md")]) == {one.canonical_path}


def test_a_catalogue_knows_only_enabled_skills() -> None:
    catalog = SkillCatalog(SKILLS, frozenset({A1.canonical_path, B.canonical_path}))
    assert catalog.enabled() == (A2, PLUGIN)
    assert catalog.find("a") == (A2,)
    assert catalog.find("b") == ()
    assert catalog.by_path(Path("/r/one/SKILL.md")) is None
    assert catalog.by_path(Path("/r/two/SKILL.md")) == A2
    assert SkillCatalog(SKILLS).find("a") == (A1, A2)


def test_a_skill_is_found_by_both_its_paths() -> None:
    one = skill("a", "/r/link", canonical="/elsewhere/a")
    catalog = SkillCatalog((one,))
    assert catalog.by_path(one.path) == catalog.by_path(one.canonical_path) == one
    assert one.directory == Path("/elsewhere/a")


def test_the_list_and_the_catalogue_have_orders_of_their_own() -> None:
    mixed = [
        skill("z", "/1", "admin"),
        skill("é", "/2"),
        skill("_", "/3"),
        skill("Z", "/4"),
        skill("a", "/6"),
        skill("a", "/5"),
        skill("1", "/7"),
        skill("r", "/8", "repo"),
        skill("s", "/9", "system"),
        skill("h", "/h", "system", listed=False),
    ]
    catalog = SkillCatalog(tuple(sorted(mixed, key=catalogue_key)))
    assert "".join(one.path.parent.name for one in catalog.skills) == "8743562h91"
    assert "".join(one.path.parent.name for one in catalog.listed()) == "918743562"

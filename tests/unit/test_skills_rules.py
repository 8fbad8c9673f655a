"""`[[skills.config]]`, and what a catalogue answers."""

from __future__ import annotations

from pathlib import Path

from codex_py.skills.model import Skill, SkillRoot, SkillScope
from codex_py.skills.rules import SkillSwitch, apply_rules


def skill(
    name: str, path: str, scope: SkillScope = "user", *, canonical: str | None = None, listed: bool = True
) -> Skill:
    file = Path(path) / "SKILL.md"
    real = Path(canonical) / "SKILL.md" if canonical else file
    return Skill(name, "d", None, file, real, SkillRoot(Path("/r"), scope, "home"), allow_implicit=listed)


def test_a_rule_by_path_follows_links(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "SKILL.md").touch()
    (tmp_path / "link").symlink_to("real")
    one = skill("a", f"{tmp_path}/link", canonical=f"{tmp_path.resolve()}/real")
    assert apply_rules([one], [SkillSwitch(path=tmp_path / "link" / "SKILL.md")]) == {one.canonical_path}

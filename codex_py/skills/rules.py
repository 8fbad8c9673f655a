"""Which skills the user has switched off, by `[[skills.config]]`."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from codex_py.protocol.value import Value
from codex_py.skills.model import Skill


class SkillSwitch(Value):
    """One entry: the absolute path of a `SKILL.md`, or a whole name; not both."""

    path: Path | None = None
    name: str | None = None
    enabled: bool = False


def apply_rules(skills: Iterable[Skill], rules: Sequence[SkillSwitch]) -> frozenset[Path]:
    """The canonical paths of the skills that are off; of two rules that meet the later one counts.

    A name means every skill of that name. A rule with both selectors, or none, means nothing.
    """
    if not rules:
        return frozenset()
    by_name: defaultdict[str, set[Path]] = defaultdict(set)
    known: set[Path] = set()
    for skill in skills:
        by_name[skill.name].add(skill.canonical_path)
        known.add(skill.canonical_path)
    disabled: set[Path] = set()
    for rule in rules:
        if rule.enabled:
            disabled -= _selected(rule, by_name, known)
        else:
            disabled |= _selected(rule, by_name, known)
    return frozenset(disabled)


def idle_rules(skills: Iterable[Skill], rules: Sequence[SkillSwitch]) -> list[str]:
    """A line for each rule that means none of the skills, with the reason; it may mean one of another project."""
    names: set[str] = set()
    paths: set[Path] = set()
    for skill in skills:
        names.add(skill.name)
        paths.add(skill.canonical_path)
    lines: list[str] = []
    for number, rule in enumerate(rules, start=1):
        entry = f"entry {number} of `skills.config`"
        if (rule.path is None) == (rule.name is None):
            lines.append(f"{entry} means nothing: it needs either `name` or `path`")
        elif rule.name is not None and rule.name.strip() not in names:
            lines.append(f"{entry} means no skill here: none is called `{rule.name.strip()}`")
        elif rule.path is not None and not _selected(rule, {}, paths):
            is_directory = "; the path must be that of the `SKILL.md`" if rule.path.name != "SKILL.md" else ""
            lines.append(f"{entry} means no skill here: none is at `{rule.path}`{is_directory}")
    return lines


def _selected(rule: SkillSwitch, by_name: dict[str, set[Path]], known: set[Path]) -> set[Path]:
    if (rule.path is None) == (rule.name is None):
        return set()
    if rule.name is not None:
        return by_name.get(rule.name.strip(), set())
    path = str(rule.path)
    return {Path(os.path.realpath(path))} & known if "\0" not in path else set()

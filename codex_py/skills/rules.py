"""The rules that switch skills on and off, from every layer of the configuration; nothing is read here."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, Literal

from codex_py.paths import is_there
from codex_py.protocol.value import Value
from codex_py.skills.model import Skill
from codex_py.text.nearest import did_you_mean
from codex_py.text.sanitize import sanitize_line

_WILD: Final = ("*", "?", "[")


class SkillSwitch(Value):
    """One rule: for the absolute path of a `SKILL.md`, or for a whole name; not both.

    With `only` it switches off every skill whose name fits none of these patterns. `layer` and `file` are where it is
    written.
    """

    path: Path | None = None
    name: str | None = None
    enabled: bool = False
    only: tuple[str, ...] | None = None
    layer: str = ""
    file: Path | None = None

    @property
    def key(self) -> Literal["only", "config"]:
        """The key of `[skills]` that it comes from."""
        return "config" if self.only is None else "only"


def decisions(skills: Iterable[Skill], rules: Sequence[SkillSwitch]) -> dict[Path, SkillSwitch]:
    """The rule that decides about a skill, by its canonical path; of two rules that meet the later one counts.

    A name means every skill of that name. A rule with both selectors, or none, means nothing.
    """
    if not rules:
        return {}
    by_name: defaultdict[str, set[Path]] = defaultdict(set)
    known: set[Path] = set()
    for skill in skills:
        by_name[skill.name].add(skill.canonical_path)
        known.add(skill.canonical_path)
    return {path: rule for rule in rules for path in _selected(rule, by_name, known)}


def apply_rules(skills: Iterable[Skill], rules: Sequence[SkillSwitch]) -> frozenset[Path]:
    """The canonical paths of the skills that are off."""
    return frozenset(path for path, rule in decisions(skills, rules).items() if not rule.enabled)


def idle_rules(
    skills: Iterable[Skill],
    rules: Sequence[SkillSwitch],
    *,
    never_install: Sequence[str] = (),
    certain: bool = False,
) -> list[str]:
    """A line for each rule, and each name of `skills.only` and `skills.never_install_mcp`, that means no skill.

    With `certain` those are left out that may mean a skill of another project.
    """
    if not (rules or never_install):
        return []
    names: set[str] = set()
    paths: set[Path] = set()
    for skill in skills:
        names.add(skill.name)
        paths.add(skill.canonical_path)
    lines: list[str] = []
    counts: defaultdict[Path | None, int] = defaultdict(int)
    for rule in rules:
        is_of_project = rule.layer == "project"
        lines += _idle_only(rule, names, certain=certain and not is_of_project)
        if rule.only is not None:
            continue
        file = rule.file if is_of_project else None
        counts[file] += 1
        entry = f"entry {counts[file]} of `skills.config`" + (f" in `{rule.file}`" if is_of_project else "")
        if (rule.path is None) == (rule.name is None):
            lines.append(f"{entry} means nothing: it needs either `name` or `path`")
        elif rule.name is not None and (name := rule.name.strip()) not in names:
            guess = did_you_mean(name, sorted(names))
            if guess or not certain or is_of_project:
                lines.append(f"{entry} means no skill here: none is called `{name}`{guess and f'; {guess}'}")
        elif rule.path is not None and not _selected(rule, {}, paths):
            is_file = rule.path.name == "SKILL.md"
            if not (certain and is_file and is_there(rule.path)):
                hint = "remove the entry" if is_file else "the path must be that of the `SKILL.md`"
                lines.append(f"{entry} means no skill here: none is at `{rule.path}`; {hint}")
    for name in never_install:
        if name not in names and ((guess := did_you_mean(name, sorted(names))) or not certain):
            lines.append(
                f"`skills.never_install_mcp` names no skill here: none is called `{name}`{guess and f'; {guess}'}"
            )
    return lines


def _idle_only(rule: SkillSwitch, names: set[str], *, certain: bool) -> Iterator[str]:
    where = f" in `{rule.file}`" if rule.file else ""
    for pattern in rule.only or ():
        if any(fnmatchcase(name, pattern.strip()) for name in names):
            continue
        guess = did_you_mean(pattern.strip(), sorted(names))
        if guess or not certain:
            shown = sanitize_line(pattern)
            what = "fits" if any(sign in pattern for sign in _WILD) else "is called"
            yield f"`skills.only`{where} names no skill here: none {what} `{shown}`{guess and f'; {guess}'}"


def _selected(rule: SkillSwitch, by_name: dict[str, set[Path]], known: set[Path]) -> set[Path]:
    if rule.only is not None:
        patterns = [pattern.strip() for pattern in rule.only]
        others = (name for name in by_name if not any(fnmatchcase(name, pattern) for pattern in patterns))
        return {path for name in others for path in by_name[name]}
    if (rule.path is None) == (rule.name is None):
        return set()
    if rule.name is not None:
        return by_name.get(rule.name.strip(), set())
    path = str(rule.path)
    return {Path(os.path.realpath(path))} & known if "\0" not in path else set()

"""Which skills a user means by a name or a path; and when it is none, what they may have meant."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.config.keys import edit_distance
from codex_py.errors import UserError
from codex_py.skills.discover import SKILL_FILE
from codex_py.skills.model import Skill, SkillCatalog

_MOST_GUESSES: Final = 3
_LONGEST_GUESS: Final = 64


class Choice(NamedTuple):
    """At least one skill; more than one only when they share the name that was given."""

    skills: tuple[Skill, ...]
    by_path: bool


def choose_skills(catalog: SkillCatalog, target: str) -> Choice:
    """The skills of this whole name, enabled or not; else the one whose file or folder this is.

    A leading `$` is not part of a name. Raises `UserError`, with the closest names, when there is none.
    """
    for name in (target.strip(), target.strip().removeprefix("$")):
        same = tuple(skill for skill in catalog.skills if skill.name == name)
        if same:
            return Choice(same, by_path=False)
    path = _as_path(target)
    if path is not None:
        for skill in catalog.skills:
            if skill.canonical_path == path:
                return Choice((skill,), by_path=True)
    raise UserError(_unknown(catalog, target, path))


def closest_names(name: str, known: Sequence[str]) -> list[str]:
    """Up to three known names that may have been meant, the likeliest first."""
    wanted = name[:_LONGEST_GUESS].lower()
    ranked: list[tuple[int, str]] = []
    for other in dict.fromkeys(known):
        bare = other.lower().rpartition(":")[2]
        distance = min(
            edit_distance(wanted, other.lower()[:_LONGEST_GUESS]), edit_distance(wanted, bare[:_LONGEST_GUESS])
        )
        is_part = len(wanted) > 2 and (wanted in other.lower() or bare in wanted.split(":")[-1:])
        if is_part or distance <= max(2, max(len(wanted), len(other)) // 3):
            ranked.append((distance, other))
    return [other for _, other in sorted(ranked)[:_MOST_GUESSES]]


def _as_path(target: str) -> Path | None:
    """The real path of the `SKILL.md` a text may name."""
    if "\0" in target:
        return None
    path = Path(os.path.expanduser(target))  # noqa: PTH111  (Path.expanduser raises for a user that does not exist)
    return Path(os.path.realpath(path / SKILL_FILE if path.is_dir() else path))


def _unknown(catalog: SkillCatalog, target: str, path: Path | None) -> str:
    for problem in catalog.problems:
        if target == problem.path.parent.name or path == Path(os.path.realpath(problem.path)):
            return f"the skill `{target}` could not be loaded: `{problem.path}`: {problem.message}"
    if path is not None and path.is_file() and path.name == SKILL_FILE:
        return f"`{path}` is not among the skills found here: `codex-py skills doctor` says why"
    near = closest_names(target, [skill.name for skill in catalog.skills])
    guess = f": did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else "; see `codex-py skills list`"
    return f"no skill is called `{target}`{guess}"

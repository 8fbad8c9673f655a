"""Which skills a user means by a name or a path; and when it is none, what they may have meant."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.errors import UsageError, UserError
from codex_py.skills.discover import SKILL_FILE
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.text.nearest import nearest_names

_MAX_GUESSES: Final = 3


class SkillChoice(NamedTuple):
    """At least one skill; more than one only when they share the name that was given."""

    skills: tuple[Skill, ...]
    by_path: bool


def choose_skills(catalog: SkillCatalog, target: str) -> SkillChoice:
    """The skills of this whole name, enabled or not; else the one whose file or folder this is.

    A leading `$` is not part of a name. Raises `UserError`, with the closest names, when there is none.
    """
    for name in (target.strip(), target.strip().removeprefix("$")):
        same = tuple(skill for skill in catalog.skills if skill.name == name)
        if same:
            return SkillChoice(same, by_path=False)
    path = _as_path(target)
    if path is not None:
        for skill in catalog.skills:
            if skill.canonical_path == path:
                return SkillChoice((skill,), by_path=True)
    raise _unknown(catalog, target, path)


def _as_path(target: str) -> Path | None:
    """The real path of the `SKILL.md` a text may name."""
    if "\0" in target:
        return None
    path = Path(os.path.expanduser(target))  # noqa: PTH111  (Path.expanduser raises for a user that does not exist)
    return Path(os.path.realpath(path / SKILL_FILE if path.is_dir() else path))


def _unknown(catalog: SkillCatalog, target: str, path: Path | None) -> UserError:
    for problem in catalog.problems:
        if target == problem.path.parent.name or path == Path(os.path.realpath(problem.path)):
            return UserError(f"the skill `{target}` could not be loaded: `{problem.path}`: {problem.message}")
    if path is not None and path.is_file() and path.name == SKILL_FILE:
        return UserError(f"`{path}` is not among the skills found here", hint="`codex-py skills doctor` says why")
    near = nearest_names(target, [skill.name for skill in catalog.skills], limit=_MAX_GUESSES)
    guess = f"did you mean {' or '.join(f'`{name}`' for name in near)}?" if near else "see `codex-py skills list`"
    return UsageError(f"no skill `{target}`", hint=guess)

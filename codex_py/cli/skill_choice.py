"""How the commands of `codex-py skills` find the skills of a directory, and the ones that a command line means."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple, TypeAlias

import typer

from codex_py.cli.console import local_request, print_warnings
from codex_py.errors import UsageError, UserError
from codex_py.services.skill_admin import SkillAdmin, look_at_skills
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.skills.scan import SKILL_FILE
from codex_py.text.nearest import nearest_names

_MAX_GUESSES: Final = 3

Cwd: TypeAlias = Annotated[
    Path | None, typer.Option("--cwd", "-C", "--cd", metavar="DIR", help="As if started in this directory.")
]
Refresh: TypeAlias = Annotated[bool, typer.Option("--refresh", help="Read every skill again, ignoring the cache.")]
Target: TypeAlias = Annotated[
    str, typer.Argument(metavar="NAME|PATH", help="A skill's whole name, or its file or directory.")
]


class SkillChoice(NamedTuple):
    """At least one skill; more than one only when they share the name that was given."""

    skills: tuple[Skill, ...]
    by_path: bool


def choose_skills(catalog: SkillCatalog, target: str) -> SkillChoice:
    """The skills with this name, enabled or not, or else the one with this file or directory.

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
    """The real path of the `SKILL.md` that a text may name."""
    if "\0" in target:
        return None
    path = expanded(Path(target))
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


def look_here(
    cwd: Path | None,
    overrides: Sequence[str] | None = None,
    profile: str | None = None,
    *,
    refresh: bool = False,
) -> SkillAdmin:
    """Load the configuration and the skills as a session would, and print their warnings."""
    request = local_request(overrides, profile, cwd=directory_at(cwd))
    found = look_at_skills(request, refresh=refresh)
    print_warnings(*found.loaded.warnings, *filter(None, [found.trouble]))
    return found


def directory_at(cwd: Path | None) -> Path:
    """The directory of `--cwd`, or the current one."""
    directory = expanded(cwd or Path.cwd()).absolute()
    if not directory.is_dir():
        raise UsageError(f"cannot look from `{cwd}`: it is not a directory")
    return directory


def expanded(path: Path) -> Path:
    """A path with `~` replaced."""
    return Path(os.path.expanduser(path))  # noqa: PTH111  (Path.expanduser raises for a user that does not exist)

"""Why each `SKILL.md` in reach was loaded or was not; which names clash; what the list takes of its budget.

Looks further than the search for skills does, into what that leaves out.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.skills.model import Skill, SkillCatalog, SkillProblem, SkillRoot
from codex_py.skills.parse import read_record
from codex_py.skills.record import FoundFile
from codex_py.skills.render import BudgetUse, render_skills
from codex_py.skills.roots import SkillRootsRequest, skill_roots
from codex_py.skills.rules import SkillSwitch, decisions, idle_rules
from codex_py.skills.scan import (
    MAX_DEPTH,
    MAX_DIRECTORIES,
    MAX_TOTAL_BYTES,
    SKILL_FILE,
    SKIPPED_DIRECTORIES,
    is_kernel_directory,
)

_MAX_DIRECTORIES: Final = 20_000
_MAX_LEVELS: Final = 12
_MAX_SECONDS: Final = 5.0
# Where people put skills that other programs read, or that they meant for this one.
_NEIGHBOURS: Final = (".claude/skills", ".cursor/skills", ".github/skills", ".gemini/skills", ".opencode/skills")
_MISSPELT: Final = (".agents/skill", ".agent/skills", ".codex/skill", "skills")


class SkillVerdict(NamedTuple):
    """One file: whether it is a skill that can be used, under which name, and the reason in words."""

    path: Path
    loaded: bool
    reason: str
    name: str | None = None


class NameClash(NamedTuple):
    """A name that mentions nothing, because several enabled skills have it."""

    name: str
    paths: tuple[Path, ...]


class Examination(NamedTuple):
    """`remarks` are metadata that was ignored; `notes` the limits the search ran into, and rules that mean no skill."""

    roots: tuple[SkillRoot, ...]
    verdicts: tuple[SkillVerdict, ...]
    clashes: tuple[NameClash, ...]
    remarks: tuple[SkillProblem, ...]
    notes: tuple[str, ...]
    budget: BudgetUse


def examine(
    catalog: SkillCatalog,
    request: SkillRootsRequest,
    *,
    context_window: int | None,
    max_tokens: int | None,
    rules: Sequence[SkillSwitch] = (),
    never_install: Sequence[str] = (),
) -> Examination:
    """Judge every file named like a skill below the roots of a request and in the usual places beside them.

    The catalogue is that of the same request and `rules`. The search is bounded: 20,000 directories, 12 levels, 5
    seconds.
    """
    roots = skill_roots(request)
    verdicts = _known_verdicts(catalog, rules)
    for directory in (*request.extra_roots, *request.extra_user_roots):
        if directory.is_absolute() and not os.path.isdir(directory):  # noqa: PTH112 - Path.is_dir raises for what nobody may look at
            verdicts[directory] = SkillVerdict(
                directory,
                False,
                "the configuration names it as a directory with skills, and there is no such directory",
            )
    loaded = {skill.canonical_path: skill for skill in catalog.skills}
    until = time.monotonic() + _MAX_SECONDS
    for root in roots:
        for path in _candidates(root.path, until):
            if path not in verdicts:
                verdicts[path] = SkillVerdict(path, False, _why_not_found(path, root, loaded))
    unvisited = [
        path for path in _paths_beside_roots(request) if Path(os.path.realpath(path)) not in {r.path for r in roots}
    ]
    for unvisited_path in unvisited:
        for path in _candidates(unvisited_path, until):
            if path not in verdicts and Path(os.path.realpath(path)) not in loaded:
                where = "`.agents/skills` of a project or of your home is"
                if unvisited_path.name == "skills" and not unvisited_path.parent.name.startswith("."):
                    where += (
                        f"; to have this one searched too set `skills.roots = ['{_shortest(unvisited_path, request)}']`"
                    )
                elif unvisited_path.match(".claude/skills"):
                    where += "; `skills.claude = true` has this one searched too"
                reason = f"`{unvisited_path}` is not a directory that is searched: {where}"
                verdicts[path] = SkillVerdict(path, False, reason)
    notes = (*catalog.notes, *idle_rules(catalog.skills, rules, never_install=never_install))
    rendered = render_skills(catalog, context_window=context_window, max_tokens=max_tokens)
    ordered = tuple(sorted(verdicts.values(), key=lambda verdict: str(verdict.path)))
    return Examination(roots, ordered, name_clashes(catalog), catalog.remarks, notes, rendered.report)


def name_clashes(catalog: SkillCatalog) -> tuple[NameClash, ...]:
    """The names that more than one enabled skill has, in catalogue order."""
    names = dict.fromkeys(skill.name for skill in catalog.enabled())
    found = ((name, catalog.find(name)) for name in names)
    return tuple(NameClash(name, tuple(duplicate.path for duplicate in same)) for name, same in found if len(same) > 1)


def describe_loaded(skill: Skill, catalog: SkillCatalog, rule: SkillSwitch | None = None) -> str:
    """In words what a loaded skill is good for: listed, only mentionable, or switched off by a rule."""
    if not catalog.is_enabled(skill):
        where = f" in `{rule.file}`" if rule and rule.file else ""
        return f"switched off by `{'skills.only' if rule and rule.key == 'only' else '[[skills.config]]'}`{where}"
    if not skill.allow_implicit:
        return "loaded; not listed, because its policy allows no implicit use: mention it"
    return "loaded and listed"


def _known_verdicts(catalog: SkillCatalog, rules: Sequence[SkillSwitch]) -> dict[Path, SkillVerdict]:
    decided = decisions(catalog.skills, rules)
    verdicts = {problem.path: SkillVerdict(problem.path, False, problem.message) for problem in catalog.problems}
    edited = {problem.path: problem.message for problem in catalog.edited}
    for skill in catalog.skills:
        reason = "; ".join(
            filter(None, (describe_loaded(skill, catalog, decided.get(skill.canonical_path)), edited.get(skill.path)))
        )
        verdicts[skill.path] = SkillVerdict(skill.path, catalog.is_enabled(skill), reason, skill.name)
    return verdicts


def _why_not_found(path: Path, root: SkillRoot, loaded: dict[Path, Skill]) -> str:
    """The first rule of the search that a path breaks; its directories in order, then the file."""
    if path.name != SKILL_FILE:
        return f"the file is called `{path.name}`: only `{SKILL_FILE}` counts (case-sensitive)"
    at = root.path
    for depth, name in enumerate(path.relative_to(root.path).parts[:-1], start=1):
        at = at / name
        if name.startswith("."):
            return f"in the hidden directory `{at}`"
        if name in SKIPPED_DIRECTORIES:
            return f"in `{at}`: directories called `{name}` are not searched"
        if depth > MAX_DEPTH:
            below = len(path.relative_to(root.path).parts) - 1
            return f"{below} directories below its root: at most {MAX_DEPTH} are searched"
        if at.is_symlink() and not root.follows_links:
            return f"`{at}` is a link: links are not followed among system skills"
        if at.is_symlink() and root.inside and not Path(os.path.realpath(at)).is_relative_to(root.inside):
            return f"`{at}` is a link that leads out of the project"
    same = loaded.get(Path(os.path.realpath(path)))
    if same:
        return f"the same file as the skill `{same.name}` at `{same.path}`"
    record = read_record(FoundFile(str(path), os.path.realpath(path), None, True), root.inside)
    copied = next((skill for skill in loaded.values() if skill.name == record.name), None)
    if root.root_type == "claude" and copied:
        return f"the same name and content as the skill at `{copied.path}`, which counts once"
    if not record.ours:
        return "made for other programs: its `policy.products` does not name `codex`"
    limits = f"{MAX_DIRECTORIES} directories, or {MAX_TOTAL_BYTES // 1024**2} MiB of skills"
    return f"beyond the first {limits}, of `{root.path}`"


def _shortest(path: Path, request: SkillRootsRequest) -> Path:
    """How the settings name a directory: below the project's root by the path from there."""
    top = request.project_root or request.cwd
    return path.relative_to(top) if path.is_relative_to(top) else path


def _paths_beside_roots(request: SkillRootsRequest) -> Iterator[Path]:
    directories: Iterable[Path] = (request.user_home, request.cwd, *filter(None, (request.project_root,)))
    for directory in dict.fromkeys(directories):
        for name in _NEIGHBOURS:
            yield directory / name
        if directory != request.user_home:
            yield from (directory / name for name in _MISSPELT)


def _candidates(top: Path, until: float) -> Iterator[Path]:
    """The files called like a skill in any case below a directory, hidden and deep ones too; each directory once."""
    seen: set[str] = set()
    queue = [(str(top), 0)]
    for directory, depth in queue:
        real = os.path.realpath(directory)
        if real in seen or is_kernel_directory(real) or len(seen) > _MAX_DIRECTORIES or time.monotonic() > until:
            continue
        seen.add(real)
        try:
            with os.scandir(directory) as entries:
                names = sorted((entry.name, entry.is_dir()) for entry in entries)
        except OSError:
            continue
        for name, is_directory in names:
            if name.lower() == SKILL_FILE.lower() and not is_directory:
                yield Path(directory, name)
            elif is_directory and depth < _MAX_LEVELS and name != ".git":
                queue.append((f"{directory}/{name}", depth + 1))

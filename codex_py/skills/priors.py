"""What is known of skills before anything is asked: their use so far, what the repository has, where they come from."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.protocol.ops import SkillScope
from codex_py.skills.budget import Preference
from codex_py.skills.model import Skill
from codex_py.skills.ranking import Postings, Prior
from codex_py.skills.stems import stem
from codex_py.skills.term_weights import DESCRIBED
from codex_py.skills.usage import read_uses
from codex_py.text.display import counted

# Between 0 and 1 together.
_SCOPES: Final[Mapping[SkillScope, float]] = {"repo": 0.12, "user": 0.08, "admin": 0.04, "system": 0.0}
_MAX_USE: Final = 0.6
_MAX_REPOSITORY: Final = 0.28
_PER_WORD: Final = 0.14
# Part of a use that is left after so many days.
_RECENT: Final = ((7, 1.0), (30, 0.75), (180, 0.5))
_OLD: Final = 0.25
_MAX_ENTRIES: Final = 500

# What a file at the top of a repository says of it; in lower case.
_FILES: Final[Mapping[str, tuple[str, ...]]] = {
    "package.json": ("javascript", "node", "nodejs", "npm"),
    "tsconfig.json": ("typescript",),
    "pyproject.toml": ("python",),
    "setup.py": ("python",),
    "requirements.txt": ("python", "pip"),
    "cargo.toml": ("rust", "cargo"),
    "go.mod": ("go", "golang"),
    "gemfile": ("ruby", "rails"),
    "composer.json": ("php", "composer"),
    "pom.xml": ("java", "maven"),
    "build.gradle": ("java", "gradle", "kotlin"),
    "build.gradle.kts": ("kotlin", "gradle"),
    "package.swift": ("swift",),
    "pubspec.yaml": ("flutter", "dart"),
    "mix.exs": ("elixir", "phoenix"),
    "cmakelists.txt": ("cmake", "cpp"),
    "dockerfile": ("docker", "container"),
    "docker-compose.yml": ("docker", "compose"),
    "compose.yaml": ("docker", "compose"),
    "next.config.js": ("nextjs", "react"),
    "vite.config.ts": ("vite",),
    "angular.json": ("angular",),
    "manage.py": ("django",),
    "terraform": ("terraform",),
    "main.tf": ("terraform",),
    "helm": ("helm", "kubernetes"),
    "k8s": ("kubernetes", "k8s"),
    ".github": ("github",),
    ".gitlab-ci.yml": ("gitlab",),
    "jenkinsfile": ("jenkins",),
    "changelog.md": ("changelog",),
    "prisma": ("prisma",),
    "dbt_project.yml": ("dbt",),
}
_SUFFIXES: Final[Mapping[str, tuple[str, ...]]] = {
    ".py": ("python",),
    ".ipynb": ("jupyter", "notebook"),
    ".ts": ("typescript",),
    ".js": ("javascript",),
    ".rs": ("rust",),
    ".go": ("golang",),
    ".java": ("java",),
    ".tf": ("terraform",),
    ".sql": ("sql",),
    ".tex": ("latex",),
    ".csproj": ("csharp", "dotnet"),
}


class SkillPast(NamedTuple):
    """The uses of one skill: here, anywhere, after it was suggested; and the days since the last one."""

    here: int = 0
    everywhere: int = 0
    suggested: int = 0
    days: int = 0


def read_past(home: Path, project: str, *, now: float | None = None) -> dict[str, SkillPast]:
    """The past uses of each skill in the ledger, by path, as seen from a project."""
    today = date.fromtimestamp(time.time() if now is None else now)
    found: dict[str, SkillPast] = {}
    for use in read_uses(home):
        past = found.get(use.path, SkillPast(days=10_000))
        days = past.days
        with suppress(ValueError):
            days = max(0, (today - date.fromisoformat(use.day)).days)
        found[use.path] = SkillPast(
            past.here + (use.project == project),
            past.everywhere + 1,
            past.suggested + use.suggested,
            min(days, past.days),
        )
    return found


def repository_words(project: Path | None) -> frozenset[str]:
    """The languages, tools and kinds of files that the top of a repository shows; nothing outside of one."""
    if project is None:
        return frozenset()
    words: set[str] = set()
    try:
        with os.scandir(project) as entries:
            for count, entry in enumerate(entries):
                if count == _MAX_ENTRIES:
                    break
                name = entry.name.lower()
                words.update(_FILES.get(name, ()))
                words.update(_SUFFIXES.get(os.path.splitext(name)[1], ()))  # noqa: PTH122 - hundreds of these
    except OSError:
        return frozenset()
    return frozenset(words)


class SkillPriors:
    """The prior weights of some skills, which are identified by number; `find` gives the postings of a stem."""

    def __init__(
        self,
        skills: Mapping[int, Skill],
        past: Mapping[str, SkillPast],
        repository: frozenset[str],
        find: Callable[[str], Postings],
    ) -> None:
        self._skills = skills
        self._past = past
        self._shared: dict[int, list[str]] = {}
        for word in sorted(repository):
            for entry in find(stem(word)).entries:
                if entry & DESCRIBED:
                    self._shared.setdefault(entry >> 8, []).append(word)

    def value(self, number: int) -> float:
        """From 0 to 1."""
        skill = self._skills[number]
        value = _SCOPES[skill.scope]
        if self._past and (past := self._past.get(str(skill.canonical_path))):
            value += _worth_of_uses(past)
        if shared := self._shared.get(number):
            value += min(_MAX_REPOSITORY, _PER_WORD * len(shared))
        return round(value, 4)

    def explained(self, number: int) -> Prior:
        """The same with the reasons."""
        skill = self._skills[number]
        reasons = [f"scope {skill.scope}"]
        if past := self._past.get(str(skill.canonical_path)):
            last = {0: "today", 1: "yesterday"}.get(past.days, f"{past.days} days ago")
            reasons.append(f"used {counted(past.everywhere, 'time')}, {past.here} here, last {last}")
        if shared := self._shared.get(number):
            reasons.append(f"the repository has {', '.join(shared)}")
        return Prior(self.value(number), tuple(reasons))

    def preference(self) -> Preference:
        """The order in which skills keep their place in the list, and how many of them there is a reason for."""
        values = [self.value(number) for number in self._skills]
        scopes = [_SCOPES[skill.scope] for skill in self._skills.values()]
        order = sorted(range(len(values)), key=lambda at: (values[at] <= scopes[at], -values[at], at))
        return Preference(tuple(order), sum(value > scope for value, scope in zip(values, scopes, strict=True)))


def _worth_of_uses(past: SkillPast) -> float:
    recent = next((part for days, part in _RECENT if past.days <= days), _OLD)
    # Steps that grow, so that one use more rarely changes the order.
    uses = 0.25 * _steps(past.here) + 0.12 * _steps(past.everywhere) + 0.08 * _steps(past.suggested)
    return min(_MAX_USE, uses * recent)


def _steps(count: int) -> int:
    return int(math.log2(1 + count))

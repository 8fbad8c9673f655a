"""The skills of one session: what the model is told of them, what a message asks for, and what a command used."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from codex_py.protocol.events import SkillUsed
from codex_py.protocol.input import SkillInput, TextInput, UserInput
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.value import Value
from codex_py.skills.bundled import sync_bundled
from codex_py.skills.dependencies import DependencyPlan, plan_dependencies
from codex_py.skills.implicit import SkillIndex, UsedOnce, detect_skill_use
from codex_py.skills.inject import skill_item
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.skills.render import RenderedSkills, render_skills
from codex_py.skills.report import load_warnings
from codex_py.skills.roots import SkillRootsRequest
from codex_py.skills.rules import SkillRule
from codex_py.skills.select import Selection, select_skills
from codex_py.skills.service import SkillService
from codex_py.skills.usage import record_use
from codex_py.text.sanitize import sanitize_line


class SkillSettings(Value):
    """Where the skills of a session are and how much of them the model is told.

    `env` is what commands run with; `withheld_env` is what the user's environment has and commands do not get.
    `configured_mcp` are the keys of the MCP servers there are.
    """

    roots: SkillRootsRequest
    rules: tuple[SkillRule, ...]
    include_instructions: bool
    context_window: int | None
    max_tokens: int | None
    env: Mapping[str, str]
    withheld_env: Mapping[str, str]
    configured_mcp: frozenset[str]
    keep_ledger: bool = True


class AskedFor(Value):
    """The skills of one message: their items, in order, their needs, and lines for the user.

    `granted` are variables of the user's environment that commands get from now on, because a skill of the user's own
    choice declares them.
    """

    items: tuple[ResponseItem, ...]
    used: tuple[SkillUsed, ...]
    needs: DependencyPlan
    granted: Mapping[str, str]
    notices: tuple[str, ...]


class SessionSkills:
    """Skills as they are on disk: an edited one counts on the next turn. Call `refresh` when a turn begins."""

    def __init__(self, settings: SkillSettings) -> None:
        self._settings = settings
        home = settings.roots.home
        self._service = SkillService(home / "cache" / "skills")
        self._catalog = SkillCatalog()
        self._rendered: RenderedSkills | None = None
        self._index: SkillIndex | None = None
        self._used = UsedOnce()
        self._synced = False

    def refresh(self) -> tuple[str, ...]:
        """Look at the folders again; lines for the user about what could not be loaded or does not fit."""
        settings = self._settings
        warnings: list[str] = []
        if not self._synced:
            self._synced = True
            trouble = sync_bundled(settings.roots.home, enabled=settings.roots.bundled)
            warnings += [trouble] if trouble else []
        catalog = self._service.catalog(settings.roots, settings.rules)
        if catalog is not self._catalog or self._rendered is None:
            self._catalog = catalog
            self._index = None
            self._rendered = render_skills(
                catalog, context_window=settings.context_window, max_tokens=settings.max_tokens
            )
        self._used = UsedOnce()
        shortened = self._rendered.warnings if settings.include_instructions else ()
        return (*warnings, *load_warnings(catalog), *shortened)

    def instructions(self) -> str:
        """The block for the developer message; "" when the model is told of no skill."""
        if self._rendered is None or not self._settings.include_instructions:
            return ""
        return self._rendered.text

    def asked_for(self, inputs: Sequence[UserInput]) -> AskedFor:
        """What a message names, read from disk now. A skill that cannot be read costs a line, not the turn."""
        selection = self._select(inputs)
        items: list[ResponseItem] = []
        used: list[SkillUsed] = []
        notices = list(selection.notices)
        for skill in selection.skills:
            injected = skill_item(skill)
            notices += [injected.warning] if injected.warning else []
            if injected.item is not None:
                items.append(injected.item)
                used += self._note(skill, "explicit")
        settings = self._settings
        present = settings.env.keys() | settings.withheld_env.keys()
        needs = plan_dependencies(selection.skills, env=present, configured_mcp=settings.configured_mcp)
        granted, withheld = self._grants(selection.skills)
        return AskedFor(tuple(items), tuple(used), needs, granted, (*notices, *needs.notes, *withheld))

    def _grants(self, skills: Sequence[Skill]) -> tuple[dict[str, str], list[str]]:
        """Which withheld variables the skills may have, and a line for each that a repository's skill may not."""
        granted: dict[str, str] = {}
        lines: list[str] = []
        for skill in skills:
            wanted = [need.value.strip() for need in skill.dependencies if need.type.strip().lower() == "env_var"]
            for name in wanted:
                if name not in self._settings.withheld_env:
                    continue
                if skill.scope != "repo":
                    granted[name] = self._settings.withheld_env[name]
                else:
                    # Whoever wrote the repository chose the name; the user has only chosen the skill.
                    lines.append(
                        f"the repository's skill `{sanitize_line(skill.name)}` wants `{name}`, kept from commands;"
                        " to give it: `shell_environment_policy.ignore_default_excludes = true`"
                    )
        return granted, lines

    def used_by(self, command: str, workdir: Path) -> list[SkillUsed]:
        """The skills a command reads or runs scripts of, each once a turn."""
        if self._index is None:
            self._index = SkillIndex(self._catalog, variables=self._settings.env)
        found = detect_skill_use(command, workdir, self._index)
        return [note for use in found for note in self._note(use.skill, use.kind)]

    def _select(self, inputs: Sequence[UserInput]) -> Selection:
        return select_skills(
            self._catalog,
            [given.text for given in inputs if isinstance(given, TextInput)],
            user_home=self._settings.roots.user_home,
            structured=[given for given in inputs if isinstance(given, SkillInput)],
        )

    def _note(self, skill: Skill, kind: Literal["explicit", "read", "script"]) -> list[SkillUsed]:
        if not self._used.is_first(skill):
            return []
        use = SkillUsed(skill.name, skill.scope, skill.canonical_path, kind)
        if self._settings.keep_ledger:
            record_use(self._settings.roots.home, use)
        return [use]


def project_config_dirs(cwd: Path, root: Path | None) -> tuple[Path, ...]:
    """The `.codex` folders from `cwd` up to the project's root, the nearest first; without a root that of `cwd`."""
    folders = (cwd, *cwd.parents)
    inside = [folder for folder in folders if root is not None and folder.is_relative_to(root)] or [cwd]
    return tuple(folder / ".codex" for folder in inside if os.path.isdir(folder / ".codex"))  # noqa: PTH112

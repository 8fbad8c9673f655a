"""The skills of one session: what the model is told of them, what a message asks for, and what a command used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from codex_py.protocol.events import SkillUsed
from codex_py.protocol.input import SkillInput, TextInput, UserInput
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.value import Value
from codex_py.skills.bundled import sync_bundled
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.skills.render import RenderedSkills, render_skills
from codex_py.skills.report import load_warnings
from codex_py.skills.roots import SkillRootsRequest
from codex_py.skills.rules import SkillRule
from codex_py.skills.service import SkillService

if TYPE_CHECKING:
    from codex_py.skills.implicit import SkillIndex


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


class MissingVariable(NamedTuple):
    """An environment variable a named skill declares and nobody has set; `warning` is for when nobody can be asked."""

    name: str
    skill: str
    why: str
    warning: str


class AskedFor(Value):
    """The skills a message names: their items, in order, what they lack, and lines for the user.

    `granted` are variables of the user's environment that commands get from now on, because a skill of the user's own
    choice declares them. `once` are lines that need telling once a session.
    """

    items: tuple[ResponseItem, ...] = ()
    skills: tuple[Skill, ...] = ()
    missing: tuple[MissingVariable, ...] = ()
    granted: Mapping[str, str] = MappingProxyType({})
    notices: tuple[str, ...] = ()
    once: tuple[str, ...] = ()


class SessionSkills:
    """Skills as they are on disk: an edited one counts on the next turn. Call `refresh` when a turn begins."""

    def __init__(self, settings: SkillSettings) -> None:
        self._settings = settings
        home = settings.roots.home
        self._service = SkillService(home / "cache" / "skills")
        self._catalog = SkillCatalog()
        self._rendered: RenderedSkills | None = None
        self._index: SkillIndex | None = None
        self._used: set[tuple[str, Path, str]] = set()
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
        self._used.clear()
        shortened = self._rendered.warnings if settings.include_instructions else ()
        return (*warnings, *load_warnings(catalog), *shortened)

    def instructions(self) -> str:
        """The block for the developer message; "" when the model is told of no skill."""
        if self._rendered is None or not self._settings.include_instructions:
            return ""
        return self._rendered.text

    def asked_for(self, inputs: Sequence[UserInput]) -> AskedFor:
        """What a message names, read from disk now. A skill that cannot be read costs a line, not the turn."""
        if not any(map(_may_name_a_skill, inputs)):
            return AskedFor()
        from codex_py.core.named_skills import read_named_skills  # the seam: most messages name no skill

        return read_named_skills(self._catalog, self._settings, inputs)

    def used_by(self, command: str, workdir: Path) -> list[SkillUsed]:
        """The skills a command reads or runs scripts of, each once a turn."""
        from codex_py.skills.implicit import SkillIndex, detect_skill_use  # the seam: only when a command runs

        if self._index is None:
            self._index = SkillIndex(self._catalog, variables=self._settings.env)
        found = detect_skill_use(command, workdir, self._index)
        return [note for use in found for note in self.note_use(use.skill, use.kind)]

    def note_use(self, skill: Skill, kind: Literal["explicit", "read", "script"]) -> list[SkillUsed]:
        """The use, for the ledger and for whoever listens; nothing when it is not the first of the turn."""
        key = (skill.scope, skill.canonical_path, skill.name)
        if key in self._used:
            return []
        from codex_py.skills.usage import record_use  # the seam: only when a skill is used

        self._used.add(key)
        use = SkillUsed(skill.name, skill.scope, skill.canonical_path, kind)
        if self._settings.keep_ledger:
            record_use(self._settings.roots.home, use)
        return [use]


def _may_name_a_skill(given: UserInput) -> bool:
    return isinstance(given, SkillInput) or (isinstance(given, TextInput) and "$" in given.text)

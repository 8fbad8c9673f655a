"""The skills of one session: the list the model gets, what a message asks for, and what a command used."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from codex_py.core.skill_settings import SkillSettings, SkillsToInject
from codex_py.protocol.events import SkillUsed
from codex_py.protocol.ops import SkillInput, TextInput, UserInput
from codex_py.skills.bundled import sync_bundled
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.skills.render import RenderedSkills, render_skills
from codex_py.skills.roots import SkillRootsRequest
from codex_py.skills.service import SkillService, SkillSwitch, idle_rules, load_warnings

if TYPE_CHECKING:
    from codex_py.skills.implicit import SkillIndex, SkillUse


class SessionSkills:
    """Skills as they are on disk: an edited one counts on the next turn. Call `refresh` when a turn begins."""

    def __init__(self, settings: SkillSettings, cwd: Path) -> None:
        self._settings = settings
        self._cwd: Path = cwd
        home = settings.roots.home
        self._service = SkillService(home / "cache" / "skills", settings.may_read, checks_plain=settings.checks_plain)
        self._catalog = SkillCatalog()
        self._rendered: RenderedSkills | None = None
        self._index: SkillIndex | None = None
        self._used: set[tuple[str, Path, str]] = set()
        self._synced = False
        self._is_reloading = False
        # Those of the settings, once there are more.
        self._configured_roots: tuple[Path, ...] | None = None

    @property
    def catalog(self) -> SkillCatalog:
        """The skills as `refresh` found them last."""
        return self._catalog

    @property
    def rendered(self) -> RenderedSkills | None:
        """What the model is told of them, and at what cost; None before the first `refresh`."""
        return self._rendered

    def clone(self) -> SessionSkills:
        """The same skills for another session."""
        return SessionSkills(self._settings, self._cwd)

    def may_read(self, skill: Skill) -> bool:
        """Whether the text of a skill may be put before the model."""
        return self._settings.may_read(skill.canonical_path)

    def reload(self) -> None:
        """Let the next `refresh` read everything, whatever is kept of it."""
        self._is_reloading = True

    def use_rules(self, rules: Sequence[SkillSwitch]) -> None:
        """Let other rules count from the next `refresh` on: the user has switched a skill."""
        self._settings = self._settings.replace(rules=tuple(rules))

    def use_extra_roots(self, roots: Sequence[Path]) -> None:
        """Look into these directories too, beside those of the settings, from the next `refresh` on."""
        settings = self._settings
        configured = settings.roots.extra_user_roots if self._configured_roots is None else self._configured_roots
        self._configured_roots = configured
        new_roots = (*configured, *roots)

        def roots_for(cwd: Path) -> SkillRootsRequest:
            return settings.roots_for(cwd).replace(extra_user_roots=new_roots)

        self._settings = settings.replace(roots=settings.roots.replace(extra_user_roots=new_roots), roots_for=roots_for)

    def refresh(self, cwd: Path, context_window: int | None) -> tuple[str, ...]:
        """Look at the directories again; lines for the user about what could not be loaded or does not fit."""
        settings = self._settings_for(cwd, context_window)
        warnings: list[str] = []
        if not self._synced:
            self._synced = True
            trouble = sync_bundled(settings.roots.home, enabled=settings.roots.bundled)
            warnings += [trouble] if trouble else []
        catalog = self._service.catalog(settings.roots, settings.rules, force_reload=self._is_reloading)
        self._is_reloading = False
        if catalog is not self._catalog or self._rendered is None:
            self._catalog = catalog
            self._index = None
            self._rendered = render_skills(
                catalog, context_window=settings.context_window, max_tokens=settings.max_tokens
            )
        self._used.clear()
        shortened = self._rendered.warnings if settings.include_instructions else ()
        return (
            *warnings,
            *load_warnings(catalog),
            *idle_rules(catalog.skills, settings.rules, certain=True),
            *shortened,
        )

    def _settings_for(self, cwd: Path, context_window: int | None) -> SkillSettings:
        settings = self._settings
        if context_window != settings.context_window:
            self._settings = settings = settings.replace(context_window=context_window)
            self._rendered = None
        if cwd != self._cwd:
            self._cwd = cwd
            self._settings = settings = settings.replace(roots=settings.roots_for(cwd))
        return settings

    def instructions(self) -> str:
        """The block for the developer message; "" when the model is told of no skill."""
        if self._rendered is None or not self._settings.include_instructions:
            return ""
        return self._rendered.text

    def collect_requested(
        self, inputs: Sequence[UserInput], *, connector_slugs: Collection[str] = ()
    ) -> SkillsToInject:
        """What a message names, read from disk now. A skill that cannot be read costs a line, not the turn.

        A plain name that is also one of `connector_slugs` names no skill.
        """
        if not any(map(_may_name_a_skill, inputs)):
            return SkillsToInject()
        from codex_py.core.mentions import read_named_skills  # the seam: most messages name no skill

        return read_named_skills(self._catalog, self._settings, inputs, connector_slugs=connector_slugs)

    def note_uses_in(self, command: str, workdir: Path) -> list[SkillUsed]:
        """The skills a command reads or runs scripts of, each once a turn."""
        return [note for use in self.uses_in(command, workdir) for note in self.note_use(use.skill, use.kind)]

    def uses_in(self, command: str, workdir: Path) -> Sequence[SkillUse]:
        """The skills a command reads or runs scripts of; nobody is told."""
        from codex_py.skills.implicit import SkillIndex, detect_skill_use  # the seam: only when a command runs

        if self._index is None:
            self._index = SkillIndex(self._catalog)
        if not self._index.may_name(command, workdir):
            return ()
        line = self._settings.command_lines.read(command, str(workdir), self._settings.env)
        return detect_skill_use(line, self._index)

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


def _may_name_a_skill(item: UserInput) -> bool:
    return isinstance(item, SkillInput) or (isinstance(item, TextInput) and "$" in item.text)

"""The skills of one session: where they are, the list the model gets, what a message asks for and a command used."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, TypeAlias

from codex_py.config.load import LoadedConfig
from codex_py.config.schema import Config
from codex_py.context.agents_md import find_project_root
from codex_py.errors import ToolError
from codex_py.plugins.manifests import plugin_skills
from codex_py.protocol.events import CommandStarted, SkillUsed
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import SkillScope
from codex_py.protocol.value import Value
from codex_py.shell.reader import CommandLineReader
from codex_py.skills.budget import tokens_for
from codex_py.skills.bundled import sync_bundled
from codex_py.skills.implicit import SkillIndex, SkillUse, detect_skill_use
from codex_py.skills.model import McpNeed, Skill, SkillCatalog
from codex_py.skills.render import RenderedSkills, render_skills
from codex_py.skills.roots import PluginSkills, SkillRootsRequest
from codex_py.skills.rules import SkillSwitch, idle_rules
from codex_py.skills.service import SkillChecker, SkillService, load_warnings
from codex_py.skills.usage import TurnLedger, UseWay, used_first

if TYPE_CHECKING:
    from codex_py.core.skill_finder import SkillFinder

# Finds the skills that a command line uses in a directory.
SkillUses: TypeAlias = Callable[[str, Path], Sequence[SkillUse]]


class SkillSettings(Value):
    """Where the skills of a session are and how much of them the model is sent.

    `max_tokens` and `share` limit the list, as `tokens_for` says.
    `roots` are those of the working directory at the start, `roots_for` returns those of another one.
    `env` is what commands run with; `withheld_env` is what the user's environment has and commands do not get.
    `configured_mcp` are the keys of the MCP servers there are. Files that `may_read` denies are not read for the model;
    `checks_plain` is false where it denies only files that are reached through links. `ranking` says that the list
    keeps what is used here, `suggestions` that the model is pointed to skills the list leaves out.
    `natural_names` is what a skill does that a message names in words. `load_checker` loads the check of installed
    skills.
    """

    roots: SkillRootsRequest
    rules: tuple[SkillSwitch, ...]
    include_instructions: bool
    context_window: int | None
    max_tokens: int | None
    share: str | None
    env: Mapping[str, str]
    withheld_env: Mapping[str, str]
    configured_mcp: frozenset[str]
    roots_for: Callable[[Path], SkillRootsRequest]
    command_lines: CommandLineReader
    keep_ledger: bool = True
    ledger_home: Path | None = None
    never_install: tuple[str, ...] = ()
    may_read: Callable[[Path], bool] = bool
    checks_plain: bool = True
    ranking: bool = True
    suggestions: bool = True
    natural_names: Literal["off", "suggest", "on"] = "suggest"
    load_checker: Callable[[], SkillChecker] | None = None
    asks_for_variables: bool = True
    """Whether the user is asked for variables that skills need."""


class MissingVariable(Value):
    """An environment variable a named skill declares and nobody has set; `warning` is for when nobody can be asked."""

    name: str
    skill: str
    why: str
    warning: str


class FailedSkill(Value):
    """A skill that a message names and that cannot be loaded or read."""

    name: str
    scope: SkillScope
    path: Path


class SkillsToInject(Value):
    """The skills a message names: their items, in order, what they lack, and lines for the user.

    `granted` are variables of the user's environment that commands get from now on, because a skill of the user's own
    choice declares them. `references` are the tables of contents that follow the items, None for a skill without
    references. `servers` are MCP servers that are not configured. `arguments` are those of each skill. `failed` are
    skills that cannot be read.
    """

    items: tuple[ResponseItem, ...] = ()
    references: tuple[ResponseItem | None, ...] = ()
    skills: tuple[Skill, ...] = ()
    missing: tuple[MissingVariable, ...] = ()
    servers: tuple[McpNeed, ...] = ()
    granted: Mapping[str, str] = MappingProxyType({})
    arguments: tuple[str, ...] = ()
    failed: tuple[FailedSkill, ...] = ()
    notices: tuple[str, ...] = ()


class SessionSkills:
    """Skills as they are on disk: an edited one counts on the next turn. Call `refresh` when a turn begins."""

    def __init__(self, settings: SkillSettings, cwd: Path) -> None:
        self.ledger = TurnLedger(settings.ledger_home or settings.roots.home, is_on=settings.keep_ledger)
        self.finder: SkillFinder | None = None
        self._settings = settings
        self._cwd: Path = cwd
        home = settings.roots.home
        self._service = SkillService(
            home / "cache" / "skills",
            settings.may_read,
            checks_plain=settings.checks_plain,
            load_checker=settings.load_checker,
        )
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
        """The list of skills as the model gets it, with its cost; None before the first `refresh`."""
        return self._rendered

    def clone(self) -> SessionSkills:
        """The same skills for another session."""
        return SessionSkills(self._settings, self._cwd)

    @property
    def settings(self) -> SkillSettings:
        """Where they are and how much of them the model is sent, as of the last `refresh`."""
        return self._settings

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
                catalog,
                context_window=settings.context_window,
                max_tokens=tokens_for(settings.context_window, settings.max_tokens, settings.share),
                prefer=(lambda skills: used_first(skills, settings.roots.home)) if settings.ranking else None,
            )
        self._used.clear()
        shortened = self._rendered.warnings if settings.include_instructions else ()
        return (
            *warnings,
            *load_warnings(catalog),
            *self._service.take_mentions(),
            *idle_rules(catalog.skills, settings.rules, never_install=settings.never_install, certain=True),
            *shortened,
        )

    def take_changes(self) -> list[str]:
        """A line for each skill that has come or changed since this was last called; who did it is not known."""
        changed = self._service.take_changes()
        return [
            f"the skill `{skill.name}` is new since the last turn (`{skill.path}`)"
            if changed[str(skill.path)]
            else f"the skill `{skill.name}` has changed since the last turn (`{skill.path}`); the model uses it as it "
            "is now"
            for skill in self._catalog.skills
            if str(skill.path) in changed and skill.scope != "system" and self._catalog.is_enabled(skill)
        ]

    def _settings_for(self, cwd: Path, context_window: int | None) -> SkillSettings:
        settings = self._settings
        if context_window != settings.context_window:
            self._settings = settings = settings.replace(context_window=context_window)
            self._rendered = None
        if cwd != self._cwd:
            self._cwd = cwd
            self._settings = settings = settings.replace(roots=settings.roots_for(cwd))
        return settings

    @property
    def hides_descriptions(self) -> bool:
        """Whether the list that the model is sent leaves a skill out, or cuts a description below 60 characters."""
        return self._settings.include_instructions and self._rendered is not None and self._rendered.hides_descriptions

    def load_finder(self) -> SkillFinder:
        """Finds skills that the list does not show in full. Loaded on first use.

        Raises `ToolError` in a Python without SQLite.
        """
        if self.finder is None:
            try:
                from codex_py.core.skill_finder import SkillFinder  # only where the list is short of skills
            except ImportError as error:
                raise ToolError(f"skills cannot be searched: {error}") from error

            self.finder = SkillFinder(
                lambda: self._settings.roots, self._settings.may_read, keeps_ledger=self._settings.keep_ledger
            )
        return self.finder

    def instructions(self) -> str:
        """The block for the developer message; "" when the model is sent no skill."""
        if self._rendered is None or not self._settings.include_instructions:
            return ""
        return self._rendered.text

    def note_uses_in(self, started: CommandStarted) -> list[SkillUsed]:
        """The skills a command reads or runs scripts of, each once a turn."""
        noted: list[SkillUsed] = []
        for use in self.uses_in(started.command, started.cwd):
            self.ledger.note_call(started.call_id, use.skill.canonical_path, is_script=use.kind == "script")
            noted += self.note_use(use.skill, use.kind)
        return noted

    def uses_in(self, command: str, workdir: Path) -> Sequence[SkillUse]:
        """The skills a command reads or runs scripts of; no event is emitted."""
        if self._index is None:
            self._index = SkillIndex(self._catalog)
        if not self._index.may_name(command, workdir):
            return ()
        line = self._settings.command_lines.read(command, str(workdir), self._settings.env)
        return detect_skill_use(line, self._index)

    def note_use(
        self, skill: Skill, kind: Literal["explicit", "read", "script"], *, way: UseWay = "model", tokens: int = 0
    ) -> list[SkillUsed]:
        """The use, for the ledger and for whoever listens; nothing when it is not the first of the turn.

        `way` is how an explicit use came about, `tokens` what it puts into the context.
        """
        key = (skill.scope, skill.canonical_path, skill.name)
        if key in self._used:
            return []
        self._used.add(key)
        use = SkillUsed(skill.name, skill.scope, skill.canonical_path, kind)
        roots, finder = self._settings.roots, self.finder
        suggested = finder is not None and skill.canonical_path in finder.suggested
        if suggested and kind != "explicit":
            way = "natural" if finder is not None and skill.canonical_path in finder.named else "suggested"
        self.ledger.note_use(use, way, tokens, project=str(roots.project_root or roots.cwd), suggested=suggested)
        return [use]


def skill_sources(loaded: LoadedConfig, *, home: Path, cwd: Path, env: Mapping[str, str]) -> SkillRootsRequest:
    """The inputs for finding the skill directories of a session; `home` is CODEX_HOME."""
    config = loaded.config
    real = Path(os.path.realpath(cwd))
    return SkillRootsRequest(
        home=home,
        user_home=Path(env.get("HOME") or home.parent),
        cwd=real,
        project_root=find_project_root(real, config.project_root_markers),
        project_config_dirs=_project_config_dirs(real, loaded.project_root),
        system=loaded.system,
        plugin_roots=_plugin_roots(home, config),
        extra_roots=tuple(Path(directory) for directory in config.skills.roots),
        extra_user_roots=tuple(Path(directory) for directory in config.skills.extra_user_roots),
        bundled=config.skills.bundled.enabled,
        claude=config.skills.claude,
    )


def skill_rules(loaded: LoadedConfig) -> tuple[SkillSwitch, ...]:
    """The `[[skills.config]]` entries and the `skills.only` of all layers; of two that meet the later one wins.

    Those of the project come first, so that the user's own win. Of several `skills.only` one counts: the user's.
    """
    layers = sorted(loaded.skill_layers, key=lambda entry: entry[0].layer_type != "project")
    chosen = next((layer for layer, table in reversed(layers) if table.get("only") is not None), None)
    rules: list[SkillSwitch] = []
    for layer, table in layers:
        where = SkillSwitch(layer=layer.layer_type, file=layer.path)
        if layer is chosen:
            rules.append(where.replace(only=table["only"]))
        for entry in table.get("config", ()):
            rules.append(where.replace(path=entry.get("path"), name=entry.get("name"), enabled=entry["enabled"]))
    return tuple(rules)


def _plugin_roots(home: Path, config: Config) -> tuple[PluginSkills, ...]:
    if not config.plugins:
        return ()
    return plugin_skills(home, config.plugins)


def _project_config_dirs(cwd: Path, root: Path | None) -> tuple[Path, ...]:
    """The `.codex` directories from `cwd` up to the project's root, the nearest first; without a root that of `cwd`."""
    directories = (cwd, *cwd.parents)
    inside = [directory for directory in directories if root is not None and directory.is_relative_to(root)] or [cwd]
    return tuple(directory / ".codex" for directory in inside)

"""The configuration in the words of the skills room: where skills are looked for, and which are switched off."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from codex_py.config.load import LoadedConfig
from codex_py.config.schema import Config
from codex_py.context.agents_md import find_project_root
from codex_py.skills.roots import PluginSkills, SkillRootsRequest
from codex_py.skills.service import SkillSwitch


def skill_sources(loaded: LoadedConfig, *, home: Path, cwd: Path, env: Mapping[str, str]) -> SkillRootsRequest:
    """What decides where the skills of a session come from; `home` is CODEX_HOME."""
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
        follow_links=config.skills.follow_links,
    )


def skill_rules(config: Config) -> tuple[SkillSwitch, ...]:
    """The `[[skills.config]]` entries of all layers; of two that meet the later one wins."""
    return tuple(SkillSwitch(rule.path, rule.name, rule.enabled) for rule in config.skills.config)


def _plugin_roots(home: Path, config: Config) -> tuple[PluginSkills, ...]:
    if not config.plugins:
        return ()
    from codex_py.plugins.manifests import plugin_skills  # the seam: only for who has plugins

    return plugin_skills(home, config.plugins)


def _project_config_dirs(cwd: Path, root: Path | None) -> tuple[Path, ...]:
    """The `.codex` directories from `cwd` up to the project's root, the nearest first; without a root that of `cwd`."""
    directories = (cwd, *cwd.parents)
    inside = [directory for directory in directories if root is not None and directory.is_relative_to(root)] or [cwd]
    return tuple(directory / ".codex" for directory in inside if os.path.isdir(directory / ".codex"))  # noqa: PTH112

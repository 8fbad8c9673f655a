"""Noticing that skills on disk have changed: for front ends that show a list of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from codex_py.config.load import LoadedConfig
from codex_py.core.skill_sources import skill_rules, skill_sources
from codex_py.skills.model import SkillCatalog
from codex_py.skills.service import SkillService


class SkillWatch:
    """Looks when it is asked to. A look that finds nothing new costs one `stat` a file."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        self._home = home
        self._env = env
        self._service = SkillService(home / "cache" / "skills")
        self._seen: dict[tuple[Path, tuple[Path, ...]], SkillCatalog] = {}

    def has_changed(self, cwd: Path, loaded: LoadedConfig, extra_roots: Sequence[Path] = ()) -> bool:
        """Whether what is told of a folder's skills is other than at the look before; at the first one it is not."""
        sources = skill_sources(loaded, home=self._home, cwd=cwd, env=self._env)
        sources = sources.replace(extra_user_roots=(*sources.extra_user_roots, *extra_roots))
        key = (cwd, tuple(extra_roots))
        before = self._seen.get(key)
        now = self._seen[key] = self._service.catalog(sources, skill_rules(loaded.config))
        return before is not None and now != before

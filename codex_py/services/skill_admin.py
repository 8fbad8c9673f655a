"""Lists, enables, disables and watches the skills of a directory, outside of any session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from codex_py.config.entries import SkillSelector, set_skill_rule
from codex_py.config.load import ConfigRequest, LoadedConfig, load_config
from codex_py.core.model_setup import chosen_model, configured_provider, known_facts
from codex_py.core.session_settings import read_check
from codex_py.core.session_skills import skill_rules, skill_sources
from codex_py.errors import UserError
from codex_py.services.skill_trust import consent_check
from codex_py.skills.budget import tokens_for
from codex_py.skills.bundled import sync_bundled
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.skills.roots import SkillRootsRequest
from codex_py.skills.search_index import FoundSkill, SearchIndex, SearchUnavailable
from codex_py.skills.service import SkillService
from codex_py.skills.usage import count_uses

__all__ = ["Skill", "SkillAdmin", "list_tokens", "look_at_skills", "model_for", "named", "switch_skills", "window_for"]


class SkillAdmin(NamedTuple):
    """The skills of a directory under its configuration. `trouble` is an error with the bundled skills."""

    request: ConfigRequest
    loaded: LoadedConfig
    sources: SkillRootsRequest
    catalog: SkillCatalog
    trouble: str | None = None


def look_at_skills(request: ConfigRequest, *, refresh: bool = False, extra_roots: Sequence[Path] = ()) -> SkillAdmin:
    """Read the configuration and the skills as a session would; `refresh` ignores the cache.

    `extra_roots` are directories of the user in addition to those of the configuration.
    """
    loaded = load_config(request)
    sources = skill_sources(loaded, home=request.home, cwd=request.cwd, env=request.env)
    sources = sources.replace(extra_user_roots=(*sources.extra_user_roots, *extra_roots))
    trouble = sync_bundled(request.home, enabled=sources.bundled)
    service = _skill_service(request.home, request.env)
    catalog = service.catalog(sources, skill_rules(loaded), force_reload=refresh)
    return SkillAdmin(request, loaded, sources, catalog, trouble)


def _skill_service(home: Path, env: Mapping[str, str]) -> SkillService:
    return SkillService(
        home / "cache" / "skills",
        load_checker=partial(consent_check, home, env),
    )


def switch_skills(admin: SkillAdmin, skills: Sequence[Skill], *, enabled: bool, by_path: bool) -> Path:
    """Enable or disable the skills of one name, or the one at its path, in the user's `config.toml`, which it returns.

    Raises `UserError` when it cannot be written, and when another layer overrides it.
    """
    verb = "enabled" if enabled else "disabled"
    request = admin.request
    selector = SkillSelector(path=skills[0].path) if by_path else SkillSelector(name=skills[0].name)
    file = set_skill_rule(request.home, selector, enabled=enabled, user_home=request.env.get("HOME", ""))
    after = look_at_skills(request).catalog
    paths = {skill.canonical_path for skill in skills}
    left = [skill for skill in after.skills if skill.canonical_path in paths and after.is_enabled(skill) != enabled]
    if left:
        raise UserError(
            f"{named(left)} {'is' if len(left) == 1 else 'are'} not {verb}, although `{file}` says so now",
            hint="another layer overrides it: see `codex-py config`",
        )
    return file


def named(skills: Sequence[Skill]) -> str:
    """Skills of one name, for a message."""
    name = skills[0].name
    return f"`{name}` ({skills[0].scope})" if len(skills) == 1 else f"{len(skills)} skills called `{name}`"


def search_skills(admin: SkillAdmin, text: str, skills: Sequence[Skill] | None = None) -> list[FoundSkill]:
    """The skills that fit a text, the best first, of those the model may choose by default. Raises `UserError`."""
    searched = admin.catalog.listed() if skills is None else tuple(skills)
    uses = count_uses(admin.request.home)
    return _search(admin, lambda index: index.rank(searched, text, uses=uses))


def search_skill(admin: SkillAdmin, skill: Skill, text: str, limit: int) -> list[FoundSkill]:
    """The passages of one skill that fit a text, the best first. Raises `UserError`."""
    return _search(admin, lambda index: index.passages(skill, text, limit))


def _search(admin: SkillAdmin, work: Callable[[SearchIndex], list[FoundSkill]]) -> list[FoundSkill]:
    may_read = _read_check(admin)
    index = SearchIndex(admin.request.home / "cache" / "skills", may_read)
    try:
        return [found for found in work(index) if may_read(Path(found.path))]
    except SearchUnavailable as error:
        raise UserError(str(error)) from error
    finally:
        index.close()


def _read_check(admin: SkillAdmin) -> Callable[[Path], bool]:
    request = admin.request
    return read_check(admin.loaded, home=request.home, cwd=request.cwd, env=request.env)


def window_for(admin: SkillAdmin) -> int | None:
    """The context window of the model that a session would use; None where nobody says how large it is."""
    config = admin.loaded.config
    with suppress(UserError):
        provider = configured_provider(config, admin.request.env)
        facts = known_facts(config, chosen_model(config, provider), None)
        return config.model_context_window or (facts.context_window if facts.known else None)
    return config.model_context_window


def model_for(admin: SkillAdmin) -> str:
    """The name of that model; "" when it is not known."""
    config = admin.loaded.config
    with suppress(UserError):
        return chosen_model(config, configured_provider(config, admin.request.env))
    return config.model or ""


def list_tokens(admin: SkillAdmin, window: int | None) -> int | None:
    """The tokens that the user's settings allow for the list of skills."""
    skills = admin.loaded.config.skills
    return tokens_for(window, skills.max_context_tokens, skills.budget)


class SkillWatch:
    """Checks for changed skills when it is called; an unchanged file costs one `stat`."""

    def __init__(self, home: Path, env: Mapping[str, str]) -> None:
        self._home = home
        self._env = env
        self._service = _skill_service(home, env)
        self._seen: dict[tuple[Path, tuple[Path, ...]], SkillCatalog] = {}

    def has_changed(self, cwd: Path, loaded: LoadedConfig, extra_roots: Sequence[Path] = ()) -> bool:
        """Whether a directory's skills have changed since the last call; False at the first."""
        sources = skill_sources(loaded, home=self._home, cwd=cwd, env=self._env)
        sources = sources.replace(extra_user_roots=(*sources.extra_user_roots, *extra_roots))
        key = (cwd, tuple(extra_roots))
        before = self._seen.get(key)
        now = self._seen[key] = self._service.catalog(sources, skill_rules(loaded))
        return before is not None and now != before

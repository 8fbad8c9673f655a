"""The values that a shell completes: models, sessions, profiles, skills, providers, MCP servers.

Nobody is asked: all of them come from files of this machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final

from codex_py.cli.console import load_local_config
from codex_py.config.schema import BUILT_IN_PROVIDERS, HOSTED_PROVIDERS
from codex_py.core.session_skills import skill_rules, skill_sources
from codex_py.errors import UserError
from codex_py.rollout.listing import SessionQuery, list_sessions
from codex_py.services.models import well_known_models
from codex_py.skills.service import SkillService

VALUES: Final = ("models", "sessions", "profiles", "skills", "providers", "servers")
_PROFILE: Final = ".config.toml"
_MAX_SESSIONS: Final = 50


def completion_values(value_type: str) -> list[str]:
    """Every value of a type, one a line of a shell; a broken configuration offers none."""
    try:
        return [value for value in _find_values(value_type) if value.isprintable()]
    except (UserError, OSError):
        return []


def _find_values(value_type: str) -> Iterable[str]:
    home, cwd, loaded = load_local_config(quiet=True)
    match value_type:
        case "models":
            return well_known_models(loaded.config)
        case "sessions":
            # Those of this directory, the newest first, by their names where they have one.
            return [session.name or session.id for session in list_sessions(home, SessionQuery(cwd))[:_MAX_SESSIONS]]
        case "profiles":
            return sorted(path.name.removesuffix(_PROFILE) for path in home.glob(f"*{_PROFILE}"))
        case "skills":
            sources = skill_sources(loaded, home=home, cwd=cwd, env=os.environ)
            catalog = SkillService(home / "cache" / "skills").catalog(sources, skill_rules(loaded))
            return sorted({skill.name for skill in catalog.enabled() if skill.user_invocable})
        case "providers":
            return sorted({*BUILT_IN_PROVIDERS, *HOSTED_PROVIDERS, *loaded.config.model_providers})
        case _:
            return sorted({*loaded.config.mcp_servers, *loaded.project_mcp_servers})


# The word before the one that is completed, and the type of its values.
AFTER_WORD: Final[Mapping[str, str]] = {
    **dict.fromkeys(("-m", "--model"), "models"),
    **dict.fromkeys(("-p", "--profile"), "profiles"),
    **dict.fromkeys(("--provider", "--local-provider"), "providers"),
    **dict.fromkeys(("resume", "fork", "archive", "unarchive", "delete", "rename"), "sessions"),
}
# The same for two words, such as `mcp get`.
AFTER_WORDS: Final[Mapping[str, str]] = {
    **{f"mcp {verb}": "servers" for verb in ("get", "remove", "test", "login", "logout", "trust")},
    **{f"skills {verb}": "skills" for verb in ("show", "enable", "disable")},
    **{f"sessions {verb}": "sessions" for verb in ("show", "rewind", "archive", "delete", "rename", "export")},
    "exec resume": "sessions",
}

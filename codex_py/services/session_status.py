"""The status of a session and of its MCP servers, as sections of names and facts."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast
from urllib.parse import urlsplit

from codex_py import __version__
from codex_py.config.load import LoadedConfig
from codex_py.core.ports import McpClients
from codex_py.core.session import Session
from codex_py.paths import short_path
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.policy import approval_name, describe_sandbox
from codex_py.protocol.status import FactSection
from codex_py.text.credentials import masked_words

_MAX_SERVERS: Final = 200


def status_sections(session: Session, loaded: LoadedConfig, *, branch: str, user_home: str) -> tuple[FactSection, ...]:
    """Session, permissions, usage and settings."""
    return (
        FactSection(f"codex-py {__version__}", tuple(_about_session(session, loaded, branch, user_home))),
        FactSection("Allowed", tuple(_about_policies(session))),
        FactSection("Used", tuple(_about_use(session))),
        FactSection("Settings", tuple(_about_settings(loaded, user_home))),
    )


def mcp_sections(loaded: LoadedConfig, servers: McpClients | None = None) -> tuple[FactSection, ...]:
    """The MCP servers of the configuration with their state in the session, and those that the project offers.

    The values of variables are not shown.
    """
    states = dict(servers.describe()) if servers else {}
    own = tuple(_about_server(name, server, states.pop(name, "")) for name, server in _some(loaded.config.mcp_servers))
    waiting = {name: entry for name, entry in loaded.project_mcp_servers.items() if name not in states}
    own += tuple(states.items())
    project = tuple(_about_server(name, as_object(server), "") for name, server in _some(waiting))
    none = (("", "none; add one under `[mcp_servers.<name>]` in config.toml"),)
    sections = [FactSection("MCP servers", own or none)]
    if project:
        sections.append(FactSection("Offered by this project, not started", project))
    return tuple(sections)


def _about_session(session: Session, loaded: LoadedConfig, branch: str, user_home: str) -> Iterator[tuple[str, str]]:
    settings = session.settings
    effort = f", effort {settings.model.effort}" if settings.model.effort else ""
    yield "model", f"{settings.model.model}{effort} ({settings.model.provider or loaded.config.model_provider})"
    yield "directory", short_path(settings.cwd, user_home) + (f" on {branch}" if branch else "")
    yield "trust", loaded.trust
    yield "session", session.thread_id


def _about_policies(session: Session) -> Iterator[tuple[str, str]]:
    settings = session.settings
    yield "sandbox", describe_sandbox(settings.sandbox_policy)
    yield "approvals", approval_name(settings.approval)
    if settings.plan:
        yield "plan mode", "on: nothing is written until you accept a plan"


def _about_use(session: Session) -> Iterator[tuple[str, str]]:
    use = session.context_use()
    about = "" if use.measured else "≈ "
    yield "tokens", session.spending.session.in_words()
    costs = session.spending.costs()
    yield (
        "cost",
        costs.session.in_words() + (f", {costs.turn.in_words()} of it this turn" if costs.turn.requests else ""),
    )
    if agents := session.agents.states():
        cost = f", {costs.agents.in_words()}" if costs.agents.requests else ""
        yield "agents", f"{len(agents)}, with {sum(agent.tokens for agent in agents):,} tokens of their own{cost}"
    if use.window:
        left = max(0, use.window - use.total) / use.window
        yield "context", f"{about}{use.total:,} of {use.window:,} tokens, {left:.0%} left"
    else:
        yield "context", f"{about}{use.total:,} tokens"
    if changed := len(session.files_changed()):
        yield "files", f"{changed} changed by patches"
    if running := len(session.processes()):
        yield "running", f"{running} in the background; `/ps` shows them"


def _about_settings(loaded: LoadedConfig, user_home: str) -> Iterator[tuple[str, str]]:
    for layer in loaded.layers:
        if layer.path is not None:
            yield layer.layer_type, short_path(layer.path, user_home)
    for warning in loaded.warnings:
        yield "warning", warning


def _some(servers: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list(servers.items())[:_MAX_SERVERS]


def _about_server(name: str, server: Mapping[str, Any], standing: str) -> tuple[str, str]:
    command, url = server.get("command"), server.get("url")
    words = [command] if isinstance(command, str) and command else []
    target = _address(url) if isinstance(url, str) else shlex.join(words + masked_words(_texts(server.get("args"))))
    facts = [standing, target, "" if server.get("enabled", True) else "switched off"]
    env_names = [*as_object(server.get("env")), *_texts(server.get("env_vars"))]
    if env_names:
        facts.append(f"gets {', '.join(env_names)}")
    return name, " · ".join(filter(None, facts))


def _texts(value: object) -> list[str]:
    """The texts of a list, as the configuration or a file has it."""
    several = cast("tuple[object, ...]", value) if isinstance(value, tuple) else as_list(value)
    return [text for text in several if isinstance(text, str)]


def _address(url: str) -> str:
    """An address without what may be a secret in it."""
    try:
        pieces = urlsplit(url)
    except ValueError:
        return "an address that makes no sense"
    more = "?…" if pieces.query else ""
    return f"{pieces.scheme}://{pieces.netloc.rpartition('@')[2]}{pieces.path}{more}"

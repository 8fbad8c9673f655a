"""What the explicitly selected skills need and the session lacks: a plan; asking and installing are done elsewhere."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, Literal

from codex_py.protocol.value import Value
from codex_py.skills.model import McpNeed, Skill, ToolDependency
from codex_py.text.address import is_web_address
from codex_py.text.sanitize import sanitize_line

_PROGRAM: Final = re.compile(r"[A-Za-z0-9_][\w.+-]{0,127}")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class EnvNeed(Value):
    """An environment variable that is not set. `description` is what the first of the skills says about it."""

    name: str
    description: str
    skills: tuple[str, ...]


class DependencyPlan(Value):
    """The missing dependencies, and one line for each need that is not valid as written."""

    missing_env: tuple[EnvNeed, ...] = ()
    missing_mcp: tuple[McpNeed, ...] = ()
    notes: tuple[str, ...] = ()


def plan_dependencies(
    skills: Sequence[Skill], *, env: Collection[str], configured_mcp: Collection[str]
) -> DependencyPlan:
    """Compare what skills declare with what there is.

    `env` are the names of the variables available; `configured_mcp` the `mcp_key`s of the configured servers. Needs
    that several skills share come once, in the order they are declared first. Types other than `env_var` and `mcp`
    ask for nothing.
    """
    env_needs: dict[str, EnvNeed] = {}
    servers: dict[str, McpNeed] = {}
    notes: dict[str, None] = {}
    for skill, need in _declared(skills, "env_var"):
        name = need.value.strip()
        if not _VARIABLE.fullmatch(name):
            notes[f"skill {_quoted(skill.name)} needs {_quoted(name)}, which is not a valid variable name"] = None
        elif name not in env:
            known = env_needs.get(name) or EnvNeed(name, need.description or "", ())
            env_needs[name] = known.replace(skills=_with(known.skills, skill.name))
    for skill, need in _declared(skills, "mcp"):
        server = _server(need)
        if isinstance(server, str):
            notes[f"skill {_quoted(skill.name)} needs the MCP server {_quoted(need.value)}: {server}"] = None
        elif server.key not in configured_mcp:
            known_server = servers.get(server.key, server)
            servers[server.key] = known_server.replace(
                skills=_with(known_server.skills, skill.name),
                files=_with(known_server.files, str(skill.canonical_path)),
            )
    return DependencyPlan(tuple(env_needs.values()), tuple(servers.values()), tuple(notes))


class SkillNeed(Value):
    """One need of one skill."""

    skill: str
    path: str
    """Its `SKILL.md`."""
    scope: str
    kind: Literal["mcp", "env_var", "cli", "unknown"]
    name: str
    target: str
    """URL or command of a server, else what the skill says about it."""
    missing: bool
    problem: str | None = None
    """Why the need cannot be read; as a rule None."""

    @property
    def status(self) -> str:
        """Its state as far as a look tells."""
        present = {"mcp": "configured", "env_var": "set", "cli": "found"}.get(self.kind, "")
        return self.problem or ("missing" if self.missing else present)


def list_needs(
    skills: Sequence[Skill], *, env: Mapping[str, str], configured_mcp: Collection[str]
) -> tuple[SkillNeed, ...]:
    """Everything that skills declare, met or not, by skill; the arguments are those of `plan_dependencies`."""
    return tuple(_need(skill, need, env, configured_mcp) for skill in skills for need in skill.dependencies)


def _need(skill: Skill, need: ToolDependency, env: Mapping[str, str], configured_mcp: Collection[str]) -> SkillNeed:
    origin, name, about = (skill.name, str(skill.path), skill.scope), need.value.strip(), need.description or ""
    match need.type.strip().lower():
        case "mcp":
            server = _server(need)
            if isinstance(server, str):
                return SkillNeed(*origin, "mcp", name, "", True, server)
            return SkillNeed(*origin, "mcp", name, server.target, server.key not in configured_mcp)
        case "env_var":
            return SkillNeed(*origin, "env_var", name, about, name not in env)
        case "cli" | "command":
            if not _PROGRAM.fullmatch(name):
                return SkillNeed(*origin, "cli", name, about, True, "not the name of a program")
            return SkillNeed(*origin, "cli", name, about, shutil.which(name, path=env.get("PATH")) is None)
        case _:
            return SkillNeed(*origin, "unknown", name, about, True, dependency_fault(need))


def declared_servers(skill: Skill) -> tuple[str, ...]:
    """The keys of the MCP servers that a skill declares."""
    found = (_server(need) for _, need in _declared([skill], "mcp"))
    return tuple(server.key for server in found if not isinstance(server, str))


def dependency_fault(need: ToolDependency) -> str:
    """Why a declared need means nothing here; "" for one that is understood."""
    kind = need.type.strip().lower()
    if kind == "mcp":
        server = _server(need)
        return server if isinstance(server, str) else ""
    return "" if kind in ("env_var", "cli", "command") else "its type is none of `mcp`, `env_var`, `cli`"


def mcp_key(name: str, *, url: str | None = None, command: str | None = None) -> str:
    """What makes two MCP servers the same one: transport and URL or command; the name when both are empty."""
    if url is not None and (target := url.strip()):
        return f"mcp__streamable_http__{target}"
    if command is not None and (target := command.strip()):
        return f"mcp__stdio__{target}"
    return name


def mcp_keys(name: str, server: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of a configured server: a skill may name the command alone, or with its arguments."""
    url, command, words = server.get("url"), server.get("command"), server.get("args", ())
    line = " ".join((command, *words)) if command else None
    quoted = shlex.join((command, *words)) if command else None
    return tuple(mcp_key(name, url=url, command=fromkey) for fromkey in dict.fromkeys((command, line, quoted)))


def missing_env_warning(need: EnvNeed) -> str:
    """The line for a session in which nobody can be asked for the variable."""
    names = ", ".join(map(_quoted, need.skills))
    why = f" ({sanitize_line(need.description)})" if need.description else ""
    noun = "skill" if len(need.skills) == 1 else "skills"
    return f"environment variable `{need.name}`{why} is not set; {noun} {names} may not work without it"


def missing_mcp_warning(needs: Sequence[McpNeed]) -> str:
    """The line for a session in which these servers are not installed."""
    skills = tuple(dict.fromkeys(skill for need in needs for skill in need.skills))
    servers = ", ".join(f"{_quoted(need.name)} ({sanitize_line(need.target)})" for need in needs)
    what, them = (f"server {servers} is", "it") if len(needs) == 1 else (f"servers {servers} are", "them")
    noun = "skill" if len(skills) == 1 else "skills"
    return f"the MCP {what} not configured; {noun} {', '.join(map(_quoted, skills))} may not work without {them}"


def _declared(skills: Sequence[Skill], need_type: str) -> Iterator[tuple[Skill, ToolDependency]]:
    return ((skill, need) for skill in skills for need in skill.dependencies if need.type.strip().lower() == need_type)


def _server(need: ToolDependency) -> McpNeed | str:
    """The server a skill describes, or what is wrong with the description."""
    name = need.value.strip()
    transport = (need.transport or "").strip().lower() or "streamable_http"
    url, command = (need.url or "").strip(), (need.command or "").strip()
    if transport == "streamable_http":
        if not url:
            return "it has no `url`"
        if not is_web_address(url):
            return "its `url` is no `https://` or `http://` address"
        return McpNeed(mcp_key(name, url=url), name, "streamable_http", url, None, ())
    if transport == "stdio":
        if not command:
            return "it has no `command`"
        return McpNeed(mcp_key(name, command=command), name, "stdio", None, command, ())
    return f"its transport {_quoted(transport)} is none of `streamable_http`, `stdio`"


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return names if name in names else (*names, name)


def _quoted(text: str) -> str:
    return f"`{sanitize_line(text)}`"

"""`codex-py skills deps`: what skills need, whether it works, and what is left of skills that are gone."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Annotated, Final, Literal, NamedTuple

import typer

from codex_py.cli.console import print_note, print_rows
from codex_py.cli.skill_choice import Cwd, look_here
from codex_py.cli.skills_lint import Orphan, find_orphans
from codex_py.cli.skills_view import print_needs
from codex_py.cli.typer_command import Json, Overrides, Profile
from codex_py.errors import UsageError, UserError
from codex_py.mcp.build import make_mcp_context
from codex_py.mcp.login import try_server
from codex_py.mcp.table import ListedServer, known_servers
from codex_py.protocol.policy import ReadOnly
from codex_py.services.single_command import SandboxCommand, SingleCommand
from codex_py.services.skill_admin import SkillAdmin
from codex_py.skills.dependencies import declared_commands, list_needs, mcp_key, mcp_keys
from codex_py.skills.model import Skill
from codex_py.text.display import counted
from codex_py.text.sanitize import sanitize_line

_SECONDS: Final = 20.0
_MAX_DETAIL: Final = 160


class NeedCheck(NamedTuple):
    """One need of a skill, tried out: `detail` is what was seen, or what is wrong."""

    skill: str
    kind: Literal["mcp", "env_var", "cli"]
    name: str
    works: bool
    detail: str


def show_needs(
    check: Annotated[bool, typer.Option("--check", help="Try each one: start servers, run commands.")] = False,
    orphans: Annotated[
        bool, typer.Option("--orphans", help="List servers written for skills that need them no more.")
    ] = False,
    cwd: Cwd = None,
    overrides: Overrides = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Show which skill needs which MCP server and which environment variable, and which of these are missing.

    With `--check` the exit status is 1 when something does not work. `skills doctor --fix` removes the orphans.
    """
    if check and orphans:
        raise UsageError("`--check` and `--orphans` are two different questions", hint="ask one at a time")
    found = look_here(cwd, overrides, profile)
    if orphans:
        _print_orphans(find_orphans(found), as_json=as_json)
        return 0
    skills = [skill for skill in found.catalog.skills if found.catalog.is_enabled(skill)]
    if check:
        checks = asyncio.run(_try_needs(found, skills))
        _print_checks(checks, as_json=as_json)
        return 0 if all(need.works for need in checks) else 1
    needs = list_needs(skills, env=os.environ, configured_mcp=_trusted_servers(found).keys())
    print_needs(needs, as_json=as_json)
    if not needs:
        print_note("no skill needs an MCP server or an environment variable")
    return 0


def _servers(found: SkillAdmin) -> Sequence[ListedServer]:
    return known_servers(found.loaded, found.request.home, found.request.cwd).servers


def _trusted_servers(found: SkillAdmin) -> dict[str, ListedServer]:
    """The servers that are started, by each key that a skill may need them by."""
    trusted = [server for server in _servers(found) if server.standing == "trusted"]
    return {key: server for server in trusted for key in mcp_keys(server.name, server.entry)}


async def _try_needs(found: SkillAdmin, skills: Sequence[Skill]) -> list[NeedCheck]:
    """Try everything that skills need; each server is started once."""
    by_key = _trusted_servers(found)
    needs = list_needs(skills, env=os.environ, configured_mcp=by_key.keys())
    results: dict[str, tuple[bool, str]] = {}
    checks: list[NeedCheck] = []
    for need in needs:
        if need.problem or need.missing:
            missing = "not configured" if need.kind == "mcp" else "not set"
            result = False, need.problem or missing
        elif need.kind == "env_var":
            value = os.environ.get(need.name, "")
            result = bool(value), "set" if value else "empty"
        else:
            keys = (mcp_key(need.name, url=need.target), mcp_key(need.name, command=need.target))
            server = next(by_key[key] for key in keys if key in by_key)
            if server.name not in results:
                results[server.name] = await _try_server(found, server)
            result = results[server.name]
        checks.append(NeedCheck(need.skill, need.kind, need.name, *result))
    for skill, command in declared_commands(skills):
        checks.append(NeedCheck(skill, "cli", command, *await _try_command(found, command)))
    return checks


async def _try_server(found: SkillAdmin, listed: ListedServer) -> tuple[bool, str]:
    request = found.request
    context = make_mcp_context(found.loaded, home=request.home, cwd=request.cwd, env=request.env)
    try:
        check = await try_server(listed.server(), context)
    except UserError as error:
        return False, str(error)
    if check.error is not None or check.catalog is None:
        return False, sanitize_line(check.error or "it did not start")[:_MAX_DETAIL]
    names = [tool.name for tool in check.catalog.tools]
    return True, f"{counted(len(names), 'tool')}: {', '.join(names)}"[:_MAX_DETAIL] if names else "no tools"


async def _try_command(found: SkillAdmin, command: str) -> tuple[bool, str]:
    """Run a program with `--version` in the read-only sandbox, without network."""
    if not command or command.startswith("-") or len(command.split()) != 1:
        return False, "not the name of a program"
    request = SandboxCommand((command, "--version"), found.request.cwd, ReadOnly(), seconds=_SECONDS, cap=64 * 1024)
    try:
        result = await SingleCommand(found.loaded, request).run(found.request.home, found.request.env)
    except UserError as error:
        return False, sanitize_line(str(error))[:_MAX_DETAIL]
    lines = (result.stdout or result.stderr).decode("utf-8", "replace").strip().splitlines()
    shown = sanitize_line(lines[0])[:_MAX_DETAIL] if lines else ""
    if result.exit_code:
        return False, f"`--version` ended with status {result.exit_code}" + (f": {shown}" if shown else "")
    return True, shown or "it runs"


def _print_checks(checks: Sequence[NeedCheck], *, as_json: bool) -> None:
    rows = [
        (check.skill, check.kind, check.name, "works" if check.works else "fails", check.detail) for check in checks
    ]
    records = (check._asdict() for check in checks)
    print_rows(("SKILL", "NEEDS", "NAME", "STATUS", "DETAIL"), rows, records, as_json=as_json)
    if not (checks or as_json):
        print_note("no skill needs an MCP server, an environment variable or a command")


def _print_orphans(orphans: Sequence[Orphan], *, as_json: bool) -> None:
    print_rows(("SERVER", "REASON"), orphans, (orphan._asdict() for orphan in orphans), as_json=as_json)
    if not (orphans or as_json):
        print_note("every server that was written for a skill is still needed")

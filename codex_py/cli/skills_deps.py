"""What skills need, and whether it works: the part of `codex-py skills show` about dependencies."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

from codex_py.cli.console import print_note, print_rows
from codex_py.cli.skills_lint import find_orphans
from codex_py.errors import UserError
from codex_py.mcp.build import make_mcp_context
from codex_py.mcp.login import try_server
from codex_py.mcp.table import ListedServer, known_servers
from codex_py.protocol.policy import ReadOnly
from codex_py.services.single_command import SandboxCommand, SingleCommand
from codex_py.services.skill_admin import SkillAdmin
from codex_py.skills.dependencies import SkillNeed, list_needs, mcp_key, mcp_keys
from codex_py.skills.model import Skill
from codex_py.text.display import counted
from codex_py.text.sanitize import sanitize_line

_SECONDS: Final = 20.0
_MAX_DETAIL: Final = 160
_HEAD: Final = ("SKILL", "NEEDS", "NAME", "TARGET", "STATUS")


def show_needs(found: SkillAdmin, skills: Sequence[Skill], *, check: bool, as_json: bool) -> int:
    """Print a line for each need of some skills; with `check` try each, and give 1 when one does not work."""
    servers = _trusted_servers(found)
    needs = list_needs(skills, env=os.environ, configured_mcp=servers)
    results = asyncio.run(_try_needs(found, needs, servers)) if check else [(not need.missing, "") for need in needs]
    rows: list[tuple[str, ...]] = []
    objects: list[dict[str, Any]] = []
    for need, (works, detail) in zip(needs, results, strict=True):
        status = f"{'works' if works else 'fails'}: {detail}" if check else need.status
        rows.append((need.skill, need.kind, need.name, need.target, status))
        objects.append({**vars(need), "status": need.status, **({"works": works, "detail": detail} if check else {})})
    print_rows(_HEAD, rows, objects, as_json=as_json)
    if not (needs or as_json):
        print_note("no skill needs an MCP server, an environment variable or a program")
    return 0 if not check or all(works for works, _ in results) else 1


def needs_of(found: SkillAdmin, skills: Sequence[Skill]) -> tuple[SkillNeed, ...]:
    """The needs of some skills, as far as a look tells."""
    return list_needs(skills, env=os.environ, configured_mcp=_trusted_servers(found))


def print_orphans(found: SkillAdmin, *, as_json: bool) -> None:
    """Print the servers that were written for skills which need them no more. Raises `UserError`."""
    orphans = find_orphans(found)
    print_rows(("SERVER", "REASON"), orphans, (orphan._asdict() for orphan in orphans), as_json=as_json)
    if not (orphans or as_json):
        print_note("every server that was written for a skill is still needed")


def _trusted_servers(found: SkillAdmin) -> dict[str, ListedServer]:
    """The servers that are started, by each key that a skill may need them by."""
    listed = known_servers(found.loaded, found.request.home, found.request.cwd).servers
    trusted = [server for server in listed if server.standing == "trusted"]
    return {key: server for server in trusted for key in mcp_keys(server.name, server.entry)}


async def _try_needs(
    found: SkillAdmin, needs: Sequence[SkillNeed], by_key: Mapping[str, ListedServer]
) -> list[tuple[bool, str]]:
    """Whether each need works, and what was seen; each server is started once."""
    tried: dict[str, tuple[bool, str]] = {}
    results: list[tuple[bool, str]] = []
    for need in needs:
        if need.problem or need.missing:
            result = False, need.problem or {"mcp": "not configured", "env_var": "not set"}.get(need.kind, "not found")
        elif need.kind == "env_var":
            value = os.environ.get(need.name, "")
            result = bool(value), "set" if value else "empty"
        elif need.kind == "cli":
            result = await _try_command(found, need.name)
        else:
            keys = (mcp_key(need.name, url=need.target), mcp_key(need.name, command=need.target))
            server = next(by_key[key] for key in keys if key in by_key)
            if server.name not in tried:
                tried[server.name] = await _try_server(found, server)
            result = tried[server.name]
        results.append(result)
    return results


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

"""`codex-py mcp trust`: agree to what a project's MCP server would run, or take that back."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from codex_py.cli.consent import is_agreed
from codex_py.cli.tables import print_json
from codex_py.config.load import ConfigRequest, load_config
from codex_py.core.project_servers import describe_server
from codex_py.core.server_table import ListedServer, known_servers, project_of, trust_server
from codex_py.errors import UserError
from codex_py.mcp.servers import read_server
from codex_py.paths import codex_home
from codex_py.protocol.questions import ProjectServer
from codex_py.text.sanitize import sanitize_line


def trust(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The server's name in the project's configuration.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; for scripts.")] = False,
    never: Annotated[
        bool, typer.Option("--never", help="Remember a no to it as it is now: nobody asks again.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON value.")] = False,
) -> int:
    """Agree to start an MCP server that the project's .codex/config.toml names.

    What would run is shown first. The yes is kept in $CODEX_HOME/config.toml and holds until that changes.
    """
    home, cwd = codex_home(os.environ), Path.cwd()
    loaded = load_config(ConfigRequest(home=home, cwd=cwd, env=os.environ))
    found = _find(known_servers(loaded, home, cwd).servers, name, loaded.trust)
    shown = describe_server(read_server(name, found.entry), changed=found.standing == "changed")
    for line in describe_lines(shown):
        _say(line)
    agreed = found.standing == "trusted" and not never
    settled = agreed or never or yes
    if not settled and not is_agreed("start it in sessions of this project?", needs=f"trusting `{name}`"):
        _say("nothing was changed")
        return 1
    if agreed:
        _say(f"you have agreed to the project's MCP server `{name}` already")
    else:
        file = trust_server(home, project_of(loaded, cwd), name, found.pin, yes=not never)
        what = "refused" if never else "trusted"
        _say(f"the project's MCP server `{name}` is {what} as it is now: noted in `{file}`")
    if as_json:
        print_json({"name": name, "trusted": not never}, sys.stdout)
    return 0


def describe_lines(server: ProjectServer) -> Iterator[str]:
    """What a server runs or connects to, as indented lines."""
    what = "address" if server.transport == "streamable_http" else "command"
    changed = " (not what you agreed to before)" if server.changed else ""
    yield f"{server.name}{changed}"
    yield f"  {what}: {server.target}"
    if server.cwd is not None:
        yield f"  in: {server.cwd}"
    if server.passes:
        yield f"  gets of your environment: {', '.join(server.passes)}"
    if server.sets:
        yield f"  with: {', '.join(server.sets)}"


def _find(servers: Sequence[ListedServer], name: str, trust: str) -> ListedServer:
    of_project = [one for one in servers if one.origin == "project"]
    for one in of_project:
        if one.name == name:
            return one
    if any(one.name == name for one in servers):
        raise UserError(f"the MCP server `{name}` is not the project's: it needs no further yes")
    known = ", ".join(f"`{one.name}`" for one in of_project)
    hint = f"there are {known}" if known else None
    if trust != "trusted":
        hint = "what a project names is read only when you trust the project (`codex-py --trust`)"
    raise UserError(f"the project names no MCP server `{name}`", hint=hint)


def _say(text: str) -> None:
    print(sanitize_line(text), file=sys.stderr)

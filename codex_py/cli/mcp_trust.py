"""`codex-py mcp trust`: approves what a project's MCP server runs, or refuses it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

import typer

from codex_py.cli.console import is_agreed, load_local_config, print_json, print_note
from codex_py.cli.typer_command import Json, Yes
from codex_py.errors import UsageError
from codex_py.mcp.consent import describe_server
from codex_py.mcp.servers import McpServer, read_server
from codex_py.mcp.table import (
    TRUST_WORDS,
    ListedServer,
    TrustWord,
    known_servers,
    project_of,
    sandbox_of,
    trust_server,
)
from codex_py.protocol.questions import ProjectServer
from codex_py.text.nearest import did_you_mean


def trust(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The server's name in the project's configuration.")],
    yes: Yes = False,
    never: Annotated[
        bool,
        typer.Option("--never", help="Always refuse this server; you are asked again only if its definition changes."),
    ] = False,
    network: Annotated[
        bool, typer.Option("--network", help="Let it use the network, in the sandbox all the same.")
    ] = False,
    outside: Annotated[bool, typer.Option("--outside", help="Let it run outside the sandbox, as you.")] = False,
    approve: Annotated[bool, typer.Option("--approve", help="Call its tools without asking.")] = False,
    as_json: Json = False,
) -> int:
    """Agree to start an MCP server that the project's .codex/config.toml names.

    The command or address is shown first. Your approval is stored in $CODEX_HOME/config.toml and holds until the entry
    changes. The server runs in the sandbox of the session, with the access that commands have. `--network` and
    `--outside` allow more.
    """
    words = _words(no=never, network=network, outside=outside, approve=approve)
    home, cwd, loaded = load_local_config(quiet=True)
    found = _find(known_servers(loaded, home, cwd).servers, name, loaded.trust)
    server = read_server(name, found.entry)
    if server.url is not None and (network or outside):
        raise UsageError(
            f"the MCP server `{name}` is an address: nothing of it runs here",
            hint="leave out `--network` and `--outside`",
        )
    print_note(*describe_lines(describe_server(server, changed=found.standing == "changed")))
    if not never:
        print_note(f"  {_how(server, words)}")
    agreed = found.standing == "trusted" and found.words == words
    settled = agreed or never or yes
    if not is_agreed("start it in sessions of this project?", yes=settled, needs=f"trusting `{name}`"):
        return 1
    if agreed:
        print_note(f"you have agreed to the project's MCP server `{name}` already")
    else:
        file = trust_server(home, project_of(loaded, cwd), name, found.pin, words=words)
        what = "refused" if never else "trusted"
        print_note(f"the project's MCP server `{name}` is {what} as it is now: noted in `{file}`")
    if as_json:
        where = None if never or server.url is not None else sandbox_of(server, words)
        print_json({"name": name, "trusted": not never, "sandbox": where})
    return 0


def describe_lines(server: ProjectServer) -> Iterator[str]:
    """The command or address of a server, as indented lines."""
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


def _words(**chosen: bool) -> tuple[TrustWord, ...]:
    words: list[TrustWord] = [word for word in TRUST_WORDS if chosen[word]]
    if ("no" in words and len(words) > 1) or {"network", "outside"} <= set(words):
        raise UsageError("`--never`, `--network` and `--outside` exclude each other", hint="give one of them")
    return tuple(words)


def _how(server: McpServer, words: Sequence[TrustWord]) -> str:
    """Describe where a server runs once it is trusted."""
    where = {
        "session": "runs in the sandbox of the session",
        "network": "runs in the sandbox of the session, with network access",
        "outside": "runs outside the sandbox, as you" if server.url is None else "is connected to",
    }
    calls = "its tools are called without asking" if "approve" in words else "its tools are asked about"
    return f"{where[sandbox_of(server, words)]}; {calls}"


def _find(servers: Sequence[ListedServer], name: str, trust: str) -> ListedServer:
    of_project = [server for server in servers if server.origin == "project"]
    for server in of_project:
        if server.name == name:
            return server
    if any(server.name == name for server in servers):
        raise UsageError(
            f"the MCP server `{name}` is not the project's: it needs no further yes",
            hint=f"`codex-py mcp test {name}` tries it",
        )
    known = ", ".join(f"`{server.name}`" for server in of_project)
    hint = did_you_mean(name, [server.name for server in of_project]) or (f"there are {known}" if known else None)
    if trust != "trusted":
        hint = "what a project names is read only when you trust the project (`codex-py --trust`)"
    raise UsageError(f"the project names no MCP server `{name}`", hint=hint)

"""`codex-py mcp`: lists, adds, removes and tests the MCP servers of the configuration, and signs in at them."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections.abc import Sequence
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import typer

from codex_py.auth.sign_in import show_in_browser
from codex_py.cli import mcp_view as view
from codex_py.cli.console import load_local_config, print_json, print_note, print_warnings
from codex_py.cli.mcp_trust import trust
from codex_py.cli.typer_command import Json, Overrides, Profile, run_commands
from codex_py.config.entries import put_mcp_server, remove_table
from codex_py.config.load import LoadedConfig
from codex_py.errors import UsageError, UserError
from codex_py.mcp.build import make_mcp_context
from codex_py.mcp.catalog import forget_catalog
from codex_py.mcp.host import McpContext, auth_status, forget_login, renew_login
from codex_py.mcp.login import try_server
from codex_py.mcp.servers import McpServer, describe_unknown_tools, read_server
from codex_py.mcp.table import ListedServer, known_servers
from codex_py.paths import codex_home
from codex_py.text.address import is_web_address
from codex_py.text.nearest import did_you_mean

_ABOUT: Final = "The MCP servers whose tools the model may use: list, add, remove, sign in, try."
_TAKE_VALUE: Final = ("--env", "--url", "--bearer-token-env-var")
_NAME: Final = re.compile(r"[A-Za-z0-9_:@/.-]{1,128}")

Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="The server's name in the configuration.")]


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py mcp` with these arguments; give back the exit status."""
    commands = {
        "list": list_servers,
        "get": show_server,
        "add": add_server,
        "remove": remove_server,
        "login": login,
        "logout": logout,
        "test": test_server,
        "trust": trust,
    }
    words = _with_dashes(arguments) if arguments[:1] == ["add"] else arguments
    return run_commands(commands, words, name="mcp", about=_ABOUT)


def _with_dashes(arguments: Sequence[str]) -> list[str]:
    """The words of `mcp add`, with the optional `--` before the server's command."""
    index, seen = 1, 0
    while index < len(arguments):
        word = arguments[index]
        if word == "--":
            break
        if not word.startswith("-"):
            seen += 1
            if seen > 1:
                return [*arguments[:index], "--", *arguments[index:]]
        index += 2 if word in _TAKE_VALUE else 1
    return list(arguments)


def list_servers(overrides: Overrides = None, profile: Profile = None, as_json: Json = False) -> int:
    """List the servers of the configuration, the project and the plugins.

    Values of variables and headers are masked.
    """
    found = _look(overrides, profile)
    view.print_servers([_server_view(found, name) for name in sorted(found.servers)], as_json=as_json)
    if not found.servers and not as_json:
        print_note("no MCP servers are configured; `codex-py mcp add` adds one")
    return 0


def show_server(name: Name, overrides: Overrides = None, profile: Profile = None, as_json: Json = False) -> int:
    """Show one server."""
    found = _look(overrides, profile)
    _require(found, name)
    view.print_server(_server_view(found, name), as_json=as_json)
    return 0


def add_server(
    name: Name,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[--] COMMAND...", help="The command that starts the server.")
    ] = None,
    env: Annotated[
        list[str] | None, typer.Option("--env", metavar="KEY=VALUE", help="A variable for that command.")
    ] = None,
    url: Annotated[str | None, typer.Option("--url", metavar="URL", help="The address of a running server.")] = None,
    bearer: Annotated[
        str | None, typer.Option("--bearer-token-env-var", metavar="NAME", help="The variable with its token.")
    ] = None,
    as_json: Json = False,
) -> int:
    """Add a server to $CODEX_HOME/config.toml, or replace the one of this name. Nothing is started.

    `codex-py mcp test NAME` starts it and shows its tools.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(f"not a server name: `{name}`", hint="use letters, digits and `-`, `_`, `:`, `@`, `/`, `.`")
    if bool(command) == bool(url):
        raise UsageError(
            "a server has either an address or a command",
            hint=f"write `mcp add {name} --url URL` or `mcp add {name} -- COMMAND`",
        )
    if (url and env) or (command and bearer):
        raise UsageError("`--env` goes with a command, `--bearer-token-env-var` with `--url`", hint="remove it")
    if url and not is_web_address(url):
        raise UsageError(f"not a URL: `{url}`", hint="it must begin with `https://` or `http://`")
    entry: dict[str, Any] = {"url": url} if url else {"command": (command or [""])[0]}
    if command and command[1:]:
        entry["args"] = command[1:]
    if env:
        entry["env"] = dict(map(_pair, env))
    if bearer:
        entry["bearer_token_env_var"] = bearer
    file = codex_home(os.environ) / "config.toml"
    put_mcp_server(file, name, entry)
    if command and shutil.which(command[0]) is None:
        # It may also be one that another machine with this file has.
        print_note(
            f"warning: there is no program `{command[0]}`: the server `{name}` cannot start before it is installed"
        )
    if as_json:
        found = _look()
        view.print_server(_server_view(found, name), as_json=True)
    print_note(f"added the MCP server `{name}` to `{file}`; `codex-py mcp test {name}` starts it and shows its tools")
    return 0


def remove_server(name: Name, as_json: Json = False) -> int:
    """Remove a server from $CODEX_HOME/config.toml, with its login and what is kept of it."""
    home = codex_home(os.environ)
    found = _look()
    listed = found.servers.get(name)
    if listed is not None and listed.origin != "user":
        owner = f"plugin `{listed.plugin}`" if listed.plugin else "the project"
        raise UsageError(
            f"the MCP server `{name}` belongs to {owner}",
            hint=f"`codex-py plugin remove {listed.plugin}` removes it all" if listed.plugin else "edit its own file",
        )
    was_there = remove_table(home / "config.toml", "mcp_servers", name)
    if as_json:
        print_json({"name": name, "removed": was_there})
    if not was_there:
        raise UsageError(f"no MCP server `{name}` in `{home / 'config.toml'}`", hint=_nearest_server(found, name))
    if listed is not None:
        server = read_server(name, listed.entry)
        forget_catalog(home, server)
        if server.url:
            forget_login(server, found.context.tokens)
    print_note(f"removed the MCP server `{name}`")
    return 0


def login(
    name: Name,
    scopes: Annotated[
        str | None, typer.Option("--scopes", metavar="A,B", help="What to ask for, in place of what the server says.")
    ] = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only print the address; open it yourself.")] = False,
    overrides: Overrides = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Sign in at a server with a browser; the login is kept and renewed."""
    found = _look(overrides, profile)
    server = _require(found, name)
    if server.url is None:
        raise UsageError(
            f"the MCP server `{name}` is started by a command: there is nothing to sign in at",
            hint=f"`codex-py mcp test {name}` tries it",
        )
    if auth_status(server, found.context.tokens) == "bearer_token":
        raise UsageError(
            f"the MCP server `{name}` has a token of its own in the configuration",
            hint="remove its `bearer_token_env_var` to sign in with a browser",
        )
    if scopes:
        server = server.replace(scopes=tuple(part.strip() for part in scopes.split(",") if part.strip()))

    def show(url: str) -> None:
        print_note("sign in with your browser at this address:", f"  {url}")
        if not no_browser and not show_in_browser(url):
            print_note("no browser could be opened: open it yourself")

    port = found.loaded.config.mcp_oauth_callback_port
    with renew_login(server, found.context.tokens):
        check = asyncio.run(try_server(server, found.context, show=show, port=port))
        if check.error is not None:
            raise UserError(check.error)
    status = auth_status(server, found.context.tokens)
    signed_in = status == "o_auth"
    if as_json:
        print_json({"name": name, "auth_status": status})
    print_note(f"signed in at the MCP server `{name}`" if signed_in else f"the MCP server `{name}` asks for no login")
    return 0


def logout(name: Name, overrides: Overrides = None, profile: Profile = None, as_json: Json = False) -> int:
    """Forget the login at a server."""
    found = _look(overrides, profile)
    server = _require(found, name)
    was_there = server.url is not None and forget_login(server, found.context.tokens)
    if as_json:
        print_json({"name": name, "signed_out": was_there})
    print_note(f"signed out of the MCP server `{name}`" if was_there else f"not signed in at the MCP server `{name}`")
    return 0


def test_server(name: Name, overrides: Overrides = None, profile: Profile = None, as_json: Json = False) -> int:
    """Start a server, list its tools and stop it. Exit status 1 when it does not come up; its stderr says why."""
    found = _look(overrides, profile)
    server = _require(found, name)
    if found.servers[name].standing != "trusted":
        raise UserError(
            f"the project's MCP server `{name}` is not started: you have not agreed to what would run",
            hint=f"`codex-py mcp trust {name}` shows it, and asks",
        )
    check = asyncio.run(try_server(server, found.context))
    view.print_check(check, as_json=as_json)
    if check.error is not None and not as_json:
        print_note(f"error: {check.error}", *(f"  {line}" for line in check.stderr))
    if check.catalog is not None:
        print_warnings(*describe_unknown_tools(server, [tool.name for tool in check.catalog.tools]))
    return 0 if check.error is None else 1


class _Lookup(NamedTuple):
    loaded: LoadedConfig
    servers: dict[str, ListedServer]
    context: McpContext


def _look(overrides: Sequence[str] | None = None, profile: str | None = None) -> _Lookup:
    home, cwd, loaded = load_local_config(overrides, profile)
    listing = known_servers(loaded, home, cwd)
    print_warnings(*listing.problems)
    servers = {server.name: server for server in listing.servers}
    return _Lookup(loaded, servers, make_mcp_context(loaded, home=home, cwd=cwd, env=os.environ))


def _require(found: _Lookup, name: str) -> McpServer:
    if name not in found.servers:
        raise UsageError(f"no MCP server `{name}` is configured", hint=_nearest_server(found, name))
    return found.servers[name].server()


def _nearest_server(found: _Lookup, name: str) -> str:
    known = ", ".join(f"`{server_name}`" for server_name in sorted(found.servers))
    listed = f"there are {known}" if known else "`codex-py mcp add` adds one"
    return did_you_mean(name, found.servers) or listed


def _server_view(found: _Lookup, name: str) -> view.ServerView:
    listed = found.servers[name]
    server = read_server(name, listed.entry)
    return view.ServerView(server, listed, auth_status(server, found.context.tokens))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        # Not shown: it may be the value.
        raise UsageError("`--env` takes a name and a value", hint="write `--env NAME=VALUE`")
    return name, value

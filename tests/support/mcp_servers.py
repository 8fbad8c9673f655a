"""MCP servers for tests: those of the npm registry, which nobody here wrote, and one of ours that misbehaves."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from codex_py.config.load import ConfigRequest, load_config
from codex_py.mcp.build import make_mcp_context
from codex_py.mcp.login import McpCheck, try_server
from codex_py.mcp.servers import read_server
from codex_py.mcp.table import known_servers
from tests.support.home import BIN, Place, toml_value

_HERE: Final = Path(__file__).with_name("mcp")
# Where Node keeps what it has compiled, for the many starts of the same programs.
KEPT_CODE: Final = {"NODE_COMPILE_CACHE": str(_HERE / "node_modules/.cache/compiled")}


ODD_SERVER: Final = _HERE / "odd_server.py"


def node() -> str:
    """Node, that of the machine or of the dev extra."""
    found = shutil.which("node") or shutil.which("node", path=str(BIN))
    assert found, "node is neither on the machine nor in the dev extra"
    return found


def script(package: str, path: str = "dist/index.js") -> str:
    """A file of an npm package. A missing one fails the tests: `scripts/test` installs them."""
    file = _HERE / "node_modules/@modelcontextprotocol" / package / path
    assert file.is_file(), "run `scripts/setup_node tests/support/mcp` first"
    return str(file)


def everything(**more: Any) -> str:
    """The table of `@modelcontextprotocol/server-everything`, called `everything`."""
    return server("everything", command=node(), args=[script("server-everything"), "stdio"], **more)


def filesystem(directory: Path, **more: Any) -> str:
    """The table of `@modelcontextprotocol/server-filesystem` for a directory, called `files`."""
    return server("files", command=node(), args=[script("server-filesystem"), str(directory)], **more)


def odd(name: str, mode: str, *options: str, **more: Any) -> str:
    """The table of our own server in one of its moods."""
    command, *arguments = odd_words(mode, *options)
    return server(name, command=command, args=arguments, **more)


def odd_words(mode: str, *options: str) -> list[str]:
    """The command line of our own server."""
    return [sys.executable, str(ODD_SERVER), mode, *options]


def server(name: str, **keys: Any) -> str:
    """A `[mcp_servers.NAME]` table."""
    return f"\n[mcp_servers.{name}]\n" + "".join(f"{key} = {toml_value(value)}\n" for key, value in keys.items())


@contextmanager
def everything_over_http(place: Place) -> Generator[str, None, None]:
    """The same server listening on a free port; gives the address."""
    port = _free_port()
    process = subprocess.Popen(
        [node(), script("server-everything"), "streamableHttp"],
        env={**place.env, "PORT": str(port), **KEPT_CODE},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if re.search(rf"port {port}", line):
                break
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        # The Node of the dev extra is a script that starts the real one.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stderr.close()


def learn(place: Place, *names: str) -> None:
    """Have servers met before, as any earlier session has."""
    with ThreadPoolExecutor(1) as pool:  # a test may have a loop of its own
        for name in names:
            trial = pool.submit(asyncio.run, _meet(place, name)).result()
            assert trial.error is None, (trial.error, trial.stderr)


async def _meet(place: Place, name: str) -> McpCheck:
    where = ConfigRequest(home=place.codex_home, cwd=place.repo, env=place.env, system=place.system)
    loaded = load_config(where)
    [entry] = [one.entry for one in known_servers(loaded, place.codex_home, place.repo).servers if one.name == name]
    there = make_mcp_context(loaded, home=place.codex_home, cwd=place.repo, env=place.env)
    return await try_server(read_server(name, entry), there)


def tool_names(body: Mapping[str, Any]) -> list[str]:
    """The names of the tools in a request."""
    return [str(tool.get("name", tool["type"])) for tool in body["tools"]]


def requested_methods(log: Path) -> list[str]:
    """The methods that our own server was asked for."""
    return [json.loads(line)["method"] for line in log.read_text().splitlines()]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])

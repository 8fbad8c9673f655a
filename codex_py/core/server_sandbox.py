"""The sandbox of a project's or a plugin's MCP servers: that of the session, as it is when the server starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from codex_py.config.load import LoadedConfig
from codex_py.core.session_sandbox import ProgramSandbox
from codex_py.errors import CodexError
from codex_py.mcp.host import CommandLimits, McpFailed, ServerStart
from codex_py.mcp.servers import McpServer
from codex_py.text.sanitize import sanitize_line


def server_sandbox(
    loaded: LoadedConfig, *, home: Path, cwd: Path, env: Mapping[str, str]
) -> Callable[[McpServer, ServerStart, CommandLimits], ServerStart]:
    """What puts a server of the project round `cwd` into the sandbox. Nothing is tried out before the first one."""
    sandbox = ProgramSandbox(loaded, home=home, env=env)

    def confine(server: McpServer, start: ServerStart, limits: CommandLimits) -> ServerStart:
        try:
            wrapped = sandbox.wrap(
                start.argv,
                policy=limits.policy,
                cwd=limits.cwd,
                workdir=server.cwd or cwd,
                network=server.sandbox == "network",
            )
        except CodexError as error:
            way = f"`codex-py mcp trust {sanitize_line(server.name)} --outside`"
            if server.plugin:
                way = '`sandbox = "outside"` in its table'
            raise McpFailed(f"{error}; {way} lets it run without a sandbox") from error
        return ServerStart(wrapped.argv, {**start.env, **wrapped.env}, wrapped.fds, wrapped.release, wrapped.cleanup)

    return confine

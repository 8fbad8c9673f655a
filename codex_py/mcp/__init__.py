"""Connections to MCP servers through the official SDK, which is imported only once a server is to be started."""

from __future__ import annotations

from codex_py.core.session_request import SessionRequest


def may_have_servers(request: SessionRequest) -> bool:
    """Whether a session begins with servers; where not, a skill that needs one loads this package."""
    loaded = request.loaded
    return bool(
        loaded.config.mcp_servers or loaded.project_mcp_servers or loaded.config.plugins or request.more_servers
    )

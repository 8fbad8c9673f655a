"""Connections to MCP servers through the official SDK, which is imported only once a server is to be started."""

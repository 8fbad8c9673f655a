"""`codex-py acp`: serves an editor that speaks the Agent Client Protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from codex_py.cli.main import run as run_command_line
from codex_py.cli.options import Parser, add_config_flags
from codex_py.cli.serve import serve
from codex_py.server.acp.serve import run_acp

_DESCRIPTION: Final = """Serve an editor over stdin and stdout with the Agent Client Protocol, version 1.

The editor starts this; there is nothing to type here. Its settings are those of the terminal session, for the
directory that the editor opens.
"""
_EPILOG: Final = """in Zed's settings:
  "agent_servers": { "codex-py": { "type": "custom", "command": "codex-py", "args": ["acp"] } }
"""


def run(arguments: Sequence[str]) -> int:
    """Serve until the editor goes away; give back the exit status."""
    parser = Parser("codex-py acp", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--login", action="store_true", help="sign in, as `codex-py login` does, and exit")
    add_config_flags(parser)
    if "-h" in arguments or "--help" in arguments:
        print(parser.format_help().rstrip())
        return 0
    options = parser.read(arguments)
    if options.login:
        return run_command_line(["login"])
    return serve(options, run_acp)

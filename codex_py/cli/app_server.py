"""`codex-py app-server`: serves SDKs and editors that speak the app-server protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from codex_py.cli.options import Parser, add_config_flags
from codex_py.cli.serve import serve
from codex_py.errors import UsageError
from codex_py.server.app.server import run_app_server

_STDIO: Final = "stdio://"
_DESCRIPTION: Final = """Serve an SDK or an editor over stdin and stdout: JSON-RPC, one message a line.

The client starts this; there is nothing to type here. Its settings are those of the terminal session, for the
directory that the client names.
"""
_EPILOG: Final = """with the Python SDK `openai-codex`:
  Codex(CodexConfig(codex_bin=shutil.which("codex-py")))
"""


def run(arguments: Sequence[str]) -> int:
    """Serve until the client goes away; give back the exit status."""
    parser = Parser("codex-py app-server", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("--listen", metavar="URL", default=_STDIO, help=f"where to listen: only {_STDIO} (default)")
    parser.add_argument("--stdio", action="store_true", help=f"the same as --listen {_STDIO}")
    add_config_flags(parser)
    if "-h" in arguments or "--help" in arguments:
        print(parser.format_help().rstrip())
        return 0
    options = parser.read(arguments)
    if options.listen != _STDIO:
        raise UsageError(f"cannot listen at `{options.listen}`", hint=f"only `{_STDIO}` is supported")
    return serve(options, run_app_server)

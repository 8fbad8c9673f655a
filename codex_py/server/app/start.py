"""The first request: who the client is, what it wants to hear, and who answers it."""

from __future__ import annotations

import os
import sys
from typing import Final

from codex_py import __version__
from codex_py.server.app.client_context import Client, ClientContext, MethodResult
from codex_py.server.messages import RpcError
from codex_py.server.params import Params

# The version of the protocol that is spoken here, where clients look for that of the program it was made for.
PROTOCOL: Final = "0.169.0"
_MAX_NAME_LENGTH: Final = 128


def initialize(context: ClientContext, params: Params) -> MethodResult:
    """Take the client in, once. Raises `RpcError`."""
    if context.client is not None:
        raise RpcError("already initialized")
    info = params.nested("clientInfo")
    if info is None:
        raise params.missing("clientInfo")
    name, version = info.text("name"), info.text_or_none("version") or ""
    # It goes into a header of every request to the provider.
    if not name or not (name + version).isascii() or not (name + version).isprintable() or len(name) > _MAX_NAME_LENGTH:
        raise RpcError(
            "invalid request: `clientInfo.name` and `clientInfo.version` must be short printable ASCII texts"
        )
    capabilities = params.nested("capabilities")
    if capabilities is not None:
        context.connection.leave_out(frozenset(capabilities.texts("optOutNotificationMethods") or ()))
    context.client = Client(name, version)
    system = os.uname()
    platform, client = f"{system.sysname}; {system.machine}", f"{name}; {version}"
    return MethodResult(
        {
            "userAgent": f"{name}/{PROTOCOL} ({platform}) codex-py/{__version__} ({client})",
            "codexHome": str(context.host.home),
            "platformFamily": "unix",
            "platformOs": "macos" if sys.platform == "darwin" else "linux",
        }
    )

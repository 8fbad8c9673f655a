"""The first request: who the client is, what it wants to hear, and who answers it."""

from __future__ import annotations

import os
import sys
from typing import Final

from codex_py import __version__
from codex_py.server.app.desk import Answered, Client, Desk
from codex_py.server.messages import RpcError
from codex_py.server.params import Params

# The version of the protocol that is spoken here, where clients look for that of the program it was made for.
PROTOCOL: Final = "0.169.0"
_MOST_NAME: Final = 128


def initialize(desk: Desk, params: Params) -> Answered:
    """Take the client in, once. Raises `RpcError`."""
    if desk.client is not None:
        raise RpcError("already initialized")
    info = params.part("clientInfo")
    if info is None:
        raise params.missing("clientInfo")
    name, version = info.text("name"), info.text_or_none("version") or ""
    # It goes into a header of every request to the provider.
    if not name or not (name + version).isascii() or not (name + version).isprintable() or len(name) > _MOST_NAME:
        raise RpcError(
            "invalid request: `clientInfo.name` and `clientInfo.version` must be short printable ASCII texts"
        )
    capabilities = params.part("capabilities")
    if capabilities is not None:
        desk.connection.leave_out(frozenset(capabilities.texts("optOutNotificationMethods") or ()))
    desk.client = Client(name, version)
    system = os.uname()
    place, client = f"{system.sysname}; {system.machine}", f"{name}; {version}"
    return Answered(
        {
            "userAgent": f"{name}/{PROTOCOL} ({place}) codex-py/{__version__} ({client})",
            "codexHome": str(desk.host.home),
            "platformFamily": "unix",
            "platformOs": "macos" if sys.platform == "darwin" else "linux",
        }
    )

"""The random id of this installation, which tells a server that two sessions come from one place and no more."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.paths import make_private_dir, open_private

_FILE: Final = "installation_id"
_ID: Final = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"


def installation_id(home: Path) -> str:
    """The id kept in `installation_id` of CODEX_HOME; empty where none is kept."""
    try:
        # O_NONBLOCK: a named pipe in its place must not stop the program.
        descriptor = os.open(home / _FILE, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        text = os.read(descriptor, 64).decode("ascii", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(descriptor)
    return text if re.fullmatch(_ID, text) else ""


def make_installation_id(home: Path) -> None:
    """Make an id at the first use. A folder that cannot be written gets none, and what is there is left alone."""
    if os.path.lexists(home / _FILE):
        return
    made = os.urandom(16).hex()
    # The version and variant digits of a random UUID.
    made = f"{made[:8]}-{made[8:12]}-4{made[13:16]}-a{made[17:20]}-{made[20:]}"
    with suppress(OSError):
        make_private_dir(home)
        descriptor = open_private(home / _FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            os.write(descriptor, made.encode())
        finally:
            os.close(descriptor)

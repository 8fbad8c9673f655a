"""A small process that outlives this one to kill what it leaves when it is killed itself.

Only for commands without a sandbox: bubblewrap dies with its parent and takes everything inside along. The watchdog
sleeps on a pipe that closes when this process ends, however it ends.
"""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from codex_py.process.sweep import MARKED_LIMIT, MARKER

_SCRIPT: Final = f"""\
trap '' HUP INT TERM
read -r _
for found in $(grep -als "{MARKER}=$1" /proc/[0-9]*/environ) $(grep -Els "^{MARKED_LIMIT} +$1" /proc/[0-9]*/limits); do
    found=${{found#/proc/}}
    kill -9 "${{found%%/*}}"
done
"""


class Watchdog:
    """Watches over the commands whose marker starts with `prefix`, from its making until `dismiss`."""

    def __init__(self, prefix: str) -> None:
        self._process = subprocess.Popen(
            ("/bin/sh", "-c", _SCRIPT, "watchdog", prefix),
            env={"PATH": "/usr/bin:/bin"},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def dismiss(self) -> None:
        """End the watch: what it was for has been done."""
        self._process.kill()
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()


def set_watch(prefix: str) -> Watchdog | None:
    """A watchdog, where the system can have one; commands run without it too."""
    if sys.platform != "linux":
        return None
    try:
        return Watchdog(prefix)
    except OSError:
        return None

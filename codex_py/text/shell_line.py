"""A command line that hands a script to a shell, taken apart again for people."""

from __future__ import annotations

import re
import shlex
from typing import Final

_LONG: Final = 100_000
_USUAL_SHELL: Final = re.compile(r"/(?:usr/(?:local/)?)?bin/(?:bash|sh|zsh|dash|fish) -l?c ")


def script_and_shell(command: str) -> tuple[str, str]:
    """What a usual shell is to run, and that shell with its option; else the command line as it is, and nothing."""
    if _USUAL_SHELL.match(command) and len(command) < _LONG:
        try:
            words = shlex.split(command)
        except ValueError:
            return command, ""
        if len(words) == 3:
            return words[2], shlex.join(words[:2])
    return command, ""

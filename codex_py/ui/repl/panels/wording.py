"""Paths and command lines as a person reads them."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path
from typing import Final

_LONG: Final = 100_000
_USUAL_SHELL: Final = re.compile(r"/(?:usr/(?:local/)?)?bin/(?:bash|sh|zsh|dash|fish) -l?c ")


def short_path(path: Path, home: str) -> str:
    """A path with `~` for the user's home."""
    text = str(path)
    if home and (text == home or text.startswith(home.rstrip(os.sep) + os.sep)):
        return "~" + text[len(home.rstrip(os.sep)) :]
    return text


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

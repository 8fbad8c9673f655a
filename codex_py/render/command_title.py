"""What a person calls a command. Cheap to import: nothing that draws."""

from __future__ import annotations

import re
import shlex
from typing import Final

_WRAPPED: Final = re.compile(r"\S*?(?:bash|zsh|sh|dash) -l?c ")
# Longer ones are no wrapped one-liners, and are not read to find out.
_MAX_WRAPPED_LENGTH: Final = 16 * 1024


def command_title(command: str) -> str:
    """The command a person thinks of: without the shell it is handed to, and without blank lines before it."""
    text = command.strip()
    if len(text) > _MAX_WRAPPED_LENGTH or not (wrapped := _WRAPPED.match(text)):
        return text
    try:
        inner = shlex.split(text[wrapped.end() :])
    except ValueError:
        return text
    return inner[0].strip() or text if len(inner) == 1 else text

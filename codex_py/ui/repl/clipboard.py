"""The clipboard: through the desktop's own program where there is one, else through the terminal (OSC 52)."""

from __future__ import annotations

import asyncio
import base64
import shutil
import sys
from collections.abc import Callable, Mapping
from typing import Final

_SECONDS: Final = 3.0
# Terminals take no more in one sequence.
_MOST_BYTES: Final = 74_994


async def copy_text(text: str, env: Mapping[str, str], emit: Callable[[str], None]) -> str:
    """Copy a text; how that was done, in words. `emit` sends an escape sequence."""
    if not env.get("SSH_CONNECTION") and (command := _program(env)) and await _fed(command, text, env):
        return f"with `{command[0]}`"
    raw = text.encode(errors="replace")[:_MOST_BYTES]
    sequence = f"\x1b]52;c;{base64.b64encode(raw).decode()}\a"
    if env.get("TMUX"):
        sequence = "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"
    emit(sequence)
    return "through the terminal"


def _program(env: Mapping[str, str]) -> list[str] | None:
    candidates: list[list[str]] = [["pbcopy"]] if sys.platform == "darwin" else []
    if env.get("WAYLAND_DISPLAY"):
        candidates.append(["wl-copy"])
    if env.get("DISPLAY"):
        candidates += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
    return next((one for one in candidates if shutil.which(one[0], path=env.get("PATH"))), None)


async def _fed(command: list[str], text: str, env: Mapping[str, str]) -> bool:
    quiet = asyncio.subprocess.DEVNULL
    try:
        running = await asyncio.create_subprocess_exec(
            *command, env=dict(env), stdin=asyncio.subprocess.PIPE, stdout=quiet, stderr=quiet
        )
        await asyncio.wait_for(running.communicate(text.encode(errors="replace")), _SECONDS)
    except (OSError, TimeoutError):
        return False
    return running.returncode == 0

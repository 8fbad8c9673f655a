"""The clipboard: through the desktop's own program where there is one, else through the terminal (OSC 52)."""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from codex_py.programs import ProgramFinder
from codex_py.text.over_ssh import is_over_ssh
from codex_py.ui.repl.multiplexer import passed_on, through_tmux

_SECONDS: Final = 3.0
# Terminals take no more in one sequence.
_MAX_BYTES: Final = 74_994


async def copy_text(text: str, env: Mapping[str, str], programs: ProgramFinder, emit: Callable[[str], None]) -> str:
    """Copy a text; how that was done, in words. `emit` sends an escape sequence.

    The clipboard is that of the machine at which the user sits: over ssh only the terminal knows it.
    """
    env = {**env, "PATH": programs.trusted_path()}
    raw = text.encode(errors="replace")
    if not is_over_ssh(env) and (command := _program(env, programs)) and await _run_with_input(command, raw, env):
        return f"with `{command[0].rpartition('/')[2]}`"
    sequence = f"\x1b]52;c;{base64.b64encode(raw[:_MAX_BYTES]).decode()}\a"
    if env.get("TMUX"):
        # By default tmux lets no such sequence through, but gives its own buffer to the terminal.
        if (tmux := programs.find("tmux")) and await _run_with_input([tmux, "load-buffer", "-w", "-"], raw, env):
            return "through tmux"
    elif env.get("TERM", "").startswith("tmux"):
        # A tmux on the user's machine: it takes the one or the other, as it is set up.
        emit(through_tmux(sequence))
    emit(passed_on(sequence, env))
    return "through the terminal"


def _program(env: Mapping[str, str], programs: ProgramFinder) -> list[str] | None:
    candidates: list[list[str]] = [["pbcopy"]] if sys.platform == "darwin" else []
    if env.get("WAYLAND_DISPLAY"):
        candidates.append(["wl-copy"])
    if env.get("DISPLAY"):
        candidates += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
    found = ([path, *candidate[1:]] for candidate in candidates if (path := programs.find(candidate[0])) is not None)
    return next(found, None)


async def _run_with_input(command: list[str], raw: bytes, env: Mapping[str, str]) -> bool:
    quiet = asyncio.subprocess.DEVNULL
    try:
        process = await asyncio.create_subprocess_exec(
            *command, env=dict(env), stdin=asyncio.subprocess.PIPE, stdout=quiet, stderr=quiet
        )
    except OSError:
        return False
    try:
        await asyncio.wait_for(process.communicate(raw), _SECONDS)
    except (OSError, TimeoutError):
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        return False
    return process.returncode == 0

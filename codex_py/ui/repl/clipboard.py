"""The clipboard: copying text (by a program or OSC 52), reading a picture, and pasted paths of pictures."""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from codex_py.programs import ProgramFinder, is_over_ssh
from codex_py.ui.repl.editor import keep_draft
from codex_py.ui.repl.terminal import passed_on, through_tmux

_COPY_SECONDS: Final = 3.0
# Terminals take no more in one sequence.
_MAX_SEQUENCE_BYTES: Final = 74_994


async def copy_text(text: str, env: Mapping[str, str], programs: ProgramFinder, emit: Callable[[str], None]) -> str:
    """Copy a text; how that was done, in words. `emit` sends an escape sequence.

    The clipboard is that of the machine at which the user sits: over ssh only the terminal knows it.
    """
    env = {**env, "PATH": programs.trusted_path()}
    raw = text.encode(errors="replace")
    if not is_over_ssh(env) and (command := _program(env, programs)) and await _run_with_input(command, raw, env):
        return f"with `{command[0].rpartition('/')[2]}`"
    sequence = f"\x1b]52;c;{base64.b64encode(raw[:_MAX_SEQUENCE_BYTES]).decode()}\a"
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
        await asyncio.wait_for(process.communicate(raw), _COPY_SECONDS)
    except (OSError, TimeoutError):
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        return False
    return process.returncode == 0


_PICTURES: Final = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp")
_ESCAPED: Final = re.compile(r"\\(.)")
_MAX_PATH_LENGTH: Final = 4096
_MAX_PICTURES: Final = 20
_MAX_PICTURE_BYTES: Final = 32 * 1024 * 1024
_PASTE_SECONDS: Final = 5.0
_MAC_SCRIPT: Final = (
    "set png to (the clipboard as «class PNGf»)",
    'set out to open for access POSIX file (system attribute "OUT") with write permission',
    "write png to out",
    "close access out",
)


def picture_paths(text: str, cwd: Path) -> list[Path]:
    """The pictures whose paths, and nothing else, were pasted or dragged in; none when anything else is among them."""
    if (picture := picture_path(text, cwd)) is not None:
        return [picture]
    try:
        words = shlex.split(text) if 0 < len(text) <= _MAX_PICTURES * _MAX_PATH_LENGTH else []
    except ValueError:
        return []
    found = [picture_path(shlex.quote(word), cwd) or picture_path(word, cwd) for word in words[: _MAX_PICTURES + 1]]
    pictures = [path for path in found if path is not None]
    return pictures if len(pictures) == len(words) else []


def picture_path(text: str, cwd: Path) -> Path | None:
    """The picture of a path: plain, quoted, escaped, or as a file URL."""
    text = text.strip()
    if not text or len(text) > _MAX_PATH_LENGTH or "\n" in text:
        return None
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        text = text[1:-1]
    elif text.startswith("file://"):
        text = unquote(urlsplit(text).path)
    else:
        text = _ESCAPED.sub(r"\1", text)
    if not is_picture(text):
        return None
    path = cwd / os.path.expanduser(text)  # noqa: PTH111 - a name that is no user's stays as it is
    try:
        return path.absolute() if path.is_file() else None
    except (OSError, ValueError):
        return None


def is_picture(name: str) -> bool:
    """Whether a file of this name is a picture."""
    return name.lower().endswith(_PICTURES)


async def clipboard_picture(env: Mapping[str, str], programs: ProgramFinder, home: Path) -> Path | None:
    """The picture of the clipboard as a file of its own; None when there is none, or no program that can read it."""
    env = {**env, "PATH": programs.trusted_path()}
    for command in _readers(env, programs):
        if (content := await _output_of(command, env)) and content[:4] in (b"\x89PNG", b"GIF8", b"\xff\xd8\xff\xe0"):
            return keep_draft(home, content, ".png")
    if sys.platform == "darwin":
        path = keep_draft(home, b"", ".png")
        arguments = [word for line in _MAC_SCRIPT for word in ("-e", line)]
        await _output_of(["/usr/bin/osascript", *arguments], {**env, "OUT": str(path)})
        return path if path.stat().st_size else None
    return None


def _readers(env: Mapping[str, str], programs: ProgramFinder) -> list[list[str]]:
    candidates = [
        ["wl-paste", "--no-newline", "--type", "image/png"] if env.get("WAYLAND_DISPLAY") else [],
        ["xclip", "-selection", "clipboard", "-target", "image/png", "-out"] if env.get("DISPLAY") else [],
        ["pngpaste", "-"],
    ]
    wanted = [command for command in candidates if command]
    return [[path, *command[1:]] for command in wanted if (path := programs.find(command[0])) is not None]


async def _output_of(command: list[str], env: Mapping[str, str]) -> bytes:
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            limit=_MAX_PICTURE_BYTES,
        )
    except OSError:
        return b""
    try:
        content, _ = await asyncio.wait_for(process.communicate(), _PASTE_SECONDS)
    except TimeoutError:
        process.kill()
        await process.wait()
        return b""
    return content if len(content) <= _MAX_PICTURE_BYTES else b""

"""The programs of the user's desktop: the editor, the clipboard (also by OSC 52), pasted paths of pictures, and private
draft files.

Drafts lie in CODEX_HOME, which no sandboxed command writes: what comes back from them counts as the user's own.
"""

from __future__ import annotations

import asyncio
import base64
import os
import re
import shlex
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Final, TypeAlias
from urllib.parse import unquote, urlsplit

from codex_py.errors import UserError
from codex_py.paths import make_private_dir
from codex_py.programs import ProgramFinder, is_over_ssh
from codex_py.ui.repl.terminal import passed_on, through_tmux

_DAY_SECONDS: Final = 24 * 3600.0


@contextmanager
def draft_file(home: Path, text: str, suffix: str) -> Generator[Path]:
    """A file with this text that only the user can read and that is gone afterwards. Raises `UserError`."""
    path = keep_draft(home, text.encode("utf-8", "replace"), suffix)
    try:
        yield path
    finally:
        with suppress(OSError):
            path.unlink()


def keep_draft(home: Path, content: bytes, suffix: str) -> Path:
    """A file with this content, for a day at most. `home` is CODEX_HOME. Raises `UserError`."""
    directory = home / "drafts"
    try:
        make_private_dir(directory)
        _remove_stale(directory)
        descriptor, name = mkstemp(dir=directory, suffix=suffix)
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
    except OSError as error:
        raise UserError(f"cannot write a draft in `{directory}`: {(error.strerror or str(error)).lower()}") from error
    return Path(name)


def _remove_stale(directory: Path) -> None:
    """Remove files that a killed session has left."""
    oldest = time.time() - _DAY_SECONDS
    for path in directory.iterdir():
        with suppress(OSError):
            if path.lstat().st_mtime < oldest:
                path.unlink()


RunProgram: TypeAlias = Callable[[Sequence[str]], Awaitable[int]]

_USUAL: Final = ("sensible-editor", "nano", "vi")
_NOT_STARTED: Final = 127
_MAX_BYTES: Final = 4 * 1024 * 1024


async def edit_file(path: Path, run: RunProgram, programs: ProgramFinder, env: Mapping[str, str]) -> bool:
    """Open a file in the editor and wait for its end; False when there is none that can be started.

    Raises `UserError` for an editor of the user's that commands of the model may write.
    """
    for command in _editors(programs, env):
        if await run([*command, str(path)]) != _NOT_STARTED:
            return True
    return False


async def edit_text(
    text: str, run: RunProgram, programs: ProgramFinder, env: Mapping[str, str], *, home: Path
) -> str | None:
    """Let the user edit a text; None when no editor could be started, or what it left cannot be read.

    `home` is CODEX_HOME. Raises `UserError` as `edit_file` does, and when there can be no draft.
    """
    with draft_file(home, text, ".md") as path:
        return _read(path) if await edit_file(path, run, programs, env) else None


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as edited:
            return edited.read(_MAX_BYTES).decode(errors="replace").rstrip("\n")
    except OSError:
        return None


def _editors(programs: ProgramFinder, env: Mapping[str, str]) -> list[list[str]]:
    # Many editors are scripts, which look for others themselves.
    start = ["/usr/bin/env", f"PATH={programs.trusted_path()}"]
    name, wanted = ("VISUAL", env["VISUAL"]) if env.get("VISUAL") else ("EDITOR", env.get("EDITOR", ""))
    if wanted:
        try:
            words = shlex.split(wanted) or [wanted]
        except ValueError:
            words = [wanted]
        return [[*start, programs.find_chosen(words[0], name), *words[1:]]]
    return [[*start, found] for editor in _USUAL if (found := programs.find(editor)) is not None]


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

"""The user's editor: for a file, and for the message that is being typed."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeAlias

RunProgram: TypeAlias = Callable[[Sequence[str]], Awaitable[int]]

_USUAL: Final = ("sensible-editor", "nano", "vi")
_NOT_STARTED: Final = 127
_MOST_BYTES: Final = 4 * 1024 * 1024


async def edit_file(path: Path, run: RunProgram, env: Mapping[str, str]) -> bool:
    """Open a file in the editor and wait for its end; False when there is none that can be started."""
    for command in _editors(env):
        if await run([*command, str(path)]) != _NOT_STARTED:
            return True
    return False


async def edit_text(text: str, run: RunProgram, env: Mapping[str, str]) -> str | None:
    """Let the user edit a text; None when no editor could be started, or what it left cannot be read."""
    with temporary_file(text, ".md") as path:
        return _read(path) if await edit_file(path, run, env) else None


@contextmanager
def temporary_file(text: str, suffix: str) -> Generator[Path]:
    """A file with this text, which nobody else can read and which is gone afterwards."""
    descriptor, name = tempfile.mkstemp(prefix="codex-py-", suffix=suffix)
    path = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as out:
            out.write(text)
        yield path
    finally:
        path.unlink(missing_ok=True)


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as edited:
            return edited.read(_MOST_BYTES).decode(errors="replace").rstrip("\n")
    except OSError:
        return None


def _editors(env: Mapping[str, str]) -> list[list[str]]:
    wanted = env.get("VISUAL") or env.get("EDITOR")
    if wanted:
        try:
            return [shlex.split(wanted)]
        except ValueError:
            return [[wanted]]
    return [[name] for name in _USUAL]

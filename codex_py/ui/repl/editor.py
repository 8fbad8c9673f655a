"""The user's editor, and private draft files in CODEX_HOME, where no sandboxed command writes.

They lie in CODEX_HOME, which no sandboxed command writes: what comes back from them counts as the user's own.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Final, TypeAlias

from codex_py.errors import UserError
from codex_py.paths import make_private_dir
from codex_py.programs import ProgramFinder

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

"""Directories for the time of one command, where commands of the model can write nothing; killed programs leave some.

Not in the directory for temporary files: there a command could exchange what is being fetched, checked or unpacked.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from codex_py.errors import UserError
from codex_py.paths import lock, make_private_dir
from codex_py.text.files import os_reason


@contextmanager
def work_directory(parent: Path) -> Generator[Path, None, None]:
    """A new directory below `parent`, removed at the end; those of programs that were killed go too.

    Raises `UserError` when it cannot be made.
    """
    path = parent / f".new-{_suffix()}"
    try:
        make_private_dir(parent)
        clear_leftovers(parent)
        path.mkdir(mode=0o700)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UserError(f"cannot write `{path}`: {os_reason(error)}") from error
    try:
        lock(descriptor)
        yield Path(os.path.realpath(path))
    finally:
        os.close(descriptor)
        shutil.rmtree(path, ignore_errors=True)


def discard(path: Path, parent: Path) -> None:
    """Remove a directory: in one step for other programs, which find it no more. Raises `OSError`."""
    trash = parent / f".old-{_suffix()}"
    path.rename(trash)
    if trash.is_symlink():
        trash.unlink()
    shutil.rmtree(trash, ignore_errors=True)


def clear_leftovers(parent: Path) -> None:
    """Remove the leftovers of programs that were killed."""
    for left in (*parent.glob(".new-*-*"), *parent.glob(".old-*-*")):
        process = left.name.split("-")[1]
        if process.isdecimal() and not _is_alive(int(process)) and _is_free(left):
            shutil.rmtree(left, ignore_errors=True)


def _suffix() -> str:
    return f"{os.getpid()}-{os.urandom(4).hex()}"


def _is_free(left: Path) -> bool:
    """Whether no process holds it: one in another container has a number that means nothing here."""
    try:
        descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return lock(descriptor)
    finally:
        os.close(descriptor)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        pass
    return True

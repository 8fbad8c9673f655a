"""Moves paths that a command must not leave out of the working tree to a directory in CODEX_HOME.

A rename beside it comes first, because nothing is faster; the way from there may lead to another file system. Where a
process was killed between the two, the next session does the rest.
"""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.paths import is_directory, lock, make_private_dir, open_private, opened_directory

_UNFINISHED: Final = ".unfinished"
_ASIDE: Final = ".moved-"


class Move(NamedTuple):
    """A path that was renamed: its name beside its old place, where it goes from there if anywhere, and the note about
    it with the descriptor that holds its lock."""

    aside: Path
    target: Path | None
    note: tuple[Path, int] | None


class MovedPaths:
    """Moves paths into a directory in two steps; without a directory they stay beside their old place.

    The note about an unfinished move is a file there that its process holds a lock on.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._is_swept = False

    def put_aside(self, path: Path) -> Move:
        """Rename a path beside itself; no link that leads there is followed. Raises `OSError`."""
        token = f"{time.strftime('%Y-%m-%dT%H-%M-%S')}-{os.urandom(3).hex()}"
        aside = path.with_name(f"{path.name}{_ASIDE}{token[-6:]}")
        target, note = None, None
        if self._directory is not None:
            target = self._directory / f"{token}-{path.name.lstrip('.')}"
            note = self._note(token, aside)
        try:
            with opened_directory(path.parent) as directory:
                os.rename(path.name, aside.name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError:
            _end(note)
            raise
        return Move(aside, target, note)

    def sweep(self) -> None:
        """Do the rest of what killed processes have begun, once."""
        if self._directory is None or self._is_swept:
            return
        self._is_swept = True
        with suppress(OSError):
            for note in self._directory.glob(f"*{_UNFINISHED}"):
                with suppress(OSError):
                    _finish_for_another(note)

    def _note(self, token: str, aside: Path) -> tuple[Path, int] | None:
        assert self._directory is not None
        with suppress(OSError):
            make_private_dir(self._directory)
            note = self._directory / f"{token}{_UNFINISHED}"
            fd = open_private(note, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            lock(fd)
            os.write(fd, os.fsencode(aside))
            return note, fd
        return None


def finish(move: Move) -> Path:
    """Where the path lies in the end: beside its old place if the directory cannot take it."""
    location = move.aside
    if move.target is not None:
        with suppress(OSError, RecursionError):
            _carry(move.aside, move.target)
            location = move.target
    _end(move.note)
    return location


def _finish_for_another(note: Path) -> None:
    fd = os.open(note, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not lock(fd):
        os.close(fd)
        return
    aside = Path(os.fsdecode(note.read_bytes()))
    name = aside.name.rpartition(_ASIDE)[0].lstrip(".")
    target = note.with_name(f"{note.name.removesuffix(_UNFINISHED)}-{name}")
    if is_left := os.path.lexists(aside):
        _remove(target)
    finish(Move(aside, target if is_left else None, (note, fd)))


def _end(note: tuple[Path, int] | None) -> None:
    if note is not None:
        with suppress(OSError):
            note[0].unlink()
        os.close(note[1])


def _carry(source: Path, target: Path) -> None:
    with suppress(OSError):
        source.rename(target)
        return
    try:
        if _is_real_directory(source):
            shutil.copytree(source, target, symlinks=True)
        else:
            shutil.copy2(source, target, follow_symlinks=False)
    except (OSError, RecursionError):
        # A part of it must not pass for the whole.
        _remove(target)
        raise
    _remove(source)


def _remove(path: Path) -> None:
    if _is_real_directory(path):
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _is_real_directory(path: Path) -> bool:
    return is_directory(path) and not path.is_symlink()

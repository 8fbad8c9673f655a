"""Copying a plugin's folder that nobody vouches for: regular files, folders and links that stay inside, within bounds.

Whatever else is found stops the copy: half a plugin is worse than none.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path
from typing import Final

from codex_py.errors import UserError
from codex_py.text.sanitize import sanitize_line

MAX_FILES: Final = 20_000
MAX_BYTES: Final = 256 * 1024 * 1024
MAX_FILE_BYTES: Final = 64 * 1024 * 1024
_MAX_DEPTH: Final = 32
_CHUNK_BYTES: Final = 1024 * 1024
_LEFT_OUT: Final = frozenset({".git", ".hg", ".svn", ".jj"})


def copy_plugin(source: Path, target: Path) -> None:
    """Copy a folder to a new one that only the user can read; version control is left out.

    Raises `UserError`, and leaves nothing, for what cannot be copied: a link out of the folder, a device, a name that
    cannot be shown, too much of anything.
    """
    try:
        _Copy(Path(os.path.realpath(source))).copy_directory("", target, 0)
    except OSError as error:
        shutil.rmtree(target, ignore_errors=True)
        raise UserError(f"cannot copy `{source}`: {(error.strerror or str(error)).lower()}") from error
    except UserError:
        shutil.rmtree(target, ignore_errors=True)
        raise


class _Copy:
    def __init__(self, source: Path) -> None:
        self._source = source
        self._files = 0
        self._bytes = 0

    def copy_directory(self, inner: str, target: Path, depth: int) -> None:
        """Copy one folder; `inner` is its path inside the source."""
        if depth > _MAX_DEPTH:
            raise _refusal(inner, f"more than {_MAX_DEPTH} folders deep")
        target.mkdir(mode=0o700)
        with os.scandir(self._source / inner) as entries:
            for entry in entries:
                if entry.name in _LEFT_OUT:
                    continue
                self._count(inner, entry.name)
                self._entry(f"{inner}/{entry.name}".lstrip("/"), entry, target / entry.name, depth)

    def _count(self, inner: str, name: str) -> None:
        if sanitize_line(name) != name:
            raise UserError(f"the plugin is refused: a name in `{inner or '.'}` has characters that cannot be shown")
        self._files += 1
        if self._files > MAX_FILES:
            raise UserError(f"the plugin is refused: it has more than {MAX_FILES} files")

    def _entry(self, inner: str, entry: os.DirEntry[str], target: Path, depth: int) -> None:
        mode = entry.stat(follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            self._link(inner, target)
        elif stat.S_ISDIR(mode):
            self.copy_directory(inner, target, depth + 1)
        elif stat.S_ISREG(mode):
            self._file(inner, target)
        else:
            raise _refusal(inner, "not a regular file")

    def _link(self, inner: str, target: Path) -> None:
        """A link is kept when it is relative and everything on its way stays inside."""
        path = self._source / inner
        written = path.readlink()
        real = Path(os.path.realpath(path))
        below = real.relative_to(self._source).parts if real.is_relative_to(self._source) else None
        if written.is_absolute() or below is None or not _LEFT_OUT.isdisjoint(below):
            raise _refusal(inner, "a link that leads out of the plugin")
        target.symlink_to(written)

    def _file(self, inner: str, target: Path) -> None:
        # Opened without following links and looked at again: what was listed may have been exchanged.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(self._source / inner, flags), "rb") as source:
            status = os.fstat(source.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise _refusal(inner, "not a regular file")
            mode = 0o700 if status.st_mode & 0o100 else 0o600
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
            with os.fdopen(descriptor, "wb") as out:
                copied = 0
                while chunk := source.read(_CHUNK_BYTES):
                    copied += len(chunk)
                    self._bytes += len(chunk)
                    if copied > MAX_FILE_BYTES:
                        raise _refusal(inner, f"larger than {MAX_FILE_BYTES // 1024 // 1024} MiB")
                    if self._bytes > MAX_BYTES:
                        raise UserError(f"the plugin is refused: it has more than {MAX_BYTES // 1024 // 1024} MiB")
                    out.write(chunk)


def _refusal(inner: str, why: str) -> UserError:
    return UserError(f"the plugin is refused: `{inner}` in it is {why}" if inner else f"the plugin is refused: {why}")

"""Replaces the content of a file, and leaves it the same file: links, owner, mode, attributes and mounts stay.

A new file that takes the name in one step is the rule. Where that is impossible (the file is a mount, its directory
cannot be written) or would make another file of it (hard links, an owner or attributes that cannot be copied), it is
rewritten in place, and gets its old content back when that fails.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from codex_py.paths import draft_prefix, sync_directory

MAX_REWRITTEN: Final = 64 * 1024 * 1024

_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_ENTER: Final = os.O_DIRECTORY | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)
_OPEN: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# A file that cannot be made or renamed for one of these may still be written.
_NOT_THIS_WAY: Final = frozenset(
    (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV, errno.ENOTSUP, errno.ENODATA, errno.EINVAL)
)


class NotRestored(OSError):
    """A file was half written, and its old content could not be written back."""


def replace_file(path: str | Path, content: bytes, *, sync: bool = False, mode: int = 0o600) -> None:
    """Replace a file, or make it. Raise `OSError`, and keep the old content, on failure.

    `mode` is that of the file that takes its name; one that is rewritten in place keeps its own. With `sync` the new
    content is on the disk when this returns.
    """
    parent, name = os.path.split(path)
    directory = os.open(parent or ".", _ENTER)
    try:
        replace_at(directory, name, draft_prefix(name) + os.urandom(8).hex(), content, mode=mode, sync=sync)
    finally:
        os.close(directory)
    if sync:
        sync_directory(Path(parent))


def replace_with(draft: Path, path: Path) -> None:
    """Let a finished file take the place of another one of its directory. Raises `OSError`; the draft is gone then."""
    directory = os.open(path.parent, _ENTER)
    try:
        install(directory, draft.name, path.name)
    finally:
        os.close(directory)


def replace_at(directory: int, name: str, draft: str, content: bytes, *, mode: int, sync: bool = False) -> None:
    """`replace_file` for a name in an open directory; a link is replaced, not followed. `draft` is a free name."""
    with opened_like(directory, name) as like:
        is_staged = stage(directory, draft, content, mode=mode, like=like, sync=sync)
    if is_staged:
        install(directory, draft, name)
    else:
        rewrite(directory, name, content)


@contextmanager
def opened_like(directory: int, name: str) -> Generator[int | None, None, None]:
    """A descriptor of a regular file, for `stage`; None where there is none that may be read and written."""
    descriptor = None
    if is_writable(directory, name):
        with suppress(OSError):
            descriptor = os.open(name, os.O_RDONLY | _OPEN, dir_fd=directory)
    try:
        yield descriptor if descriptor is not None and stat.S_ISREG(os.fstat(descriptor).st_mode) else None
    finally:
        if descriptor is not None:
            os.close(descriptor)


def is_writable(directory: int, name: str) -> bool:
    """Whether a file is there, and may be written."""
    return os.access(name, os.W_OK, dir_fd=directory, effective_ids=os.access in os.supports_effective_ids)


def stage(directory: int, draft: str, content: bytes, *, mode: int | None, like: int | None, sync: bool = True) -> bool:
    """Write the file `draft` with owner and attributes of `like`; without a `mode` it has that of the umask.

    False, and no draft, if only `rewrite` can leave the file `like` what it is. Raises `OSError`.
    """
    if like is not None and os.fstat(like).st_nlink > 1:
        return False
    try:
        descriptor = os.open(draft, _CREATE, 0o666 if mode is None else 0o600, dir_fd=directory)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                if like is not None:
                    _copy_owner(like, descriptor)
                    _copy_attributes(like, descriptor)
                if mode is not None:
                    os.fchmod(descriptor, mode)
                if sync:
                    os.fsync(descriptor)
        except BaseException:
            with suppress(OSError):
                os.unlink(draft, dir_fd=directory)
            raise
    except OSError as error:
        if like is None or error.errno not in _NOT_THIS_WAY:
            raise
        return False
    return True


def install(directory: int, draft: str, name: str) -> bytes | None:
    """Give a draft the name of the file that it replaces; the old content where that file was rewritten instead.

    Raises `OSError`; then the draft is gone, and the file as it was.
    """
    try:
        try:
            os.rename(draft, name, src_dir_fd=directory, dst_dir_fd=directory)
        except OSError as error:
            with opened_like(directory, name) as like:
                if like is None or error.errno not in _NOT_THIS_WAY:
                    raise
            with os.fdopen(os.open(draft, os.O_RDONLY | _OPEN, dir_fd=directory), "rb") as file:
                old = rewrite(directory, name, file.read())
        else:
            return None
    except OSError:
        with suppress(OSError):
            os.unlink(draft, dir_fd=directory)
        raise
    os.unlink(draft, dir_fd=directory)
    return old


def rewrite(directory: int, name: str, content: bytes) -> bytes:
    """Write a new content into a regular file, and give back the old one. Raises `OSError` as `replace_file` does.

    Only a kill within the write leaves a part of the new content behind.
    """
    with os.fdopen(os.open(name, os.O_RDWR | _OPEN, dir_fd=directory), "rb", buffering=0) as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")
        if status.st_size > MAX_REWRITTEN:
            raise OSError(errno.EFBIG, f"it must be written in place, and is larger than {MAX_REWRITTEN} bytes")
        old = file.readall()
        try:
            # A kill before the file is cut to its length leaves blank lines at its end, and nothing of the old text.
            _write_all(file.fileno(), content.ljust(len(old), b"\n"))
            if len(content) < len(old):
                os.ftruncate(file.fileno(), len(content))
            os.fsync(file.fileno())
        except OSError as error:
            try:
                os.ftruncate(file.fileno(), len(old))
                _write_all(file.fileno(), old)
                os.utime(file.fileno(), ns=(status.st_atime_ns, status.st_mtime_ns))
            except OSError:
                raise NotRestored(error.errno, error.strerror) from error
            raise
        # Writing takes the bits of another user away.
        if os.fstat(file.fileno()).st_mode != status.st_mode:
            with suppress(OSError):
                os.fchmod(file.fileno(), stat.S_IMODE(status.st_mode))
    return old


def _write_all(descriptor: int, content: bytes) -> None:
    rest, position = memoryview(content), 0
    while position < len(rest):
        position += os.pwrite(descriptor, rest[position:], position)


def _copy_owner(source: int, target: int) -> None:
    was, own = os.fstat(source), os.fstat(target)
    if (was.st_uid, was.st_gid) != (own.st_uid, own.st_gid):
        os.fchown(target, was.st_uid, was.st_gid)


def _copy_attributes(source: int, target: int) -> None:
    """Let a file have the extended attributes of another one, access lists among them, and no others."""
    wanted, own = _attributes(source), _attributes(target)
    for name in own.keys() - wanted.keys():
        os.removexattr(target, name)
    for name, value in wanted.items():
        if own.get(name) != value:
            os.setxattr(target, name, value)


def _attributes(descriptor: int) -> dict[str, bytes]:
    if not hasattr(os, "listxattr"):
        return {}
    try:
        return {name: os.getxattr(descriptor, name) for name in os.listxattr(descriptor)}
    except OSError as error:
        if error.errno == errno.ENOTSUP:
            return {}
        raise

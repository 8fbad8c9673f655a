"""Unpacks an archive with skills into a new directory: zip, tar, and tar compressed with gzip, bzip2 or xz.

An archive is other people's work: every member is checked before it is written, and counted while it is unpacked.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import IO, Final, NamedTuple

from codex_py.errors import UserError
from codex_py.services.plugin_fetch import MAX_BYTES, MAX_FILE_BYTES, MAX_FILES
from codex_py.skills.tree import TreeRefused, check_clashes, check_name

_CHUNK_BYTES: Final = 256 * 1024
_MEBIBYTE: Final = 1024 * 1024
# Of one member of a tar, with its long names and attributes: `tarfile` reads these into memory whole.
_MAX_HEADER_BYTES: Final = 256 * 1024
_PACKED: Final = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ\x00", lzma.open))
# What `zipfile` and `tarfile` raise for a damaged file.
_DAMAGE: Final = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, OverflowError),
    *(NotImplementedError, RuntimeError),
)


class _Member(NamedTuple):
    path: str
    size: int
    mode: int
    link: str | None
    stream: IO[bytes] | None


def unpack(archive: Path, directory: Path) -> None:
    """Write the files of an archive below a new directory. Raises `UserError` for one that is refused or damaged."""
    directory.mkdir(mode=0o700)
    written: list[str] = []
    total = 0
    try:
        for member in _members(archive):
            path = _checked_path(member.path)
            if len(written) >= MAX_FILES:
                raise _refusal(f"it has more than {MAX_FILES} files")
            written.append(path)
            total += _write(member, directory / path, MAX_BYTES - total)
        check_clashes(written)
        if len(set(written)) != len(written):
            raise _refusal("it has two files with one path")
    except TreeRefused as error:
        raise _refusal(str(error)) from None
    except FileExistsError as error:
        raise _refusal(f"it has two files at `{Path(error.filename or '').name}`") from None
    except _DAMAGE as error:
        raise UserError(f"cannot unpack `{archive}`: {str(error)[:200] or 'it is damaged'}") from None
    except OSError as error:
        raise UserError(f"cannot unpack `{archive}`: {(error.strerror or str(error)).lower()}") from error


def is_archive(path: Path) -> bool:
    """Whether a file is an archive that can be unpacked, by its first bytes."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError:
        return False
    packed = (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")
    return head.startswith(packed) or head[257:262] == b"ustar"


class _LimitedReader(io.BufferedIOBase):
    """The bytes of a tar, up to as many as its next part may have."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self._stream = stream
        self._left = 0

    def allow(self, size: int) -> None:
        """Let so many more bytes be read; what was left of earlier permission is lost."""
        self._left = size + 2 * tarfile.RECORDSIZE

    def read(self, size: int | None = -1, /) -> bytes:
        """The next bytes. Raises `UserError` beyond what is allowed."""
        found = self._stream.read(size)
        self._left -= len(found)
        if self._left < 0:
            raise _refusal("names and attributes of a file in it are too large")
        return found


def _members(archive: Path) -> Iterator[_Member]:
    with archive.open("rb") as file:
        head = file.read(8)
    if head.startswith(b"PK"):
        yield from _zip_members(archive)
        return
    with ExitStack() as stack:
        opened = next((opener for magic, opener in _PACKED if head.startswith(magic)), None)
        stream = stack.enter_context(opened(archive, "rb") if opened else archive.open("rb"))
        reader = _LimitedReader(stream)
        reader.allow(_MAX_HEADER_BYTES)
        tar = stack.enter_context(tarfile.open(fileobj=reader, mode="r|"))
        yield from _tar_members(tar, reader)


def _tar_members(tar: tarfile.TarFile, reader: _LimitedReader) -> Iterator[_Member]:
    count = 0
    while (entry := tar.next()) is not None:
        count += 1
        if count > MAX_FILES:
            raise _refusal(f"it has more than {MAX_FILES} files and directories")
        if entry.isdir():
            _checked_path(entry.name)
        elif not (entry.isreg() or entry.issym()):
            raise _refusal(f"`{entry.name}` is not a regular file")
        elif entry.size > MAX_FILE_BYTES:
            raise _too_large(entry.name)
        else:
            reader.allow(entry.size)
            stream = tar.extractfile(entry) if entry.isreg() else None
            yield _Member(entry.name, entry.size, entry.mode, entry.linkname if entry.issym() else None, stream)
        reader.allow(_MAX_HEADER_BYTES)


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as file:
        for entry in file.infolist():
            if entry.is_dir():
                _checked_path(entry.filename)
                continue
            if entry.flag_bits & 1:
                raise _refusal("it is encrypted")
            mode = entry.external_attr >> 16
            if stat.S_IFMT(mode) not in (0, stat.S_IFREG, stat.S_IFLNK):
                raise _refusal(f"`{entry.filename}` is not a regular file")
            if entry.file_size > MAX_FILE_BYTES:
                raise _too_large(entry.filename)
            with file.open(entry) as stream:
                if stat.S_ISLNK(mode):
                    link = stream.read(4096).decode("utf-8", "surrogateescape")
                    yield _Member(entry.filename, len(link), mode, link, None)
                else:
                    yield _Member(entry.filename, entry.file_size, mode, None, stream)


def _checked_path(name: str) -> str:
    """A member's path, without a leading `./`. Raises `UserError` for one that leads out of the directory."""
    path = PurePosixPath(name)
    if name.startswith("/") or ".." in path.parts or "\0" in name or (len(name) > 1 and name[1] == ":"):
        raise _refusal(f"the path `{name[:200]}` leads out of it")
    for depth in range(1, len(path.parts) + 1):
        check_name("/".join(path.parts[:depth]))
    return path.as_posix()


def _write(member: _Member, target: Path, left: int) -> int:
    """Write one member, counted; the bytes written."""
    if member.size > MAX_FILE_BYTES:
        raise _too_large(member.path)
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if member.link is not None:
        base = PurePosixPath(member.path).parent / member.link
        depth = 0
        for part in base.parts:
            depth += -1 if part == ".." else part not in (".", "")
            if depth < 0 or member.link.startswith("/"):
                raise _refusal(f"`{member.path}` is a link that leads out of it")
        target.symlink_to(member.link)
        return 0
    # No member may be written through a link that another member has made.
    if os.path.realpath(target.parent) != str(target.parent):
        raise _refusal(f"`{member.path}` is behind a link")
    assert member.stream is not None
    mode = 0o700 if member.mode & 0o100 else 0o600
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    count = 0
    with os.fdopen(descriptor, "wb") as out:
        while chunk := member.stream.read(_CHUNK_BYTES):
            count += len(chunk)
            if count > MAX_FILE_BYTES:
                raise _too_large(member.path)
            if count > left:
                raise _refusal(f"it unpacks to more than {MAX_BYTES // _MEBIBYTE} MiB")
            out.write(chunk)
    return count


def _too_large(path: str) -> UserError:
    return _refusal(f"`{path}` is larger than {MAX_FILE_BYTES // _MEBIBYTE} MiB")


def _refusal(why: str) -> UserError:
    return UserError(f"the archive is refused: {why}")

"""Unpacks an archive with skills into a new directory: zip, and tar, also compressed.

`tarfile` and `zipfile` read it. Every member is checked and counted before it is written; links are refused.
"""

from __future__ import annotations

import lzma
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Final, NamedTuple

from codex_py.errors import UserError
from codex_py.services.plugin_fetch import MAX_BYTES, MAX_FILE_BYTES, MAX_FILES
from codex_py.skills.tree import TreeRefused, check_clashes, check_name
from codex_py.text.files import os_reason

_MEBIBYTE: Final = 1024 * 1024
# Of long names and attributes in a tar: `tarfile` reads these into memory whole.
_MAX_HEADER_BYTES: Final = 256 * 1024
_HEADER_TYPES: Final = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
# Where the mode of a file lies in a zip made on Unix.
_ZIP_MODE_SHIFT: Final = 16
_STARTS: Final = (b"PK\x03\x04", b"PK\x05\x06", b"\x1f\x8b", b"BZh", b"\xfd7zXZ\x00")
# What `zipfile` and `tarfile` raise for a damaged file.
_DAMAGE: Final = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, ValueError, OverflowError),
    *(NotImplementedError, RuntimeError),
)


class _Member(NamedTuple):
    """A file, with a `stream` of its content, or a directory, without."""

    path: str
    size: int
    is_program: bool
    stream: IO[bytes] | None


class _TarMember(tarfile.TarInfo):
    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _TarMember:
        found = super().frombuf(buf, encoding, errors)
        if found.type in _HEADER_TYPES and found.size > _MAX_HEADER_BYTES:
            raise _refusal("names and attributes of a file in it are too large")
        return found


def is_archive(path: Path) -> bool:
    """Whether a file is an archive that can be unpacked, by its first bytes."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError:
        return False
    return head.startswith(_STARTS) or head[257:262] == b"ustar"


def unpack(archive: Path, directory: Path) -> None:
    """Write the files of an archive below a new directory. Raises `UserError` for one that is refused or damaged."""
    directory.mkdir(mode=0o700)
    paths: set[str] = set()
    total = 0
    try:
        members = _zip_members(archive) if zipfile.is_zipfile(archive) else _tar_members(archive, directory)
        for number, member in enumerate(members, 1):
            path = _checked_path(member.path)
            total += member.size
            if number > MAX_FILES:
                raise _refusal(f"it has more than {MAX_FILES} files and directories")
            if member.size > MAX_FILE_BYTES:
                raise _refusal(f"`{member.path}` is larger than {MAX_FILE_BYTES // _MEBIBYTE} MiB")
            if total > MAX_BYTES:
                raise _refusal(f"it unpacks to more than {MAX_BYTES // _MEBIBYTE} MiB")
            if member.stream is None:
                continue
            if path in paths:
                raise _refusal(f"it has two files at `{path}`")
            paths.add(path)
            target = directory / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("xb") as out:
                shutil.copyfileobj(member.stream, out)
            target.chmod(0o700 if member.is_program else 0o600)
        check_clashes(paths)
    except (TreeRefused, tarfile.FilterError) as error:
        raise _refusal(str(error)) from None
    except _DAMAGE as error:
        raise UserError(f"cannot unpack `{archive}`: {str(error)[:200] or 'it is damaged'}") from None
    except OSError as error:
        raise UserError(f"cannot unpack `{archive}`: {os_reason(error)}") from error


def _tar_members(archive: Path, directory: Path) -> Iterator[_Member]:
    with tarfile.open(archive, tarinfo=_TarMember) as tar:
        for entry in tar:
            if entry.islnk() or entry.issym():
                raise _refusal(f"`{entry.name}` is a link")
            safe = tarfile.data_filter(entry, str(directory))
            # The name as it is written: the filter makes absolute ones relative.
            size = entry.size if entry.isreg() else 0
            yield _Member(entry.name, size, bool((safe.mode or 0) & 0o100), tar.extractfile(entry))


def _zip_members(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as file:
        for entry in file.infolist():
            mode = entry.external_attr >> _ZIP_MODE_SHIFT
            if mode & 0o170000 not in (0, 0o100000, 0o040000):
                raise _refusal(f"`{entry.filename}` is not a regular file")
            # Others are decompressed without a limit.
            if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise _refusal(f"`{entry.filename}` is compressed in an unusual way")
            if entry.is_dir():
                yield _Member(entry.filename, 0, False, None)
                continue
            with file.open(entry) as stream:
                yield _Member(entry.filename, entry.file_size, bool(mode & 0o100), stream)


def _checked_path(name: str) -> str:
    """A member's path, without a leading `./`. Raises for one that leads out of the directory, or cannot be shown."""
    path = PurePosixPath(name)
    if name.startswith("/") or ".." in path.parts or "\0" in name or name[1:2] == ":":
        raise _refusal(f"the path `{name[:200]}` leads out of it")
    for depth in range(1, len(path.parts) + 1):
        check_name("/".join(path.parts[:depth]))
    return path.as_posix()


def _refusal(why: str) -> UserError:
    return UserError(f"the archive is refused: {why}")

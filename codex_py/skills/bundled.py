"""The skills that come with the program: put under CODEX_HOME as system skills, kept current, or taken away again.

A directory with our marker is ours; any other is left as it is, and ours goes beside it.
"""

from __future__ import annotations

import hashlib
import os
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from errno import EEXIST, ENOTEMPTY
from pathlib import Path
from typing import Final

from codex_py.paths import make_private_dir, open_private
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.value import Value
from codex_py.replace_file import replace_file
from codex_py.skills.roots import SYSTEM_DIRECTORIES
from codex_py.text.files import FileRefused, read_trusted

MARKER: Final = ".codex-py-system-skills.marker"
_DRAFT: Final = ".codex-py-draft-"
_MARKER_BYTES: Final = 256
_OLD_DRAFT_SECONDS: Final = 3600
_ATTEMPTS: Final = 3


class BundledError(OSError):
    """A copy could not be put in place; the message says why."""


class _Marker(Value):
    """The content of an installed copy (`fingerprint`), and the state of the files it was made from (`stamp`)."""

    fingerprint: str
    stamp: str


class _File(Value):
    """One file of the bundle: its path below the source, and where it is."""

    name: str
    entry: os.DirEntry[str]


def bundled_source() -> Path | None:
    """The directory the skills are shipped in: inside the installed package, or `skills/` of a checkout."""
    package = Path(__file__).parents[1]
    shipped = package / "bundled_skills"
    if shipped.is_dir():
        return shipped
    checkout = package.parent
    return checkout / "skills" if (checkout / "pyproject.toml").is_file() else None


def sync_bundled(home: Path, *, enabled: bool, source: Path | None = None) -> str | None:
    """Make the system skills of a CODEX_HOME those of `source`, by default the shipped ones; or remove ours.

    Gives a line for the user when that could not be done; never raises. What the user has changed in our directory
    stays until the shipped skills change. An up-to-date copy costs one small read and a `stat` for each shipped file.
    """
    try:
        if enabled:
            _keep_single_copy(home / "skills", source or bundled_source())
        else:
            _remove_all(home / "skills")
    except OSError as error:
        verb = "install" if enabled else "remove"
        return f"cannot {verb} the bundled skills in `{home / 'skills'}`: {(error.strerror or str(error)).lower()}"
    return None


def _keep_single_copy(skills: Path, source: Path | None) -> None:
    """Have one current copy, in the first place that is ours or free; raises `OSError`."""
    directories = [skills / name for name in SYSTEM_DIRECTORIES]
    ours = [path for path in directories if _is_ours(path)]
    free = [path for path in directories if not os.path.lexists(path)]
    for directory in ours[1:]:
        _remove(directory)
    if not ours and not free:
        raise BundledError(f"other files are in the way: `{directories[0].name}` and `{directories[1].name}`")
    if source is None:
        raise BundledError("they are missing from this installation of codex-py")
    _install(source, (ours or free)[0])


def _remove_all(skills: Path) -> None:
    for directory in (skills / name for name in SYSTEM_DIRECTORIES):
        if _is_ours(directory):
            _remove(directory)


def _is_ours(directory: Path) -> bool:
    return not directory.is_symlink() and _read_marker(directory) is not None


def _read_marker(directory: Path) -> _Marker | None:
    try:
        head = read_trusted(directory / MARKER, _MARKER_BYTES)
    except FileRefused:
        return None
    if head is None:
        return None
    fingerprint, _, stamp = head.raw.decode(errors="replace").strip().partition("\n")
    return _Marker(fingerprint, stamp)


def _install(source: Path, target: Path) -> None:
    """Make `target` a copy of `source` unless it is one; raises `OSError`."""
    files = sorted(_files(source, ""), key=lambda file: file.name)
    if not files:
        raise BundledError(f"nothing to install in `{source}`")
    stamp = _stamp(source, files)
    known = _read_marker(target)
    if known and known.stamp == stamp:
        return
    contents = {file.name: Path(file.entry.path).read_bytes() for file in files}
    marker = _Marker(_fingerprint(files, contents), stamp)
    if known and known.fingerprint == marker.fingerprint:
        # The same skills from another installation: only say so, to find out faster the next time.
        with suppress(OSError):
            replace_file(target / MARKER, _marker_text(marker))
        return
    make_private_dir(target.parent)
    _sweep(target.parent)
    draft = _draft(target.parent)
    try:
        _write_copy(draft, files, contents)
        _write_new(draft / MARKER, _marker_text(marker), executable=False)
        _move_to_target(draft, target, marker)
    finally:
        if os.path.lexists(draft):
            _remove_tree(draft)


def _files(directory: Path | str, prefix: str) -> Iterator[_File]:
    """The files that are shipped: nothing hidden, nothing that Python left behind, no links."""
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(".") or entry.name == "__pycache__":
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _files(entry.path, f"{prefix}{entry.name}/")
            elif entry.is_file(follow_symlinks=False) and prefix:
                yield _File(f"{prefix}{entry.name}", entry)


def _stamp(source: Path, files: list[_File]) -> str:
    """Changes when a file was written, added or removed; says nothing about what is in it."""
    seen = [str(source)]
    for file in files:
        status = file.entry.stat()
        seen.append(f"{file.name}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_mode}")
    return f"{zlib.crc32(chr(10).join(seen).encode(errors='surrogatepass')):08x}"


def _fingerprint(files: list[_File], contents: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for file in files:
        content = contents[file.name]
        digest.update(f"{file.name}\0{_is_executable(file)}\0{len(content)}\0".encode(errors="surrogatepass"))
        digest.update(content)
    return digest.hexdigest()


def _is_executable(file: _File) -> bool:
    return bool(file.entry.stat().st_mode & 0o100)


def _marker_text(marker: _Marker) -> bytes:
    return f"{marker.fingerprint}\n{marker.stamp}\n".encode()


def _draft(skills: Path) -> Path:
    """A name of its own, hidden, so that no search for skills enters it."""
    return skills / f"{_DRAFT}{uuid7()}"


def _write_copy(draft: Path, files: list[_File], contents: dict[str, bytes]) -> None:
    for file in files:
        path = draft / file.name
        make_private_dir(path.parent)
        _write_new(path, contents[file.name], executable=_is_executable(file))


def _write_new(path: Path, content: bytes, *, executable: bool) -> None:
    with os.fdopen(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as out:
        if executable:
            os.fchmod(out.fileno(), 0o700)
        out.write(content)


def _move_to_target(draft: Path, target: Path, marker: _Marker) -> None:
    """Let the draft take the place of what is there; another process may be doing the same."""
    for _ in range(_ATTEMPTS):
        try:
            # Onto a directory that holds something this fails: nothing is lost by trying.
            draft.rename(target)
            return
        except OSError as error:
            if error.errno not in (ENOTEMPTY, EEXIST):
                raise
        there = _read_marker(target)
        if there and there.fingerprint == marker.fingerprint:
            return
        _remove(target)
    raise BundledError(f"it is written by another process: `{target}`")


def _remove(directory: Path) -> None:
    """Take our directory away at once, then its files; what turns out not to be ours is put back."""
    aside = _draft(directory.parent)
    try:
        directory.rename(aside)
    except FileNotFoundError:
        return
    if not _is_ours(aside):
        aside.rename(directory)
        raise BundledError(f"it belongs to something else: `{directory}`")
    _remove_tree(aside)


def _sweep(skills: Path) -> None:
    """Remove what processes that died have left."""
    for entry in skills.iterdir():
        if entry.name.startswith(_DRAFT):
            with suppress(OSError):
                if time.time() - entry.lstat().st_mtime > _OLD_DRAFT_SECONDS:
                    _remove_tree(entry)


def _remove_tree(directory: Path) -> None:
    with os.scandir(directory) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                _remove_tree(Path(entry.path))
            else:
                Path(entry.path).unlink(missing_ok=True)
    directory.rmdir()

"""The files of a skill: which there are, whether they may have changed, and one hash over path, mode and content.

Lists and hashes only; nothing is followed, and nothing is run.
"""

from __future__ import annotations

import hashlib
import os
import stat
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from codex_py.errors import CodexError
from codex_py.text.files import FileRefused, read_below
from codex_py.text.sanitize import sanitize_line

MAX_FILES: Final = 2000
MAX_BYTES: Final = 64 * 1024 * 1024
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
_MAX_DEPTH: Final = 16
_MEBIBYTE: Final = 1024 * 1024
_VERSION_CONTROL: Final = frozenset({".git", ".hg", ".svn", ".jj"})
# Left behind by a machine, and never read by an agent or a script.
_CLUTTER: Final = frozenset({".DS_Store", "Thumbs.db"})
# What a copy leaves out. A later `node_modules` counts as a change: scripts load code from there.
NOT_COPIED: Final = frozenset({"node_modules", "__pycache__"})

FileMode: TypeAlias = Literal["100644", "100755", "120000"]


class TreeRefused(CodexError):
    """The files cannot be those of a skill; the message says why in one line."""


class TreeFile(NamedTuple):
    """A file, by its path below the skill with `/`; the mode is git's. `stamp` changes when the file does."""

    path: str
    mode: FileMode
    size: int
    stamp: tuple[int, int, int, int]


def list_tree(directory: Path, *, copying: bool = False, checks: bool = True) -> list[TreeFile]:
    """The files below a directory in the order of their paths. Raises `TreeRefused`, and `OSError`.

    Version control and byte code that Python checks against its source are left out; with `copying` also
    `node_modules` and all byte code. Refused are links out of the directory, devices, names that cannot be shown, look
    like options or differ only in case, and too much of anything. Without `checks` names are not looked at: for files
    that are compared with what was checked before.
    """
    files: list[TreeFile] = []
    queue: list[tuple[str, int]] = [("", 0)]
    total = 0
    for inner, depth in queue:
        with os.scandir(directory / inner) as entries:
            for entry in entries:
                if entry.name in _VERSION_CONTROL or entry.name in _CLUTTER or (copying and entry.name in NOT_COPIED):
                    continue
                path = f"{inner}/{entry.name}".lstrip("/")
                if checks:
                    check_name(path)
                if entry.is_dir(follow_symlinks=False):
                    if depth == _MAX_DEPTH:
                        raise TreeRefused(f"`{path}` is more than {_MAX_DEPTH} directories deep")
                    queue.append((path, depth + 1))
                    continue
                file = _file(directory, path, entry)
                if inner.rpartition("/")[2] == "__pycache__" and _is_checked_bytecode(directory / path):
                    continue
                files.append(file)
                total += file.size
                check_amount(len(files), total, file)
    if checks:
        check_clashes([file.path for file in files])
    return sorted(files)


def check_name(path: str) -> None:
    """Raise `TreeRefused` for a path whose last part cannot be shown or looks like an option."""
    name = path.rpartition("/")[2]
    if sanitize_line(path) != path or "\t" in path or "\\" in path:
        raise TreeRefused(f"the file name `{sanitize_line(path)}` has characters that are not allowed")
    if name.startswith("-"):
        raise TreeRefused(f"the file name `{path}` looks like an option")
    if name in ("", ".", ".."):
        raise TreeRefused(f"the path `{path}` leads out of the skill")


def check_amount(count: int, total: int, file: TreeFile) -> None:
    """Raise `TreeRefused` for too many files, or too many bytes in one or in all."""
    if file.size > MAX_FILE_BYTES:
        raise TreeRefused(f"`{file.path}` is larger than {MAX_FILE_BYTES // _MEBIBYTE} MiB")
    if count > MAX_FILES:
        raise TreeRefused(f"it has more than {MAX_FILES} files")
    if total > MAX_BYTES:
        raise TreeRefused(f"it has more than {MAX_BYTES // _MEBIBYTE} MiB")


def check_clashes(paths: Iterable[str]) -> None:
    """Raise `TreeRefused` for two paths that are one on a disk that ignores case or forms of letters."""
    seen: dict[str, str] = {}
    for path in paths:
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            part = "/".join(parts[:depth])
            key = unicodedata.normalize("NFKC", part).casefold()
            if seen.setdefault(key, part) != part:
                raise TreeRefused(f"`{seen[key]}` and `{part}` differ only in case")


def _file(directory: Path, path: str, entry: os.DirEntry[str]) -> TreeFile:
    status = entry.stat(follow_symlinks=False)
    stamp = (status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino)
    if stat.S_ISLNK(status.st_mode):
        target = str((directory / path).readlink())
        real = os.path.realpath(directory / path)
        if target.startswith("/") or not real.startswith(f"{os.path.realpath(directory)}/"):
            raise TreeRefused(f"`{path}` is a link that leads out of the skill")
        return TreeFile(path, "120000", len(target), stamp)
    if not stat.S_ISREG(status.st_mode):
        raise TreeRefused(f"`{path}` is not a regular file")
    return TreeFile(path, "100755" if status.st_mode & 0o100 else "100644", status.st_size, stamp)


def _is_checked_bytecode(path: Path) -> bool:
    """Whether Python itself compares this byte code with its source: flags 0 stand for the time and size in it."""
    if path.suffix != ".pyc":
        return False
    with path.open("rb") as file:
        return file.read(8)[4:] == bytes(4)


def read_file(directory: Path, file: TreeFile) -> bytes:
    """The content of a file of the tree, or where a link leads. Raises `TreeRefused` for what has been exchanged."""
    if file.mode == "120000":
        return os.fsencode((directory / file.path).readlink())
    try:
        head = read_below(Path(os.path.realpath(directory)), file.path, MAX_FILE_BYTES + 1)
    except FileRefused as error:
        raise TreeRefused(f"`{file.path}` is {error}") from None
    if len(head.raw) > MAX_FILE_BYTES:
        raise TreeRefused(f"`{file.path}` is larger than {MAX_FILE_BYTES // _MEBIBYTE} MiB")
    return head.raw


def tree_hash(directory: Path, files: Sequence[TreeFile]) -> str:
    """One hash over the path, mode and content of all files. Raises `TreeRefused` and `OSError`."""
    total = hashlib.sha256()
    for file in files:
        content = hashlib.sha256(read_file(directory, file)).hexdigest()
        total.update(f"{file.mode} {content} {file.path}\0".encode("utf-8", "surrogateescape"))
    return f"sha256:{total.hexdigest()}"


def stamp_of(files: Sequence[TreeFile]) -> str:
    """A short text that changes when any of the files may have changed; nothing is read."""
    return hashlib.sha256(repr(files).encode("utf-8", "surrogateescape")).hexdigest()[:32]

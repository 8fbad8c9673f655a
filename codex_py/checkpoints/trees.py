"""Reading the state of one directory: a git working tree with the help of git, any other by looking at its files.

Files that git has and that are unchanged need no copy. All others are stored once, by content, and recognised by size
and times the next time. Files over the limits are only recorded as existing and cannot be restored.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.checkpoints.entries import (
    DRAFT_PREFIX,
    LINK_MODE,
    Entry,
    is_ordinary,
    open_root,
    parent_directory,
)
from codex_py.checkpoints.store import CheckpointStore
from codex_py.core.session_file import git_directories, has_repository, read_git_state
from codex_py.errors import UserError
from codex_py.services.git import GitReader

_GITLINK: Final = b"160000"
_LINK: Final = b"120000"
_DEFAULT_MODES: Final = {b"100644": 0o100644, b"100755": 0o100755, b"120000": LINK_MODE}
# A file that changed so shortly before it was read may change again without a change of its times.
_RACY_NANOSECONDS: Final = 50_000_000


class Caps(NamedTuple):
    """The limits on what is stored of one directory: number of files, bytes together, and bytes of one file."""

    files: int
    bytes: int
    file_bytes: int


class TreeState(NamedTuple):
    """A directory at one moment. `base` names the list of the files in git's index in the store, or is empty.

    `changes` are the files that differ from `base`. `scope` is the part of a working tree that is looked at, or empty.
    In a `partial` one there are more files than are listed. `uncovered` says what is not stored. `ignored` names the
    list of the files and directories that git ignores in the store: what is there, but not listed.
    """

    path: str
    scope: str
    head: str
    base: str
    changes: dict[bytes, Entry | None]
    partial: bool = False
    uncovered: tuple[str, ...] = ()
    ignored: str = ""


class _Dirty(NamedTuple):
    """Files that differ from the index or are not in it, nested repositories, and ignored paths, as git prints them."""

    files: list[bytes]
    nested: list[str]
    ignored: list[bytes]


class _Index(NamedTuple):
    """The files of a git index. `unsure` are those whose state git is told not to look at; `links` lead to modules."""

    signature: tuple[int, ...]
    name: str
    files: list[tuple[bytes, bytes, bytes]]
    sizes: array[int]
    unsure: tuple[bytes, ...]
    modules: tuple[bytes, ...]


class FileReader:
    """Stores the files of one directory within its caps, and remembers which it has stored."""

    def __init__(self, store: CheckpointStore, seen: dict[str, Any], caps: Caps) -> None:
        self._store = store
        self._seen = seen
        self._caps = caps
        self._files = self._bytes = 0
        self.uncovered: list[str] = []
        self.is_full = False

    def restart(self) -> None:
        """Begin with another directory, which has caps of its own."""
        self._files = self._bytes = 0
        self.uncovered = []
        self.is_full = False

    def read(self, root: int, top: str, path: bytes) -> Entry | None:
        """The state of a file, its content stored; None when nothing is there that is stored."""
        try:
            with parent_directory(root, path) as (directory, name):
                status = os.stat(name, dir_fd=directory, follow_symlinks=False)
                if not is_ordinary(status.st_mode):
                    return None
                return self._stored(directory, name, status, f"{top}/{os.fsdecode(path)}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            # A link on the way, or a file that may not be read: it is there, and stays as it is.
            self.uncovered.append(f"`{os.fsdecode(path)}` ({(error.strerror or str(error)).lower()})")
            return Entry(0, mark=b"unreadable")

    def _stored(self, directory: int, name: bytes, status: os.stat_result, where: str) -> Entry:
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=directory)
            return Entry(LINK_MODE, git_hash(target), self._store.put(target).encode())
        signature = [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
        self._files += 1
        self._bytes += status.st_size
        too_large = status.st_size > self._caps.file_bytes
        if too_large or self._files > self._caps.files or self._bytes > self._caps.bytes:
            self.is_full = self.is_full or not too_large
            self.uncovered.append(f"`{where}` ({'too large' if too_large else 'over the limit'})")
            return Entry(status.st_mode, mark=b"%d-%d" % (status.st_size, status.st_mtime_ns))
        known = self._seen.get(where)
        if known is not None and known[0] == signature and self._store.has(known[1]):
            return Entry(status.st_mode, known[2].encode(), known[1].encode())
        content = _read_file(directory, name)
        stored, oid = self._store.put(content), git_hash(content)
        if time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) > _RACY_NANOSECONDS:
            self._seen[where] = [signature, stored, oid.decode()]
        else:
            self._seen.pop(where, None)
        return Entry(status.st_mode, oid, stored.encode())


class GitTrees:
    """Reads git working trees; remembers the index of each, which rarely changes."""

    def __init__(self, store: CheckpointStore, reader: FileReader) -> None:
        self._store = store
        self._reader = reader
        self._indexes: dict[str, _Index] = {}

    def read(self, git: GitReader, scope: str, excluded: Sequence[str]) -> tuple[TreeState, list[str]]:
        """The state of the working tree around `git.cwd`, and the repositories within it.

        Raises `UserError` when git cannot be asked.
        """
        top = git.root
        if top is None:
            # What the caller took for a repository was put there for a moment, such as by the sandbox of another run.
            raise UserError(f"`{git.cwd}` is not in a git repository")
        index = self._index(git, str(top), scope)
        dirty, nested, ignored = self._dirty(git, scope, excluded)
        reader = self._reader
        reader.restart()
        changes: dict[bytes, Entry | None] = {}
        root = open_root(os.fsencode(top))
        try:
            for path in dict.fromkeys((*dirty, *index.unsure)):
                changes[path] = reader.read(root, str(top), path)
            for path, oid, status in _differing(os.fsencode(top), index, changes):
                if status is None:
                    changes[path] = reader.read(root, str(top), path)
                else:
                    changes[path] = Entry(status, oid)
        finally:
            os.close(root)
        head = read_git_state(top)
        uncovered = tuple(reader.uncovered)
        commit = (head and head.commit_hash) or ""
        hidden = self._store.put(b"\0".join(ignored))
        state = TreeState(str(top), scope, commit, index.name, changes, False, uncovered, hidden)
        modules = [str(top / os.fsdecode(path)) for path in index.modules]
        return state, [path for path in (*modules, *nested) if has_repository(Path(path))]

    def _dirty(self, git: GitReader, scope: str, excluded: Sequence[str]) -> _Dirty:
        answered = git.ask(
            *("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=matching"),
            *("--no-renames", "--no-ahead-behind"),
            *_pathspec(scope),
        )
        if answered.status:
            raise UserError(f"git cannot tell the changes: {answered.complaint}")
        top = str(git.root)
        dirty: list[bytes] = []
        nested: list[str] = []
        ignored: list[bytes] = []
        for line in answered.out.split(b"\0"):
            mark = line[:2]
            if mark == b"1 " and line[3:4] != b".":
                dirty.append(line.split(b" ", 8)[8])
            elif mark == b"u ":
                dirty.append(line.split(b" ", 10)[10])
            elif mark == b"! ":
                ignored.append(line[2:])
            elif mark == b"? ":
                path = line[2:]
                whole = f"{top}/{os.fsdecode(path)}"
                if path.endswith(b"/"):
                    nested.append(whole.rstrip("/"))
                elif not whole.startswith(tuple(excluded)) and not path.rpartition(b"/")[2].startswith(DRAFT_PREFIX):
                    dirty.append(path)
        return _Dirty(dirty, nested, ignored)

    def _index(self, git: GitReader, top: str, scope: str) -> _Index:
        key = f"{top}\0{scope}"
        signature = _signature(Path(top))
        known = self._indexes.get(key)
        if known is not None and signature and known.signature == signature:
            return known
        listed = git.ask("ls-files", "-s", "-v", "-z", *_pathspec(scope))
        if listed.status:
            raise UserError(f"git cannot list its files: {listed.complaint}")
        files: list[tuple[bytes, bytes, bytes]] = []
        unsure: list[bytes] = []
        modules: list[bytes] = []
        for line in listed.out.split(b"\0"):
            head, _, path = line.partition(b"\t")
            if not head:
                continue
            tag, mode, oid, stage = head.split(b" ")
            if mode == _GITLINK:
                modules.append(path)
            elif tag != b"H" or stage != b"0":
                unsure.append(path)
            else:
                files.append((path, mode, oid))
        name = self._store.put(
            b"".join(b"%b %b - -\t%b\0" % (b"%o" % _DEFAULT_MODES[mode], oid, path) for path, mode, oid in files)
        )
        sizes = self._sizes(git, name, [oid for _, _, oid in files])
        found = _Index(signature, name, files, sizes, tuple(unsure), tuple(modules))
        self._indexes[key] = found
        return found

    def _sizes(self, git: GitReader, name: str, oids: Sequence[bytes]) -> array[int]:
        """The sizes of the contents in git, which are not those of the files where git converts them."""
        path = self._store.directory / "sizes" / name
        try:
            raw = path.read_bytes()
        except OSError:
            raw = b""
        sizes = array("q")
        if len(raw) == 8 * len(oids):
            sizes.frombytes(raw)
            return sizes
        if oids:
            answered = git.ask("cat-file", "--batch-check=%(objectsize)", "--buffer", stdin=b"\n".join(oids) + b"\n")
            lines = answered.out.split(b"\n")
            # A content that git does not have must be stored here.
            sizes.extend(int(line) if line.isdigit() else -1 for line in lines[: len(oids)])
            if len(sizes) != len(oids):
                raise UserError(f"git cannot tell the sizes of its files: {answered.complaint}")
        path.parent.mkdir(mode=0o700, exist_ok=True)
        for old in path.parent.iterdir():
            old.unlink(missing_ok=True)
        path.write_bytes(sizes.tobytes())
        return sizes


def _differing(
    top: bytes, index: _Index, changes: dict[bytes, Entry | None]
) -> Iterator[tuple[bytes, bytes, int | None]]:
    """The files that git takes for unchanged and that still differ: their full mode, or None for a different size."""
    lstat, modes, prefix = os.lstat, _DEFAULT_MODES, top + b"/"
    for (path, mode, oid), size in zip(index.files, index.sizes, strict=True):
        try:
            status = lstat(prefix + path)
        except OSError:
            if path not in changes:
                yield path, oid, None
            continue
        if (status.st_size != size or status.st_mode != modes[mode]) and path not in changes:
            if status.st_size == size and stat.S_IFMT(status.st_mode) == stat.S_IFMT(modes[mode]):
                yield path, oid, status.st_mode
            else:
                yield path, oid, None


def read_directory(top: Path, reader: FileReader, caps: Caps, excluded: Sequence[str]) -> tuple[TreeState, list[str]]:
    """The state of a directory that is no git working tree, and the repositories within it."""
    reader.restart()
    found: dict[bytes, Entry | None] = {}
    nested: list[str] = []
    partial = False
    root = open_root(os.fsencode(top))
    try:
        for path in _walk(os.fsencode(top), nested, excluded):
            if len(found) >= caps.files:
                partial = True
                break
            if (entry := reader.read(root, str(top), path)) is not None:
                found[path] = entry
    finally:
        os.close(root)
    uncovered = list(reader.uncovered)
    if partial:
        uncovered.insert(0, f"`{top}` has more than {caps.files:,} files, and the others")
    return TreeState(str(top), "", "", "", found, partial, tuple(uncovered)), nested


def _walk(top: bytes, nested: list[str], excluded: Sequence[str]) -> Iterator[bytes]:
    """The files and links below a directory in a fixed order; repositories are added to `nested`."""
    waiting = [b""]
    while waiting:
        inside = waiting.pop()
        directory = top + b"/" + inside if inside else top
        try:
            with os.scandir(directory) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        below: list[bytes] = []
        for entry in listed:
            path = inside + b"/" + entry.name if inside else entry.name
            if os.fsdecode(entry.path).startswith(tuple(excluded)) or entry.name == b".git":
                continue
            if entry.is_dir(follow_symlinks=False):
                if has_repository(Path(os.fsdecode(entry.path))):
                    nested.append(os.fsdecode(entry.path))
                else:
                    below.append(path)
            elif not entry.name.startswith(DRAFT_PREFIX):
                yield path
        waiting += reversed(below)


def _pathspec(scope: str) -> tuple[str, ...]:
    return ("--", f":(top,literal){scope}") if scope else ()


def _signature(top: Path) -> tuple[int, ...]:
    """A value that changes whenever the index does; empty if that cannot be determined."""
    found = git_directories(top)
    try:
        status = (found.own / "index").stat() if found else None
    except OSError:
        status = None
    return (status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino) if status else ()


def git_hash(content: bytes) -> bytes:
    """The name git has for a content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest().encode()


def _read_file(directory: int, name: bytes) -> bytes:
    descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def read_blobs(git: GitReader, oids: Iterable[bytes]) -> dict[bytes, bytes | None]:
    """The contents git has for these names; None for one that is gone. Raises `UserError`."""
    names = list(dict.fromkeys(oids))
    found: dict[bytes, bytes | None] = {}
    for start in range(0, len(names), 256):
        part = names[start : start + 256]
        answered = git.ask("cat-file", "--batch", "--buffer", stdin=b"\n".join(part) + b"\n")
        raw, position = answered.out, 0
        for name in part:
            end = raw.find(b"\n", position)
            if end < 0:
                raise UserError(f"git cannot give the contents of files: {answered.complaint}")
            head = raw[position:end].split(b" ")
            position = end + 1
            if len(head) != 3 or head[1] != b"blob":
                found[name] = None
                continue
            size = int(head[2])
            found[name] = raw[position : position + size]
            position += size + 1
    return found

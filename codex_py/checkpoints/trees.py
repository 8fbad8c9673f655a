"""Reading the state of one directory: a git working tree with the help of git, any other by looking at its files.

Files that git has and that are unchanged need no copy. All others are stored by `file_reader`.
"""

from __future__ import annotations

import os
import stat
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.checkpoints.entries import DRAFT_PREFIX, GIT_MODES, Entry
from codex_py.checkpoints.file_reader import Caps, FileReader, SnapshotRun, Stopped
from codex_py.checkpoints.store import CheckpointStore
from codex_py.core.session_file import git_directories, has_repository, read_git_state
from codex_py.errors import UserError
from codex_py.services.git import GitReader

_GITLINK: Final = b"160000"
# An index of so many bytes has about 50,000 files. Of more the sizes and the full modes are not looked at.
_LARGE_INDEX: Final = 4 << 20


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
    """Files that differ from the index, files not in it, nested repositories, and ignored paths, as git prints them."""

    changed: list[bytes]
    untracked: list[bytes]
    nested: list[str]
    ignored: list[bytes]


class _Index(NamedTuple):
    """The files of a git index, none of a large one; `unsure` are those whose state git is told not to look at."""

    signature: tuple[int, ...]
    name: str
    files: list[tuple[bytes, bytes, bytes]]
    sizes: array[int]
    unsure: tuple[bytes, ...]
    modules: tuple[bytes, ...]


class GitTrees:
    """Reads git working trees; remembers the index of each, which rarely changes."""

    def __init__(self, store: CheckpointStore) -> None:
        self._store = store
        self._indexes: dict[str, _Index] = {}

    def read(
        self, git: GitReader, scope: str, excluded: Sequence[str], reader: FileReader, run: SnapshotRun
    ) -> tuple[TreeState, list[str]]:
        """The state of the working tree around `git.cwd`, and the repositories within it.

        Raises `UserError` when git cannot be asked, and `Stopped`.
        """
        top = git.root
        if top is None:
            # What the caller took for a repository was put there for a moment, such as by the sandbox of another run.
            raise UserError(f"`{git.cwd}` is not in a git repository")
        before = _signature(top)
        run.is_large = run.is_large or _is_large(before)
        dirty = self._dirty(git, scope, excluded)
        # Last, because the question about sizes ends the shared start.
        index = self._index(git, str(top), scope)
        if run.opened is not None and index.signature != before:
            # A command has staged or committed files meanwhile: what they were before is not known.
            raise Stopped
        changes: dict[bytes, Entry | None] = {}
        with reader.within(str(top), what="changed files"):
            for path in (*dirty.changed, *index.unsure):
                entry = reader.read(path)
                if entry is not None or not reader.may_have_been_there(path):
                    changes[path] = entry
            for path, oid, status in _differing(os.fsencode(top), index, changes):
                if status is None:
                    changes[path] = reader.read(path)
                else:
                    changes[path] = Entry(status, oid)
            uncovered = reader.uncovered
        with reader.within(str(top), what="untracked files"):
            for path in reader.in_order(dirty.untracked):
                changes[path] = reader.read(path)
        head = read_git_state(top)
        commit = (head and head.commit_hash) or ""
        hidden = self._store.put(b"\0".join(dirty.ignored))
        state = TreeState(str(top), scope, commit, index.name, changes, False, (*uncovered, *reader.uncovered), hidden)
        modules = [str(top / os.fsdecode(path)) for path in index.modules]
        return state, [path for path in (*modules, *dirty.nested) if has_repository(Path(path))]

    def _dirty(self, git: GitReader, scope: str, excluded: Sequence[str]) -> _Dirty:
        answered = git.ask(
            *("status", "--porcelain=v2", "-z", "--untracked-files=all", "--ignored=matching"),
            *("--no-renames", "--no-ahead-behind"),
            *_pathspec(scope),
        )
        if answered.status:
            raise UserError(f"git cannot tell the changes: {answered.complaint}")
        top = f"{git.root}/"
        not_looked_at = tuple(
            os.fsencode(path[len(top) :]) for path in excluded if path.startswith(top) or top.startswith(path)
        )
        changed: list[bytes] = []
        untracked: list[bytes] = []
        nested: list[str] = []
        ignored: list[bytes] = []
        for line in answered.out.split(b"\0"):
            mark = line[:2]
            if mark == b"1 " and line[3:4] != b".":
                changed.append(line.split(b" ", 8)[8])
            elif mark == b"u ":
                changed.append(line.split(b" ", 10)[10])
            elif mark == b"! ":
                ignored.append(line[2:])
            elif mark == b"? ":
                path = line[2:]
                if path.endswith(b"/"):
                    nested.append(top + os.fsdecode(path.rstrip(b"/")))
                elif not path.startswith(not_looked_at) and not path.rpartition(b"/")[2].startswith(DRAFT_PREFIX):
                    untracked.append(path)
        return _Dirty(changed, untracked, nested, ignored)

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
        is_large = _is_large(signature)
        for line in listed.out.split(b"\0"):
            is_odd = not line.startswith((b"H 100", b"H 120"))
            if is_large and not is_odd:
                continue
            head, _, path = line.partition(b"\t")
            if is_odd and head:
                (modules if head.split(b" ")[1] == _GITLINK else unsure).append(path)
            elif head:
                _, mode, oid, _ = head.split(b" ")
                files.append((path, mode, oid))
        name = self._store.put(listed.out)
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
    lstat, modes, prefix = os.lstat, GIT_MODES, top + b"/"
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


def unread_tree(path: Path) -> TreeState:
    """A directory of which no file was looked at."""
    found = git_directories(path)
    head = read_git_state(path)
    return TreeState(str(found.root if found else path), "", (head and head.commit_hash) or "", "", {}, partial=True)


def read_directory(top: Path, reader: FileReader, caps: Caps, excluded: Sequence[str]) -> tuple[TreeState, list[str]]:
    """The state of a directory that is no git working tree, and the repositories within it."""
    found: dict[bytes, Entry | None] = {}
    nested: list[str] = []
    partial = False
    with reader.within(str(top), what="files"):
        for path in _walk(os.fsencode(top), nested, excluded):
            if len(found) >= caps.files:
                partial = reader.is_over = True
                break
            if (entry := reader.read(path)) is not None:
                found[path] = entry
    return TreeState(str(top), "", "", "", found, partial, reader.uncovered), nested


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


def _is_large(signature: tuple[int, ...]) -> bool:
    return bool(signature) and signature[0] > _LARGE_INDEX


def read_blobs(git: GitReader, oids: Iterable[bytes]) -> dict[bytes, bytes | None]:
    """The contents git has for these names; None for one that is gone. Raises `UserError`."""
    names = list(dict.fromkeys(oids))
    found: dict[bytes, bytes | None] = {}
    for start in range(0, len(names), 256):
        part = names[start : start + 256]
        with git.shared_start():
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


def missing_blobs(git: GitReader, oids: Sequence[bytes]) -> list[bytes]:
    """Those of these contents that git does not have; none where the repository is gone. Raises `UserError`."""
    if git.root is None or not oids:
        return []
    with git.shared_start():
        answered = git.ask("cat-file", "--batch-check", "--buffer", stdin=b"\n".join(oids) + b"\n")
    return [line.removesuffix(b" missing") for line in answered.out.split(b"\n") if line.endswith(b" missing")]

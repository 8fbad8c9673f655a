"""A snapshot: the state of all directories of a workspace at one moment, stored, read back and compared."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.checkpoints.entries import Entry, decode_entries, encode_entries, is_same, outermost
from codex_py.checkpoints.file_reader import Caps, FileReader, SnapshotRun
from codex_py.checkpoints.store import CheckpointStore, FirstWrite, Missing, load_cache, save_cache
from codex_py.checkpoints.trees import GitTrees, TreeState, read_directory, unread_tree
from codex_py.core.session_file import git_directories
from codex_py.errors import UserError
from codex_py.programs import ProbeResults
from codex_py.protocol.policy import DangerFullAccess, SandboxPolicy, extra_roots
from codex_py.services.git import GitReader

_MAX_NESTED: Final = 64


class Area(NamedTuple):
    """What is looked at: the directories commands may write, and what in them is no work of anybody's."""

    directories: tuple[str, ...]
    whole_tree: bool
    excluded: tuple[str, ...]


class Change(NamedTuple):
    """A file of a root that differs between two states; `before` or `after` is None where there is none."""

    root: str
    path: bytes
    before: Entry | None
    after: Entry | None


class Ignored:
    """What git ignored in a working tree at one moment: it was there, and is not listed."""

    def __init__(self, paths: Iterable[bytes]) -> None:
        self._paths = frozenset(path.rstrip(b"/") for path in paths)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ignored) and self._paths == other._paths

    def __hash__(self) -> int:
        return hash(self._paths)

    def has(self, path: bytes) -> bool:
        """Whether a file was among that, or in a directory that was."""
        while path:
            if path in self._paths:
                return True
            path = path.rpartition(b"/")[0]
        return False


class Snapshot:
    """A stored snapshot. The list of a root's files is put together when it is asked for."""

    def __init__(self, name: str, store: CheckpointStore, content: Mapping[str, Any]) -> None:
        self.name: Final = name
        self.directories: Final = tuple(map(str, content["directories"]))
        self.is_whole_tree: Final = bool(content["whole_tree"])
        self.caps: Final = Caps(*map(int, content["caps"]))
        self._store = store
        roots: Sequence[Mapping[str, Any]] = content["roots"]
        self._roots = {str(root["path"]): root for root in roots}
        self._files: dict[str, dict[bytes, Entry | None]] = {}
        self._ignored: dict[str, Ignored] = {}

    @property
    def roots(self) -> tuple[str, ...]:
        return tuple(self._roots)

    def has(self, root: str) -> bool:
        return root in self._roots

    def head(self, root: str) -> str:
        """The commit that HEAD was at; empty outside of git."""
        return str(self._roots[root]["head"])

    def is_git(self, root: str) -> bool:
        return bool(self._roots[root]["base"])

    def is_partial(self, root: str) -> bool:
        return bool(self._roots[root]["partial"])

    def uncovered(self) -> list[str]:
        return [str(line) for root in self._roots.values() for line in root["uncovered"]]

    def files(self, root: str) -> dict[bytes, Entry | None]:
        """Every listed file of a root. Raises `Missing` where the store has lost the list."""
        if root not in self._files:
            self._files[root] = self._listed(root, None)
        return self._files[root]

    def _listed(self, root: str, only: Collection[bytes] | None) -> dict[bytes, Entry | None]:
        found = decode_entries(self._store.get(base), only) if (base := self._roots[root]["base"]) else {}
        return found | decode_entries(self._store.get(self._roots[root]["changes"]), only)

    def differing(self, other: Snapshot, root: str) -> tuple[dict[bytes, Entry | None], dict[bytes, Entry | None]]:
        """The files of a root that may not be the same in another snapshot, here and there. Raises `Missing`."""
        both = (self, other)
        listed: list[set[bytes]] = [set(decode_entries(self._store.get(each._roots[root]["changes"]))) for each in both]
        # Of one with more files than are listed only those count that are.
        partial = [paths for paths, each in zip(listed, both, strict=True) if each.is_partial(root)]
        paths = partial[0].intersection(*partial) if partial else listed[0] | listed[1]
        bases = [str(each._roots[root]["base"]) for each in both]
        if bases[0] != bases[1] and not partial:
            first, second = (set((self._store.get(base) if base else b"").split(b"\0")) for base in bases)
            paths |= {line.partition(b"\t")[2] for line in first ^ second}
        return self._listed(root, paths), other._listed(root, paths)

    def ignored(self, root: str) -> Ignored:
        """The paths in a root that git ignored. Raises `Missing` where the store has lost the list."""
        if root not in self._ignored:
            name = self._roots[root].get("ignored")
            self._ignored[root] = Ignored(self._store.get(name).split(b"\0") if name else ())
        return self._ignored[root]

    def with_files(self, more: Mapping[str, Mapping[bytes, Entry | None]]) -> Snapshot:
        """Another snapshot, stored, that lists more files of its roots. Raises `OSError`."""
        if not any(more.values()):
            return self
        roots: list[dict[str, Any]] = []
        for path, root in self._roots.items():
            changes = decode_entries(self._store.get(root["changes"])) | dict(more.get(path, {}))
            roots.append({**root, "changes": self._store.put(encode_entries(changes))})
        content = {
            "directories": self.directories,
            "whole_tree": self.is_whole_tree,
            "caps": self.caps,
            "roots": roots,
        }
        return Snapshot(self._store.put(json.dumps(content).encode()), self._store, content)

    def release(self) -> None:
        """Let go of what was read of the files; it is read again when it is asked for."""
        self._files.clear()
        self._ignored.clear()

    def is_hidden(self, root: str, path: bytes) -> bool:
        """Whether a file that is not listed may have been there: ignored, or beyond the limits."""
        return self.is_partial(root) or self.ignored(root).has(path)

    def is_like(self, other: Snapshot, root: str) -> bool:
        """Whether a root is known to be the same in another snapshot, without a look at its files."""
        if not (self.has(root) and other.has(root)):
            return False
        names = ("base", "changes", "partial")
        return all(self._roots[root][name] == other._roots[root][name] for name in names)


def load_snapshot(store: CheckpointStore, name: str) -> Snapshot:
    """Raises `UserError` for one that the store has lost."""
    try:
        return Snapshot(name, store, json.loads(store.get(name)))
    except (Missing, ValueError, KeyError, TypeError) as error:
        raise UserError("a checkpoint is damaged", hint="`codex-py checkpoints verify` says which") from error


def last_snapshot(store: CheckpointStore) -> Snapshot | None:
    """That of the last checkpoint; None where there is none, or it is damaged."""
    checkpoints = store.checkpoints()
    with suppress(UserError):
        return load_snapshot(store, checkpoints[-1].snapshot) if checkpoints else None
    return None


def area_of(cwd: Path, policy: SandboxPolicy, home: Path) -> Area:
    """The directories that turns in `cwd` may change under a policy, without the temporary directories."""
    directories = [str(cwd), *(str(root) for root in extra_roots(policy))]
    outer = [path for path in directories if not any(path.startswith(f"{other}/") for other in directories)]
    return Area(tuple(dict.fromkeys(outer)), isinstance(policy, DangerFullAccess), (f"{home}/",))


class Photographer:
    """Takes snapshots. `env` is the user's own environment, `known` as in `GitReader`. Blocks: for a thread."""

    def __init__(
        self, store: CheckpointStore, env: Mapping[str, str], caps: Caps, *, known: ProbeResults | None = None
    ) -> None:
        self._store = store
        self._env = env
        self._caps = caps
        self._known = known or ProbeResults()
        self._seen = load_cache(store)
        self._before = dict(self._seen)
        self._trees = GitTrees(store)

    def take(
        self,
        area: Area,
        policy: SandboxPolicy,
        named: Mapping[str, Sequence[bytes]],
        run: SnapshotRun | None = None,
        *,
        only_named: bool = False,
    ) -> Snapshot:
        """The state now, stored. `named` are the files of each root that are looked at whatever git ignores.

        With `only_named` no others are looked at. Raises `OSError` where the store cannot be written, and `Stopped`.
        """
        run = run or SnapshotRun()
        states: dict[str, TreeState] = {}
        waiting = [(path, True) for path in area.directories]
        while waiting and len(states) < _MAX_NESTED:
            path, is_top = waiting.pop(0)
            if not os.path.isdir(path):  # noqa: PTH112
                continue
            if only_named:
                state, nested = unread_tree(Path(path)), []
            else:
                state, nested = self._read(Path(path), area, policy, run, is_top=is_top)
            states.setdefault(state.path, state)
            waiting += [(inner, False) for inner in nested if inner not in states]
        roots = [
            self._stored(self._with_named(state, named.get(state.path, ()), outermost(states, state.path), run))
            for state in states.values()
        ]
        content = {"directories": area.directories, "whole_tree": area.whole_tree, "caps": self._caps, "roots": roots}
        name = self._store.put(json.dumps(content).encode())
        if self._seen != self._before:
            save_cache(self._store, self._seen)
            self._before = dict(self._seen)
        return Snapshot(name, self._store, content)

    def read_file(self, root: str, path: bytes, top: str, run: SnapshotRun | None = None) -> Entry | None:
        """The state of one file now, stored; None for what is not there. `top` is the root that lies furthest up."""
        reader = FileReader(self._store, self._seen, self._caps, run or SnapshotRun())
        try:
            with reader.within(root, top=top):
                return reader.read(path)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _read(
        self, path: Path, area: Area, policy: SandboxPolicy, run: SnapshotRun, *, is_top: bool
    ) -> tuple[TreeState, list[str]]:
        reader = FileReader(self._store, self._seen, self._caps, run)
        found = git_directories(path)
        is_git = found is not None and (is_top or found.root == path)
        if is_git:
            git = GitReader(path, self._env, policy, known=self._known, looks_below=False)
            try:
                top = git.root
                scope = "" if area.whole_tree or top == path or top is None else str(path.relative_to(top))
                run.git = git
                run.check()
                with git.shared_start():
                    return self._trees.read(git, scope, area.excluded, reader, run)
            except (UserError, ValueError):
                # git is not there, or may not be asked about this one: its files are still files.
                pass
        return read_directory(path, reader, self._caps, area.excluded)

    def _with_named(self, state: TreeState, named: Sequence[bytes], top: str, run: SnapshotRun) -> TreeState:
        listed = state.changes
        unread = [path for path in named if path not in listed or ((entry := listed[path]) and not entry.is_covered)]
        more = {path: self.read_file(state.path, path, top, run) for path in unread}
        return state._replace(changes={**state.changes, **more}) if more else state

    def _stored(self, state: TreeState) -> dict[str, Any]:
        changes = self._store.put(encode_entries(state.changes))
        return {**state._asdict(), "changes": changes, "uncovered": list(state.uncovered[:20])}


def changes_between(before: Snapshot, after: Snapshot) -> Iterator[Change]:
    """The files that differ, sorted by path in each root; roots that one of the two does not know are left out."""
    for root in before.roots:
        if not after.has(root) or before.is_like(after, root):
            continue
        first, second = before.differing(after, root)
        for path in sorted(first.keys() | second.keys()):
            # Of a directory with more files than are listed, a file that is not listed may be there.
            if (path not in first and before.is_partial(root)) or (path not in second and after.is_partial(root)):
                continue
            if not is_same(was := first.get(path), now := second.get(path)):
                yield Change(root, path, was, now)


def files_by_root(
    snapshot: Snapshot, roots: Iterable[str], *, with_new: bool = False
) -> dict[str, dict[bytes, Entry | None]]:
    """The files of a snapshot by the roots of another one, in which there may be repositories that are gone here.

    Those of repositories that are new here are left out, unless `with_new`.
    """
    found = {root: dict(snapshot.files(root)) if snapshot.has(root) else {} for root in roots}
    for new in [root for root in snapshot.roots if with_new and root not in found]:
        outer = max((root for root in found if new.startswith(f"{root}/")), key=len, default="")
        if outer:
            prefix = os.fsencode(new[len(outer) + 1 :]) + b"/"
            found[outer].update((prefix + path, entry) for path, entry in snapshot.files(new).items())
    for root in sorted((root for root in found if not snapshot.has(root)), key=len, reverse=True):
        outer = max((other for other in snapshot.roots if root.startswith(f"{other}/")), key=len, default="")
        if outer not in found:
            continue
        prefix = os.fsencode(root[len(outer) + 1 :]) + b"/"
        for path in [path for path in found[outer] if path.startswith(prefix)]:
            found[root][path[len(prefix) :]] = found[outer].pop(path)
    return found


def newly_hidden(before: Snapshot, after: Snapshot) -> dict[str, list[bytes]]:
    """The files of each root that were listed, and that git has been told to ignore since."""
    found: dict[str, list[bytes]] = {}
    for root in before.roots:
        if after.has(root) and not before.is_like(after, root) and before.ignored(root) != after.ignored(root):
            hidden, (files, listed) = after.ignored(root), before.differing(after, root)
            found[root] = [path for path, entry in files.items() if entry and path not in listed and hidden.has(path)]
    return found


def named_files(records: Sequence[object]) -> dict[str, tuple[bytes, ...]]:
    """The files of each root that are looked at whatever git ignores, by the log of a store."""
    found: dict[str, dict[bytes, None]] = {}
    for record in records:
        if isinstance(record, FirstWrite):
            found.setdefault(record.root, {}).update(dict.fromkeys(decode_entries(record.entry)))
    return {root: tuple(paths) for root, paths in found.items()}


def first_writes(records: Sequence[object]) -> dict[str, dict[bytes, Entry | None]]:
    """The state of each file, by root, before a patch first wrote it, according to the log of a store."""
    found: dict[str, dict[bytes, Entry | None]] = {}
    for record in records:
        if isinstance(record, FirstWrite) and record.turn:
            for path, entry in decode_entries(record.entry).items():
                found.setdefault(record.root, {}).setdefault(path, entry)
    return found

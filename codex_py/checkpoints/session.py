"""The checkpoints of a running session: taken while the model thinks, compared at the end of each turn."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from codex_py.checkpoints.entries import Entry, encode_entries, is_safe, outermost
from codex_py.checkpoints.file_reader import Caps, SnapshotRun, Stopped
from codex_py.checkpoints.journal import close_journal
from codex_py.checkpoints.snapshot import (
    Change,
    Photographer,
    Snapshot,
    area_of,
    changes_between,
    last_snapshot,
    named_files,
    newly_hidden,
)
from codex_py.checkpoints.store import (
    Checkpoint,
    CheckpointStore,
    FirstWrite,
    ForeignWrite,
    Missing,
    StoreLimits,
    prune_stores,
    store_of,
)
from codex_py.checkpoints.writers import WriteTimes, file_system_time
from codex_py.config.sections import CheckpointsConfig
from codex_py.core.turn_context import TurnContext
from codex_py.paths import is_directory
from codex_py.programs import ProbeResults
from codex_py.protocol.status import FilesChanged
from codex_py.text.display import first_names

_SHOWN: Final = 3
_WARNED: Final = "uncovered"
_MIB: Final = 1 << 20
# So long a snapshot of few files may take on a machine that is busy.
_SLOW_SECONDS: Final = 5.0
_POLL_SECONDS: Final = 0.05


def caps_of(settings: CheckpointsConfig) -> Caps:
    """The limits on what a snapshot stores of one directory."""
    return Caps(settings.max_files, settings.max_mib * _MIB, settings.max_file_mib * _MIB)


def limits_of(settings: CheckpointsConfig) -> StoreLimits:
    """How large the stores may grow."""
    return StoreLimits(settings.session_mib * _MIB, settings.total_mib * _MIB)


class TurnCheckpoints:
    """The `core.ports.Checkpointer` of a session. `env` is the user's own environment; `warn` shows a line once.

    `known` is shared with the other sandboxes of the session.
    """

    def __init__(
        self,
        home: Path,
        thread_id: str,
        env: Mapping[str, str],
        settings: CheckpointsConfig,
        *,
        known: ProbeResults | None = None,
        warn: Callable[[str], None],
    ) -> None:
        self._home = home
        self._thread_id = thread_id
        self._env = env
        self._limits = limits_of(settings)
        self._warn = warn
        self._store = CheckpointStore(store_of(home, thread_id))
        self._photographer = Photographer(self._store, env, caps_of(settings), known=known)
        self._wait_seconds = settings.wait_ms / 1000
        self._named: dict[str, tuple[bytes, ...]] | None = None
        self._turn: TurnContext | None = None
        self._taking: asyncio.Task[None] | None = None
        self._run = SnapshotRun()
        self._times = WriteTimes("")
        self._began: Snapshot | None = None
        """The state before the turn, as far as it is known; its files have been looked at when `_taking` is done."""
        self._is_complete = False
        """Whether all files were looked at for `_began`."""
        self._last: Snapshot | None = None
        self._has_written = False
        self._failure = ""
        """Why the state cannot be stored; said when something is about to be written."""
        self._mixed: set[str] = set()
        """Files of patches that somebody else had written since the turn began."""
        self._has_pruned = False
        self._lock = asyncio.Lock()

    def begin(self, turn: TurnContext) -> asyncio.Task[None]:
        """Start to put the state of the workspace on record; to be awaited where all of it is needed.

        Warns where that fails. In a session without checkpoints it is kept once the turn is about to write.
        """
        self._turn, self._began, self._is_complete, self._has_written = turn, None, False, False
        self._failure = ""
        self._mixed = set()
        self._run, self._times = SnapshotRun(), WriteTimes(str(turn.cwd))
        self._taking = asyncio.create_task(self._begin(turn, self._run))
        return self._taking

    async def _begin(self, turn: TurnContext, run: SnapshotRun) -> None:
        async with self._lock:
            await asyncio.to_thread(self._open)
        began = await asyncio.to_thread(self._take, turn, run)
        if began is None:
            return
        async with self._lock:
            self._began, self._is_complete = began, True
            if self._has_written or self._store.exists:
                await asyncio.to_thread(self._record_beginning, turn, began)

    def _record_beginning(self, turn: TurnContext, began: Snapshot) -> None:
        self._record("begin", turn, began)
        if lines := began.uncovered():
            self._warn_once(lines)

    def _open(self) -> None:
        if self._named is None:
            # What a rewind that was killed has left behind would be taken for the user's.
            with suppress(OSError):
                close_journal(self._store)
            self._named = named_files(self._store.records())
            self._last = last_snapshot(self._store)

    async def _is_done(self, taking: asyncio.Task[Any], run: SnapshotRun) -> bool:
        """Wait for a snapshot: longer where there is little to look at, since only the machine is slow then."""
        until = time.monotonic() + _SLOW_SECONDS
        done, _ = await asyncio.wait([taking], timeout=self._wait_seconds)
        while not (done or run.is_large or time.monotonic() > until):
            done, _ = await asyncio.wait([taking], timeout=_POLL_SECONDS)
        return bool(done)

    def _warn_once(self, uncovered: Sequence[str]) -> None:
        """Say what is not covered; of a session that is resumed, not again what was said before."""
        known = self._store.read_note(_WARNED).decode(errors="replace").split("\0")
        if set(uncovered) <= set(known):
            return
        with suppress(OSError):
            self._store.write_note(_WARNED, "\0".join(dict.fromkeys([*known, *uncovered])).encode(errors="replace"))
        shown = first_names(uncovered, _SHOWN)
        self._warn(f"/undo does not cover {shown}; `[checkpoints]` of the configuration sets the limits")

    async def note_writes(self, paths: Sequence[Path]) -> None:
        """Something is about to be written; of `paths` even what git ignores is put on record."""
        turn, taking = self._turn, self._taking
        if turn is None or taking is None:
            return
        is_done = await self._is_done(taking, self._run) if self._run.opened is None else taking.done()
        async with self._lock:
            if not self._has_written:
                self._has_written = True
                await asyncio.to_thread(self._first_write, turn, is_done=is_done)
            self._times.begin()
            if self._began is not None and paths:
                await asyncio.to_thread(self._note_paths, paths, self._began)

    def _first_write(self, turn: TurnContext, *, is_done: bool) -> None:
        if is_done:
            if self._failure:
                self._warn(self._failure)
            elif self._began is not None and not self._store.exists:
                self._record_beginning(turn, self._began)
            return
        # From here on files are recorded only if they are older than this.
        moment = file_system_time(str(turn.cwd))
        self._run.opened = moment.now if moment else time.time_ns()
        self._began = self._partial(turn, "begin")
        self._warn_once(
            [
                f"what commands change in `{turn.cwd}` before all of its files are on record, "
                f"which takes longer than {self._wait_seconds:g} s (`wait_ms`)"
            ]
        )

    def begin_writes(self) -> bool:
        """Something else is about to be written, in a turn that has written before; whether nothing was just now."""
        return self._has_written and self._times.begin()

    def end_writes(self) -> None:
        """No call of the turn writes any more, for now."""
        self._times.end()

    async def end(self) -> FilesChanged | None:
        """Put the state at the end of the turn on record; what has changed in it, None for nothing."""
        turn, taking = self._turn, self._taking
        self._turn = self._taking = None
        if turn is None or taking is None:
            return None
        if not taking.done() and (not self._has_written or self._run.opened is not None):
            self._run.stop()
        await taking
        async with self._lock:
            self._times.end()
            if self._began is None or not self._has_written:
                await asyncio.to_thread(self._end_unwritten, turn)
                return None
            ended = None
            if self._is_complete:
                run = SnapshotRun()
                last = asyncio.ensure_future(asyncio.to_thread(self._take, turn, run))
                if not await self._is_done(last, run):
                    run.stop()
                ended = await last
            return await asyncio.to_thread(self._end, turn, self._began, ended)

    def _take(self, turn: TurnContext, run: SnapshotRun) -> Snapshot | None:
        """The state now; None where it cannot be stored, or was stopped."""
        try:
            area = area_of(turn.cwd, turn.sandbox_policy, self._home)
            snapshot = self._photographer.take(area, turn.sandbox_policy, self._named or {}, run)
            return self._follow_hidden(snapshot, self._last) if self._last is not None else snapshot
        except Stopped:
            return None
        except (OSError, Missing) as error:
            self._cannot_store(error)
            return None

    def _partial(self, turn: TurnContext, kind: str) -> Snapshot | None:
        """Record the state of no files but those that patches write."""
        area = area_of(turn.cwd, turn.sandbox_policy, self._home)
        try:
            snapshot = self._photographer.take(area, turn.sandbox_policy, self._named or {}, only_named=True)
        except OSError as error:
            self._cannot_store(error)
            return None
        return snapshot if self._record(kind, turn, snapshot) else None

    def _record(self, kind: str, turn: TurnContext, snapshot: Snapshot) -> bool:
        try:
            self._store.append(Checkpoint(kind, turn.turn_id, snapshot.name, time.time()))
        except OSError as error:
            self._cannot_store(error)
            return False
        self._last = snapshot
        return True

    def _cannot_store(self, error: OSError | Missing) -> None:
        reason = "part of the store is gone" if isinstance(error, Missing) else (error.strerror or str(error)).lower()
        self._failure = f"this turn cannot be undone: its checkpoint cannot be stored: {reason}"
        if self._has_written:
            self._warn(self._failure)

    def _follow_hidden(self, snapshot: Snapshot, last: Snapshot) -> Snapshot:
        """The snapshot with the files too that git has been told to ignore since the last; they stay looked at."""
        more: dict[str, dict[bytes, Entry | None]] = {}
        for root, paths in newly_hidden(last, snapshot).items():
            top = outermost(snapshot.roots, root)
            more[root] = {path: self._photographer.read_file(root, path, top) for path in paths}
            if more[root]:
                self._store.append(FirstWrite("", root, encode_entries(more[root])))
                named = self._named or {}
                self._named = {**named, root: (*named.get(root, ()), *paths)}
        return snapshot.with_files(more)

    def _end_unwritten(self, turn: TurnContext) -> None:
        # Nothing of this turn: what changed meanwhile, somebody else did.
        if self._store.exists:
            if self._began is not None:
                self._record("end", turn, self._began)
        elif is_directory(self._store.directory):
            self._store.forget()

    def _end(self, turn: TurnContext, began: Snapshot, ended: Snapshot | None) -> FilesChanged | None:
        if ended is None:
            ended = self._partial(turn, "end")
        elif not self._record("end", turn, ended):
            ended = None
        if ended is None:
            return None
        try:
            changes = self._own_changes(turn, began, ended)
        except (OSError, Missing):
            changes = []
        self._keep_bounds()
        deleted = sum(change.after is None for change in changes)
        ended.release()
        return FilesChanged(turn.turn_id, len(changes) - deleted, deleted) if changes else None

    def _own_changes(self, turn: TurnContext, began: Snapshot, ended: Snapshot) -> list[Change]:
        """The changes of the turn; those of others are put on record."""
        own: list[Change] = []
        others: dict[str, dict[bytes, Entry | None]] = {}
        for change in changes_between(began, ended):
            path = f"{change.root}/{os.fsdecode(change.path)}"
            if path in self._mixed:
                self._store.append(ForeignWrite("", change.root, encode_entries({change.path: change.after})))
            elif self._times.was_other(path):
                others.setdefault(change.root, {})[change.path] = change.after
                continue
            own.append(change)
        for root, entries in others.items():
            self._store.append(ForeignWrite(turn.turn_id, root, encode_entries(entries)))
        return own

    def _note_paths(self, paths: Sequence[Path], began: Snapshot) -> None:
        named = self._named if self._named is not None else {}
        self._named = named
        for path in paths:
            root = max((root for root in began.roots if str(path).startswith(f"{root}/")), key=len, default=None)
            if root is None or self._turn is None:
                continue
            if self._times.was_other(str(path)):
                self._mixed.add(str(path))
            inside = os.fsencode(str(path)[len(root) + 1 :])
            if inside in named.get(root, ()) or not is_safe(inside):
                continue
            try:
                entry = self._photographer.read_file(root, inside, outermost(began.roots, root), self._run)
                self._store.append(FirstWrite(self._turn.turn_id, root, encode_entries({inside: entry})))
            except OSError as error:
                self._warn(f"`{path}` cannot be brought back: {(error.strerror or str(error)).lower()}")
                continue
            named[root] = (*named.get(root, ()), inside)

    def _keep_bounds(self) -> None:
        dropped = self._store.drop_oldest(self._limits.session)
        if dropped:
            self._warn(
                f"the {dropped} oldest checkpoints of this session were dropped: "
                f"they took more than {self._limits.session // _MIB} MiB"
            )
        if not self._has_pruned:
            self._has_pruned = True
            removed = prune_stores(self._home, self._limits.total, spare=self._thread_id)
            if removed:
                self._warn(
                    f"the checkpoints of the {len(removed)} oldest sessions were removed: "
                    f"all together took more than {self._limits.total // _MIB} MiB"
                )

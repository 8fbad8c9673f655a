"""The checkpoints of a running session: taken while the model thinks, compared at the end of each turn."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.checkpoints.entries import Entry, encode_entries, is_safe, outermost
from codex_py.checkpoints.file_reader import Caps
from codex_py.checkpoints.journal import close_journal
from codex_py.checkpoints.snapshot import (
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
    Missing,
    StoreLimits,
    prune_stores,
    store_of,
)
from codex_py.config.sections import CheckpointsConfig
from codex_py.core.turn_context import TurnContext
from codex_py.programs import ProbeResults
from codex_py.protocol.status import FilesChanged
from codex_py.text.display import first_names

_SHOWN: Final = 3
_WARNED: Final = "uncovered"
_MIB: Final = 1 << 20


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
        self._named: dict[str, tuple[bytes, ...]] | None = None
        self._turn: TurnContext | None = None
        self._began: Snapshot | None = None
        self._last: Snapshot | None = None
        self._has_written = False
        self._has_pruned = False
        self._lock = asyncio.Lock()

    async def begin(self, turn: TurnContext) -> None:
        """Put the state of the workspace on record. Warns where that fails."""
        async with self._lock:
            self._turn, self._began, self._has_written = turn, None, False
            self._began = await asyncio.to_thread(self._take, turn, "begin")
        if self._began is not None and (lines := self._began.uncovered()):
            await asyncio.to_thread(self._warn_once, lines)

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
        self._has_written = True
        if paths and self._began is not None:
            async with self._lock:
                await asyncio.to_thread(self._note_paths, paths, self._began)

    async def end(self) -> FilesChanged | None:
        """Put the state at the end of the turn on record; what has changed in it, None for nothing."""
        turn, began = self._turn, self._began
        self._turn = self._began = None
        if turn is None or began is None:
            return None
        async with self._lock:
            return await asyncio.to_thread(self._end, turn, began)

    def _take(self, turn: TurnContext, kind: str) -> Snapshot | None:
        try:
            if self._named is None:
                # What a rewind that was killed has left behind would be taken for the user's.
                close_journal(self._store)
                self._named = named_files(self._store.records())
                self._last = last_snapshot(self._store)
            area = area_of(turn.cwd, turn.sandbox_policy, self._home)
            snapshot = self._photographer.take(area, turn.sandbox_policy, self._named)
            if self._last is not None:
                snapshot = self._follow_hidden(snapshot, self._last)
            self._store.append(Checkpoint(kind, turn.turn_id, snapshot.name, time.time()))
            self._last = snapshot
        except (OSError, Missing) as error:
            gone = isinstance(error, Missing)
            reason = "part of the store is gone" if gone else (error.strerror or str(error)).lower()
            self._warn(f"this turn cannot be undone: its checkpoint cannot be stored: {reason}")
            return None
        return snapshot

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

    def _end(self, turn: TurnContext, began: Snapshot) -> FilesChanged | None:
        if not self._has_written:
            # Nothing of this turn: what changed meanwhile, somebody else did.
            try:
                self._store.append(Checkpoint("end", turn.turn_id, began.name, time.time()))
            except OSError:
                return None
            return None
        ended = self._take(turn, "end")
        if ended is None:
            return None
        try:
            changes = list(changes_between(began, ended))
        except Missing:
            changes = []
        self._keep_bounds()
        deleted = sum(change.after is None for change in changes)
        ended.release()
        return FilesChanged(turn.turn_id, len(changes) - deleted, deleted) if changes else None

    def _note_paths(self, paths: Sequence[Path], began: Snapshot) -> None:
        named = self._named if self._named is not None else {}
        self._named = named
        for path in paths:
            root = max((root for root in began.roots if str(path).startswith(f"{root}/")), key=len, default=None)
            if root is None or self._turn is None:
                continue
            inside = os.fsencode(str(path)[len(root) + 1 :])
            if inside in named.get(root, ()) or not is_safe(inside):
                continue
            try:
                entry = self._photographer.read_file(root, inside, outermost(began.roots, root))
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

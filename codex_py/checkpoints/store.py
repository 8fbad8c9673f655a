"""The store of one session: contents by their hash, compressed, and a log of its checkpoints.

It lies in `$CODEX_HOME/checkpoints/<thread>/`: `objects/` has the contents, `log.jsonl` one record a line, appended.
Everything appears whole under its name or not at all, so that a run that is killed leaves nothing to repair.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, cast

from codex_py.checkpoints.entries import Entry, decode_entries
from codex_py.errors import UserError
from codex_py.paths import is_directory, is_there, make_private_dir, open_private
from codex_py.replace_file import replace_file
from codex_py.rollout.files import CHECKPOINTS, ThreadLock
from codex_py.text.compression import COMPRESSION_ERRORS, pack, unpack

_LOG: Final = "log.jsonl"
_OBJECTS: Final = "objects"
_CACHE: Final = "seen"
_BEGINNINGS: Final = ("begin", "dropped")
_MAX_OBJECT: Final = 1 << 31


class Missing(Exception):
    """A content is not in the store, or damaged there."""


class Checkpoint(NamedTuple):
    """One record of the log. `kind` is `begin` or `end` of a turn.

    Before a rewind it is `undo`, or `undo_both` when the conversation goes back too, and `rewound` after it; one of the
    conversation alone is `talk`, and has no snapshot. One that is `dropped` says that there was the beginning of a
    turn; its snapshot is gone. `turn` is the id of the turn, of a rewind that of the turn it goes back to. `time` is in
    seconds since the epoch.
    """

    kind: str
    turn: str
    snapshot: str
    time: float


class FirstWrite(NamedTuple):
    """The state of a file, in the form of `encode_entries`, before a patch first wrote it in a turn.

    Without a turn it only says that the file is included in snapshots from then on, even if git ignores it.
    """

    turn: str
    root: str
    entry: bytes


class ForeignWrite(NamedTuple):
    """The state of files, in the form of `encode_entries`, that somebody else wrote while a turn ran."""

    turn: str
    root: str
    others: bytes

    def states(self) -> dict[str, Entry | None]:
        """The files by their absolute paths."""
        return {f"{self.root}/{os.fsdecode(path)}": entry for path, entry in decode_entries(self.others).items()}


LogRecord: TypeAlias = Checkpoint | FirstWrite | ForeignWrite


class StoreLimits(NamedTuple):
    """How large the stores may grow, in bytes: that of one session, and all together."""

    session: int
    total: int


def store_of(home: Path, thread_id: str) -> Path:
    """The directory of a session's store, there or not."""
    return home / CHECKPOINTS / thread_id


class CheckpointStore:
    """Contents and checkpoints of one session. Blocks: for a thread. Raises `OSError` where the disk fails."""

    def __init__(self, directory: Path) -> None:
        self.directory: Final = directory
        self._objects = str(directory / _OBJECTS)
        self._known: set[str] = set()
        self._size: int | None = None

    @property
    def exists(self) -> bool:
        return is_there(self.directory / _LOG)

    def put(self, content: bytes) -> str:
        """Store a content and return its name. A content that is already stored is not written again."""
        name = hashlib.sha256(content).hexdigest()
        if name in self._known:
            return name
        path = self._path(name)
        if not os.path.exists(path):  # noqa: PTH110 - many, and `Path` is slow
            size = self.size()
            packed = pack(content)
            try:
                replace_file(path, packed)
            except FileNotFoundError:
                make_private_dir(Path(path).parent)
                replace_file(path, packed)
            self._size = size + len(packed)
        self._known.add(name)
        return name

    def get(self, name: str) -> bytes:
        """A content by its name. Raises `Missing` also for one that is damaged."""
        try:
            packed = Path(self._path(name)).read_bytes()
            content = unpack(packed, _MAX_OBJECT)
        except (OSError, *COMPRESSION_ERRORS) as error:
            raise Missing(name) from error
        if hashlib.sha256(content).hexdigest() != name:
            raise Missing(name)
        return content

    def has(self, name: str) -> bool:
        if name not in self._known and os.path.exists(self._path(name)):  # noqa: PTH110
            self._known.add(name)
        return name in self._known

    def forget(self) -> None:
        """Remove everything."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self._known.clear()
        self._size = None

    def append(self, record: LogRecord) -> None:
        """Add a record to the log."""
        make_private_dir(self.directory)
        descriptor = open_private(self.directory / _LOG, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW)
        try:
            size = os.fstat(descriptor).st_size
            # A run that was killed may have left half a line.
            glue = b"\n" if size and os.pread(descriptor, 1, size - 1) != b"\n" else b""
            raw = glue + _line_of(record).encode() + b"\n"
            if os.write(descriptor, raw) < len(raw):
                os.ftruncate(descriptor, size)
                raise OSError(28, "no space left on device", str(self.directory / _LOG))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def records(self) -> list[LogRecord]:
        """The log, oldest first; lines that are not whole are passed over."""
        try:
            lines = (self.directory / _LOG).read_bytes().splitlines()
        except FileNotFoundError:
            return []
        return [record for line in lines if (record := _record_in(line)) is not None]

    def checkpoints(self) -> list[Checkpoint]:
        """Those that are there, oldest first."""
        return [record for record in self.records() if isinstance(record, Checkpoint) and record.snapshot]

    def write_note(self, name: str, content: bytes) -> None:
        """Keep a file beside the contents, whole or not at all."""
        make_private_dir(self.directory)
        replace_file(self.directory / name, content)

    def read_note(self, name: str) -> bytes:
        """A file beside the contents; empty where there is none."""
        try:
            return (self.directory / name).read_bytes()
        except OSError:
            return b""

    def remove_note(self, name: str) -> None:
        (self.directory / name).unlink(missing_ok=True)

    def size(self) -> int:
        """Bytes on the disk."""
        if self._size is None:
            self._size = sum(size for _, size in self._stored())
        return self._size

    def verify(self) -> list[str]:
        """Describe each fault; an empty list when everything the checkpoints need is stored and intact."""
        faults: list[str] = []
        for checkpoint in self.checkpoints():
            for name in sorted(self._needed(checkpoint.snapshot, faults)):
                try:
                    self.get(name)
                except Missing:
                    faults.append(f"checkpoint of turn `{checkpoint.turn}`: content `{name}` is missing or damaged")
        return list(dict.fromkeys(faults))

    def drop_oldest(self, limit: int) -> int:
        """Forget the oldest checkpoints until the store is not larger than `limit`; how many were forgotten."""
        dropped = 0
        while self.size() > limit:
            records = self.records()
            there = [at for at, record in enumerate(records) if isinstance(record, Checkpoint) and record.snapshot]
            # The last one is what the next rewind compares with.
            if len(there) < 2:
                break
            for at in there[: max(1, len(there) // 8)]:
                record = records[at]
                if isinstance(record, Checkpoint):
                    records[at] = record._replace(kind="dropped" if record.kind == "begin" else "", snapshot="")
                    dropped += 1
            records = [record for record in records if not isinstance(record, Checkpoint) or record.kind]
            self._rewrite(records)
            self._sweep(records)
        return dropped

    def _rewrite(self, records: Sequence[LogRecord]) -> None:
        replace_file(self.directory / _LOG, "".join(f"{_line_of(record)}\n" for record in records).encode())

    def _sweep(self, records: Sequence[LogRecord]) -> None:
        needed: set[str] = set()
        for record in records:
            if isinstance(record, FirstWrite):
                needed |= _stored_in(record.entry)
            elif isinstance(record, Checkpoint) and record.snapshot:
                needed |= self._needed(record.snapshot, [])
        for path, size in list(self._stored()):
            if path.parent.name + path.name not in needed:
                path.unlink(missing_ok=True)
                self._known.discard(path.parent.name + path.name)
                self._size = self.size() - size

    def _needed(self, snapshot: str, faults: list[str]) -> set[str]:
        """The names of all contents that a snapshot is made of."""
        names = {snapshot}
        try:
            for root in json.loads(self.get(snapshot))["roots"]:
                names |= {name for name in (root["changes"], root["base"], root.get("ignored")) if name}
                names |= _stored_in(self.get(root["changes"]))
        except (Missing, ValueError, KeyError, TypeError) as error:
            faults.append(f"snapshot `{snapshot}` cannot be read: {error}")
        return names

    def _stored(self) -> Iterator[tuple[Path, int]]:
        top = Path(self._objects)
        if not is_directory(top):
            return
        for directory in sorted(top.iterdir()):
            for path in sorted(directory.iterdir()):
                with suppress(OSError):
                    yield path, path.stat().st_size

    def _path(self, name: str) -> str:
        return f"{self._objects}/{name[:2]}/{name[2:]}"


def load_cache(store: CheckpointStore) -> dict[str, Any]:
    """The notes of an earlier run about the files it stored; empty if they are lost."""
    try:
        value = json.loads(unpack(store.read_note(_CACHE), 1 << 30))
    except (ValueError, *COMPRESSION_ERRORS):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def save_cache(store: CheckpointStore, value: dict[str, Any]) -> None:
    """Keep such notes. Raises `OSError`."""
    store.write_note(_CACHE, pack(json.dumps(value).encode()))


def was_used_since(store: CheckpointStore, moment: float) -> bool:
    """Whether something was put on record after a time in seconds since the epoch."""
    try:
        return (store.directory / _LOG).stat().st_mtime >= moment
    except OSError:
        return False


def is_pruned(directory: Path) -> bool:
    """Whether nothing is left in a store but the record of what was dropped."""
    return is_there(directory / _LOG) and not is_there(directory / _OBJECTS)


def _empty(store: CheckpointStore) -> None:
    """Forget all checkpoints of a store.

    The record of their turns stays: a rewind to one is refused, and does not bring back the state of a later one.
    """
    begun = [record for record in store.records() if isinstance(record, Checkpoint) and record.kind in _BEGINNINGS]
    dropped = [record._replace(kind="dropped", snapshot="") for record in begun]
    try:
        replace_file(store.directory / _LOG, "".join(f"{_line_of(record)}\n" for record in dropped).encode())
    except OSError:
        # No space for the record.
        shutil.rmtree(store.directory, ignore_errors=True)
        return
    shutil.rmtree(store.directory / _OBJECTS, ignore_errors=True)
    with suppress(OSError):
        (store.directory / _CACHE).unlink(missing_ok=True)


def prune_stores(home: Path, limit: int, *, spare: str = "") -> list[str]:
    """Empty whole stores, that used longest ago first, until all together are not larger than `limit` bytes.

    That of the session `spare` stays, and those of sessions that a process has open. Gives back the ids of the sessions
    whose stores are gone.
    """
    top = home / CHECKPOINTS
    if not is_directory(top):
        return []
    stores = [CheckpointStore(path) for path in top.iterdir() if is_directory(path) and not is_pruned(path)]
    found = [(store.directory.stat().st_mtime, store.directory, store) for store in stores]
    total = sum(store.size() for _, _, store in found)
    removed: list[str] = []
    for _, path, store in sorted(found, key=lambda each: each[:2]):
        if total <= limit:
            break
        if path.name == spare:
            continue
        try:
            writer = ThreadLock(home, path.name)
        except UserError:
            # The session is open, and its next checkpoint is a difference to what is stored.
            continue
        total -= store.size()
        _empty(store)
        removed.append(path.name)
        writer.release()
    return removed


def _line_of(record: LogRecord) -> str:
    fields = record._asdict().items()
    return json.dumps({key: os.fsdecode(value) if isinstance(value, bytes) else value for key, value in fields})


def _record_in(line: bytes) -> LogRecord | None:
    try:
        value: Any = json.loads(line)
        if "others" in value:
            return ForeignWrite(str(value["turn"]), str(value["root"]), os.fsencode(value["others"]))
        if "entry" in value:
            return FirstWrite(str(value["turn"]), str(value["root"]), os.fsencode(value["entry"]))
        return Checkpoint(str(value["kind"]), str(value["turn"]), str(value["snapshot"]), float(value["time"]))
    except (ValueError, KeyError, TypeError):
        return None


def _stored_in(entries: bytes) -> set[str]:
    """The names of the contents in a list of files."""
    fields = (line.partition(b"\t")[0].split(b" ") for line in entries.split(b"\0") if line)
    return {field[2].decode() for field in fields if len(field) == 4 and field[2] != b"-"}


def dropped_checkpoint() -> UserError:
    """The error for a turn whose state is gone."""
    return UserError(
        "the checkpoint of that turn was dropped to keep the store within its bounds",
        hint="a rewind with `--conversation` leaves the files alone; `codex-py checkpoints list` shows what there is",
    )


def require_store(home: Path, thread_id: str) -> CheckpointStore:
    """The store of a session. Raises `UserError` where it has none."""
    store = CheckpointStore(store_of(home, thread_id))
    if not store.exists:
        raise UserError(
            f"session `{thread_id}` has no checkpoints",
            hint="they are made before a turn changes files, unless the session is read-only or ephemeral",
        )
    return store

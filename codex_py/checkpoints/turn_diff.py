"""The changes of a turn, as a diff."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from codex_py.checkpoints.restore import Contents
from codex_py.checkpoints.rewind import git_readers, relative_path, text_diff
from codex_py.checkpoints.snapshot import Snapshot, changes_between, load_snapshot
from codex_py.checkpoints.store import Checkpoint, CheckpointStore, dropped_checkpoint
from codex_py.errors import UserError
from codex_py.programs import ProbeResults


def turn_diff(store: CheckpointStore, turn: str, *, env: Mapping[str, str], cwd: Path) -> Iterator[str]:
    """The diff of each file that a turn changed, between its beginning and its end, by whatever means.

    Raises `UserError` for a turn whose end is not known.
    """
    records = [record for record in store.records() if isinstance(record, Checkpoint) and record.turn == turn]
    found = {record.kind: record.snapshot for record in records}
    if "dropped" in found:
        raise dropped_checkpoint()
    if "begin" not in found:
        return
    if "end" not in found:
        raise UserError("the end of that turn is not on record", hint="it runs, or was killed")
    before, after = load_snapshot(store, found["begin"]), load_snapshot(store, found["end"])
    yield from diff_between(store, before, after, env=env, cwd=cwd)


def diff_between(
    store: CheckpointStore, before: Snapshot, after: Snapshot, *, env: Mapping[str, str], cwd: Path
) -> Iterator[str]:
    """The diff of each file that differs."""
    contents = Contents(store, git_readers(after, env, ProbeResults()))
    for change in changes_between(before, after):
        name = relative_path(cwd, change.root, change.path)
        contents.load(change.root, filter(None, (change.before, change.after)))
        diff = text_diff(contents, change.root, change.before, change.after, name)
        yield f"diff --git a/{name} b/{name}\n{diff}"
        contents.forget()

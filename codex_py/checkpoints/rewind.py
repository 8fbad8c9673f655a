"""Rewinding: from a turn's number to the plan for its files, and what the session file says of the rewind.

The plan is made from a fresh snapshot, which is itself a checkpoint: `to_latest` goes back to it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.checkpoints.entries import Entry, changed_at, encode_entries, is_same, outermost
from codex_py.checkpoints.file_reader import OVERTAKEN
from codex_py.checkpoints.journal import (
    Journal,
    close_journal,
    directories_of,
    draft_prefix,
    interrupted_states,
    write_journal,
)
from codex_py.checkpoints.restore import (
    Contents,
    Plan,
    Step,
    StepType,
    WriteRules,
    apply_plan,
    check_contents,
    moved_heads,
    plan_root,
)
from codex_py.checkpoints.snapshot import (
    Area,
    Photographer,
    Snapshot,
    files_by_root,
    first_writes,
    load_snapshot,
    named_files,
)
from codex_py.checkpoints.store import Checkpoint, CheckpointStore, FirstWrite, LogRecord, Missing, dropped_checkpoint
from codex_py.checkpoints.trees import missing_blobs
from codex_py.checkpoints.writers import OthersStates
from codex_py.errors import UserError
from codex_py.programs import ProbeResults
from codex_py.protocol.policy import DangerFullAccess, SandboxPolicy, WorkspaceWrite
from codex_py.services.git import GitReader
from codex_py.text.diff import unified_diff

_MAX_DIFF_SOURCE: Final = 1 << 20
# How much a clock of a file system may be ahead.
_SLACK_SECONDS: Final = 0.5


class Workspace(NamedTuple):
    """The store, the directories and the policy of a rewind; `known` is shared by the sandboxes of git."""

    store: CheckpointStore
    photographer: Photographer
    area: Area
    policy: SandboxPolicy
    env: Mapping[str, str]
    cwd: Path
    known: ProbeResults


class RewindTarget(NamedTuple):
    """A checkpoint to go back to: its snapshot, when it was taken, and where it stands in the log."""

    snapshot: Snapshot
    time: float
    position: int
    turn: str


class FileRewind(NamedTuple):
    """A rewind of files that is planned, or was carried out."""

    plan: Plan
    target: RewindTarget | None
    before: Snapshot | None
    notices: tuple[str, ...] = ()


def open_workspace(
    store: CheckpointStore, target: RewindTarget, *, home: Path, env: Mapping[str, str], cwd: Path
) -> Workspace:
    """What a rewind to `target` works on, outside of a running session: the directories its snapshot is of."""
    snapshot = target.snapshot
    area = Area(snapshot.directories, snapshot.is_whole_tree, (f"{home}/",))
    policy = DangerFullAccess() if snapshot.is_whole_tree else WorkspaceWrite()
    known = ProbeResults()
    return Workspace(store, Photographer(store, env, snapshot.caps, known=known), area, policy, env, cwd, known)


def find_target(store: CheckpointStore, turns: Sequence[str]) -> RewindTarget | None:
    """The state before the first of `turns`, ids in their order; None when none of them has changed files.

    Raises `UserError` when that checkpoint was dropped.
    """
    first: dict[str, tuple[int, Checkpoint]] = {}
    for position, record in enumerate(store.records()):
        if isinstance(record, Checkpoint) and record.kind in ("begin", "dropped"):
            # The second one of a turn knows more of the same moment.
            first[record.turn] = (first.get(record.turn, (position,))[0], record)
    for turn in turns:
        if turn not in first:
            continue
        position, record = first[turn]
        if record.kind == "dropped":
            raise dropped_checkpoint()
        return RewindTarget(load_snapshot(store, record.snapshot), record.time, position, record.turn)
    return None


class LastRewind(NamedTuple):
    """What the last rewind of a session was: where its files were before, and whether the conversation went back."""

    files: RewindTarget | None
    conversation: bool


def find_latest(store: CheckpointStore) -> LastRewind | None:
    """The last rewind that the store knows; None when it knows of none."""
    records = store.records()
    for position in range(len(records) - 1, -1, -1):
        record = records[position]
        if not isinstance(record, Checkpoint) or record.kind not in ("undo", "undo_both", "talk"):
            continue
        if not record.snapshot:
            return LastRewind(None, conversation=True)
        target = RewindTarget(load_snapshot(store, record.snapshot), record.time, position, record.turn)
        return LastRewind(target, record.kind == "undo_both")
    return None


def note_conversation(store: CheckpointStore, turn: str) -> None:
    """Put a rewind of the conversation alone on record, so that it is the one that is undone next."""
    if store.exists:
        store.append(Checkpoint("talk", turn, "", time.time()))


def plan_files(workspace: Workspace, target: RewindTarget | None) -> FileRewind:
    """Plan how a rewind to `target` changes the files. Takes a snapshot and writes nothing into the workspace."""
    if target is None:
        return FileRewind(Plan(()), None, None)
    try:
        return _plan(workspace, target)
    except Missing as error:
        raise UserError("a checkpoint is damaged", hint="`codex-py checkpoints verify` says which") from error


def _plan(workspace: Workspace, target: RewindTarget) -> FileRewind:
    store = workspace.store
    records = store.records()
    try:
        now = workspace.photographer.take(workspace.area, workspace.policy, named_files(records))
    except OSError as error:
        raise _cannot_store(error) from error
    written_since = first_writes(records[target.position :])
    others = OthersStates(store, records[target.position :], target.time)
    ended, last_known = _last_known(store, records)
    roots = target.snapshot.roots
    current_files = files_by_root(now, roots)
    known = [(known, files_by_root(known, roots, with_new=True)) for known in last_known]
    steps: list[Step] = []
    uncovered: list[tuple[str, bytes]] = []
    for root in roots:
        wanted = _wanted(target.snapshot, root, written_since.get(root, {}))
        current = current_files[root]
        gone = [path for path, entry in wanted.items() if entry and not current.get(path)]
        current |= _on_disk(workspace, target.snapshot, root, gone)
        states = [
            # Of one with more files than are listed, a file that is not listed may be as it was.
            {**current, **files[root]} if snapshot.has(root) and snapshot.is_partial(root) else files[root]
            for snapshot, files in known
        ]
        own, never_stored = plan_root(root, wanted, states, current)
        for step in own:
            path = f"{root}/{os.fsdecode(step.path)}"
            if not (step.target or step.path in wanted or not target.snapshot.is_hidden(root, step.path)):
                continue
            is_unlisted = any(
                snapshot.has(root) and snapshot.is_partial(root) and step.path not in files[root]
                for snapshot, files in known
            )
            is_newer = is_unlisted and step.now is not None and changed_at(path) / 1e9 > ended + _SLACK_SECONDS
            steps.append(step._replace(type="conflict") if is_newer or others.has(path, step.now) else step)
        uncovered += never_stored
    plan = check_contents(Plan(tuple(steps), (), tuple(uncovered)), _contents(workspace, target.snapshot))
    return FileRewind(plan, target, now, tuple(moved_heads(target.snapshot, now)))


def _wanted(target: Snapshot, root: str, written: Mapping[bytes, Entry | None]) -> dict[bytes, Entry | None]:
    """The files of a root as they were; `written` is the state of some before a patch first wrote them since."""
    found = dict(target.files(root))
    for path, entry in written.items():
        if path not in found:
            # What was not listed was ignored, or was not there: then a patch has not written it first.
            if target.is_hidden(root, path):
                found[path] = entry
        elif (was := found[path]) and not was.is_covered and (was.mark == OVERTAKEN or is_same(was, entry)):
            # Nothing had changed it by then.
            found[path] = entry
    return found


def rewind_files(
    workspace: Workspace, planned: FileRewind, *, copies_conflicts: bool = False, with_conversation: bool = False
) -> FileRewind:
    """Carry a planned rewind out, and put the states before and after it on record. Raises `UserError`."""
    target, before = planned.target, planned.before
    if target is None or before is None:
        return planned
    store = workspace.store
    kind = "undo_both" if with_conversation else "undo"
    unlisted: dict[str, dict[bytes, Entry | None]] = {}
    for step in planned.plan.steps:
        if before.has(step.root) and step.path not in before.files(step.root):
            unlisted.setdefault(step.root, {})[step.path] = step.now
    directories = directories_of((step.root, step.path) for step in planned.plan.steps if step.target)
    rules = WriteRules(target.snapshot.roots, before.directories, draft_prefix(store), copies_conflicts)
    _, known = _last_known(store, store.records())
    try:
        close_journal(store)
        before = before.with_files(unlisted)
        for root, files in unlisted.items():
            store.append(FirstWrite("", root, encode_entries(files)))
        write_journal(store, Journal(before.name, target.snapshot.name, rules.roots, directories))
        store.append(Checkpoint(kind, target.turn, before.name, time.time()))
    except OSError as error:
        raise _cannot_store(error) from error
    done = apply_plan(planned.plan, _contents(workspace, target.snapshot), rules)
    try:
        after = workspace.photographer.take(workspace.area, workspace.policy, named_files(store.records()))
        after = after.with_files(_hidden_by(workspace, planned, after))
        if not copies_conflicts:
            after = after.with_files(_unsettled(known, done, rules.roots))
        store.append(Checkpoint("rewound", target.turn, after.name, time.time()))
        close_journal(store)
    except OSError as error:
        # The journal stays: it tells the states as well.
        return planned._replace(plan=done, notices=(*planned.notices, str(_cannot_store(error))))
    return planned._replace(plan=done)


def _unsettled(known: Sequence[Snapshot], done: Plan, roots: Sequence[str]) -> dict[str, dict[bytes, Entry | None]]:
    """The files that stay in conflict as the program last knew them, so that the next rewind finds them in conflict."""
    if not known:
        return {}
    files = files_by_root(known[0], roots, with_new=True)
    found: dict[str, dict[bytes, Entry | None]] = {}
    for step in done.steps:
        if step.type == "conflict":
            found.setdefault(step.root, {})[step.path] = files[step.root].get(step.path)
    return found


def _hidden_by(workspace: Workspace, planned: FileRewind, after: Snapshot) -> dict[str, dict[bytes, Entry | None]]:
    """The files a rewind has written that the ignore rules it has brought back hide; they are looked at from now on."""
    found: dict[str, dict[bytes, Entry | None]] = {}
    for step in planned.plan.steps:
        if step.target and after.has(step.root) and step.path not in after.files(step.root):
            top = outermost(after.roots, step.root)
            entry = workspace.photographer.read_file(step.root, step.path, top)
            found.setdefault(step.root, {})[step.path] = entry
    for root, files in found.items():
        workspace.store.append(FirstWrite("", root, encode_entries(files)))
    return found


def _cannot_store(error: OSError) -> UserError:
    reason = (error.strerror or str(error)).lower()
    return UserError(f"cannot put the state of the files on record: {reason}", status=1)


def describe_files(cwd: Path, done: FileRewind) -> dict[str, Any]:
    """A rewind as `--json` prints it, paths relative to the working directory of the session."""
    found: dict[str, Any] = {
        "restored": _shown(cwd, done, "restore"),
        "deleted": _shown(cwd, done, "delete"),
        "brought_back": _shown(cwd, done, "bring_back"),
        "conflicts": _shown(cwd, done, "conflict"),
    }
    for name, paths in (("missing", done.plan.missing), ("uncovered", done.plan.uncovered)):
        if paths:
            found[name] = [relative_path(cwd, root, path) for root, path in paths]
    return found


def conflict_diff(workspace: Workspace, rewind: FileRewind, root: str, path: bytes) -> str:
    """How a file in conflict differs from what the rewind would make of it."""
    if rewind.target is None:
        return ""
    step = next((step for step in rewind.plan.steps if (step.root, step.path) == (root, path)), None)
    contents = _contents(workspace, rewind.target.snapshot)
    if step is None:
        return ""
    name = relative_path(workspace.cwd, root, path)
    return text_diff(contents, root, step.now, step.target, name)


def text_diff(contents: Contents, root: str, before: Entry | None, after: Entry | None, name: str) -> str:
    """A unified diff between two states of a file; one line that says so if a state is binary or not stored."""
    texts: list[str] = []
    for entry in (before, after):
        raw = b"" if entry is None else contents.of(root, entry) if entry.is_covered else None
        if raw is None:
            return f"the content of {name} is not stored\n"
        if b"\0" in raw or len(raw) > _MAX_DIFF_SOURCE:
            return f"Binary files a/{name} and b/{name} differ\n"
        texts.append(raw.decode("utf-8", "replace"))
    old = f"a/{name}" if before else "/dev/null"
    new = f"b/{name}" if after else "/dev/null"
    diff = unified_diff(texts[0], texts[1], old_name=old, new_name=new)
    if before and after and before.mode != after.mode:
        diff = f"old mode {before.mode:o}\nnew mode {after.mode:o}\n{diff}"
    return diff


def relative_path(cwd: Path, root: str, path: bytes) -> str:
    """A path as seen from the working directory of the session."""
    return os.path.relpath(f"{root}/{os.fsdecode(path)}", cwd)


def _shown(cwd: Path, done: FileRewind, type_: StepType) -> list[str]:
    return sorted(relative_path(cwd, root, path) for root, path in done.plan.paths(type_))


def git_readers(snapshot: Snapshot, env: Mapping[str, str], known: ProbeResults) -> dict[str, GitReader]:
    """The readers of file contents in git, by root."""
    roots = filter(snapshot.is_git, snapshot.roots)
    return {root: GitReader(Path(root), env, known=known, looks_below=False) for root in roots}


def lost_contents(store: CheckpointStore, env: Mapping[str, str]) -> list[str]:
    """The files whose content only git had, and has no more, a line each. Repositories that are gone are left out."""
    wanted: dict[str, dict[bytes, str]] = {}
    readers: dict[str, GitReader] = {}
    known = ProbeResults()
    for checkpoint in store.checkpoints():
        with suppress(UserError, Missing):
            snapshot = load_snapshot(store, checkpoint.snapshot)
            readers |= git_readers(snapshot, env, known)
            for root in filter(snapshot.is_git, snapshot.roots):
                entries = ((path, entry) for path, entry in snapshot.files(root).items() if entry and not entry.stored)
                for path, entry in entries:
                    fault = f"turn `{checkpoint.turn}`: git no longer has the content of `{root}/{os.fsdecode(path)}`"
                    wanted.setdefault(root, {}).setdefault(entry.oid, fault)
    found: list[str] = []
    for root, faults in wanted.items():
        with suppress(UserError):
            missing = missing_blobs(readers[root], [oid for oid in faults if oid])
            found += [faults[oid] for oid in missing]
    return found


def _contents(workspace: Workspace, snapshot: Snapshot) -> Contents:
    return Contents(workspace.store, git_readers(snapshot, workspace.env, workspace.known))


def _last_known(store: CheckpointStore, records: Sequence[LogRecord]) -> tuple[float, list[Snapshot]]:
    """The time and the state of the files after the last turn or rewind; no state if that turn's end is not on record.

    After a rewind that was killed each file is as it was before it or as it would have been after it.
    """
    found = (record for record in reversed(records) if isinstance(record, Checkpoint) and record.kind != "talk")
    last = next(found, None)
    if last is None or last.kind == "begin":
        return 0.0, []
    names = (last.snapshot,) if last.kind in ("end", "rewound") else interrupted_states(store)
    return last.time, [load_snapshot(store, name) for name in names]


def _on_disk(workspace: Workspace, target: Snapshot, root: str, paths: Sequence[bytes]) -> dict[bytes, Entry | None]:
    """Files that are not listed any more and may still be there: git has been told to ignore them since."""
    found: dict[bytes, Entry | None] = {}
    for path in paths:
        if os.path.lexists(os.path.join(os.fsencode(root), path)):  # noqa: PTH118
            entry = workspace.photographer.read_file(root, path, outermost(target.roots, root))
            if entry is not None:
                found[path] = entry
    return found

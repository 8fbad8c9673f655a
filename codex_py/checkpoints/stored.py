"""Rewinding a stored session that nobody has open, its files, its conversation, or both; and what a turn changed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.checkpoints.restore import Contents, Plan
from codex_py.checkpoints.rewind import (
    FileRewind,
    LastRewind,
    RewindTarget,
    Workspace,
    conflict_diff,
    describe_files,
    find_latest,
    find_target,
    git_readers,
    note_conversation,
    open_workspace,
    plan_files,
    relative_path,
    rewind_files,
    text_diff,
)
from codex_py.checkpoints.snapshot import changes_between, load_snapshot
from codex_py.checkpoints.store import (
    Checkpoint,
    CheckpointStore,
    ForeignWrite,
    Missing,
    dropped_checkpoint,
    require_store,
    store_of,
)
from codex_py.errors import UsageError, UserError
from codex_py.programs import ProbeResults
from codex_py.protocol.status import FilesChanged
from codex_py.rollout.format import StoredSession
from codex_py.rollout.listing import find_exactly
from codex_py.rollout.reader import load_session
from codex_py.rollout.recorder import RolloutRecorder
from codex_py.rollout.transcript import (
    ConversationRewind,
    RewindChoice,
    check_turn,
    plan_conversation,
    read_turns,
    undo_conversation,
)
from codex_py.text.display import counted
from codex_py.text.sanitize import sanitize_line

_LATEST: Final = "latest"
_LAST: Final = "last"
_SHOWN: Final = 20
_MAX_COUNTED: Final = 50
_DONE: Final = ("restored", "deleted", "brought_back")


class CheckpointedTurn(NamedTuple):
    """A turn that can be gone back before. `changed` is None where it changed nothing, or that is not known."""

    number: int
    timestamp: str
    message: str
    changed: FilesChanged | None


class RewindOutcome(NamedTuple):
    """The result of a rewind, or of its dry run; `diffs` are those of the files in conflict."""

    cwd: Path
    files: FileRewind
    conversation: ConversationRewind | None
    diffs: tuple[str, ...]
    is_dry: bool

    def lines(self) -> list[str]:
        """The outcome for a person."""
        described = describe_files(self.cwd, self.files)
        words = {"restored": "restored", "deleted": "deleted", "brought_back": "brought back"}
        words |= {"conflicts": "in conflict", "missing": "content gone", "uncovered": "never stored"}
        lines = [
            f"{'would be ' if self.is_dry and name in _DONE else ''}{word}: {sanitize_line(path)}"
            for name, word in words.items()
            for path in described.get(name, ())
        ]
        if not lines:
            lines.append("no file differs" if self.files.target else "no files to bring back")
        if self.conversation is not None:
            count = self.conversation.turns
            turns = f"by {counted(count, 'turn')}" if count else "to what it was before the last rewind"
            lines.append(f"the conversation {'would go back' if self.is_dry else 'goes back'} {turns}")
        return lines

    def notices(self) -> list[str]:
        """Further facts that the user should know."""
        lost = [relative_path(self.cwd, root, path) for root, path in self.files.plan.missing]
        gone = "stays as it is: git no longer has its content (`git gc` after a rewritten history)"
        return [*self.files.notices, *(f"`{path}` {gone}" for path in lost)]


def rewind_stored(
    home: Path, name: str, choice: RewindChoice, *, env: Mapping[str, str], warn: Callable[[str], None]
) -> RewindOutcome:
    """Rewind the session of an id or a name. Raises `UserError`, also where another process has the session open."""
    session = _open(home, name)
    if choice.dry_run:
        return _plan(session, choice, env).outcome
    # Held until the end: nobody else writes to the session meanwhile.
    recorder = RolloutRecorder.resume(session.stored, warn=warn)
    try:
        planned = _plan(session, choice, env)
        outcome, workspace = planned.outcome, planned.workspace
        files, conversation = outcome.files, outcome.conversation
        if workspace is not None:
            copies = choice.copies_conflicts
            files = rewind_files(workspace, files, copies_conflicts=copies, with_conversation=conversation is not None)
        if conversation is not None:
            recorder.record("event_msg", conversation.payload)
            if workspace is None:
                note_conversation(session.store, "")
        return outcome._replace(files=files)
    finally:
        recorder.close()


def list_turns(home: Path, name: str) -> list[CheckpointedTurn]:
    """The turns a session can be rewound to, the first one first. Raises `UserError`."""
    session = _open(home, name)
    turns = read_turns(session.path)
    states: dict[str, dict[str, str]] = {}
    for record in session.store.checkpoints():
        if record.kind in ("begin", "end"):
            states.setdefault(record.turn, {}).setdefault(record.kind, record.snapshot)
    # Old ones are not looked at: each may take a while.
    recent = {turn.id for turn in turns[-_MAX_COUNTED:]}
    return [
        CheckpointedTurn(
            turn.number,
            turn.timestamp,
            turn.prompt,
            _count_changes(session.store, states.get(turn.id, {})) if turn.id in recent else None,
        )
        for turn in turns
    ]


def _count_changes(store: CheckpointStore, states: Mapping[str, str]) -> FilesChanged | None:
    if "end" not in states or states.get("begin") == states["end"]:
        return None
    try:
        begin, end = load_snapshot(store, states["begin"]), load_snapshot(store, states["end"])
        deleted = [change.after is None for change in changes_between(begin, end)]
    except (KeyError, Missing, UserError):
        return None
    return FilesChanged("", len(deleted) - sum(deleted), sum(deleted)) if deleted else None


class _Planned(NamedTuple):
    outcome: RewindOutcome
    workspace: Workspace | None


def _plan(session: _Session, choice: RewindChoice, env: Mapping[str, str]) -> _Planned:
    wanted = _wanted(session, choice.to, files=choice.files, conversation=choice.conversation)
    files, workspace = FileRewind(Plan(()), None, None), None
    if wanted.target is not None:
        workspace = open_workspace(session.store, wanted.target, home=session.home, env=env, cwd=session.cwd)
        files = plan_files(workspace, wanted.target)
    diffs = tuple(_diffs(workspace, files))
    return _Planned(RewindOutcome(session.cwd, files, wanted.conversation, diffs, choice.dry_run), workspace)


def _open(home: Path, name: str) -> _Session:
    path = find_exactly(home, name)
    stored = load_session(path)
    cwd = Path(str((stored.turn_context or {}).get("cwd") or stored.meta.cwd))
    return _Session(home, path, stored, cwd)


class _Session(NamedTuple):
    home: Path
    path: Path
    stored: StoredSession
    cwd: Path

    @property
    def id(self) -> str:
        return self.stored.meta.id

    @property
    def store(self) -> CheckpointStore:
        return CheckpointStore(store_of(self.home, self.id))


def turn_diff(store: CheckpointStore, turn: str, *, env: Mapping[str, str], cwd: Path) -> Iterator[str]:
    """The diff of each file that a turn changed, between its beginning and its end, by whatever means.

    Raises `UserError` for a turn whose end is not known.
    """
    records = [record for record in store.records() if record.turn == turn]
    found = {record.kind: record.snapshot for record in records if isinstance(record, Checkpoint)}
    others = {path for record in records if isinstance(record, ForeignWrite) for path in record.states()}
    if "dropped" in found:
        raise dropped_checkpoint()
    if "begin" not in found:
        return
    if "end" not in found:
        raise UserError("the end of that turn is not on record", hint="it runs, or was killed")
    before, after = load_snapshot(store, found["begin"]), load_snapshot(store, found["end"])
    contents = Contents(store, git_readers(after, env, ProbeResults()))
    for change in changes_between(before, after):
        if f"{change.root}/{os.fsdecode(change.path)}" in others:
            continue
        name = relative_path(cwd, change.root, change.path)
        contents.load(change.root, filter(None, (change.before, change.after)))
        diff = text_diff(contents, change.root, change.before, change.after, name)
        yield f"diff --git a/{name} b/{name}\n{diff}"
        contents.forget()


class _Wanted(NamedTuple):
    target: RewindTarget | None
    conversation: ConversationRewind | None


def _wanted(session: _Session, to: str, *, files: bool, conversation: bool) -> _Wanted:
    """The state that a rewind goes back to. Raises `UserError` if it does not exist."""
    if to == _LATEST:
        found = find_latest(session.store)
        last = found or LastRewind(None, conversation=True)
        if files and not conversation and last.files is None:
            what = (
                "the last rewind of this session was of the conversation alone"
                if found
                else "there is no rewind to undo"
            )
            raise UserError(what)
        goes_back = conversation and (last.conversation or not files)
        return _Wanted(last.files if files else None, undo_conversation(session.path) if goes_back else None)
    turns = read_turns(session.path)
    number = len(turns) if to == _LAST else _number(to)
    check_turn(session.path, turns, number)
    target = find_target(session.store, [turn.id for turn in turns[number - 1 :]]) if files else None
    if files and not conversation and not session.store.exists:
        require_store(session.home, session.id)
    return _Wanted(target, plan_conversation(session.path, turns, number) if conversation else None)


def _number(to: str) -> int:
    if not to.isascii() or not to.isdigit() or int(to) < 1:
        raise UsageError(
            f"`--to` needs the number of a turn, counted from 1, or `latest`, not `{sanitize_line(to[:40])}`"
        )
    return int(to)


def _diffs(workspace: Workspace | None, done: FileRewind) -> list[str]:
    if workspace is None:
        return []
    return [conflict_diff(workspace, done, root, path) for root, path in done.plan.paths("conflict")[:_SHOWN]]

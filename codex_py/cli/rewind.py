"""Going back: `sessions rewind`, `diff --turn`, and the store of checkpoints (`checkpoints list|prune|verify`)."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from codex_py.checkpoints.restore import Plan
from codex_py.checkpoints.rewind import (
    FileRewind,
    LastRewind,
    RewindTarget,
    Workspace,
    conflict_diff,
    describe_files,
    find_latest,
    find_target,
    note_conversation,
    open_workspace,
    plan_files,
    relative_path,
    rewind_files,
)
from codex_py.checkpoints.store import CheckpointStore, require_store, store_of
from codex_py.cli.console import print_json
from codex_py.errors import UsageError, UserError
from codex_py.paths import codex_home
from codex_py.rollout.find import find_exactly
from codex_py.rollout.reader import load_session
from codex_py.rollout.recorder import RolloutRecorder
from codex_py.rollout.rewinds import ConversationRewind, plan_conversation, undo_conversation
from codex_py.rollout.transcript import check_turn, read_turns
from codex_py.text.sanitize import sanitize, sanitize_line

_ABOUT: Final = "Look after the states of files that a rewind goes back to."
_LATEST: Final = "latest"
_MIB: Final = 1 << 20
_SHOWN: Final = 20
_DONE: Final = ("restored", "deleted", "brought_back")


def rewind(
    target: Annotated[str, typer.Argument(metavar="SESSION", help="A session's id or name.")],
    to: Annotated[str, typer.Option("--to", metavar="N", help="The turn to go back before, or `latest`.")],
    files: Annotated[bool, typer.Option("--files", help="Only the files.")] = False,
    conversation: Annotated[bool, typer.Option("--conversation", help="Only the conversation.")] = False,
    both: Annotated[bool, typer.Option("--both", help="Files and conversation, which is the default.")] = False,
    copy_conflicts: Annotated[
        bool,
        typer.Option("--copy-conflicts", help="Restore files in conflict too; theirs become NAME.rewind-conflict."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> int:
    """Bring back the files, the conversation or both as they were before a turn; `--to latest` undoes the last rewind.

    Files that somebody changed after the last turn are conflicts, and stay as they are.
    """
    if files + conversation + both > 1:
        raise UsageError("`--files`, `--conversation` and `--both` exclude each other")
    home = codex_home(os.environ)
    path = find_exactly(home, target)
    stored = load_session(path)
    # Held until the end: nobody else writes to the session meanwhile.
    recorder = RolloutRecorder.resume(stored, warn=_print_note)
    try:
        session = _Session(
            home, path, stored.meta.id, Path(str((stored.turn_context or {}).get("cwd") or stored.meta.cwd))
        )
        wanted = _wanted(session, to, files=not conversation, conversation=not files)
        done, workspace = FileRewind(Plan(()), None, None), None
        if wanted.target is not None:
            workspace = open_workspace(session.store, wanted.target, home=home, env=os.environ, cwd=session.cwd)
            done = plan_files(workspace, wanted.target)
        diffs = _diffs(workspace, done)
        if not dry_run:
            if workspace is not None:
                both = wanted.conversation is not None
                done = rewind_files(workspace, done, copies_conflicts=copy_conflicts, with_conversation=both)
            if wanted.conversation is not None:
                recorder.record("event_msg", wanted.conversation.payload)
                if workspace is None:
                    note_conversation(session.store, "")
    finally:
        recorder.close()
    if as_json:
        print_json(describe_files(session.cwd, done), sys.stdout)
    else:
        _print_rewind(session.cwd, done, wanted, diffs, dry_run=dry_run)
    for notice in done.notices:
        _print_note(notice)
    for root, lost in done.plan.missing:
        shown = relative_path(session.cwd, root, lost)
        _print_note(f"`{shown}` stays as it is: git no longer has its content (`git gc` after a rewritten history)")
    return 1 if done.plan.missing else 0


class _Session(NamedTuple):
    home: Path
    path: Path
    id: str
    cwd: Path

    @property
    def store(self) -> CheckpointStore:
        return CheckpointStore(store_of(self.home, self.id))


class _Wanted(NamedTuple):
    target: RewindTarget | None
    conversation: ConversationRewind | None


def _wanted(session: _Session, to: str, *, files: bool, conversation: bool) -> _Wanted:
    """What a rewind goes back to. Raises `UserError` for what is not there."""
    if to == _LATEST:
        last = find_latest(session.store) or LastRewind(None, conversation=True)
        if files and not conversation and last.files is None:
            raise UserError("the last rewind of this session was none of files")
        goes_back = conversation and (last.conversation or not files)
        return _Wanted(last.files if files else None, undo_conversation(session.path) if goes_back else None)
    number = _number(to)
    turns = read_turns(session.path)
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


def _print_rewind(cwd: Path, done: FileRewind, wanted: _Wanted, diffs: Sequence[str], *, dry_run: bool) -> None:
    described = describe_files(cwd, done)
    words = {"restored": "restored", "deleted": "deleted", "brought_back": "brought back", "conflicts": "in conflict"}
    words |= {"missing": "content gone", "uncovered": "never stored"}
    for name, word in words.items():
        for path in described.get(name, ()):
            print(f"{'would be ' if dry_run and name in _DONE else ''}{word}: {sanitize_line(path)}")
    for diff in diffs:
        sys.stdout.write(sanitize(diff))
    if not any(described.values()):
        print("no file differs" if wanted.target else "no files to bring back")
    if wanted.conversation is not None:
        verb = "would go back" if dry_run else "goes back"
        count = wanted.conversation.turns
        print(
            f"the conversation {verb} by {count} turn{'' if count == 1 else 's'}"
            if count
            else "the conversation is as it was"
        )
        if message := wanted.conversation.message.strip():
            print(f"the message was: {sanitize_line(message[:200])}")
    if described["conflicts"]:
        _print_note("files in conflict were changed after the last turn, and stay as they are; see --copy-conflicts")


def _print_note(message: str) -> None:
    print(sanitize_line(message), file=sys.stderr)

"""`codex-py checkpoints`, `sessions rewind` and `diff`: what turns changed in the files, and how it is undone."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from codex_py.checkpoints.rewind import describe_files, lost_contents
from codex_py.checkpoints.store import CheckpointStore, is_pruned, prune_stores, require_store
from codex_py.checkpoints.stored import turn_diff
from codex_py.cli.console import print_json, print_note, print_rows
from codex_py.cli.rewinding import rewind_and_note
from codex_py.cli.typer_command import Json, run_command, run_commands
from codex_py.errors import UsageError
from codex_py.paths import codex_home, is_directory
from codex_py.rollout.files import CHECKPOINTS, thread_of
from codex_py.rollout.listing import find_exactly, latest_session
from codex_py.rollout.transcript import RewindChoice, check_turn, read_turns
from codex_py.text.display import counted
from codex_py.text.sanitize import sanitize, sanitize_line

_ABOUT: Final = "Look after the states of files that a rewind goes back to."
_MIB: Final = 1 << 20


def list_checkpoints(as_json: Json = False) -> int:
    """List the sessions that have checkpoints, with how many and how large they are."""
    rows: list[dict[str, Any]] = []
    for store in _stores(codex_home(os.environ)):
        there = store.checkpoints()
        rows.append(
            {
                "session": store.directory.name,
                "checkpoints": sum(record.kind == "begin" for record in there),
                "bytes": store.size(),
                "updated": there[-1].time if there else None,
            }
        )
    cells = ((row["session"], str(row["checkpoints"]), f"{row['bytes'] / _MIB:.1f} MiB") for row in rows)
    print_rows(("SESSION", "TURNS", "SIZE"), cells, rows, as_json=as_json)
    return 0


def prune(
    max_mib: Annotated[int, typer.Option("--max-mib", min=0, metavar="N", help="Leave at most this many MiB.")] = 0,
) -> int:
    """Remove the checkpoints of whole sessions, those used longest ago first; without --max-mib of all."""
    home, limit = codex_home(os.environ), max_mib * _MIB - (1 if max_mib == 0 else 0)
    removed = prune_stores(home, limit)
    print_note(f"removed the checkpoints of {counted(len(removed), 'session')}")
    left = _stores(home)
    if left and sum(store.size() for store in left) > limit:
        print_note(f"left alone, because a process has it open: {counted(len(left), 'session')}")
    return 0


def verify(
    target: Annotated[str, typer.Argument(metavar="[SESSION]", help="A session's id; all when left out.")] = "",
) -> int:
    """Check that everything the checkpoints need is there and whole."""
    home = codex_home(os.environ)
    stores = [require_store(home, thread_of(find_exactly(home, target)))] if target else _stores(home)
    faults = [
        f"{store.directory.name}: {fault}"
        for store in stores
        for fault in (*store.verify(), *lost_contents(store, os.environ))
    ]
    for fault in faults:
        print(sanitize_line(fault))
    print_note(f"{counted(len(stores), 'store')} checked, {counted(len(faults), 'fault')}")
    return 1 if faults else 0


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py checkpoints …`; give back the exit status."""
    return run_commands(
        {"list": list_checkpoints, "prune": prune, "verify": verify}, arguments, name="checkpoints", about=_ABOUT
    )


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
    as_json: Json = False,
) -> int:
    """Bring back the files, the conversation or both as they were before a turn; `--to latest` undoes the last rewind.

    Files that somebody changed after the last turn are conflicts, and stay as they are.
    """
    if files + conversation + both > 1:
        raise UsageError("`--files`, `--conversation` and `--both` exclude each other")
    home = codex_home(os.environ)
    choice = RewindChoice(
        to, files=not conversation, conversation=not files, copies_conflicts=copy_conflicts, dry_run=dry_run
    )
    outcome = rewind_and_note(home, target, choice, warn=print_note)
    if as_json:
        print_json(describe_files(outcome.cwd, outcome.files))
    else:
        print("\n".join(outcome.lines()))
        sys.stdout.writelines(map(sanitize, outcome.diffs))
        if outcome.conversation is not None and (message := outcome.conversation.message.strip()):
            print(f"the message was: {sanitize_line(message[:200])}")
        if outcome.files.plan.paths("conflict"):
            print_note("files in conflict were changed after the last turn and stay as they are; see --copy-conflicts")
    print_note(*outcome.notices())
    return 1 if outcome.files.plan.missing else 0


def run_diff(arguments: Sequence[str]) -> int:
    """Run `codex-py diff …`; give back the exit status."""
    return run_command(diff, arguments, name="diff")


def diff(
    turn: Annotated[int, typer.Option("--turn", min=1, metavar="N", help="The number of the turn.")],
    target: Annotated[
        str,
        typer.Option("--session", metavar="SESSION", help="A session's id or name; the last one of this directory."),
    ] = "",
) -> int:
    """Print what a turn has changed in the files of the workspace, by whatever means."""
    home = codex_home(os.environ)
    path = find_exactly(home, target) if target else latest_session(home, Path.cwd())
    turns = read_turns(path)
    check_turn(path, turns, turn)
    session = require_store(home, thread_of(path))
    for text in turn_diff(session, turns[turn - 1].id, env=os.environ, cwd=Path.cwd()):
        sys.stdout.write(sanitize(text))
    return 0


def _stores(home: Path) -> list[CheckpointStore]:
    top = home / CHECKPOINTS
    if not is_directory(top):
        return []
    return [CheckpointStore(path) for path in sorted(top.iterdir()) if is_directory(path) and not is_pruned(path)]

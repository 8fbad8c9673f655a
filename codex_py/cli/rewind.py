"""`codex-py sessions rewind`: files, conversation or both as they were before a turn."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from codex_py.checkpoints.rewind import describe_files
from codex_py.checkpoints.stored import RewindChoice, rewind_stored
from codex_py.cli.console import print_json
from codex_py.errors import UsageError
from codex_py.paths import codex_home
from codex_py.text.sanitize import sanitize, sanitize_line


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
    choice = RewindChoice(
        to, files=not conversation, conversation=not files, copies_conflicts=copy_conflicts, dry_run=dry_run
    )
    outcome = rewind_stored(home, target, choice, env=os.environ, warn=_print_note)
    if as_json:
        print_json(describe_files(outcome.cwd, outcome.files), sys.stdout)
    else:
        print("\n".join(outcome.lines()))
        sys.stdout.writelines(map(sanitize, outcome.diffs))
        if outcome.conversation is not None and (message := outcome.conversation.message.strip()):
            print(f"the message was: {sanitize_line(message[:200])}")
        if outcome.files.plan.paths("conflict"):
            _print_note("files in conflict were changed after the last turn and stay as they are; see --copy-conflicts")
    for notice in outcome.notices():
        _print_note(notice)
    return 1 if outcome.files.plan.missing else 0


def _print_note(message: str) -> None:
    print(sanitize_line(message), file=sys.stderr)

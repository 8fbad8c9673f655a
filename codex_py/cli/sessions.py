"""`codex-py sessions`: which sessions are stored, what was said in one, and putting them in order.

`archive`, `unarchive`, `delete` and `rename` work without the word `sessions` too.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final, TypeAlias

import typer

from codex_py.cli import sessions_view as view
from codex_py.cli import typer_options as options
from codex_py.cli.consent import is_agreed
from codex_py.cli.typer_command import run_commands
from codex_py.errors import UserError
from codex_py.paths import codex_home
from codex_py.rollout.archive import archive_session, delete_session, unarchive_session
from codex_py.rollout.files import compressed_files, thread_of
from codex_py.rollout.find import find_exactly
from codex_py.rollout.listing import SessionQuery, list_sessions
from codex_py.rollout.names import checked_name, read_names, save_name
from codex_py.rollout.summary import SessionSummary, read_summary
from codex_py.rollout.transcript import before_compaction, live, read_transcript
from codex_py.text.sanitize import sanitize_line

_ABOUT: Final = "List, show and manage stored sessions."
_PROMPT_SHOWN: Final = 60

SessionArgument: TypeAlias = Annotated[str, typer.Argument(metavar="SESSION", help="A session's id or name.")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def run(arguments: Sequence[str]) -> int:
    """Run `codex-py sessions …`; give back the exit status."""
    return run_commands(
        {
            "list": list_stored,
            "show": show,
            "rename": rename,
            "archive": archive,
            "unarchive": unarchive,
            "delete": delete,
        },
        arguments,
        name="sessions",
        about=_ABOUT,
    )


def list_stored(
    everywhere: Annotated[bool, typer.Option("--all", help="Those of every directory, not only of this one.")] = False,
    archived: Annotated[bool, typer.Option("--archived", help="Those that were archived.")] = False,
    agents: Annotated[bool, typer.Option("--agents", help="Those of agents too.")] = False,
    search: Annotated[
        str,
        typer.Option("--search", metavar="WORDS", help="Only those with these words in name, prompt, folder, branch."),
    ] = "",
    limit: Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="At most this many.")] = None,
    cwd: options.WorkingDirectory = None,
    as_json: Json = False,
) -> int:
    """List the sessions of this directory, the one written to last first."""
    home = codex_home(os.environ)
    directory = None if everywhere else Path(cwd or ".").absolute()
    found = list_sessions(home, SessionQuery(directory, search, archived, agents))
    view.print_sessions(found[:limit], sys.stdout, now=time.time(), as_json=as_json)
    if not found:
        where = "" if directory is None else f" that worked in `{directory}`"
        _print_note(
            f"no{' archived' if archived else ''} sessions{where}" + ("" if everywhere else "; --all lists the others")
        )
    elif limit is not None and len(found) > limit:
        _print_note(f"{len(found) - limit} more; --limit {len(found)} lists them all")
    packed = sum(1 for _ in compressed_files(home))
    if packed:
        _print_note(
            f"not listed: {packed} compressed by Codex CLI; `zstd -d --rm FILE` unpacks such a file (`.jsonl.zst`)"
        )
    return 0


def show(
    target: SessionArgument,
    raw: Annotated[
        bool, typer.Option("--before-compaction", help="The raw history that the last compaction replaced.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Show what was said and done in a session: since its last compaction, if there was one."""
    session = _session(target)
    transcript = read_transcript(session.path)
    entries = before_compaction(transcript) if raw else live(transcript)
    if raw and not entries:
        raise UserError(f"session `{session.id}` was never compacted", hint="leave --before-compaction out")
    view.print_transcript(session, entries, sys.stdout, as_json=as_json)
    return 0


def rename(
    target: SessionArgument, name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")]
) -> int:
    """Name a session; `resume NAME` goes on with it."""
    home = codex_home(os.environ)
    path = find_exactly(home, target)
    checked = checked_name(name)
    save_name(home, thread_of(path), checked)
    _print_note(f"session `{thread_of(path)}` is now named `{checked}`")
    return 0


def archive(target: SessionArgument) -> int:
    """Put a session away: it is no longer offered, and `unarchive` brings it back."""
    path = archive_session(find_exactly(codex_home(os.environ), target))
    _print_note(f"archived session `{thread_of(path)}`")
    return 0


def unarchive(target: SessionArgument) -> int:
    """Bring an archived session back."""
    path = unarchive_session(find_exactly(codex_home(os.environ), target))
    _print_note(f"session `{thread_of(path)}` is back")
    return 0


def delete(
    target: SessionArgument,
    certain: Annotated[bool, typer.Option("--yes", "-y", "--force", help="Do not ask.")] = False,
) -> int:
    """Remove a session for good, archived or not."""
    path = find_exactly(codex_home(os.environ), target)
    if not certain and not _agrees(path):
        _print_note("nothing was deleted")
        return 1
    delete_session(path)
    _print_note(f"deleted session `{thread_of(path)}`")
    return 0


def _session(target: str) -> SessionSummary:
    home = codex_home(os.environ)
    path = find_exactly(home, target)
    summary = read_summary(path)
    if summary is None:
        # Loading says what is wrong with it.
        read_transcript(path)
        raise UserError(f"cannot read session `{path}`: no record in it is whole")
    return summary._replace(name=read_names(home).get(summary.id, ""))


def _agrees(path: Path) -> bool:
    summary = read_summary(path)
    prompt = " ".join(summary.first_prompt.split())[:_PROMPT_SHOWN] if summary else ""
    about = f" ({prompt})" if prompt else ""
    session = f"session `{thread_of(path)}`"
    return is_agreed(f"delete {session}{about} for good?", needs=f"deleting {session}")


def _print_note(message: str) -> None:
    print(sanitize_line(message), file=sys.stderr)

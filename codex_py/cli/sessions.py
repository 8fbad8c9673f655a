"""`codex-py sessions`: lists stored sessions, shows the transcript of one, renames, archives and deletes them.

`archive`, `unarchive`, `delete` and `rename` work without the word `sessions` too.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias

import typer

from codex_py.cli.checkpoints import rewind
from codex_py.cli.console import (
    is_agreed,
    load_local_config,
    note_expired_sessions,
    print_json,
    print_note,
    print_table,
)
from codex_py.cli.options import working_directory
from codex_py.cli.transfer import export, import_file, search
from codex_py.cli.typer_command import Json, WorkingDirectory, run_commands
from codex_py.errors import UserError
from codex_py.paths import codex_home
from codex_py.protocol import events
from codex_py.protocol.items import Message, ResponseItem
from codex_py.render.plain import PlainPrinter
from codex_py.render.status import short_directory
from codex_py.rollout.archive import archive_session, delete_session, unarchive_session
from codex_py.rollout.files import compressed_files, thread_of
from codex_py.rollout.listing import (
    SessionQuery,
    find_exactly,
    list_with_damaged,
    load_summary,
    save_name,
)
from codex_py.rollout.stored_turns import HostMessage, PastUserMessage, past_items
from codex_py.rollout.summary import SessionSummary, read_summary
from codex_py.rollout.transcript import (
    TranscriptCompaction,
    TranscriptEntry,
    TranscriptFailure,
    TranscriptItem,
    before_compaction,
    live,
    read_transcript,
)
from codex_py.text.display import describe_age
from codex_py.text.sanitize import sanitize, sanitize_line

_NARROWEST: Final = 20
_LISTED: Final = 50
_FIXED_WIDTH: Final = 36 + 2 + 10 + 2 + 11 + 2
_WIDEST: Final = 400


def print_sessions(sessions: Sequence[SessionSummary], *, as_json: bool) -> None:
    """One row a session, in the order given."""
    if as_json:
        print_json([_object(session) for session in sessions])
        return
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDEST
    home, now = Path(os.path.expanduser("~")), time.time()  # noqa: PTH111
    cwds = {session.cwd for session in sessions}
    directories = {cwd: short_directory(Path(cwd), home) if cwd else "" for cwd in cwds}
    rows = [
        (
            session.id,
            describe_age(session.updated, now=now),
            f"{session.tokens:,}",
            session.cost.in_words() if session.requests else "?" if session.tokens else "",
            directories[session.cwd],
            _title(session),
        )
        for session in sessions
    ]
    fixed = _FIXED_WIDTH + max((len(row[3]) + 2 + len(row[4]) for row in rows), default=0)
    available = max(_NARROWEST, width - fixed)
    cut = [(*row[:5], row[5] if len(row[5]) <= available else row[5][: available - 1] + "…") for row in rows]
    print_table(("ID", "UPDATED", "TOKENS", "COST", "DIRECTORY", "SESSION"), cut)


def print_transcript(session: SessionSummary, entries: Sequence[TranscriptEntry], *, as_json: bool) -> None:
    """The facts about a session, then its transcript."""
    if as_json:
        print_json({**_object(session), "items": [_entry_object(entry) for entry in entries]})
        return
    for label, value in _facts(session):
        print(f"{label + ':':<13} {sanitize_line(value)}")
    for turn, group in groupby(entries, key=lambda entry: entry.turn):
        group_entries = list(group)
        if turn and not isinstance(group_entries[0], TranscriptCompaction):
            print(f"\n--- turn {turn} · {sanitize_line(group_entries[0].timestamp)} ---")
        _print_entries(group_entries, Path(session.cwd))


def _object(session: SessionSummary) -> dict[str, Any]:
    return {
        "id": session.id,
        "name": session.name or None,
        "first_prompt": session.first_prompt,
        "cwd": session.cwd,
        "created": session.created,
        "updated": session.updated,
        "tokens": session.tokens,
        "cost_usd": session.cost.known_usd if session.requests else None,
        "model": session.model or None,
        "model_provider": session.provider or None,
        "source": session.source or None,
        "git_branch": session.branch or None,
        "forked_from": session.forked_from or None,
        "parent": session.parent or None,
        "archived": session.archived,
        "path": str(session.path),
    }


def _entry_object(entry: TranscriptEntry) -> dict[str, Any]:
    position = {"turn": entry.turn or None, "timestamp": entry.timestamp}
    match entry:
        case TranscriptItem(value=value):
            return {**position, "item": value}
        case TranscriptCompaction(message=message, replaced=replaced, items=items):
            return {
                **position,
                "compaction": {"message": message, "replaced": replaced, "items": [i.decode() for i in items]},
            }
        case TranscriptFailure(message=message):
            return {**position, "error": message}


def _facts(session: SessionSummary) -> Iterator[tuple[str, str]]:
    fields = {
        "session": session.id,
        "name": session.name,
        "directory": session.cwd,
        "branch": session.branch,
        "created": session.created,
        "updated": session.updated,
        "model": " · ".join(filter(None, (session.model, session.provider))),
        "tokens": f"{session.tokens:,}",
        "cost": session.cost.in_words() if session.requests else "",
        "forked from": session.forked_from,
        "agent": f"{session.nickname or 'agent'} of {session.parent}" if session.parent else "",
        "archived": "yes" if session.archived else "",
        "file": str(session.path),
    }
    yield from ((label, value) for label, value in fields.items() if value)


def _print_entries(entries: Sequence[TranscriptEntry], cwd: Path) -> None:
    """The entries of one turn; of a compaction, the items that replaced the earlier ones."""
    printer = PlainPrinter(print)
    for is_item, group in groupby(entries, key=lambda entry: isinstance(entry, TranscriptItem)):
        if is_item:
            _print_items([entry.value for entry in group if isinstance(entry, TranscriptItem)], cwd, printer)
            continue
        for entry in group:
            match entry:
                case TranscriptCompaction(message=message, replaced=replaced, items=items):
                    when = sanitize_line(entry.timestamp)
                    print(f"\n--- compacted {replaced} items, which --before-compaction shows · {when} ---")
                    # In either program's files the summary stands last, with words for the model around it.
                    is_in_last_item = bool(message) and bool(items) and _has_text(items[-1], message)
                    _print_items(items[:-1] if is_in_last_item else items, cwd, printer)
                    if message:
                        print(f"summary\n{sanitize(message)}")
                case TranscriptFailure(message=message):
                    printer(events.TurnFailed("", message))
                case _:
                    pass


def _print_items(items: Sequence[ResponseItem | dict[str, Any]], cwd: Path, printer: PlainPrinter) -> None:
    """Items as `exec` prints them live; context sent by the host is left out."""
    for past in past_items(items, cwd):
        match past.happened:
            case PastUserMessage(text):
                printer(events.TurnStarted("", (text,)))
            case HostMessage(text) if text.startswith("<turn_aborted>"):
                printer(events.TurnInterrupted(""))
            case HostMessage(text) if text.startswith("<skill>"):
                name = text.partition("<name>")[2].partition("</name>")[0]
                printer.write(f"skill: {sanitize_line(name.strip())}")
            case HostMessage():
                pass
            case event:
                printer(event)


def _has_text(item: ResponseItem, text: str) -> bool:
    view = item.view()
    return isinstance(view, Message) and text.strip() in view.text


def _title(session: SessionSummary) -> str:
    prompt = " ".join(session.first_prompt.split())
    return f"{session.name}: {prompt}" if session.name and prompt else session.name or prompt


_ABOUT: Final = "List, show and manage stored sessions."
_PROMPT_SHOWN: Final = 60

SessionArgument: TypeAlias = Annotated[str, typer.Argument(metavar="SESSION", help="A session's id or name.")]


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
            "rewind": rewind,
            "export": export,
            "import": import_file,
            "search": search,
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
        typer.Option(
            "--search", metavar="WORDS", help="Only those with these words in name, prompt, directory, branch."
        ),
    ] = "",
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=0, metavar="N", help="At most this many; 50 by default, all with 0 or --json."),
    ] = None,
    cwd: WorkingDirectory = None,
    as_json: Json = False,
) -> int:
    """List the sessions of this directory, the one written to last first."""
    home = codex_home(os.environ)
    note_expired_sessions(home, load_local_config(quiet=True).loaded.config.sessions.keep_days)
    if limit is None:
        limit = 0 if as_json else _LISTED
    directory = None if everywhere else Path(cwd or ".").absolute()
    found, unreadable = list_with_damaged(home, SessionQuery(directory, search, archived, agents))
    print_sessions(found[: limit or None], as_json=as_json)
    if not found:
        # A directory that is gone may have had sessions; one that never was is a typing error.
        working_directory(cwd)
        where = "" if directory is None else f" that worked in `{directory}`"
        print_note(
            f"no{' archived' if archived else ''} sessions{where}" + ("" if everywhere else "; --all lists the others")
        )
    elif 0 < limit < len(found):
        print_note(f"{len(found) - limit:,} more; --limit 0 lists them all")
    for damaged in unreadable:
        print_note(
            f"not listed: `{damaged.path}`: its first line is damaged; "
            f"`codex-py sessions delete {thread_of(damaged.path)}` removes it"
        )
    packed = sum(1 for _ in compressed_files(home))
    if packed:
        print_note(
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
    print_transcript(session, entries, as_json=as_json)
    return 0


def rename(
    target: SessionArgument, name: Annotated[str, typer.Argument(metavar="NAME", help="What to call it.")]
) -> int:
    """Name a session; `resume NAME` goes on with it."""
    home = codex_home(os.environ)
    path = find_exactly(home, target)
    print_note(f"session `{thread_of(path)}` is now named `{save_name(home, thread_of(path), name)}`")
    return 0


def archive(target: SessionArgument) -> int:
    """Put a session away: it is no longer offered, and `unarchive` brings it back."""
    path = archive_session(find_exactly(codex_home(os.environ), target))
    print_note(f"archived session `{thread_of(path)}`")
    return 0


def unarchive(target: SessionArgument) -> int:
    """Bring an archived session back."""
    path = unarchive_session(find_exactly(codex_home(os.environ), target))
    print_note(f"session `{thread_of(path)}` is back")
    return 0


def delete(
    target: SessionArgument,
    certain: Annotated[bool, typer.Option("--yes", "-y", "--force", help="Do not ask.")] = False,
) -> int:
    """Remove a session for good, archived or not."""
    path = find_exactly(codex_home(os.environ), target)
    if not certain and not _agrees(path):
        return 1
    delete_session(path)
    print_note(f"deleted session `{thread_of(path)}`")
    return 0


def _session(target: str) -> SessionSummary:
    home = codex_home(os.environ)
    path = find_exactly(home, target)
    if read_summary(path) is None:
        # Loading says what is wrong with it.
        read_transcript(path)
    return load_summary(home, path)


def _agrees(path: Path) -> bool:
    summary = read_summary(path)
    prompt = " ".join(summary.first_prompt.split())[:_PROMPT_SHOWN] if summary else ""
    about = f" ({prompt})" if prompt else ""
    session = f"session `{thread_of(path)}`"
    question = f"delete {session}{about} for good?"
    return is_agreed(question, yes=False, needs=f"deleting {session}", otherwise="nothing was deleted")

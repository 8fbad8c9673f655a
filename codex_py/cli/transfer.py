"""`codex-py sessions export`, `import` and `search`."""

from __future__ import annotations

import os
import sys
from datetime import UTC
from pathlib import Path
from typing import Annotated

import typer

from codex_py.cli.console import load_local_config, print_json, print_note
from codex_py.cli.options import working_directory
from codex_py.cli.typer_command import Json, Since, WorkingDirectory, read_since
from codex_py.paths import codex_home
from codex_py.rollout.listing import find_exactly, load_summary
from codex_py.services.session_cleaning import session_cleaner
from codex_py.services.session_document import document_file, document_format, write_document
from codex_py.services.session_export import ExportChoice
from codex_py.services.session_import import import_session
from codex_py.services.session_search import SearchRequest, search_sessions
from codex_py.text.sanitize import sanitize_line


def export(
    target: Annotated[str, typer.Argument(metavar="SESSION", help="A session's id or name.")],
    format_name: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="md, html, json or jsonl; by the file's name, else md.")
    ] = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write there and not to the standard output.")
    ] = None,
    no_tools: Annotated[bool, typer.Option("--no-tools", help="Without commands, patches and other calls.")] = False,
    since: Annotated[int, typer.Option("--since", min=1, metavar="N", help="From turn N on.")] = 1,
    redact_more: Annotated[bool, typer.Option("--redact-more", help="Without the output of tools.")] = False,
) -> int:
    """Write a session as Markdown, as one HTML page, or as JSON that `import` takes. Secrets are taken out."""
    home = codex_home(os.environ)
    session = load_summary(home, find_exactly(home, target))
    choice = ExportChoice(document_format(format_name, output), not no_tools, since, redact_more)
    cleaner = session_cleaner(home, load_local_config(quiet=True).loaded.config, os.environ)
    if output is None:
        sys.stdout.flush()
        write_document(session, choice, cleaner, sys.stdout.buffer.write)
        sys.stdout.buffer.flush()
        return 0
    with document_file(output) as write:
        write_document(session, choice, cleaner, write)
    print_note(f"wrote `{output}`")
    return 0


def import_file(
    source: Annotated[Path, typer.Argument(metavar="FILE", help="A JSON export, or a rollout of Codex CLI.")],
    cwd: Annotated[Path | None, typer.Option("--cwd", "-C", metavar="DIR", help="Where it works from now on.")] = None,
    as_json: Json = False,
) -> int:
    """Take a session from a file; prints its new id. With --cwd it works in that directory from now on."""
    home = codex_home(os.environ)
    directory = None if cwd is None else working_directory(cwd)
    taken = import_session(home, source, cwd=directory, user_home=os.environ.get("HOME", ""))
    if taken.damaged:
        lines = "1 line was" if taken.damaged == 1 else f"{taken.damaged} lines were"
        print_note(f"{lines} damaged, and left out")
    if taken.is_cut:
        print_note(f"`{source}` is cut off: the session ends where the file does; export it again for the rest")
    if as_json:
        print_json({"id": taken.id, "path": str(taken.path), "damaged": taken.damaged, "cut": taken.is_cut})
    else:
        print(taken.id)
    return 1 if taken.is_cut else 0


def search(
    words: Annotated[str, typer.Argument(metavar="WORDS", help="All of them stand in the turns that are found.")],
    repo: Annotated[bool, typer.Option("--repo", help="Only sessions of the repository of this directory.")] = False,
    since: Since = None,
    limit: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="At most this many turns.")] = 20,
    cwd: WorkingDirectory = None,
    as_json: Json = False,
) -> int:
    """Find prompts, answers, commands and changed files in all sessions, archived ones too; the newest first."""
    directory = working_directory(cwd)
    start = read_since(since)
    moment = start.astimezone(UTC).isoformat()[:19] if start else ""
    request = SearchRequest(words, directory if repo else None, moment, limit)
    hits = search_sessions(codex_home(os.environ), request, os.environ)
    if as_json:
        records = [
            {
                "id": hit.session.id,
                "name": hit.session.name or None,
                "turn": hit.turn,
                "timestamp": hit.time,
                "where": hit.where,
                "excerpt": hit.excerpt,
                "cwd": hit.session.cwd,
                "archived": hit.session.archived,
            }
            for hit in hits
        ]
        print_json(records)
        return 0
    for hit in hits:
        archived = " · archived" if hit.session.archived else ""
        name = f" · {hit.session.name}" if hit.session.name else ""
        print(sanitize_line(f"{hit.session.id} · turn {hit.turn} · {hit.time[:16].replace('T', ' ')}{name}{archived}"))
        print(f"    {hit.where}: {sanitize_line(hit.excerpt)}")
    if hits:
        session, turn = hits[0].session, hits[0].turn
        before = f"`codex-py unarchive {session.id}`, then " if session.archived else ""
        print_note(f"{before}`codex-py resume {session.id}`, or `codex-py fork {session.id} --turn {turn}`")
    else:
        print_note("nothing found")
    return 0

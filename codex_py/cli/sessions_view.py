"""How `codex-py sessions` prints: a table of sessions, and the transcript of one. JSON has whole fields and items."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, TextIO

from codex_py.cli.tables import print_json, print_table
from codex_py.protocol.items import CallOutput, Message, Reasoning, ResponseItem, ToolCall, WebSearchCall
from codex_py.protocol.readable import command_of, is_host_text, output_of, patch_of
from codex_py.rollout.summary import SessionSummary
from codex_py.rollout.transcript import TranscriptCompaction, TranscriptEntry, TranscriptFailure, TranscriptItem
from codex_py.text.age import describe_age
from codex_py.text.excerpt import ends_of
from codex_py.text.sanitize import sanitize, sanitize_line

_NARROWEST: Final = 20
_FIXED_WIDTH: Final = 36 + 2 + 10 + 2 + 11 + 2
_DIRECTORY_SHOWN: Final = 32
_WIDEST: Final = 400
# How the answer of a command begins, and which of its lines a reader wants.
_REPORTS: Final = ("Chunk ID: ", "Wall time: ", "Exit code: ")
_SHOWN_REPORTS: Final = ("Process ", "Exit code: ")


def print_sessions(sessions: Sequence[SessionSummary], out: TextIO, *, now: float, as_json: bool) -> None:
    """One row a session, in the order given; `now` is in seconds since the epoch."""
    if as_json:
        print_json([_object(session) for session in sessions], out)
        return
    width = shutil.get_terminal_size().columns if out.isatty() else _WIDEST
    directories = {cwd: _directory(cwd) for cwd in {session.cwd for session in sessions}}
    rows = [
        (
            session.id,
            describe_age(session.updated, now=now),
            f"{session.tokens:,}",
            directories[session.cwd],
            _title(session),
        )
        for session in sessions
    ]
    available = max(_NARROWEST, width - _FIXED_WIDTH - max((len(row[3]) for row in rows), default=0))
    cut = [(*row[:4], row[4] if len(row[4]) <= available else row[4][: available - 1] + "…") for row in rows]
    print_table(("ID", "UPDATED", "TOKENS", "DIRECTORY", "SESSION"), cut, out)


def print_transcript(
    session: SessionSummary, entries: Sequence[TranscriptEntry], out: TextIO, *, as_json: bool
) -> None:
    """The facts about a session, then its transcript."""
    if as_json:
        print_json({**_object(session), "items": [_entry_object(entry) for entry in entries]}, out)
        return
    for label, value in _facts(session):
        out.write(f"{label + ':':<13} {sanitize_line(value)}\n")
    for turn, group in groupby(entries, key=lambda entry: entry.turn):
        group_entries = list(group)
        if turn and not isinstance(group_entries[0], TranscriptCompaction):
            out.write(f"\n--- turn {turn} · {sanitize_line(group_entries[0].timestamp)} ---\n")
        for part in group_entries:
            _print_entry(part, out)


def _object(session: SessionSummary) -> dict[str, Any]:
    return {
        "id": session.id,
        "name": session.name or None,
        "first_prompt": session.first_prompt,
        "cwd": session.cwd,
        "created": session.created,
        "updated": session.updated,
        "tokens": session.tokens,
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
        case TranscriptItem(item=item):
            return {**position, "item": item.decode()}
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
        "forked from": session.forked_from,
        "agent": f"{session.nickname or 'agent'} of {session.parent}" if session.parent else "",
        "archived": "yes" if session.archived else "",
        "file": str(session.path),
    }
    yield from ((label, value) for label, value in fields.items() if value)


def _print_entry(entry: TranscriptEntry, out: TextIO) -> None:
    match entry:
        case TranscriptItem(item=item):
            _print_lines(_item_lines(item), out)
        case TranscriptCompaction(message=message, replaced=replaced, items=items):
            when = sanitize_line(entry.timestamp)
            out.write(f"\n--- compacted {replaced} items, which --before-compaction shows · {when} ---\n")
            # In either program's files the summary stands last, with words for the model around it.
            is_in_last_item = bool(message) and bool(items) and _has_text(items[-1], message)
            for item in items[:-1] if is_in_last_item else items:
                _print_lines(_item_lines(item), out)
            if message:
                _print_lines(["summary", sanitize(message)], out)
        case TranscriptFailure(message=message):
            _print_lines([f"ERROR: {sanitize(message)}"], out)


def _has_text(item: ResponseItem, text: str) -> bool:
    view = item.view()
    return isinstance(view, Message) and text.strip() in view.text


def _print_lines(lines: Iterable[str], out: TextIO) -> None:
    out.writelines(f"{line}\n" for line in lines)


def _item_lines(item: ResponseItem) -> Iterator[str]:
    """An item as lines that are safe to print; context sent by the host is left out."""
    match item.view():
        case Message(role="assistant", text=text):
            yield from ("codex", sanitize(text))
        case Message(role="user", text=text):
            yield from _user_lines(text)
        case Reasoning(summary=summary) if summary:
            yield from ("thinking", sanitize(summary))
        case ToolCall() as call:
            yield from _call_lines(call)
        case CallOutput():
            yield from _output_lines(output_of(item))
        case WebSearchCall(query=query):
            yield f"web search: {sanitize_line(query)}"
        case _:
            return


def _user_lines(text: str) -> Iterator[str]:
    if text.startswith("<turn_aborted>"):
        yield "turn interrupted"
    elif text.startswith("<skill>"):
        name = text.partition("<name>")[2].partition("</name>")[0]
        yield f"skill: {sanitize_line(name.strip())}"
    elif not is_host_text(text):
        yield from ("user", sanitize(text))


def _call_lines(call: ToolCall) -> Iterator[str]:
    command = command_of(call)
    if command is not None:
        yield from ("exec", sanitize(command))
    elif call.name == "apply_patch":
        yield from ("apply patch", sanitize(patch_of(call)))
    else:
        yield f"{sanitize_line(call.name)} {sanitize_line(call.arguments)}"


def _output_lines(output: str) -> Iterator[str]:
    """What a command printed without the report around it, and how it ended when that was not well."""
    report, mark, printed = output.partition("\nOutput:\n")
    if not (mark and report.startswith(_REPORTS)):
        yield from ends_of(output)
        return
    yield from ends_of(printed)
    for line in report.splitlines():
        if line.startswith(_SHOWN_REPORTS) and not line.endswith((" code 0", "code: 0")):
            yield line


def _title(session: SessionSummary) -> str:
    prompt = " ".join(session.first_prompt.split())
    return f"{session.name}: {prompt}" if session.name and prompt else session.name or prompt


def _directory(cwd: str) -> str:
    home = os.path.expanduser("~")  # noqa: PTH111
    shown = f"~{cwd[len(home) :]}" if cwd == home or cwd.startswith(f"{home}/") else cwd
    return shown if len(shown) <= _DIRECTORY_SHOWN else f"…{shown[1 - _DIRECTORY_SHOWN :]}"

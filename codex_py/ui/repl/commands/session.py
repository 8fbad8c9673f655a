"""`/init`, `/compact`, `/new`, `/resume`, `/fork`, `/undo`, `/rewind`, `/quit`: start work, change sessions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from codex_py.core.build import ResumeTarget
from codex_py.core.resume import load_stored
from codex_py.errors import UserError
from codex_py.protocol.ops import Compact, StopWork
from codex_py.rollout.listing import load_summary
from codex_py.rollout.transcript import RewindChoice
from codex_py.services.review import init_prompt
from codex_py.services.session_cleaning import session_cleaner
from codex_py.services.session_document import document_file, document_format, write_document
from codex_py.services.session_export import ExportChoice
from codex_py.text.display import first_words
from codex_py.ui.repl.launch import RewindPreview, RewindTurn
from codex_py.ui.repl.panels.forms import ListEntry, ListForm, Option, Sheet, TextLine
from codex_py.ui.repl.panels.sessions import ChosenSession, SessionWatcher, choose_session
from codex_py.ui.repl.slash_command import CommandContext, Destination, OpenSession, Quit, SlashCommand

_PARTS: Final[Sheet[str]] = Sheet(
    title="Bring back what?",
    subject=(),
    options=(
        Option("b", "Files and conversation", "both"),
        Option("f", "Files", "files"),
        Option("c", "Conversation", "conversation"),
        Option("n", "Cancel", ""),
    ),
    refusal="",
)
_DIFF_STYLES: Final = {"+": "diff.added", "-": "diff.removed"}


async def _undo(context: CommandContext, words: str) -> None:
    await _go_back(context, RewindChoice("last"), looks_first=False)


async def _rewind(context: CommandContext, words: str) -> None:
    """`N` or `latest`, and what goes back; alone it lists the turns."""
    to, _, what = words.partition(" ")
    what = what.strip()
    if what not in ("", "files", "conversation", "both"):
        raise UserError(f"`{what[:40]}` is none of `files`, `conversation`, `both`")
    if to and not (to == "latest" or (to.isascii() and to.isdigit() and int(to))):
        raise UserError("`/rewind` needs the number of a turn, or `latest`", hint="`/rewind` alone lists the turns")
    if not to:
        if has_begun(context):
            await _stop(context)
        turns = (
            await asyncio.to_thread(context.rewinds().turns, context.session.thread_id) if has_begun(context) else ()
        )
        entries = tuple(turn_entry(turn) for turn in reversed(turns))
        to = await context.asker.pick(ListForm("Go back before which turn?", entries, empty="no turn yet")) or ""
        what = (await context.asker.choose(_PARTS)) if to else ""
        if not what:
            return
    request = RewindChoice(to, files=what != "conversation", conversation=what != "files")
    await _go_back(context, request, looks_first=not words)


def turn_entry(turn: RewindTurn) -> ListEntry[str]:
    """A turn in a list, by the number of it."""
    note = " · ".join(filter(None, (turn.time, turn.files)))
    return ListEntry(str(turn.number), f"{turn.number}  {first_words(turn.message, 100)}", note, words=turn.message)


async def _go_back(context: CommandContext, request: RewindChoice, *, looks_first: bool) -> None:
    """The session is closed, which stops all that runs in it, and opened again behind the rewind.

    Where it `looks_first`, and where files are in conflict, what would happen is shown and confirmed.
    """
    session = context.session
    if not has_begun(context):
        raise UserError("there is no turn of this session to go back before")
    await _stop(context)
    preview = await asyncio.to_thread(context.rewinds().preview, session.thread_id, request)
    if looks_first or preview.conflicts:
        chosen = await context.asker.choose(_confirmation(preview))
        if not chosen:
            return
        request = request._replace(copies_conflicts=chosen == "copies")
    session.hooks.runner.end_reason = "resume"
    context.front.leave(OpenSession(ResumeTarget(session.thread_id, any_directory=True), request))


def has_begun(context: CommandContext) -> bool:
    """Whether there is a turn in the file of the session."""
    return bool(len(context.session.history)) and context.session.rollout is not None


async def _stop(context: CommandContext) -> None:
    """Stop the turn, its commands and its agents: what they wrote later would be nobody's."""
    context.front.interrupt()
    await context.session.submit(StopWork())


def _confirmation(preview: RewindPreview) -> Sheet[str]:
    options = [Option("y", "Go back", "go")]
    if preview.conflicts:
        files = "the file" if preview.conflicts == 1 else f"the {preview.conflicts} files"
        options = [
            Option("y", f"Go back, and leave {files} in conflict alone", "go"),
            Option("o", f"Go back with {files} in conflict too", "copies", "yours becomes NAME.rewind-conflict"),
        ]
    return Sheet(
        title="Go back?",
        subject=tuple(TextLine(line) for line in preview.lines) + tuple(_diff_lines(preview.diffs)),
        options=(*options, Option("n", "Cancel", "")),
        refusal="",
        escape="cancel",
    )


def _diff_lines(diffs: Sequence[str]) -> list[TextLine]:
    rows = [line for diff in diffs for line in diff.splitlines()]
    return [TextLine(line, _DIFF_STYLES.get(line[:1], ""), "│ ") for line in rows]


REWIND: Final = (
    SlashCommand("undo", "bring back files and conversation before the last turn", _undo),
    SlashCommand(
        "rewind",
        "go back before a turn, or undo the last rewind",
        _rewind,
        "[TURN|latest] [files|conversation|both]",
    ),
)


_OTHER: Final = "other"


async def _new(context: CommandContext, words: str) -> None:
    _leave(context, OpenSession(), "clear")


async def _resume(context: CommandContext, words: str) -> None:
    await _go_on(context, "resume", words)


async def _fork(context: CommandContext, words: str) -> None:
    """A number is a turn of this session; anything else is another session. Alone it lists the user's messages."""
    if words.isdecimal() and len(words) < 8:
        if not len(context.session.history):
            raise UserError("there is no turn of this session yet", hint="`/fork` alone lists other sessions")
        await _leave_for(
            context, ResumeTarget(context.session.thread_id, any_directory=True, fork=True, turn=int(words))
        )
        return
    if words or not has_begun(context) or context.asker.show is None:
        await _go_on(context, "fork", words)
        return
    turns = await asyncio.to_thread(context.rewinds().turns, context.session.thread_id)
    entries = (*map(turn_entry, reversed(turns)), ListEntry(_OTHER, "another session…"))
    chosen = await context.asker.pick(ListForm("Fork before which message?", entries, enter="fork and edit it"))
    if chosen == _OTHER:
        await _go_on(context, "fork", "")
    elif turn := next((turn for turn in turns if str(turn.number) == chosen), None):
        await _fork_before(context, turn)


async def _fork_before(context: CommandContext, turn: RewindTurn) -> None:
    """Go on with a copy of the session before a message, which is in the input to be changed."""
    if turn.number == 1:
        _leave(context, OpenSession(draft=turn.message), "clear")
        return
    target = ResumeTarget(context.session.thread_id, any_directory=True, fork=True, turn=turn.number - 1)
    await _leave_for(context, target, draft=turn.message)


async def _go_on(context: CommandContext, verb: Literal["resume", "fork"], words: str) -> None:
    watcher = SessionWatcher(
        context.launch.home, context.cwd, context.user_home, time.time(), context.session.thread_id
    )
    chosen = ChosenSession(words, verb) if words else await choose_session(context.asker, verb, watcher)
    if chosen is None:
        return
    if chosen.id == context.session.thread_id and chosen.verb == "resume":
        raise UserError("this is the session that is open")
    target = ResumeTarget(chosen.id, any_directory=True, fork=chosen.verb == "fork", turn=chosen.turn)
    await _leave_for(context, target)


async def _leave_for(context: CommandContext, target: ResumeTarget, *, draft: str = "") -> None:
    """Raise `UserError`, and stay, for a session that cannot be gone on with."""
    await asyncio.to_thread(load_stored, context.launch.home, name=target.thread_id, cwd=None, through_turn=target.turn)
    _leave(context, OpenSession(target, draft=draft), "resume")


def _leave(context: CommandContext, destination: Destination, reason: str) -> None:
    context.session.hooks.runner.end_reason = reason
    context.front.leave(destination)


async def _quit(context: CommandContext, words: str) -> None:
    context.front.leave(Quit())


LEAVE: Final = (
    SlashCommand("new", "begin a new session", _new, while_running=False, also="clear"),
    SlashCommand("resume", "go on with an earlier session", _resume, "[SESSION]", while_running=False),
    SlashCommand(
        "fork",
        "go on with a copy of a session, or of this one up to a turn",
        _fork,
        "[SESSION|TURN]",
        while_running=False,
    ),
    SlashCommand("quit", "leave", _quit, also="exit"),
)


async def _init(context: CommandContext, words: str) -> None:
    request = f"\n\n{words}" if words else ""
    context.front.send_message(init_prompt(context.cwd) + request, typed=f"/init {words}".rstrip())


async def _compact(context: CommandContext, words: str) -> None:
    context.front.begin(Compact(words))


async def _export(context: CommandContext, words: str) -> None:
    """Write the session as a document: a file name, whose ending says the format, or Markdown beside the work."""
    session, launch = context.session, context.launch
    if session.rollout is None or not len(session.history):
        raise UserError("there is nothing of this session to export yet")
    path, name = session.rollout, words or f"session-{session.thread_id[-8:]}.md"

    def write() -> Path:
        output = context.cwd / Path(name).expanduser()
        choice = ExportChoice(document_format("", output))
        cleaner = session_cleaner(launch.home, launch.loaded.config, launch.env)
        with document_file(output) as write:
            write_document(load_summary(launch.home, path), choice, cleaner, write)
        return output

    context.output.note(f"wrote {context.show_path(await asyncio.to_thread(write))}")


WORK: Final = (
    SlashCommand("init", "have an AGENTS.md written for this repository", _init, "[WISH]"),
    SlashCommand("compact", "replace the history by a summary", _compact, "[FOCUS]", while_running=False),
    SlashCommand("export", "write this session to a file: .md, .html, .json or .jsonl", _export, "[FILE]"),
)

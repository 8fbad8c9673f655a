"""`/undo` and `/rewind`: choose a turn and what goes back, look at what would happen, and go back."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from codex_py.core.build import ResumeTarget
from codex_py.errors import UserError
from codex_py.protocol.ops import StopWork
from codex_py.text.display import first_words
from codex_py.ui.repl.launch import RewindPreview, RewindRequest, RewindTurn
from codex_py.ui.repl.panels.forms import ListEntry, ListForm, Option, Sheet, TextLine
from codex_py.ui.repl.slash_command import CommandContext, OpenSession, SlashCommand

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
    await _go_back(context, RewindRequest("last"), looks_first=False)


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
    request = RewindRequest(to, files=what != "conversation", conversation=what != "files")
    await _go_back(context, request, looks_first=not words)


def turn_entry(turn: RewindTurn) -> ListEntry[str]:
    """A turn in a list, by the number of it."""
    note = " · ".join(filter(None, (turn.time, turn.files)))
    return ListEntry(str(turn.number), f"{turn.number}  {first_words(turn.message, 100)}", note, words=turn.message)


async def _go_back(context: CommandContext, request: RewindRequest, *, looks_first: bool) -> None:
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
        request = request.replace(copies_conflicts=chosen == "copies")
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

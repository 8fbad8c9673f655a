"""`/review`, `/init`, `/compact`, `/copy`, `/new`, `/resume`, `/fork`, `/quit`: start work, change sessions."""

from __future__ import annotations

import asyncio
import time
from typing import Final, Literal

from codex_py.core.build import ResumeTarget
from codex_py.core.resume import load_stored
from codex_py.errors import UserError
from codex_py.protocol.ops import Compact
from codex_py.services.review import (
    BranchChanges,
    CommitChanges,
    ReviewTarget,
    UncommittedChanges,
    branches,
    init_prompt,
    is_empty,
    recent_commits,
    review_prompt,
)
from codex_py.ui.repl.clipboard import copy_text
from codex_py.ui.repl.panels.forms import ListEntry, ListForm, Option, Sheet
from codex_py.ui.repl.panels.sessions import SessionWatcher, choose_session
from codex_py.ui.repl.slash_command import CommandContext, Destination, OpenSession, Quit, SlashCommand


async def _new(context: CommandContext, words: str) -> None:
    _leave(context, OpenSession(), "clear")


async def _resume(context: CommandContext, words: str) -> None:
    await _go_on(context, "resume", words)


async def _fork(context: CommandContext, words: str) -> None:
    """A number is a turn of this session; anything else is another session."""
    if words.isdecimal() and len(words) < 8:
        if not len(context.session.history):
            raise UserError("there is no turn of this session yet", hint="`/fork` alone lists other sessions")
        await _leave_for(
            context, ResumeTarget(context.session.thread_id, any_directory=True, fork=True, turn=int(words))
        )
        return
    await _go_on(context, "fork", words)


async def _go_on(context: CommandContext, verb: Literal["resume", "fork"], words: str) -> None:
    watcher = SessionWatcher(
        context.launch.home, context.cwd, context.user_home, time.time(), context.session.thread_id
    )
    chosen = words or await choose_session(context.asker, verb, watcher)
    if chosen == context.session.thread_id and verb == "resume":
        raise UserError("this is the session that is open")
    if chosen:
        await _leave_for(context, ResumeTarget(chosen, any_directory=True, fork=verb == "fork"))


async def _leave_for(context: CommandContext, target: ResumeTarget) -> None:
    """Raise `UserError`, and stay, for a session that cannot be gone on with."""
    await asyncio.to_thread(load_stored, context.launch.home, name=target.thread_id, cwd=None, through_turn=target.turn)
    _leave(context, OpenSession(target), "resume")


def _leave(context: CommandContext, destination: Destination, reason: str) -> None:
    context.session.hooks.end_reason = reason
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


_TARGET_SHEET: Final[Sheet[str]] = Sheet(
    title="Review what?",
    subject=(),
    options=(
        Option("u", "Uncommitted changes", "uncommitted", "staged, unstaged and new files"),
        Option("b", "This branch", "branch", "against another one"),
        Option("c", "A commit", "commit"),
        Option("n", "Cancel", ""),
    ),
    refusal="",
)


async def _review(context: CommandContext, words: str) -> None:
    target_type, _, rest = words.partition(" ")
    target: ReviewTarget | None
    if target_type in ("branch", "commit") and rest.strip():
        target = BranchChanges(rest.strip()) if target_type == "branch" else CommitChanges(rest.strip())
        words = ""
    elif target_type in ("uncommitted", "branch", "commit") and not rest.strip():
        target, words = await _choose_target(context, target_type), ""
    elif words:
        target = UncommittedChanges()
    else:
        target = await _choose_target(context, await context.asker.choose(_TARGET_SHEET))
    if target is None:
        return
    prompt = await asyncio.to_thread(review_prompt, target, context.git(), focus=words)
    if await asyncio.to_thread(is_empty, target, context.git()):
        context.output.note(_nothing_to_review(target))
    else:
        context.front.send_message(prompt, typed=f"/review {words or _command_words(target)}")


async def _choose_target(context: CommandContext, target_type: str) -> ReviewTarget | None:
    match target_type:
        case "uncommitted":
            return UncommittedChanges()
        case "branch":
            names = await asyncio.to_thread(branches, context.git())
            entries = tuple(ListEntry(name, name) for name in names)
            chosen = await context.asker.pick(
                ListForm("Review against which branch?", entries, empty="no other branch")
            )
            return BranchChanges(chosen) if chosen else None
        case "commit":
            commits = await asyncio.to_thread(recent_commits, context.git())
            listed = tuple(ListEntry(commit, commit.title or commit.commit, commit.commit[:10]) for commit in commits)
            return await context.asker.pick(ListForm("Review which commit?", listed, empty="no commit"))
        case _:
            return None


def _nothing_to_review(target: ReviewTarget) -> str:
    if isinstance(target, BranchChanges):
        return f"nothing to review: this branch has nothing that `{target.base}` has not"
    return "nothing to review: no uncommitted changes; `/review branch NAME` and `/review commit SHA` look at others"


def _command_words(target: ReviewTarget) -> str:
    """What to type for the same review."""
    match target:
        case UncommittedChanges():
            return "uncommitted"
        case BranchChanges(base):
            return f"branch {base}"
        case CommitChanges(commit):
            return f"commit {commit}"


async def _init(context: CommandContext, words: str) -> None:
    request = f"\n\n{words}" if words else ""
    context.front.send_message(init_prompt(context.cwd) + request, typed=f"/init {words}".rstrip())


async def _compact(context: CommandContext, words: str) -> None:
    context.front.begin(Compact(words))


async def _copy(context: CommandContext, words: str) -> None:
    message = context.session.last_message
    if not message:
        context.output.note("there is no answer to copy yet")
        return
    how = await copy_text(message, context.launch.env, context.programs(), context.front.emit)
    context.output.note(f"copied the last answer, {len(message):,} characters, {how}")


WORK: Final = (
    SlashCommand(
        "review", "review uncommitted changes, a branch or a commit", _review, "[branch NAME|commit SHA|WISH]"
    ),
    SlashCommand("init", "have an AGENTS.md written for this repository", _init, "[WISH]"),
    SlashCommand("compact", "replace the history by a summary", _compact, "[FOCUS]", while_running=False),
    SlashCommand("copy", "copy the last answer to the clipboard", _copy),
)

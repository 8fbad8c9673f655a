"""`/review`: changes looked at by an agent, in a context of its own."""

from __future__ import annotations

import asyncio
from typing import Final

from codex_py.errors import UserError
from codex_py.protocol.events import AgentChanged, Event
from codex_py.protocol.status import AgentState
from codex_py.render.message import render_message, render_prompt
from codex_py.services.review import (
    BranchChanges,
    CommitChanges,
    ReviewTarget,
    UncommittedChanges,
    branches,
    is_empty,
    nothing_to_review,
    recent_commits,
    review_prompt,
    start_review,
)
from codex_py.ui.repl.panels.forms import Form, ListEntry, ListForm, Option, Sheet, needs_text
from codex_py.ui.repl.slash_command import CommandContext, SlashCommand

_TARGET_SHEET: Final[Sheet[str]] = Sheet(
    title="Review what?",
    subject=(),
    options=(
        Option("u", "Uncommitted changes", "uncommitted", "staged, unstaged and new files"),
        Option("b", "This branch", "branch", "against another one"),
        Option("c", "A commit", "commit"),
        Option("i", "Own instructions…", "own", "uncommitted changes, looked at as you say"),
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
        chosen = await context.asker.choose(_TARGET_SHEET)
        target = await _choose_target(context, chosen)
        if chosen == "own":
            words = await context.asker.enter(_INSTRUCTIONS) or ""
            target = UncommittedChanges() if words else None
    if target is None:
        return
    prompt = await asyncio.to_thread(review_prompt, target, context.git(), focus=words)
    if await asyncio.to_thread(is_empty, target, context.git()):
        context.output.note(_nothing_to_review(target))
    else:
        await _review_apart(context, prompt, typed=f"/review {words or _command_words(target)}")


_INSTRUCTIONS: Final = Form("What should the review look at?", check=needs_text, enter="review")


async def _review_apart(context: CommandContext, prompt: str, *, typed: str) -> None:
    """Have an agent do it, in a context of its own; where there can be none, the session itself does.

    The model is sent what came of it with its next request.
    """
    session = context.session
    ended: asyncio.Future[AgentState] = asyncio.get_running_loop().create_future()

    def note_end(event: Event) -> None:
        if not isinstance(event, AgentChanged) or event.agent.id != started or event.agent.is_at_work:
            return
        if not ended.done():
            ended.set_result(event.agent)

    started = ""
    context.output.show(render_prompt(typed))
    session.subscribe(note_end)
    try:
        started = await start_review(session, prompt, context.launch.loaded.config.review_model)
    except UserError as error:
        context.output.note(f"the review is a turn of this session: {error}")
        context.front.send_message(prompt, typed=typed)
        return
    agent = await ended
    if agent.status == "completed" and agent.message and (review := render_message(agent.message)) is not None:
        context.output.show(review)


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
    others = (
        "" if isinstance(target, BranchChanges) else "; `/review branch NAME` and `/review commit SHA` look at others"
    )
    return nothing_to_review(target) + others


def _command_words(target: ReviewTarget) -> str:
    """What to type for the same review."""
    match target:
        case UncommittedChanges():
            return "uncommitted"
        case BranchChanges(base):
            return f"branch {base}"
        case CommitChanges(commit):
            return f"commit {commit}"


REVIEW: Final = SlashCommand(
    "review",
    "have uncommitted changes, a branch or a commit reviewed",
    _review,
    "[branch NAME|commit SHA|INSTRUCTIONS]",
)

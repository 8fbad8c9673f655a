"""`/review`, `/init`, `/compact`, `/copy`: work that has its own prompt, and what becomes of answers."""

from __future__ import annotations

import asyncio
from typing import Final

from codex_py.core.init_prompt import init_prompt
from codex_py.core.review import (
    BranchChanges,
    CommitChanges,
    ReviewTarget,
    UncommittedChanges,
    branches,
    is_empty,
    recent_commits,
    review_prompt,
)
from codex_py.protocol.ops import Compact
from codex_py.ui.repl.clipboard import copy_text
from codex_py.ui.repl.desk import Desk
from codex_py.ui.repl.panels.forms import Entry, Listing, Option, Sheet
from codex_py.ui.repl.slash import Command

_WHAT: Final[Sheet[str]] = Sheet(
    title="What is to be reviewed?",
    subject=(),
    options=(
        Option("u", "Uncommitted changes", "uncommitted", "staged, unstaged and new files"),
        Option("b", "This branch", "branch", "against another one"),
        Option("c", "A commit", "commit"),
        Option("n", "Nothing", ""),
    ),
    refusal="",
)


async def _review(desk: Desk, words: str) -> None:
    kind, _, rest = words.partition(" ")
    target: ReviewTarget | None
    if kind in ("branch", "commit") and rest.strip():
        target = BranchChanges(rest.strip()) if kind == "branch" else CommitChanges(rest.strip())
        words = ""
    elif kind in ("uncommitted", "branch", "commit") and not rest.strip():
        target, words = await _target(desk, kind), ""
    elif words:
        target = UncommittedChanges()
    else:
        target = await _target(desk, await desk.asker.choose(_WHAT))
    if target is None:
        return
    prompt = await asyncio.to_thread(review_prompt, target, desk.git(), wishes=words)
    if await asyncio.to_thread(is_empty, target, desk.git()):
        desk.voice.note(_nothing_to_review(target))
    else:
        desk.front.say(prompt, typed=f"/review {words or _named(target)}")


async def _target(desk: Desk, kind: str) -> ReviewTarget | None:
    match kind:
        case "uncommitted":
            return UncommittedChanges()
        case "branch":
            names = await asyncio.to_thread(branches, desk.git())
            entries = tuple(Entry(name, name) for name in names)
            chosen = await desk.asker.pick(Listing("Review against which branch?", entries, empty="no other branch"))
            return BranchChanges(chosen) if chosen else None
        case "commit":
            commits = await asyncio.to_thread(recent_commits, desk.git())
            listed = tuple(Entry(one, one.title or one.commit, one.commit[:10]) for one in commits)
            return await desk.asker.pick(Listing("Review which commit?", listed, empty="no commit"))
        case _:
            return None


def _nothing_to_review(target: ReviewTarget) -> str:
    if isinstance(target, BranchChanges):
        return f"nothing to review: this branch has nothing that `{target.base}` has not"
    return "nothing to review: no uncommitted changes; `/review branch NAME` and `/review commit SHA` look at others"


def _named(target: ReviewTarget) -> str:
    """What to type for the same review."""
    match target:
        case UncommittedChanges():
            return "uncommitted"
        case BranchChanges(base):
            return f"branch {base}"
        case CommitChanges(commit):
            return f"commit {commit}"


async def _init(desk: Desk, words: str) -> None:
    wish = f"\n\n{words}" if words else ""
    desk.front.say(init_prompt(desk.cwd) + wish, typed=f"/init {words}".rstrip())


async def _compact(desk: Desk, words: str) -> None:
    desk.front.begin(Compact(words))


async def _copy(desk: Desk, words: str) -> None:
    message = desk.session.last_message
    if not message:
        desk.voice.note("there is no answer to copy yet")
        return
    how = await copy_text(message, desk.place.env, desk.programs(), desk.front.emit)
    desk.voice.note(f"copied the last answer, {len(message):,} characters, {how}")


WORK: Final = (
    Command("review", "review uncommitted changes, a branch or a commit", _review, "[branch NAME|commit SHA|WISH]"),
    Command("init", "have an AGENTS.md written for this repository", _init, "[WISH]"),
    Command("compact", "replace the history by a summary", _compact, "[FOCUS]", while_running=False),
    Command("copy", "copy the last answer to the clipboard", _copy),
)

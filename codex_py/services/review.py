"""Prompts for whole tasks: reviewing changes, and writing an `AGENTS.md`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Final, TypeAlias

from codex_py.context.instructions import init_instructions, review_instructions
from codex_py.core.session import Session
from codex_py.errors import ToolError, UsageError, UserError
from codex_py.protocol.ops import TextInput
from codex_py.protocol.value import Value
from codex_py.services.git import GitReader
from codex_py.tools.spec import SpawnRequest

_MAX_NAMES: Final = 500


class UncommittedChanges(Value):
    """Staged, unstaged and untracked ones."""


class BranchChanges(Value):
    """The current branch's changes since `base`, with uncommitted work."""

    base: str


class CommitChanges(Value):
    """The changes of one commit; `title` is its title, or empty."""

    commit: str
    title: str = ""


ReviewTarget: TypeAlias = UncommittedChanges | BranchChanges | CommitChanges


def review_prompt(target: ReviewTarget, git: GitReader, *, focus: str = "") -> str:
    """The prompt for a review; `focus` is what the reviewer should look at most.

    Raises `UsageError` for a branch or commit that does not exist.
    """
    above_all = [f"Look at this above all: {focus}"] if focus else []
    return "\n\n".join([_what(target, git), *above_all, review_instructions()])


async def start_review(session: Session, prompt: str, model: str | None) -> str:
    """Have an agent of the session review, with `model` where that is set; the agent's id.

    Raises `UserError` where no agent can be started.
    """
    try:
        agent = await session.load_agents().spawn(SpawnRequest((TextInput(prompt),), model=model))
    except ToolError as error:
        raise UserError(str(error)) from error
    return agent.id


def is_empty(target: ReviewTarget, git: GitReader) -> bool:
    """Whether there is nothing to review, as far as git can tell. Raises `UserError` outside of a repository."""
    if isinstance(target, CommitChanges):
        return False
    answers = [_answered(git, "status", "--porcelain", "--untracked-files=normal")]
    if isinstance(target, BranchChanges):
        answers.append(_answered(git, "rev-list", "--max-count=1", f"{target.base}..HEAD", "--"))
    return not any(answers)


def nothing_to_review(target: ReviewTarget) -> str:
    """The line for a target that is empty."""
    if isinstance(target, BranchChanges):
        return f"nothing to review: this branch has nothing that `{target.base}` has not"
    return "nothing to review: no uncommitted changes"


def read_target(words: str) -> tuple[ReviewTarget, str]:
    """The target of a review in the words of a command, `branch NAME` or `commit SHA`, and the focus in other words."""
    target_type, _, rest = words.strip().partition(" ")
    match target_type, rest.strip():
        case "branch", str(base) if base:
            return BranchChanges(base), ""
        case "commit", str(commit) if commit:
            return CommitChanges(commit), ""
        case "uncommitted", "":
            return UncommittedChanges(), ""
        case _:
            return UncommittedChanges(), words.strip()


def branches(git: GitReader) -> list[str]:
    """The branches to compare with, without the current one, the most recent first; none outside of a repository.

    Blocks, so call it in a thread.
    """
    current = git.lines("branch", "--show-current")
    names = git.lines(
        *("for-each-ref", "--sort=-committerdate", f"--count={_MAX_NAMES}", "--format=%(refname:short)", "refs/heads")
    )
    return [name for name in names if name not in current]


def recent_commits(git: GitReader, *, most: int = 100) -> list[CommitChanges]:
    """The last commits, the newest first; none outside of a repository. Blocks, so call it in a thread."""
    lines = git.lines("log", f"--max-count={most}", "--format=%h %s")
    return [CommitChanges(*line.split(" ", 1)) for line in lines]


def _what(target: ReviewTarget, git: GitReader) -> str:
    match target:
        case UncommittedChanges():
            return (
                "Review the uncommitted changes: see `git status`, `git diff HEAD` for what is staged and unstaged, and"
                " read the files that are untracked."
            )
        case BranchChanges(base):
            _check_exists(base, git)
            return (
                f"Review what the current branch changes against `{base}`, uncommitted work included: see"
                f" `git diff $(git merge-base HEAD {shlex.quote(base)})`, and `git status` for new files."
            )
        case CommitChanges(commit, title):
            _check_exists(commit, git)
            called = f' ("{title}")' if title else ""
            return f"Review what the commit `{commit}`{called} changes: see `git show {shlex.quote(commit)}`."


def _answered(git: GitReader, *arguments: str) -> bytes:
    found = git.ask(*arguments)
    if found.status:
        raise UserError(f"cannot tell what there is to review: {found.complaint}")
    return found.out.strip()


def _check_exists(name: str, git: GitReader) -> None:
    if git.ask("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}").status:
        raise UsageError(f"there is no branch or commit `{name}` here", hint="`git branch -a` lists the branches")


_GUIDES: Final = (
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
    ".cursorrules",
    ".cursor/rules",
    ".github/copilot-instructions.md",
    "CONTRIBUTING.md",
)


def init_prompt(cwd: Path) -> str:
    """The prompt of `/init`, with the guides that `cwd` already has."""
    found = [f"`{name}`" for name in _GUIDES if (cwd / name).exists()]
    there = f"\n\nThere already: {', '.join(found)}." if found else ""
    return f"{init_instructions()}{there}"

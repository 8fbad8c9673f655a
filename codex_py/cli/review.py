"""The prompt of `codex-py exec review`: what its flags ask for, and whether there is anything to review."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from codex_py.errors import NothingToDo, UsageError, UserError
from codex_py.services.git import GitReader
from codex_py.services.review import (
    BranchChanges,
    CommitChanges,
    ReviewTarget,
    UncommittedChanges,
    is_empty,
    nothing_to_review,
)
from codex_py.services.review import review_prompt as prompt_for


def review_prompt(options: argparse.Namespace, focus: str, cwd: Path) -> str:
    """The prompt for the changes that the flags name; `focus` is what the reviewer is to look at above all.

    Raises `UsageError` for flags that exclude each other and for a branch or commit that does not exist, and
    `NothingToDo` where there are no changes.
    """
    flags = [f"--{name}" for name in ("uncommitted", "base", "commit") if getattr(options, name)]
    if len(flags) > 1:
        raise UsageError(f"`{flags[0]}` and `{flags[1]}` exclude each other", hint="review one thing at a time")
    if options.title and not options.commit:
        raise UsageError("`--title` goes with `--commit`")
    target, git = _target(options), GitReader(cwd, os.environ)
    prompt = prompt_for(target, git, focus=focus)
    try:
        nothing = is_empty(target, git)
    except UserError:
        # The reviewer looks for itself.
        nothing = False
    if nothing:
        others = "" if options.base else "; `--base BRANCH` and `--commit SHA` review others"
        raise NothingToDo(nothing_to_review(target) + others)
    return prompt


def _target(options: argparse.Namespace) -> ReviewTarget:
    if options.base:
        return BranchChanges(options.base)
    return CommitChanges(options.commit, options.title or "") if options.commit else UncommittedChanges()

"""`codex-py exec review`: the prompt that asks for it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from codex_py.core.git_program import GitReader
from codex_py.core.review import BranchChanges, CommitChanges, ReviewTarget, UncommittedChanges
from codex_py.core.review import review_prompt as prompt_for
from codex_py.errors import UsageError


def review_prompt(given: argparse.Namespace, words: Sequence[str], cwd: Path) -> str:
    """The prompt for the changes the flags name; `words` are what the user wants looked at besides.

    Raises `UsageError` for flags that exclude each other and `UserError` for a branch or commit that is not there.
    """
    kinds = [f"--{name}" for name in ("uncommitted", "base", "commit") if getattr(given, name)]
    if len(kinds) > 1:
        raise UsageError(f"`{kinds[0]}` and `{kinds[1]}` exclude each other", hint="review one thing at a time")
    if given.title and not given.commit:
        raise UsageError("`--title` goes with `--commit`")
    return prompt_for(_target(given), GitReader(cwd, os.environ), wishes=words[0] if words else "")


def _target(given: argparse.Namespace) -> ReviewTarget:
    if given.base:
        return BranchChanges(given.base)
    return CommitChanges(given.commit, given.title or "") if given.commit else UncommittedChanges()

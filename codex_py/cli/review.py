"""`codex-py exec review`: the prompt that asks for it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from codex_py.errors import UsageError
from codex_py.services.git import GitReader
from codex_py.services.review import BranchChanges, CommitChanges, ReviewTarget, UncommittedChanges
from codex_py.services.review import review_prompt as prompt_for


def review_prompt(options: argparse.Namespace, words: Sequence[str], cwd: Path) -> str:
    """The prompt for the changes that the flags name; `words` is what the reviewer is to focus on.

    Raises `UsageError` for flags that exclude each other and `UserError` for a branch or commit that does not exist.
    """
    flags = [f"--{name}" for name in ("uncommitted", "base", "commit") if getattr(options, name)]
    if len(flags) > 1:
        raise UsageError(f"`{flags[0]}` and `{flags[1]}` exclude each other", hint="review one thing at a time")
    if options.title and not options.commit:
        raise UsageError("`--title` goes with `--commit`")
    return prompt_for(_target(options), GitReader(cwd, os.environ), focus=words[0] if words else "")


def _target(options: argparse.Namespace) -> ReviewTarget:
    if options.base:
        return BranchChanges(options.base)
    return CommitChanges(options.commit, options.title or "") if options.commit else UncommittedChanges()

"""Explains why git could not write: the sandbox keeps `.git` read-only, or its settings and hooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from codex_py.paths import real_path
from codex_py.protocol.events import Warned
from codex_py.protocol.policy import WorkspaceWrite
from codex_py.sandbox.git_directories import RUN_BY_GIT, dot_gits_around, find_stores
from codex_py.tools.spec import ToolContext

_COMMITS: Final = (
    "the sandbox keeps `.git` read-only, so git cannot commit, stage or switch branches: `git = true` under "
    "`[sandbox_workspace_write]` in `config.toml` allows it, `-c sandbox_workspace_write.git=true` for one run"
)
_SETTINGS: Final = (
    "\nthe sandbox keeps the settings and hooks of git read-only, because git runs what they name: nothing was changed "
    "in them; ask the user to run this git command"
)
_SIGNS: Final = (
    *("read-only file system", "device or resource busy", "operation not permitted"),
    "unable to create directory for .git",
)
# They fail without a word about it.
_SILENT: Final = ("stash", "rebase")
# What git writes to, as it names it; of some it tells no path.
_IN_GIT: Final = r"(?<![\w.-])\.git(?![\w.-])|\.lock'|config file|unable to create temporary file"
_IN_SETTINGS: Final = (
    rf"config file|\.git/(?:(?:modules|worktrees)/.+/)?(?:{'|'.join(map(re.escape, RUN_BY_GIT))})(?!\w)"
)


def explain_git(output: str, exit_code: int, commands: Iterable[Sequence[str]], context: ToolContext) -> str:
    """A line for the model when git could not write; "" when it could. The user is told of the setting, too.

    `commands` are those of the script, as far as they are known.
    """
    policy = context.sandbox_policy
    if not isinstance(policy, WorkspaceWrite):
        return ""
    refused = [line for line in output.splitlines() if any(sign in line.lower() for sign in _SIGNS)]
    refused = [line for line in refused if re.search(_IN_GIT, line)]
    reasons: list[str] = []
    is_silent = exit_code == 1 and any(
        len(words) > 1 and words[0] == "git" and words[1] in _SILENT for words in commands
    )
    data = [line for line in refused if not re.search(_IN_SETTINGS, line)]
    if not policy.git and (is_silent or any(_would_help(line, policy, context) for line in data)):
        context.emit(Warned(_COMMITS))
        reasons.append(f"\n{_COMMITS}")
    if len(data) < len(refused):
        reasons.append(_SETTINGS)
    return "".join(reasons)


def _would_help(line: str, policy: WorkspaceWrite, context: ToolContext) -> bool:
    """Whether the paths of a message lie where commands could write with the setting; a relative one may."""
    worked_in = [Path(real_path(context.cwd / directory)) for directory in (".", *policy.writable_roots)]
    roots = [root.path for root in context.sandbox.roots(policy, context.cwd)]
    directories = (*roots, *find_stores(dot_gits_around(worked_in)))
    return all(
        any(Path(path).is_relative_to(directory) for directory in directories)
        for path in re.findall(r"'(/[^']*)'", line)
    )

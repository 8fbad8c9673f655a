"""What an approval of a command is bound to: the files the command names, as they were when the user agreed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.paths import real_path
from codex_py.process.named_files import named_files
from codex_py.shell.words import Words
from codex_py.text.sanitize import sanitize_line
from codex_py.tools.rules import RuleBook
from codex_py.tools.spec import ToolContext

_MAX_SHOWN: Final = 3
# They make, remove or mark the files they name, and neither read nor run what is in them.
_IGNORE_CONTENT: Final = frozenset({"chmod", "chown", "mkdir", "rm", "rmdir", "touch"})


def bound_files(words: Sequence[str], workdir: Path, context: ToolContext) -> tuple[str, ...]:
    """The files that words of a command name, each as `sha256:HASH PATH`, in the form rules keep them in.

    A script is one word. A plain command whose program reads and runs no file it names has none.
    """
    segments = context.read_command_line(words[0], workdir).segments if len(words) == 1 else [tuple(words)]
    if segments and all(segment[0] in _IGNORE_CONTENT for segment in segments if segment):
        return ()
    roots = [root.path for root in context.sandbox.roots(context.sandbox_policy, context.cwd)]
    directories = [Path(real_path(context.cwd)), *(root for root in roots if root != Path("/"))]
    found = named_files(words, directories, Path(real_path(workdir)))
    return tuple(
        f"sha256:{content.hex()} {os.fsencode(path).decode(errors='replace')}" for path, content in found.items()
    )


def changed_files(before: Sequence[str], now: Sequence[str]) -> str:
    """The files that differ, for a message: changed, come or gone."""
    paths = dict.fromkeys(entry.partition(" ")[2] for entry in (*now, *before) if (entry in now) != (entry in before))
    shown = [f"`{sanitize_line(path)}`" for path in list(paths)[:_MAX_SHOWN]]
    more = f" and {len(paths) - len(shown)} more" if len(paths) > len(shown) else ""
    return ", ".join(shown) + more


class RulesInForce(NamedTuple):
    """The rules without those that the user kept for files that have changed, which `changed` names for a message."""

    rules: RuleBook
    changed: str = ""


def rules_in_force(
    rules: RuleBook, segments: Sequence[Words] | None, workdir: Path, context: ToolContext
) -> RulesInForce:
    """The rules that hold for a script as the disk is now."""
    stale: Mapping[int, str] = {
        number: changed_files(rule.files, now)
        for number, rule in enumerate(rules.rules)
        if rule.files is not None
        for words in segments or ()
        if rule in rules.matching(words)
        if (now := bound_files(words[: len(rule.pattern)], workdir, context)) != rule.files
    }
    if not stale:
        return RulesInForce(rules)
    valid = tuple(rule for number, rule in enumerate(rules.rules) if number not in stale)
    return RulesInForce(rules.replace(rules=valid), next(filter(None, stale.values()), ""))

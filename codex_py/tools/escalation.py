"""A command that leaves the sandbox: was it denied, what does it run, to what is its approval bound.

A yes, and a rule, are about programs, and a command names them by words that its shell looks up. Directories that
sandboxed commands may write do not take part in that, unless a program of the command is found there alone or first:
then the question names it, and no rule about the bare word is enough.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.paths import real_path
from codex_py.process.named_files import named_files
from codex_py.programs import ProgramFinder
from codex_py.protocol.policy import DangerFullAccess, WorkspaceWrite
from codex_py.sandbox.ownership import describe_foreign_owner
from codex_py.sandbox.policy import is_writable
from codex_py.shell.command_line import CommandLine, Words
from codex_py.shell.dangerous import Danger, Reach, find_danger
from codex_py.shell.known_safe import BUILTINS
from codex_py.text.display import first_names
from codex_py.text.sanitize import sanitize_line
from codex_py.tools.rules import RuleBook
from codex_py.tools.spec import ToolContext


def writable_programs(commands: Iterable[Words], shell: str, context: ToolContext) -> tuple[str, ...]:
    """The full paths of the programs among them that sandboxed commands may write, each once.

    Only programs named by a bare word are looked up: a path says where it leads. None where there is no sandbox.
    """
    if context.plan or isinstance(context.sandbox_policy, DangerFullAccess):
        return ()
    finder = finder_of(context)
    names = dict.fromkeys([shell, *(words[0] for words in commands if words)])
    bare = [name for name in names if name and "/" not in name and name not in BUILTINS]
    return tuple(found for name in bare if (found := finder.find_untrusted(name)) is not None)


def unagreed(programs: Sequence[str], executables: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Those that the user's rules do not name as what a bare word means (`host_executable`)."""
    return tuple(path for path in programs if path not in executables.get(path.rpartition("/")[2], ()))


def outside_context(context: ToolContext, programs: Sequence[str]) -> ToolContext:
    """The context of a command that leaves the sandbox; `programs` are its writable ones, which the user agreed to."""
    outside = context.replace(sandbox_policy=DangerFullAccess())
    if programs or isinstance(context.sandbox_policy, DangerFullAccess):
        return outside
    path = finder_of(context).trusted_path()
    return outside.replace(env={**context.env, "PATH": path}, fixed_path=path)


def finder_of(context: ToolContext) -> ProgramFinder:
    """A finder that recognises programs which the session's commands may write."""
    roots = context.sandbox.roots(context.sandbox_policy, context.cwd)
    directories = dict.fromkeys([real_path(context.cwd), *(str(root.path) for root in roots)])
    return ProgramFinder(context.env.get("PATH", ""), tuple(directory for directory in directories if directory != "/"))


def find_danger_here(line: CommandLine, context: ToolContext) -> Danger | None:
    """The danger in a command line of this session; with full access nothing is one."""
    policy, cwd = context.sandbox_policy, context.cwd
    if isinstance(policy, DangerFullAccess):
        return None
    roots = context.sandbox.roots(policy, cwd)
    paths = tuple(str(root.path) for root in roots)

    def can_write(path: str) -> bool:
        if context.sandbox.shortfall(policy, cwd) is None:
            return is_writable(Path(path), roots)
        return any(Path(path).is_relative_to(root) for root in paths)

    has_network = isinstance(policy, WorkspaceWrite) and policy.network_access is True
    home = context.env.get("HOME", "")
    return find_danger(line, Reach(paths or (real_path(cwd),), home and real_path(home), can_write, has_network))


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
    return first_names([f"`{sanitize_line(path)}`" for path in paths], _MAX_SHOWN)


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


_SIGNS: Final = (
    "operation not permitted",
    "permission denied",
    "read-only file system",
    "seccomp",
    "sandbox",
    "landlock",
    "failed to write file",
)
# Wrong usage, not executable, not found: the shell's own verdicts.
_NEVER: Final = (0, 2, 126, 127)
_KILLED_BY_FILTER: Final = 128 + 31


def looks_denied(exit_code: int, output: str) -> bool:
    """Whether a sandboxed command that ended so was probably refused something by the sandbox."""
    if exit_code == _KILLED_BY_FILTER:
        return True
    if exit_code in _NEVER:
        return False
    folded = output.lower()
    return any(sign in folded for sign in _SIGNS)


_HELD_SIGNS: Final = ("read-only file system", "file exists", "is a directory", "permission denied", "busy")


def explain_protected(output: str, names: Iterable[str]) -> str:
    """A line for the model when a command failed at one of the `names` of `sandbox.protected`; "" when it did not."""
    lines = [line for line in output.splitlines() if any(sign in line.lower() for sign in _HELD_SIGNS)]
    held = [name for name in names if any(_names(line, name.rpartition("/")[2]) for line in lines)]
    if not held:
        return ""
    return (
        f"\n`{held[0]}` is read-only for commands, because other programs run what is in it: change it with "
        "`apply_patch`, which asks the user, or ask the user to take it out of `sandbox.protected` in `config.toml`"
    )


def explain_owner(output: str, context: ToolContext) -> str:
    """A line for the model when a command failed at a file of another user; "" when it did not."""
    reason = describe_foreign_owner(context.sandbox_policy, context.cwd)
    return f"\n{reason}" if reason and ("permission denied" in output.lower() or "dubious ownership" in output) else ""


def _names(line: str, name: str) -> bool:
    """Whether a message is about a path with this name, and not a longer one."""
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w.-])", line) is not None

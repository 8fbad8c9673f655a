"""What a command runs that leaves the sandbox.

A yes, and a rule, are about programs, and a command names them by words that its shell looks up. Directories that
sandboxed commands may write do not take part in that, unless a program of the command is found there alone or first:
then the question names it, and no rule about the bare word is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from codex_py.paths import real_path
from codex_py.programs import ProgramFinder
from codex_py.protocol.policy import DangerFullAccess
from codex_py.shell.known_safe import BUILTINS
from codex_py.shell.words import Words
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
    """What tells the programs apart that the session's commands may write."""
    roots = context.sandbox.roots(context.sandbox_policy, context.cwd)
    directories = dict.fromkeys([real_path(context.cwd), *(str(root.path) for root in roots)])
    return ProgramFinder(context.env.get("PATH", ""), tuple(directory for directory in directories if directory != "/"))

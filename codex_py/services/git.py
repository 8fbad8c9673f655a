"""Runs git to read repositories, without the programs that a repository can make git start.

Repositories come from anywhere, and their files name programs that git runs: filters, remote helpers, hooks, pagers.
All of these are switched off, and git runs in the read-only sandbox without network if a sandbox works here. Blocks, so
call it in a thread.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from codex_py.core.session_file import GitDirectories, git_directories
from codex_py.errors import UserError
from codex_py.paths import is_directory, real_path
from codex_py.programs import ProbeResults, ProgramFinder, program_finder
from codex_py.protocol.command import MAX_STARTS, PreparedCommand
from codex_py.protocol.policy import (
    DangerFullAccess,
    ReadOnly,
    SandboxPolicy,
    WorkspaceWrite,
    extra_roots,
)
from codex_py.sandbox.command import Sandbox, SandboxUnavailable
from codex_py.sandbox.git_settings import included_files
from codex_py.sandbox.policy import is_writable
from codex_py.services.git_process import GitOutput, GitShell, run_git, shell_argv
from codex_py.text.sanitize import sanitize_line

_SECONDS: Final = 20.0
# Settings of a repository or user that would run a program, or make git do more than it is asked for.
SWITCHED_OFF: Final = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "core.askPass": "",
    "core.alternateRefsCommand": "",
    "diff.external": "",
    "diff.submodule": "short",
    "diff.relative": "false",
    "log.showSignature": "false",
    "gpg.program": "false",
    "gpg.openpgp.program": "false",
    "gpg.x509.program": "false",
    "gpg.ssh.program": "false",
    "status.submoduleSummary": "false",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "color.ui": "false",
    # Commands could make a directory of the workspace look like a bare repository.
    "safe.bareRepository": "explicit",
    # Of another user, as in a container: git refuses these because of the programs they name.
    "safe.directory": "*",
}
_NO_NETWORK: Final = {
    "core.sshCommand": "false",
    "core.gitProxy": "",
    "credential.helper": "",
    "protocol.allow": "never",
}
_ENV: Final = {
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_NO_LAZY_FETCH": "1",
    # What git has under a name is that content, and none that a repository puts in its place.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_SSH_COMMAND": "false",
    "LC_ALL": "C",
}
_PASSED_ENV: Final = frozenset(
    ("GIT_CEILING_DIRECTORIES", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM")
)
# Settings whose keys contain a free name: they are looked up and switched off one by one.
_NAMED: Final = re.compile(r"(filter\..*\.)(?:clean|smudge|process|required)|(remote\..*\.)promisor", re.DOTALL)
# Commands may have created or replaced the repository of a submodule.
_NO_SUBMODULES: Final = "--ignore-submodules=all"
_OPTIONS: Final = {
    "diff": ("--no-color", "--no-ext-diff", "--no-textconv", _NO_SUBMODULES),
    "log": ("--no-color", "--no-ext-diff", "--no-textconv", "--no-show-signature"),
    "status": (_NO_SUBMODULES,),
}
_NOT_A_FILE: Final = "is not a regular file"
_READ_FIRST: Final = (
    *("HEAD", "config", "config.worktree", "commondir", "index", "packed-refs", "shallow"),
    *("info/exclude", "info/attributes", "info/sparse-checkout", "objects/info/alternates"),
)
# git reads these in every directory of a working tree.
_READ_ANYWHERE: Final = (".gitignore", ".gitattributes")
_LOOK_SECONDS: Final = 0.5


class NotARepository(UserError):
    """There is no repository around the directory."""


class GitReader:
    """Asks git about the repository around `cwd`. `env` is the user's own environment.

    git itself is not taken from a directory that commands may write under `policy`. `sandbox` is that of this machine;
    `known` is what one made here shares with others.
    Without `looks_below` the working tree is not searched for files at which git would hang; a timeout stops it then.
    """

    def __init__(
        self,
        cwd: Path,
        env: Mapping[str, str],
        policy: SandboxPolicy | None = None,
        *,
        sandbox: Sandbox | None = None,
        known: ProbeResults | None = None,
        looks_below: bool = True,
    ) -> None:
        self.cwd = cwd
        self._looks_below = looks_below
        self._env = env
        self._policy = policy or WorkspaceWrite()
        self._programs = program_finder(env, cwd, extra_roots(policy) if policy else ())
        # The program that sets the sandbox up is one of ours too.
        own = Sandbox({**env, "PATH": self._programs.trusted_path()}).with_results(known or ProbeResults())
        self._sandbox = sandbox or own
        self._is_shared = False
        self._is_stopped = False
        self._shell: GitShell | None = None

    @cached_property
    def root(self) -> Path | None:
        """The directory with the repository's `.git`; None outside of a repository.

        Raises `UserError` where git would hang, or fail without naming the file.
        """
        found = git_directories(self.cwd)
        if found is None:
            return None
        for path in dict.fromkeys(directory / name for directory in (found.own, found.common) for name in _READ_FIRST):
            if _is_odd(path):
                raise UserError(f"git is not asked about `{found.root}`: `{path}` {_NOT_A_FILE}")
        searched = [(found.own / "refs", ()), (found.common / "refs", ())]
        for top, names in (*searched, *([(found.root, _READ_ANYWHERE)] if self._looks_below else ())):
            if (path := _find_blocking(top, names)) is not None:
                raise UserError(f"git is not asked about `{found.root}`: `{path}` {_NOT_A_FILE}")
        self._check_included(found)
        return found.root

    def _check_included(self, found: GitDirectories) -> None:
        """Raise `UserError` for a file that the configuration includes and that git must not read."""
        directories = dict.fromkeys((found.own, found.common))
        unread: list[str] = []
        included = dict.fromkeys(path for git in directories for path in included_files(git, self._env, unread))
        if not included or isinstance(self._policy, DangerFullAccess):
            return
        if unread:
            raise UserError(f"git is not asked about `{found.root}`: {unread[0]}")
        roots = self._sandbox.roots(self._policy, self.cwd)
        shortfall = self._sandbox.shortfall(self._policy, self.cwd)
        for path in included:
            real = Path(real_path(path))
            if _is_odd(path):
                reason = _NOT_A_FILE
            elif is_writable(real, roots) or (shortfall and any(root.path in real.parents for root in roots)):
                reason = "which its configuration includes, can be written by commands"
            else:
                continue
            raise UserError(f"git is not asked about `{found.root}`: `{path}` {reason}")

    def ask(self, command: str, *arguments: str, stdin: bytes = b"") -> GitOutput:
        """Run one of git's commands at the top of the repository, with the options that keep it from running others.

        Raises `UserError` outside of a repository, when git cannot be run as it should be, or takes too long.
        """
        if self.root is None:
            raise NotARepository(f"`{self.cwd}` is not in a git repository")
        return self._run(self._named_off, [command, *_OPTIONS.get(command, ()), *arguments], stdin)

    def stop(self) -> None:
        """End the git that runs within `shared_start`, from another thread; every question fails from then on."""
        self._is_stopped = True
        if (shell := self._shell) is not None:
            shell.kill()

    def lines(self, *arguments: str, separator: str = "\n") -> list[str]:
        """The output of git, split, without empty pieces; an empty list when git fails and outside of a repository.

        Otherwise raises `UserError` as `ask` does.
        """
        if self.root is None:
            return []
        found = self.ask(*arguments)
        text = "" if found.status else found.out.decode("utf-8", "surrogateescape")
        return [piece for piece in text.split(separator) if piece]

    @cached_property
    def _named_off(self) -> Mapping[str, str]:
        listed = self._run({}, ["config", "--list", "--name-only", "-z"])
        if listed.status:
            raise UserError(f"cannot read the settings of git: {listed.complaint}")
        return switched_off(listed.out)

    @contextmanager
    def shared_start(self) -> Generator[None, None, None]:
        """Answer what is asked within by one start, up to the first question with `stdin`.

        The settings are still listed before anything else is asked, and what they name is off in every question after
        that. Commands cannot change them in between: the sandbox keeps them from writing the configuration, and `root`
        refuses included files that they may write. Where it cannot (full access, Landlock), a program that they name
        just then still runs only where git does: in a sandbox of its own, read-only and without network.
        """
        if self._is_shared:
            yield
            return
        self._is_shared = True
        try:
            yield
        finally:
            self._is_shared = False
            self._close_shell()

    def _run(self, more: Mapping[str, str], arguments: Sequence[str], stdin: bytes = b"") -> GitOutput:
        words = [*settings_argv(more), *arguments]
        git = git_argv(self._programs, settings_argv({**SWITCHED_OFF, **_NO_NETWORK}))
        output = GitOutput(1, b"", "")
        for _ in range(MAX_STARTS):
            if self._is_stopped:
                raise UserError("git was stopped")
            # One that reads to the end would leave nothing of a shell that is started for it.
            if self._shell is not None or (self._is_shared and not stdin):
                output, has_begun = self._ask_shell(git, words, stdin)
            else:
                output, has_begun = self._run_alone([*git, *words], stdin)
            if has_begun:
                return output
        raise UserError(f"cannot run git: {output.complaint}")

    def _ask_shell(self, git: Sequence[str], words: Sequence[str], stdin: bytes) -> tuple[GitOutput, bool]:
        if self._shell is None:
            self._shell = GitShell(self._prepare(shell_argv(git)))
        shell = self._shell
        try:
            output = shell.ask(words, seconds=_SECONDS, stdin=stdin)
            return output, shell.is_open or not shell.never_began()
        finally:
            if not shell.is_open:
                self._close_shell()

    def _close_shell(self) -> None:
        if self._shell is not None:
            self._shell.close()
            self._shell = None

    def _run_alone(self, argv: Sequence[str], stdin: bytes) -> tuple[GitOutput, bool]:
        command = self._prepare(argv)
        try:
            output = run_git(command, seconds=_SECONDS, stdin=stdin)
            return output, not command.never_began(output.status)
        finally:
            command.cleanup()

    def _prepare(self, argv: Sequence[str]) -> PreparedCommand:
        root = self.root
        assert root is not None  # nobody asks outside of a repository
        # Whatever `core.worktree` says.
        env = git_env(self._env, self._programs, {**_ENV, "GIT_WORK_TREE": str(root)})
        command = PreparedCommand(tuple(argv), root, env)
        with suppress(SandboxUnavailable):
            command = self._sandbox.wrap(command, policy=ReadOnly(), cwd=root)
        return command


def git_env(env: Mapping[str, str], programs: ProgramFinder, own: Mapping[str, str]) -> dict[str, str]:
    """The environment for git, without variables that redirect it or make it run programs that commands may write."""
    passed = {name: value for name, value in env.items() if not name.startswith("GIT_") or name in _PASSED_ENV}
    return {**passed, "PATH": programs.trusted_path(), **own}


def git_argv(programs: ProgramFinder, arguments: Sequence[str]) -> list[str]:
    """The command line of git. Raises `UserError` where there is no git, or it may not be run."""
    git = programs.find("git")
    if git is None:
        passed_over = programs.find_untrusted("git")
        if passed_over is not None:
            raise UserError(f"`git` is not started: it is `{passed_over}`, which commands of the model may write")
        raise UserError("`git` is not on this machine", hint="install it")
    return [git, "--no-pager", *arguments]


def settings_argv(settings: Mapping[str, str]) -> list[str]:
    """The options that put settings in place of those of any file."""
    return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]


def switched_off(names: bytes) -> dict[str, str]:
    """The overrides for those of these settings (from `git config --list --name-only -z`) that run programs.

    Raises `UserError` for one that cannot be switched off.
    """
    off: dict[str, str] = {}
    for name in names.decode("utf-8", "surrogateescape").split("\0"):
        found = _NAMED.fullmatch(name)
        if found is None:
            continue
        if "=" in name:
            raise UserError(f"git is not run: its setting `{sanitize_line(name)[:80]}` cannot be switched off")
        if found[1]:
            off |= {f"{found[1]}{key}": "" for key in ("clean", "smudge", "process")}
            off[f"{found[1]}required"] = "false"
        else:
            off[name] = "false"
    return off


def _find_blocking(top: Path, names: Sequence[str]) -> Path | None:
    """A path below with one of these names, or any name, at which git would hang, such as a named pipe.

    Searches for half a second at most; beyond that, a timeout stops git.
    """
    until = time.monotonic() + _LOOK_SECONDS
    directories = [str(top)]
    while directories and time.monotonic() < until:
        try:
            entries = list(os.scandir(directories.pop()))
        except (OSError, ValueError):
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                directories.append(entry.path)
            elif (not names or entry.name in names) and not entry.is_file(follow_symlinks=False):
                path = Path(entry.path)
                if _is_odd(path) and not is_directory(path):
                    return path
    return None


def _is_odd(path: Path) -> bool:
    """Whether a path exists that is not a regular file, at which git would fail or hang."""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False

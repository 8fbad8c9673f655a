"""`codex-py sandbox`: runs one command in the sandbox of the model's commands; `explain` shows the rules."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Final, NamedTuple

from codex_py.cli.console import aligned, print_json, print_warnings
from codex_py.cli.options import (
    SANDBOX_MODES,
    Parser,
    add_config_flags,
    find_directories,
    request_for,
    split_at_dashes,
    working_directory,
)
from codex_py.config.load import LoadedConfig, load_config
from codex_py.core.session_sandbox import allowances_without_effect, make_sandbox
from codex_py.core.session_settings import choose_policy
from codex_py.errors import ToolError, UsageError, UserError
from codex_py.paths import codex_home, short_path, user_home
from codex_py.protocol.command import MAX_STARTS, PreparedCommand
from codex_py.protocol.policy import SandboxPolicy, mode_of
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.linux import BACKENDS
from codex_py.sandbox.ownership import describe_foreign_owner
from codex_py.services.sandbox_report import Action, Permission, list_permissions
from codex_py.text.files import os_reason
from codex_py.text.sanitize import sanitize_line

_TITLES: Final[dict[Action, str]] = {"read": "read", "write": "write", "network": "network", "sockets": "Unix sockets"}


class SandboxReport(NamedTuple):
    """The access that a sandbox gives. `backend` enforces it, None if nothing does; `shortfall` names the gaps."""

    mode: str
    cwd: Path
    backend: str | None
    shortfall: str | None
    permissions: Sequence[Permission]


def print_report(report: SandboxReport, home: Path, *, as_json: bool, everything: bool) -> None:
    """Print the report; denied paths that do not exist are left out, except as JSON or with `everything`."""
    if as_json:
        shown = {**report._asdict(), "cwd": str(report.cwd)}
        print_json({**shown, "permissions": list(map(vars, report.permissions))})
        return
    backend = report.backend or "nothing, so no command runs"
    print(f"{sanitize_line(f'{report.mode} in {short_path(report.cwd, str(home))}, held by {backend}')}")
    if report.shortfall:
        print(f"{sanitize_line(f'not held: {report.shortfall}')}")
    shown = [
        permission
        for permission in report.permissions
        if everything or permission.exists or permission.action != "read"
    ]
    for action, title in _TITLES.items():
        print(f"\n{title}")
        rows = [_row(permission, home) for permission in shown if permission.action == action]
        for line in aligned(rows):
            print(f"  {line}")
    left = len(report.permissions) - len(shown)
    if left:
        print(f"\n{left} more paths must not be read and do not exist here: --all shows them")


def _row(permission: Permission, home: Path) -> tuple[str, ...]:
    subject = permission.subject
    if subject.startswith("/"):
        subject = short_path(Path(subject), str(home))
    changed = f"({permission.setting})" if permission.setting else "(always)"
    return "yes" if permission.allowed else "no", subject, permission.reason, changed


_DESCRIPTION: Final = """Run a command in the sandbox that the model's commands run in.

Without -s the mode is the one a session would have here. The exit status is the command's.
`codex-py sandbox explain` runs nothing: it shows what commands may read, write and reach here, why, and the setting
that changes each; with --all also the paths that do not exist here, with --json as one JSON object.
"""
_EPILOG: Final = """examples:
  codex-py sandbox explain
  codex-py sandbox -- cat ~/.ssh/id_ed25519
  codex-py sandbox -s workspace-write -- make test
  codex-py sandbox -s workspace-write -c sandbox_workspace_write.network_access=true -- pip install .
"""
_EXPLAIN: Final = "explain"
_NOT_FOUND: Final = 127
_NOT_RUN: Final = 126
_ENDING_SIGNALS: Final = (signal.SIGTERM, signal.SIGHUP)
_INTERRUPTS: Final = (signal.SIGINT, signal.SIGQUIT)


class _Stopped(Exception):
    """A signal asked this program to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


def run(arguments: Sequence[str]) -> int:
    """Run the command to its end; give back its exit status, 128+n when a signal ended it."""
    flags, command = split_at_dashes(arguments)
    parser = _parser()
    if flags and flags[0] in ("-h", "--help"):
        print(parser.format_help().rstrip())
        return 0
    options = parser.read(flags, words_first=True)
    if command and options.words:
        raise UsageError(f"unexpected argument `{options.words[0]}` before `--`", hint="the command comes after it")
    if not command and options.words[:1] == [_EXPLAIN]:
        return _explain(parser, [*flags[: len(flags) - len(options.words)], *options.words[1:]])
    command = command or options.words
    if not command:
        raise UsageError("no command to run", hint="write one: `codex-py sandbox -- ls`")
    if not _program_exists(command[0], working_directory(options.cd)):
        raise _missing(command[0])
    setup = _set_up(options)
    try:
        return _run_sandboxed(setup, command)
    except ToolError as error:
        raise UserError(str(error)) from error
    except FileNotFoundError as error:
        raise _missing(command[0]) from error
    except OSError as error:
        raise UserError(f"cannot run `{command[0]}`: {os_reason(error)}", status=_NOT_RUN) from error


def _program_exists(program: str, cwd: Path) -> bool:
    """Whether the program's file exists; inside the sandbox a missing one would be reported by a shell in its words."""
    if "/" in program:
        return os.path.lexists(cwd / program)
    directories = os.get_exec_path()
    return bool(program) and any(os.path.lexists(cwd / directory / program) for directory in directories)


def _parser() -> Parser:
    parser = Parser("codex-py sandbox", description=_DESCRIPTION, epilog=_EPILOG)
    parser.usage = "codex-py sandbox [OPTIONS] [--] COMMAND [ARGUMENT...]\n       codex-py sandbox explain [OPTIONS]"
    parser.add_argument("words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    parser.add_argument("-s", "--sandbox", choices=SANDBOX_MODES, help="what the command may change")
    parser.add_argument("-C", "--cd", metavar="DIR", help="work in this directory")
    parser.add_argument(
        "--add-dir", action="append", default=[], metavar="DIR", help="also writable with workspace-write"
    )
    parser.add_argument("--backend", choices=BACKENDS, help="hold the command this way or not at all (Linux)")
    add_config_flags(parser)
    return parser


class _Setup(NamedTuple):
    loaded: LoadedConfig
    policy: SandboxPolicy
    sandbox: Sandbox
    home: Path
    cwd: Path


def _set_up(options: argparse.Namespace) -> _Setup:
    home, cwd = codex_home(os.environ), working_directory(options.cd)
    loaded = load_config(request_for(options, home, cwd, chosen={"sandbox_mode": options.sandbox}))
    print_warnings(*loaded.warnings, *allowances_without_effect(loaded, home=home, env=os.environ))
    policy = choose_policy(loaded, find_directories(options.add_dir))
    backends = (options.backend,) if options.backend else BACKENDS
    return _Setup(loaded, policy, make_sandbox(loaded, home=home, env=os.environ, backends=backends), home, cwd)


def _explain(parser: Parser, flags: Sequence[str]) -> int:
    parser.add_argument("--json", dest="as_json", action="store_true")
    parser.add_argument("--all", dest="everything", action="store_true")
    options = parser.parse_args(flags)
    if options.words:
        raise UsageError(f"unexpected argument `{options.words[0]}` after `explain`", hint="`explain` runs no command")
    setup = _set_up(options)
    sandbox, policy, cwd = setup.sandbox, setup.policy, setup.cwd
    try:
        found = list_permissions(setup.loaded, sandbox, policy, cwd=cwd, home=setup.home, env=os.environ)
    except ToolError as error:
        raise UserError(str(error)) from error
    try:
        backend = sandbox.backend_name(policy, cwd)
    except ToolError as error:
        print_warnings(str(error))
        backend = None
    report = SandboxReport(mode_of(policy), cwd, backend, sandbox.shortfall(policy, cwd), found)
    print_report(report, user_home(os.environ), as_json=options.as_json, everything=options.everything)
    return 0


def _run_sandboxed(setup: _Setup, command: Sequence[str]) -> int:
    """Run the command; retry if a path that its sandbox needs vanished before the command began."""
    _, policy, sandbox, _, cwd = setup
    shortfall = sandbox.shortfall(policy, cwd)
    print_warnings(*filter(None, (shortfall, describe_foreign_owner(policy, cwd))))
    status = 0
    for _ in range(MAX_STARTS):
        wrapped = sandbox.wrap(PreparedCommand(tuple(command), cwd, os.environ), policy=policy, cwd=cwd)
        if unsearched := sandbox.unsearched(policy, cwd):
            print_warnings(unsearched)
        status, has_begun = _run(wrapped, sandboxed=wrapped.argv != tuple(command))
        sandbox.look_at_repositories()
        print_warnings(*sandbox.take_notices())
        if has_begun:
            break
    return status


def _run(wrapped: PreparedCommand, *, sandboxed: bool) -> tuple[int, bool]:
    """The exit status, and whether the command began; if not, the sandbox could not be set up."""
    child = _ChildCommand(wrapped, sandboxed=sandboxed)
    try:
        with child.listening():
            child.start()
            status = child.wait()
            return status, not wrapped.never_began(status)
    except _Stopped as stopped:
        return stopped.status, True
    finally:
        child.kill()
        wrapped.cleanup()


class _ChildCommand:
    """A running command, to which signals of this program are passed on. `sandboxed` says that it is in a sandbox.

    Ctrl-C goes to the command, which may go on after it. Signals that arrive before it starts are passed on then.
    """

    def __init__(self, wrapped: PreparedCommand, *, sandboxed: bool) -> None:
        self._wrapped = wrapped
        self._sandboxed = sandboxed
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []

    @contextmanager
    def listening(self) -> Generator[None, None, None]:
        """Handle signals, except those that the parent process has set to be ignored."""
        numbers = [number for number in (*_ENDING_SIGNALS, *_INTERRUPTS) if signal.getsignal(number) != signal.SIG_IGN]
        before = [(number, signal.signal(number, self._answer)) for number in numbers]
        try:
            yield
        finally:
            for number, disposition in before:
                signal.signal(number, disposition)

    def start(self) -> None:
        """Start the command; raise `OSError` when it cannot be."""
        wrapped = self._wrapped
        try:
            self._child = subprocess.Popen(
                wrapped.argv,
                cwd=wrapped.cwd,
                env=wrapped.env,
                pass_fds=wrapped.fds,
                # Ctrl-C would end the sandbox's own process, and the command before it could react.
                start_new_session=self._sandboxed,
            )
        finally:
            wrapped.close_fds()
        for number in self._early:
            self._answer(number, None)

    def wait(self) -> int:
        """The exit status, 128+n after signal n."""
        assert self._child is not None
        code = self._child.wait()
        return code if code >= 0 else 128 - code

    def kill(self) -> None:
        """End what still runs."""
        child = self._child
        if child is not None and child.poll() is None:
            if self._sandboxed:
                os.killpg(child.pid, signal.SIGKILL)
            child.kill()
            child.wait()

    def _answer(self, number: int, _: FrameType | None) -> None:
        child = self._child
        if child is None:
            self._early.append(number)
        elif number in _ENDING_SIGNALS:
            raise _Stopped(number)
        elif self._sandboxed:
            for group in _sandbox_groups(child.pid) if self._wrapped.sandboxed else [child.pid]:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(group, number)
        elif not _has_terminal():
            child.send_signal(number)


def _sandbox_groups(keeper: int) -> list[int]:
    """The process groups inside the sandbox of a process; its own where the system does not list them."""
    with suppress(OSError):
        started = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
        return [int(pid) for pid in started] or [keeper]
    return [keeper]


def _has_terminal() -> bool:
    """Whether the terminal sends Ctrl-C to this process and its whole group."""
    with suppress(OSError):
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return False


def _missing(program: str) -> UserError:
    hint = "there is no such file" if "/" in program else "install it, or give its path"
    return UserError(f"cannot run `{program}`: not found", hint=hint, status=_NOT_FOUND)

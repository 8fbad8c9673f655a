"""`codex-py`, alone or with a prompt: the command line of the terminal session, and what is checked before it opens."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Sequence
from typing import Any, Final

from codex_py.cli.options import (
    Parser,
    add_budget_flags,
    add_config_flags,
    add_model_flags,
    add_permission_flags,
    add_session_flags,
    config_request,
    find_images,
    load_settings,
    read_limits,
    split_at_dashes,
    working_directory,
    writable_directories,
)
from codex_py.cli.rewinding import StoredRewinds
from codex_py.config.edit import trust_project
from codex_py.config.schema import APPROVAL_POLICIES
from codex_py.config.tui import read_tui
from codex_py.core.resume import find_stored
from codex_py.core.session_request import ResumeTarget, SessionRequest
from codex_py.errors import UsageError
from codex_py.exec.streams import read_piped, with_attachment
from codex_py.paths import codex_home
from codex_py.protocol.policy import SandboxMode
from codex_py.rollout.files import thread_of
from codex_py.text.display import counted
from codex_py.text.tokens import count_lines
from codex_py.ui.repl.launch import LaunchContext, LaunchOptions, RewindHost
from codex_py.ui.repl.terminal import is_capable

_ORIGINATOR: Final = "codex_cli_rs"
_OFFLINE: Final = "offline"
NO_TERMINAL_HINT: Final = (
    "give the prompt as an argument, and what is piped in goes with it; over ssh use `ssh -t HOST codex-py`; "
    "in scripts use `codex-py exec`"
)
_USAGE: Final = """codex-py [OPTIONS] [PROMPT]
       codex-py resume [OPTIONS] [SESSION | --last] [PROMPT]
       codex-py fork [OPTIONS] [SESSION | --last] [PROMPT]"""
_DESCRIPTION: Final = """Work with the model in this terminal.

`resume` goes on with an earlier session and `fork` with a copy of it; without a session they offer those of this
directory. `codex-py --help` lists the other commands.
"""
_EPILOG: Final = """examples:
  codex-py
  codex-py "why does the login test fail?"
  codex-py resume --last
  codex-py --offline
"""


def run(arguments: Sequence[str]) -> int:
    """Check everything that can be wrong before anything is drawn, then run; give back the exit status."""
    parser = terminal_parser()
    flags, behind = split_at_dashes(arguments)
    if "-h" in flags or "--help" in flags:
        print(parser.format_help().rstrip())
        return 0
    if "--demo" in flags:
        raise UsageError(
            "`--demo` was removed",
            hint="the README has a picture of a session; `codex-py --offline` starts one without a key",
        )
    options = parser.read(flags)
    launch_options = _with_piped(_read_launch_options(options, behind))
    host = _Host(options)
    if options.trust:
        trust_project(host.home, host.cwd)
    launch = host.read_context()
    if launch_options.session is not None or launch_options.last:
        cwd = None if launch_options.anywhere else launch.cwd
        path = find_stored(launch.home, name=launch_options.session, cwd=cwd)
        launch_options = launch_options.replace(session=thread_of(path), last=False)
    return _run(host, launch, launch_options)


def _with_piped(launch_options: LaunchOptions) -> LaunchOptions:
    """The options with piped input added to the prompt; the keyboard is then read from the terminal itself."""
    if sys.stdin.isatty():
        return launch_options
    piped = read_piped()
    if not launch_options.prompt and (piped or sys.stdout.isatty()):
        raise UsageError("stdin is not a terminal", hint=NO_TERMINAL_HINT)
    with contextlib.suppress(OSError):
        terminal = os.open(os.ttyname(sys.stdout.fileno()), os.O_RDWR | os.O_NOCTTY)
        os.dup2(terminal, sys.stdin.fileno())
        os.close(terminal)
    if not piped:
        return launch_options
    prompt, lines = launch_options.prompt, count_lines(piped)
    shown = f"{prompt} [stdin · {counted(lines, 'line')}]"
    return launch_options.replace(prompt=with_attachment(prompt, piped), shown=shown)


def _run(host: _Host, launch: LaunchContext, launch_options: LaunchOptions) -> int:
    if not is_capable(launch.env) or launch.tui.screen_reader:
        from codex_py.ui.repl.lines import run_in_lines  # loads prompt_toolkit

        return run_in_lines(host, launch, launch_options)
    from codex_py.ui.repl.app import FrontEnd  # loads prompt_toolkit

    front = FrontEnd(launch)

    async def run_sessions() -> None:
        # Loads rich and pygments, which the prompt does not wait for.
        from codex_py.ui.repl.screen_session import ScreenSessions

        await front.background_known()
        await ScreenSessions(front, host).run(launch_options)

    return asyncio.run(front.run(run_sessions))


class _Host:
    """Reads the configuration, and says what sessions are opened with, by the flags of the command line."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self.home = codex_home(os.environ)
        self.cwd = working_directory(options.cd)
        self._has_opened = False

    def read_context(self) -> LaunchContext:
        """The settings as they are now."""
        loaded = load_settings(self._options, self.home, self.cwd)
        return LaunchContext(
            home=self.home,
            cwd=self.cwd,
            env=os.environ,
            loaded=loaded,
            tui=read_tui(loaded.config.tui, os.environ),
            request=config_request(self._options, self.home, self.cwd),
        )

    @property
    def is_ephemeral(self) -> bool:
        return bool(self._options.ephemeral)

    def use(self, provider: str, model: str | None = None) -> None:
        """Use another provider from now on, whatever settings and flags say."""
        self._options.offline = provider == _OFFLINE
        self._options.oss = False
        self._options.local_provider = None if provider == _OFFLINE else provider
        self._options.model = model or self._options.model

    @property
    def waives_sandbox(self) -> bool:
        return bool(self._options.bypass)

    def use_sandbox(self, mode: SandboxMode) -> None:
        """Hold commands in this sandbox from now on, whatever settings and flags say."""
        self._options.sandbox = mode
        self._options.bypass = self._options.full_auto = False

    def rewinds(self) -> RewindHost:
        """The host that rewinds stored sessions."""
        return StoredRewinds(self.home)

    def prepare(self, launch: LaunchContext, target: ResumeTarget | None) -> SessionRequest:
        """The request for the session that is opened next."""
        # All is loaded that stays; a session may last for hours.
        if not self._has_opened:
            gc.freeze()
        gc.enable()
        config = launch.loaded.config
        request = SessionRequest(
            loaded=launch.loaded,
            home=launch.home,
            cwd=launch.cwd,
            env=launch.env,
            originator=os.environ.get("CODEX_INTERNAL_ORIGINATOR_OVERRIDE") or _ORIGINATOR,
            approval=config.approval_policy,
            ephemeral=self._options.ephemeral,
            resume=target,
            ignore_rules=self._options.ignore_rules,
            trusts_hooks=self._options.trusts_hooks,
            install_dependencies=self._options.install_dependencies,
            extra_roots=writable_directories(self._options, launch.loaded.project_root or launch.cwd),
            can_ask=True,
            follows=self._has_opened,
            limits=read_limits(self._options),
        )
        self._has_opened = True
        return request


def terminal_parser() -> Parser:
    """The flags of the terminal session."""
    parser = Parser("codex-py", description=_DESCRIPTION, epilog=_EPILOG)
    parser.usage = _USAGE
    parser.add_argument("words", nargs="*", metavar="PROMPT", help="what to do first")
    parser.add_argument("-i", "--image", action="append", default=[], metavar="FILE", help="attach a picture to it")
    add_permission_flags(parser)
    parser.add_argument(
        "-a",
        "--ask-for-approval",
        choices=APPROVAL_POLICIES,
        dest="approval",
        help="when commands need approval (default: on-request)",
    )
    add_model_flags(parser)
    add_budget_flags(parser)
    add_session_flags(parser)
    add_config_flags(parser)
    return parser


def _read_launch_options(options: argparse.Namespace, behind: Sequence[str]) -> LaunchOptions:
    """Read a prompt, `resume …` or `fork …`. Raise `UsageError` for an invalid one."""
    words: list[str] = list(options.words)
    verb = words.pop(0) if words and words[0] in ("resume", "fork") else None
    if verb is None and (options.last or options.all):
        raise UsageError("`--last` and `--all` go with `resume` and `fork`", hint="try `codex-py resume --last`")
    if options.turn is not None and verb != "fork":
        raise UsageError("`--turn` goes with `fork`", hint="try `codex-py fork --last --turn 1`")
    session = words.pop(0) if verb and not options.last and words else None
    words += behind
    if len(words) > 1:
        raise UsageError(f"more than one prompt: `{words[1]}`", hint="quote the prompt")
    fields: dict[str, Any] = {"session": session, "last": options.last, "anywhere": options.all, "turn": options.turn}
    return LaunchOptions(words[0] if words else "", find_images(options.image), verb, **fields)

"""What tools work with: sandbox, environment, processes, approval rules; and the user's own commands."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.config.load import LoadedConfig
from codex_py.config.schema import Config
from codex_py.context.host_messages import user_shell_item
from codex_py.core.rule_files import read_rule_files, store_files
from codex_py.core.secrets import key_names
from codex_py.core.session_sandbox import allowances_without_effect, make_sandbox
from codex_py.core.turn_context import TurnSettings
from codex_py.errors import ToolError
from codex_py.process.env import WithheldEnv, withheld_by_value
from codex_py.process.manager import ProcessManager
from codex_py.process.profiles import Profile
from codex_py.process.shells import argv_without_profile, user_shell
from codex_py.process.spawn import CommandSpec
from codex_py.programs import ProbeResults
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.events import CommandFinished, CommandOutput, CommandStarted, Event, Warned
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.policy import SandboxPolicy
from codex_py.protocol.status import LiveProcess
from codex_py.protocol.value import Value
from codex_py.sandbox.command import Sandbox, SandboxUnavailable
from codex_py.shell.reader import CommandLineReader
from codex_py.text.redact import HeldBack, Redactor
from codex_py.text.tokens import truncate_middle
from codex_py.tools import command_runs
from codex_py.tools.approval import Approvals, RuleStore
from codex_py.tools.command_output import LiveOutput
from codex_py.tools.spec import CommandRunner

_MAX_TAIL: Final = 2000


def load_approvals(loaded: LoadedConfig, *, home: Path, cwd: Path, ignore_rules: bool = False) -> Approvals:
    """The rules that apply in a directory, and the files that store lasting approvals."""
    project = loaded.project_root or cwd
    always, project_file = store_files(home, project)
    read = read_rule_files(loaded, home=home, cwd=cwd, ignore_rules=ignore_rules)
    return Approvals(
        read.book,
        store=RuleStore(always=always, project_file=project_file, project=project),
        warnings=read.warnings,
    )


class ToolRuntime(Value):
    """Where commands run and live, and what the user has allowed and forbidden of them.

    `allow_partial` is that a sandbox will do which cannot hold everything; `warnings` are about its settings.
    """

    sandbox: Sandbox
    processes: ProcessManager
    approvals: Approvals
    allow_partial: bool = False
    warnings: tuple[str, ...] = ()
    commands: CommandRunner = command_runs.CommandCalls()

    def prepare(self, policy: SandboxPolicy, cwd: Path, command_lines: CommandLineReader) -> None:
        """Find out which sandbox works here. One that does not work is reported by the call that needs it."""
        command_runs.warm_up(command_lines)
        with contextlib.suppress(SandboxUnavailable):
            self.sandbox.prepare(policy, cwd)

    async def run_user_shell(
        self,
        command: str,
        settings: TurnSettings,
        env: Mapping[str, str],
        *,
        redactor: Redactor,
        emit: Callable[[Event], None],
        stop: asyncio.Future[None],
    ) -> ResponseItem:
        """Run a command of the user's own until it ends or `stop` is done; what the model reads of it.

        `redactor` takes the secrets out of what it prints.
        """
        shell = user_shell(env)
        spec = CommandSpec(argv_without_profile(shell, command), settings.cwd, env, outside=True, line=command)
        run = _UserShellCommand(shell, spec, redactor, emit, stop)
        return await run.run(self.processes, settings.model.output_tokens)

    def live_processes(self, redact: Callable[[str], str]) -> tuple[LiveProcess, ...]:
        """The commands that still run, the oldest first, as people are shown them; `redact` takes out the secrets."""
        now = time.monotonic()
        return tuple(
            LiveProcess(
                id=session.id,
                command=redact(session.line),
                cwd=session.cwd,
                seconds=now - session.started,
                tty=session.tty,
                outside=session.outside,
                tail=redact(session.transcript())[-_MAX_TAIL:],
            )
            for session in self.processes.live()
        )


def find_withheld_env(config: Config, env: Mapping[str, str]) -> WithheldEnv:
    """The user's variables that shell profiles must not bring back."""
    rules = config.shell_environment_policy
    return WithheldEnv(rules, key_names(config) | {*withheld_by_value(env, rules)})


def load_tool_runtime(
    loaded: LoadedConfig,
    known: ProbeResults,
    *,
    home: Path,
    cwd: Path,
    env: Mapping[str, str],
    ignore_rules: bool = False,
) -> ToolRuntime:
    """Reads the `.rules` files; `ignore_rules` leaves them out. `known` is shared by the sandboxes of the session."""
    return ToolRuntime(
        sandbox=make_sandbox(loaded, home=home, env=env).with_results(known),
        processes=ProcessManager(find_withheld_env(loaded.config, env), home),
        approvals=load_approvals(loaded, home=home, cwd=cwd, ignore_rules=ignore_rules),
        allow_partial=loaded.config.sandbox.allow_partial,
        warnings=tuple(allowances_without_effect(loaded, home=home, env=env)),
    )


_MAX_SECONDS: Final = 3600.0
_STOPPED: Final = -1


class _Ended(NamedTuple):
    output: str
    exit_code: int | None


class _UserShellCommand:
    """A command of the user's own, which is killed, or not even started, when `stop` is done."""

    def __init__(
        self,
        shell: str,
        spec: CommandSpec,
        redactor: Redactor,
        emit: Callable[[Event], None],
        stop: asyncio.Future[None],
    ) -> None:
        self._shell = shell
        self._spec = spec
        self._redactor = redactor
        self._emit = emit
        self._stop = stop
        self._call_id = uuid7()
        self._held = HeldBack()

    async def run(self, processes: ProcessManager, output_tokens: int) -> ResponseItem:
        """Run it to its end, an hour at most, and give what the model reads of it."""
        began = time.monotonic()
        self._emit(CommandStarted(self._call_id, self._spec.line, self._spec.cwd, by_user=True))
        ended = _Ended("", None)
        try:
            ended = _Ended("", None) if self._stop.done() else await self._wait(processes)
        finally:
            seconds = time.monotonic() - began
            output = self._redactor.redact(ended.output)
            self._emit_end(output, ended.exit_code, seconds)
        shown = truncate_middle(output, output_tokens)
        code = _STOPPED if ended.exit_code is None else ended.exit_code
        return user_shell_item(self._spec.line, shown, exit_code=code, seconds=seconds)

    async def _wait(self, processes: ProcessManager) -> _Ended:
        try:
            profile = await self._read_profile(processes)
            if profile is None:
                return _Ended("[stopped by the user]", None)
            session = await processes.start(profile.apply(self._spec))
        except ToolError as error:
            return _Ended(str(error), 127)
        self._stop.add_done_callback(lambda _: session.kill())
        live = LiveOutput(session, self._call_id, self._emit_live)
        try:
            is_stopped = not await session.wait(_MAX_SECONDS) or self._stop.done()
            output = session.transcript()
        finally:
            live.end()
            if session.exit_code is None:
                await processes.close(session)
            else:
                processes.forget(session)
        if is_stopped:
            return _Ended(f"{output}\n[stopped by the user]".lstrip("\n"), None)
        return _Ended(output, session.exit_code)

    async def _read_profile(self, processes: ProcessManager) -> Profile | None:
        """The profile of the shell; None when the user stopped the command meanwhile."""

        def warn(message: str) -> None:
            self._emit(Warned(message))

        reading = asyncio.ensure_future(
            processes.profiles.read(self._shell, self._spec.replace(line=""), lambda spec: spec, warn)
        )
        try:
            await asyncio.wait((reading, self._stop), return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() else None
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)

    def _emit_live(self, event: Event) -> None:
        if isinstance(event, CommandOutput) and (shown := self._held.feed(event.text, self._redactor)):
            self._emit(CommandOutput(event.call_id, shown))

    def _emit_end(self, output: str, exit_code: int | None, seconds: float) -> None:
        self._emit(
            CommandFinished(
                self._call_id,
                self._spec.line,
                self._spec.cwd,
                output,
                exit_code,
                seconds,
                "completed" if exit_code == 0 else "failed",
                by_user=True,
            )
        )

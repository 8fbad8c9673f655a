"""Running the command of a tool in the session's sandbox: waited for, left running, or killed at its time limit."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from codex_py.errors import ToolError
from codex_py.paths import is_directory, is_there
from codex_py.process.session import RunningCommand
from codex_py.process.shells import (
    argv_without_profile,
    find_shell,
    join_words,
    shell_argv,
    user_shell,
    with_fixed_path,
)
from codex_py.process.spawn import CommandSpec, on_terminal
from codex_py.protocol.command import MAX_STARTS
from codex_py.protocol.events import CommandDetached, CommandFinished, CommandStarted, Warned
from codex_py.protocol.policy import DangerFullAccess, ReadOnly
from codex_py.protocol.value import Value
from codex_py.sandbox.command import SandboxMissing
from codex_py.shell.reader import CommandLineReader
from codex_py.text.tokens import count_lines, truncate_middle
from codex_py.tools.apply_patch import IMPLICIT_PATCH, apply_patch_text
from codex_py.tools.approval import NO_SANDBOX
from codex_py.tools.command_output import MAX_YIELD_MS, MIN_YIELD_MS, LiveOutput, compose_reply, standing_of
from codex_py.tools.orchestrator import AttemptResult, CommandToRun, orchestrate_command
from codex_py.tools.patch_in_command import PatchInCommand, find_patch_in_argv, find_patch_in_command
from codex_py.tools.spec import CallFailed, ToolContext, ToolOutput
from codex_py.tools.typed_input import type_and_wait

_DEFAULT_TIMEOUT_MS: Final = 10_000
_MAX_TIMEOUT_MS: Final = 24 * 3600 * 1000
_TIMED_OUT: Final = 124
_SHELLS: Final = ("bash", "zsh", "sh")
_STOPPED: Final = (
    "\nProcesses in the background are stopped with their command. To keep a process running, start it without `&` in "
    "an `exec_command` of its own, which leaves it running as a session. Stopped: "
)


class CommandArguments(Value):
    """The fields of a call of `exec_command`; what they mean stands in its spec."""

    cmd: str
    workdir: str | None = None
    shell: str | None = None
    login: bool = True
    tty: bool = False
    yield_time_ms: int = 10_000
    max_output_tokens: int = 10_000
    sandbox_permissions: str = "use_default"
    justification: str | None = None
    prefix_rule: tuple[str, ...] = ()


class _NeverBegan(Exception):
    """The sandbox could not be set up, and the command has not run."""


def warm_up(command_lines: CommandLineReader) -> None:
    """Load the grammar of shell scripts, which takes longer than reading one."""
    command_lines.read("true", "/", {})


class CommandCalls:
    """Runs commands and types into them, as the `CommandRunner` of tool calls."""

    async def run_until_yield(
        self, fields: dict[str, Any], context: ToolContext, *, allow_login_shell: bool
    ) -> ToolOutput:
        arguments = CommandArguments(**fields)
        patch = find_patch_in_command(arguments.cmd)
        if patch is None:
            return await _run(arguments, context, _wait, allow_login_shell)
        applied = await _apply(patch, arguments, context)
        return applied.replace(text=f"Wall time: 0.0000 seconds\nOutput:\n{applied.text}") if applied.ok else applied

    async def run_to_end(self, fields: dict[str, Any], context: ToolContext, *, allow_login_shell: bool) -> ToolOutput:
        command = fields.pop("command")
        timeout_ms = fields.pop("timeout_ms", _DEFAULT_TIMEOUT_MS)
        is_line = isinstance(command, str)
        patch = find_patch_in_command(command) if is_line else find_patch_in_argv(command)
        arguments = CommandArguments(**({"cmd": command} if is_line else _as_command_line(command)), **fields)
        if patch is not None:
            # The answer has the layout of these tools already.
            return await _apply(patch, arguments, context)
        return await _run(arguments, context, _wait_at_most(timeout_ms), allow_login_shell)

    async def type_and_wait(self, fields: dict[str, Any], context: ToolContext, poll_ms: tuple[int, int]) -> ToolOutput:
        return await type_and_wait(fields, context, poll_ms)


async def _run(
    arguments: CommandArguments, context: ToolContext, wait: _AwaitCommand, allow_login_shell: bool
) -> ToolOutput:
    """Start a command line and pass its session to `wait`, which makes the answer."""
    arguments = arguments.replace(login=arguments.login and allow_login_shell)
    workdir = context.cwd / (arguments.workdir or "")
    shell = arguments.shell or user_shell(context.env)
    command = CommandToRun(
        script=arguments.cmd,
        shell=shell,
        workdir=workdir,
        line=join_words(shell_argv(shell, arguments.cmd, login=arguments.login)),
        escalated=arguments.sandbox_permissions == "require_escalated",
        justification=arguments.justification or "",
        requested_pattern=arguments.prefix_rule,
    )

    async def attempt(within: ToolContext) -> AttemptResult:
        report = _CommandReporter(within, command.line, workdir)
        while True:
            try:
                session = await within.processes.start(await _prepare(arguments, command, within))
            except SandboxMissing as error:
                raise report.refused(error) from error
            except ToolError as error:
                raise CallFailed(str(error), report.finished(str(error), None)) from error
            report.follow(session)
            try:
                output, exit_code = await wait(session, arguments, within, report)
            except _NeverBegan:
                within.processes.forget(session)
                continue
            return AttemptResult(output, exit_code if session.sandboxed else None)

    return await orchestrate_command(command, context, attempt)


class _CommandReporter:
    """Makes the events of one command, from its start to its end."""

    def __init__(self, context: ToolContext, command: str, workdir: Path) -> None:
        self._context = context
        self._command = command
        self._workdir = workdir
        self._started = time.monotonic()
        self._live: LiveOutput | None = None
        self._starts = 0
        context.emit(CommandStarted(context.call_id, command, workdir))

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._started

    def follow(self, session: RunningCommand) -> None:
        """Emit what the command prints, until it is finished."""
        self._starts += 1
        self._live = LiveOutput(session, self._context.call_id, self._context.emit)

    async def wait(self, session: RunningCommand, seconds: float) -> bool:
        """Wait until the command has ended, `seconds` at most; say whether it has. It is closed when this is cancelled.

        Raises `_NeverBegan` for one to start again: a path that its sandbox needs has vanished while it was set up.
        """
        try:
            ended = await session.wait(seconds)
        except asyncio.CancelledError:
            await self._context.processes.close(session)
            self._context.emit(self.finished(session.transcript(), None))
            raise
        if ended and session.never_began and self._starts < MAX_STARTS:
            if self._live is not None:
                self._live.end()
            raise _NeverBegan
        return ended

    def finished(self, output: str, exit_code: int | None) -> CommandFinished:
        """The event for the end; nothing that the command prints is emitted from now on."""
        if self._live is not None:
            self._live.end()
        return self._ending(output, exit_code, "completed" if exit_code == 0 else "failed")

    def _ending(
        self, output: str, exit_code: int | None, status: Literal["completed", "failed", "declined"]
    ) -> CommandFinished:
        call_id = self._context.call_id
        return CommandFinished(call_id, self._command, self._workdir, output, exit_code, self.seconds, status)

    def refused(self, missing: SandboxMissing) -> ToolError:
        """The command cannot run, as no other one can: the user learns what to do, the model only that."""
        self._context.emit(Warned(str(missing), code="sandbox_missing"))
        more = "" if self._context.ask is None else ", or ask for it with `sandbox_permissions`"
        return CallFailed(NO_SANDBOX + more, self._ending(NO_SANDBOX + more, None, "declined"))

    def detached(self) -> None:
        """The command goes on in the background."""
        self._context.emit(CommandDetached(self._context.call_id, self._command))

    def session_ended(self, session: RunningCommand) -> None:
        """The command has ended in the background."""
        ending = self.finished(session.transcript(), session.exit_code)
        self._context.emit(ending.replace(in_background=True, stopped_by_user=session.stopped_by_user))


# How a started command is waited for, and answered; gives back its exit code too.
_AwaitCommand: TypeAlias = Callable[
    [RunningCommand, CommandArguments, ToolContext, _CommandReporter], Awaitable[tuple[ToolOutput, int | None]]
]


def _as_command_line(argv: Sequence[str]) -> dict[str, Any]:
    """The fields that stand for an argument vector."""
    match list(argv):
        case [shell, ("-c" | "-lc") as flag, script] if shell.rpartition("/")[2] in _SHELLS:
            return {"cmd": script, "shell": shell, "login": flag == "-lc"}
        case words:
            return {"cmd": join_words(words), "login": False}


async def _apply(patch: PatchInCommand, arguments: CommandArguments, context: ToolContext) -> ToolOutput:
    if not patch.explicit:
        raise ToolError(IMPLICIT_PATCH)
    directory = context.cwd / (arguments.workdir or "") / (patch.workdir or "")
    return await apply_patch_text(patch.patch, context, workdir=directory)


async def _prepare(arguments: CommandArguments, command: CommandToRun, context: ToolContext) -> CommandSpec:
    shell, workdir = command.shell, command.workdir
    if not is_directory(workdir):
        reason = "is not a directory" if is_there(workdir) else "does not exist"
        raise ToolError(f"cannot run the command: working directory `{workdir}` {reason}")
    if arguments.shell:
        shell = find_shell(shell, context.env)
    script = arguments.cmd
    if context.fixed_path is not None:
        script = with_fixed_path(script, shell, context.fixed_path)
    argv = argv_without_profile(shell, script) if arguments.login else shell_argv(shell, script, login=False)
    spec = CommandSpec(
        on_terminal(argv) if arguments.tty else argv,
        workdir,
        {**context.env, "CODEX_TOOL_CALL_ID": context.call_id},
        tty=arguments.tty,
        outside=isinstance(context.sandbox_policy, DangerFullAccess),
        line=command.line,
        read_only=isinstance(context.sandbox_policy, ReadOnly),
        call_id=context.call_id,
        notice=_STOPPED,
    )

    def wrap(spec: CommandSpec) -> CommandSpec:
        return context.sandbox.wrap(spec, policy=context.sandbox_policy, cwd=context.cwd)

    def warn(message: str) -> None:
        context.emit(Warned(message))

    if arguments.login:
        probe = spec.replace(cwd=context.cwd, tty=False, line="", notice="")
        profile = await context.processes.profiles.read(shell, probe, wrap, warn)
        spec = profile.apply(spec)
    try:
        return wrap(spec)
    except BaseException:
        spec.discard()
        raise


async def _wait(
    session: RunningCommand, arguments: CommandArguments, context: ToolContext, report: _CommandReporter
) -> tuple[ToolOutput, int | None]:
    await report.wait(session, max(MIN_YIELD_MS, min(arguments.yield_time_ms, MAX_YIELD_MS)) / 1000)
    captured, code = session.take(), session.exit_code
    text = captured.text()
    if code is not None:
        context.processes.forget(session)
    reply = compose_reply(
        captured,
        text,
        standing=standing_of(code, session.id),
        seconds=report.seconds,
        max_tokens=arguments.max_output_tokens,
        cap=context.output_tokens,
    )
    if code is None:
        session.on_end = report.session_ended
        report.detached()
        return ToolOutput(reply), None
    return ToolOutput(reply, ended=report.finished(text, code)), code


def _wait_at_most(timeout_ms: int) -> _AwaitCommand:
    """Wait for a command to end, kill it when it does not in time, and answer in the layout of the older tools."""

    async def wait(
        session: RunningCommand, arguments: CommandArguments, context: ToolContext, report: _CommandReporter
    ) -> tuple[ToolOutput, int | None]:
        del arguments  # the limit is not among them
        limit = max(0, min(timeout_ms, _MAX_TIMEOUT_MS))
        ended = await report.wait(session, limit / 1000)
        if not ended:
            await context.processes.close(session)
        text = session.transcript()
        code = session.exit_code if ended else _TIMED_OUT
        context.processes.forget(session)
        message = text if ended else f"command timed out after {limit} milliseconds\n{text}"
        layout = _layout(message, code, seconds=report.seconds, cap=context.output_tokens)
        return ToolOutput(layout, ok=code == 0, ended=report.finished(text, code)), session.exit_code

    return wait


def _layout(text: str, exit_code: int | None, *, seconds: float, cap: int) -> str:
    shown = truncate_middle(text, cap)
    lines = "" if shown is text else f"Total output lines: {count_lines(text)}\n"
    return f"Exit code: {exit_code}\nWall time: {seconds:.1f} seconds\n{lines}Output:\n{shown}"

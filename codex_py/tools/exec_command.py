"""The `exec_command` tool: a shell command in the session's sandbox, waited for or left running."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from codex_py.errors import ToolError
from codex_py.patch.intercept import PatchInCommand, find_patch_in_command
from codex_py.paths import is_directory, is_there
from codex_py.process.profiles import ShellStart
from codex_py.process.session import RunningCommand
from codex_py.process.shells import find_shell, keep_bundled_tools, shell_argv, user_shell, with_fixed_path
from codex_py.process.spawn import CommandSpec, on_terminal
from codex_py.protocol.encoding import decode_json
from codex_py.protocol.events import CommandFinished, CommandStarted, Warned
from codex_py.protocol.items import ToolCall
from codex_py.protocol.policy import MAX_STARTS, DangerFullAccess, ReadOnly
from codex_py.sandbox.command import SandboxMissing
from codex_py.tools.apply_patch import IMPLICIT_PATCH, apply_patch_text
from codex_py.tools.approval import NO_SANDBOX
from codex_py.tools.command_line import CommandArguments, read_command
from codex_py.tools.command_output import LiveOutput, compose_reply, standing_of
from codex_py.tools.spec import ToolContext, ToolOutput

MIN_YIELD_MS: Final = 250
MAX_YIELD_MS: Final = 30_000


class _NeverBegan(Exception):
    """The sandbox could not be set up, and the command has not run."""


class ExecCommand:
    """`allow_login_shell` is the user's setting; where it is off, `login` is not looked at."""

    name = "exec_command"
    parallel = True
    polls = False

    def __init__(self, *, allow_login_shell: bool = True) -> None:
        self._allow_login_shell = allow_login_shell

    def spec(self) -> dict[str, Any]:
        """The JSON shown to the model."""
        return decode_json((Path(__file__).parent / "exec_command.json").read_bytes())

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Run a command line until it ends or the time it was given is over; a patch in it is applied instead."""
        return await self.execute(read_command(call), context, _wait)

    async def execute(self, arguments: CommandArguments, context: ToolContext, wait: AwaitCommand) -> ToolOutput:
        """Start a command line and give its session to `wait`, which makes the answer; a patch in it is applied."""
        from codex_py.tools.orchestrator import (
            AttemptResult,
            CommandToRun,
            orchestrate_command,
        )  # the seam: only when it is called

        workdir = context.cwd / (arguments.workdir or "")
        patch = find_patch_in_command(arguments.cmd)
        if patch is not None:
            return await _apply(patch, context, workdir=workdir)
        command = CommandToRun(
            script=arguments.cmd,
            shell=arguments.shell or user_shell(context.env),
            login=arguments.login and self._allow_login_shell,
            workdir=workdir,
            escalated=arguments.sandbox_permissions == "require_escalated",
            justification=arguments.justification or "",
            requested_pattern=tuple(arguments.prefix_rule),
        )

        async def attempt(within: ToolContext) -> AttemptResult:
            report = CommandReporter(within, command.line, workdir)
            while True:
                try:
                    spec = _command_spec(arguments, within, workdir=workdir, login=command.login)
                    session = await within.processes.start(spec.replace(line=command.line))
                except SandboxMissing as error:
                    raise report.refused(error) from error
                except ToolError as error:
                    report.finished(str(error), None)
                    raise
                report.follow(session)
                try:
                    output = await wait(session, arguments, within, report)
                except _NeverBegan:
                    within.processes.forget(session)
                    continue
                return AttemptResult(output, session.exit_code if session.sandboxed else None)

        return await orchestrate_command(command, context, attempt)


class CommandReporter:
    """Tells the front end about one command, from its start to its end."""

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
        """Tell what the command prints, until it is finished."""
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
            self.finished(session.transcript(), None)
            raise
        if ended and session.never_began and self._starts < MAX_STARTS:
            if self._live is not None:
                self._live.end()
            raise _NeverBegan
        return ended

    def finished(self, output: str, exit_code: int | None) -> None:
        if self._live is not None:
            self._live.end()
        self._emit_end(output, exit_code, "completed" if exit_code == 0 else "failed")

    def _emit_end(self, output: str, exit_code: int | None, status: Literal["completed", "failed", "declined"]) -> None:
        self._context.emit(
            CommandFinished(
                self._context.call_id, self._command, self._workdir, output, exit_code, self.seconds, status
            )
        )

    def refused(self, missing: SandboxMissing) -> ToolError:
        """The command cannot run, as no other one can: the user learns what to do, the model only that."""
        self._context.emit(Warned(str(missing), code="sandbox_missing"))
        more = "" if self._context.ask is None else ", or ask for it with `sandbox_permissions`"
        self._emit_end(NO_SANDBOX + more, None, "declined")
        return ToolError(NO_SANDBOX + more)

    def session_ended(self, session: RunningCommand) -> None:
        self.finished(session.transcript(), session.exit_code)


# How a started command is waited for, and answered.
AwaitCommand: TypeAlias = Callable[
    [RunningCommand, CommandArguments, ToolContext, CommandReporter], Awaitable[ToolOutput]
]


async def _apply(patch: PatchInCommand, context: ToolContext, *, workdir: Path) -> ToolOutput:
    if not patch.explicit:
        raise ToolError(IMPLICIT_PATCH)
    applied = await apply_patch_text(patch.patch, context, workdir=workdir / (patch.workdir or ""))
    if not applied.ok:
        return applied
    return ToolOutput(f"Wall time: 0.0000 seconds\nOutput:\n{applied.text}")


def _command_spec(arguments: CommandArguments, context: ToolContext, *, workdir: Path, login: bool) -> CommandSpec:
    if not is_directory(workdir):
        reason = "is not a directory" if is_there(workdir) else "does not exist"
        raise ToolError(f"cannot run the command: working directory `{workdir}` {reason}")
    shell = find_shell(arguments.shell, context.env) if arguments.shell else user_shell(context.env)
    script = arguments.cmd
    if context.fixed_path is not None:
        script = with_fixed_path(script, shell, context.fixed_path)
    elif login:
        script = keep_bundled_tools(script, shell)
    start = context.processes.profiles.start(shell, context.env) if login else ShellStart(login=False)
    argv = shell_argv(shell, start.script(script), login=start.login, no_profile=start.no_profile)
    try:
        wrapped = context.sandbox.wrap(
            on_terminal(argv) if arguments.tty else argv,
            policy=context.sandbox_policy,
            cwd=context.cwd,
            workdir=workdir,
        )
    except BaseException:
        start.release()
        raise

    def release() -> None:
        wrapped.release()
        start.release()

    return CommandSpec(
        wrapped.argv,
        workdir,
        start.environment({**context.env, **wrapped.env, "CODEX_TOOL_CALL_ID": context.call_id}),
        tty=arguments.tty,
        sandboxed=wrapped.sandboxed,
        fds=(*wrapped.fds, *start.fds),
        release=release,
        cleanup=wrapped.cleanup,
        has_begun=wrapped.has_begun,
        outside=isinstance(context.sandbox_policy, DangerFullAccess),
        call_id=context.call_id,
        read_only=isinstance(context.sandbox_policy, ReadOnly),
    )


async def _wait(
    session: RunningCommand, arguments: CommandArguments, context: ToolContext, report: CommandReporter
) -> ToolOutput:
    await report.wait(session, max(MIN_YIELD_MS, min(arguments.yield_time_ms, MAX_YIELD_MS)) / 1000)
    captured = session.take()
    reply = compose_reply(
        captured,
        standing=standing_of(session.exit_code, session.id),
        seconds=report.seconds,
        max_tokens=arguments.max_output_tokens,
        cap=context.output_tokens,
    )
    if session.exit_code is None:
        session.on_end = report.session_ended
    else:
        context.processes.forget(session)
        report.finished(captured.text(), session.exit_code)
    return ToolOutput(reply)

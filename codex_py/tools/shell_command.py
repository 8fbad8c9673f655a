"""The `shell_command` tool: an older name some models call. A command line is run to its end, or to its time limit.

Imports pydantic: loaded at the first call.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AliasChoices, BaseModel, BeforeValidator, Field

from codex_py.errors import ToolError
from codex_py.patch.intercept import PatchInCommand, find_patch_in_command
from codex_py.process.session import RunningCommand
from codex_py.protocol.items import ToolCall
from codex_py.text.tokens import count_lines, truncate_middle
from codex_py.tools.apply_patch import IMPLICIT_PATCH, apply_patch_text
from codex_py.tools.arguments import parse_arguments
from codex_py.tools.command_line import CommandArguments, command_of
from codex_py.tools.exec_command import AwaitCommand, CommandReporter, ExecCommand
from codex_py.tools.spec import ToolContext, ToolOutput

DEFAULT_TIMEOUT_MS: Final = 10_000

_MAX_TIMEOUT_MS: Final = 24 * 3600 * 1000
_TIMED_OUT: Final = 124


def _whole(value: object) -> object:
    """A float without its fraction: models write `500.0`, and half a millisecond matters to nobody."""
    return int(value) if isinstance(value, float) and value == value and abs(value) < 2**53 else value


Whole = Annotated[int, BeforeValidator(_whole)]


class ShellCommandArguments(BaseModel):
    command: str
    workdir: str | None = None
    login: bool = True
    timeout_ms: Whole = Field(DEFAULT_TIMEOUT_MS, validation_alias=AliasChoices("timeout_ms", "timeout"))
    sandbox_permissions: Literal["use_default", "require_escalated"] = "use_default"
    justification: str | None = None
    prefix_rule: list[str] = Field(default_factory=list)


class ShellCommandTool:
    """`allow_login_shell` is the user's setting; where it is off, `login` is not looked at."""

    def __init__(self, *, allow_login_shell: bool = True) -> None:
        self._exec = ExecCommand(allow_login_shell=allow_login_shell)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Run a command line and wait for it; what is still running after `timeout_ms` is killed."""
        arguments = parse_arguments(call, ShellCommandArguments)
        patch = find_patch_in_command(arguments.command)
        if patch is not None:
            return await apply_found(patch, context, workdir=arguments.workdir)
        fields = arguments.model_dump(exclude={"command", "timeout_ms"})
        command = command_of({"cmd": arguments.command, **fields})
        return await self._exec.execute(command, context, wait_at_most(arguments.timeout_ms))


async def apply_found(patch: PatchInCommand, context: ToolContext, *, workdir: str | None) -> ToolOutput:
    """Apply the patch that a command of these tools consists of; the answer has their layout already."""
    if not patch.explicit:
        raise ToolError(IMPLICIT_PATCH)
    directory = context.cwd / (workdir or "") / (patch.workdir or "")
    return await apply_patch_text(patch.patch, context, workdir=directory)


def wait_at_most(timeout_ms: int) -> AwaitCommand:
    """Wait for a command to end, kill it when it does not in time, and answer in the layout of these tools."""

    async def wait(
        session: RunningCommand, arguments: CommandArguments, context: ToolContext, report: CommandReporter
    ) -> ToolOutput:
        del arguments  # the limit is not among them
        limit = max(0, min(timeout_ms, _MAX_TIMEOUT_MS))
        ended = await report.wait(session, limit / 1000)
        if not ended:
            await context.processes.close(session)
        text = session.transcript()
        code = session.exit_code if ended else _TIMED_OUT
        context.processes.forget(session)
        report.finished(text, code)
        message = text if ended else f"command timed out after {limit} milliseconds\n{text}"
        return ToolOutput(_layout(message, code, seconds=report.seconds, cap=context.output_tokens), ok=code == 0)

    return wait


def _layout(text: str, exit_code: int | None, *, seconds: float, cap: int) -> str:
    shown = truncate_middle(text, cap)
    lines = "" if shown is text else f"Total output lines: {count_lines(text)}\n"
    return f"Exit code: {exit_code}\nWall time: {seconds:.1f} seconds\n{lines}Output:\n{shown}"

"""The tools `exec_command`, `write_stdin`, `shell_command` and `shell`: commands in the sandbox.

The last two are older names some models call.
"""

from __future__ import annotations

from typing import Final

from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import CommandField, Tool, ToolContext, ToolOutput, TypedText


class _CommandTool(Tool):
    """`allow_login_shell` is the user's setting; where it is off, `login` is not looked at."""

    type = "runs"
    leaves_running = False

    def __init__(self, *, allow_login_shell: bool = True) -> None:
        self._allow_login_shell = allow_login_shell

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Run a command until it ends or its time is over; a patch in it is applied instead."""
        run = context.commands.run_until_yield if self.leaves_running else context.commands.run_to_end
        return await run(self.read(call), context, allow_login_shell=self._allow_login_shell)


class ExecCommand(_CommandTool):
    """A command that is left running when its time is over."""

    name = "exec_command"
    parallel = True
    hook_view = CommandField("cmd")
    leaves_running = True


class ShellCommandTool(_CommandTool):
    """A command line that is killed when `timeout_ms` is over."""

    name = "shell_command"
    aliases = (("timeout", "timeout_ms"),)
    hook_view = CommandField("command")


class Shell(ShellCommandTool):
    """The same for a program and its arguments."""

    name = "shell"


MIN_POLL_MS: Final = 5_000
MAX_POLL_MS: Final = 300_000


class WriteStdin(Tool):
    """`max_poll_ms` bounds how long a look without typing may wait."""

    name = "write_stdin"
    type = "runs"
    polls = True
    hook_view = TypedText("chars")

    def __init__(self, *, max_poll_ms: int = MAX_POLL_MS) -> None:
        self._poll_ms = (MIN_POLL_MS, max(max_poll_ms, MIN_POLL_MS))

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Type, wait until the command ends or the time is over, and answer with the new output.

        The answer with the exit code is the last: the session ID is unknown from then on.
        """
        return await context.commands.type_and_wait(self.read(call), context, self._poll_ms)

"""The tools `exec_command`, `shell_command` and `shell`: a command in the sandbox, waited for or left running.

The last two are older names some models call. What runs a command is loaded with the first call.
"""

from __future__ import annotations

from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import CommandField, Tool, ToolContext, ToolOutput


class _CommandTool(Tool):
    """`allow_login_shell` is the user's setting; where it is off, `login` is not looked at."""

    type = "runs"
    leaves_running = False

    def __init__(self, *, allow_login_shell: bool = True) -> None:
        self._allow_login_shell = allow_login_shell

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Run a command until it ends or its time is over; a patch in it is applied instead."""
        from codex_py.tools.command_runs import run_to_end, run_until_yield

        run = run_until_yield if self.leaves_running else run_to_end
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

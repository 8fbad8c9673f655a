"""The tools `shell_command` and `shell`: older names some models call. A command runs to its end, or its time limit."""

from __future__ import annotations

from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import CommandField, Tool, ToolContext, ToolOutput


class ShellCommandTool(Tool):
    """A command line, or an argument vector. What is still running after `timeout_ms` is killed.

    `allow_login_shell` is the user's setting; where it is off, `login` is not looked at.
    """

    name = "shell_command"
    type = "runs"
    aliases = (("timeout", "timeout_ms"),)
    hook_view = CommandField("command")

    def __init__(self, *, allow_login_shell: bool = True) -> None:
        self._allow_login_shell = allow_login_shell

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Run it and wait for it; a patch in it is applied instead."""
        from codex_py.tools.command_runs import run_to_end

        return await run_to_end(self.read(call), context, allow_login_shell=self._allow_login_shell)


class Shell(ShellCommandTool):
    """A program and its arguments."""

    name = "shell"

"""The `exec_command` tool: a shell command in the session's sandbox, waited for or left running."""

from __future__ import annotations

from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import CommandField, Tool, ToolContext, ToolOutput


class ExecCommand(Tool):
    """`allow_login_shell` is the user's setting; where it is off, `login` is not looked at."""

    name = "exec_command"
    type = "runs"
    parallel = True
    hook_view = CommandField("cmd")

    def __init__(self, *, allow_login_shell: bool = True) -> None:
        self._allow_login_shell = allow_login_shell

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Run a command line until it ends or the time it was given is over; a patch in it is applied instead."""
        from codex_py.tools.command_runs import run_until_yield

        return await run_until_yield(self.read(call), context, allow_login_shell=self._allow_login_shell)

"""The `shell` tool: an older name some models call. A program and its arguments, run like a `shell_command`.

Imports pydantic: loaded at the first call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pydantic import AliasChoices, BaseModel, Field

from codex_py.patch.intercept import find_patch_in_argv
from codex_py.process.shells import join_words
from codex_py.protocol.items import ToolCall
from codex_py.tools.arguments import parse_arguments
from codex_py.tools.command_line import command_of
from codex_py.tools.exec_command import ExecCommand
from codex_py.tools.shell_command import DEFAULT_TIMEOUT_MS, Whole, apply_found, wait_at_most
from codex_py.tools.spec import ToolContext, ToolOutput

_SHELLS: Final = ("bash", "zsh", "sh")


class ShellArguments(BaseModel):
    command: list[str] = Field(min_length=1)
    workdir: str | None = None
    timeout_ms: Whole = Field(DEFAULT_TIMEOUT_MS, validation_alias=AliasChoices("timeout_ms", "timeout"))
    sandbox_permissions: Literal["use_default", "require_escalated"] = "use_default"
    justification: str | None = None
    prefix_rule: list[str] = Field(default_factory=list)


class Shell:
    """`allow_login_shell` is the user's setting; where it is off, `-lc` counts as `-c`."""

    def __init__(self, *, allow_login_shell: bool = True) -> None:
        self._exec = ExecCommand(allow_login_shell=allow_login_shell)

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Run a program and wait for it; what is still running after `timeout_ms` is killed."""
        arguments = parse_arguments(call, ShellArguments)
        patch = find_patch_in_argv(arguments.command)
        if patch is not None:
            return await apply_found(patch, context, workdir=arguments.workdir)
        fields = arguments.model_dump(exclude={"command", "timeout_ms"})
        command = command_of({**_as_command_line(arguments.command), **fields})
        return await self._exec.execute(command, context, wait_at_most(arguments.timeout_ms))


def _as_command_line(argv: Sequence[str]) -> dict[str, str | bool]:
    """The fields of `exec_command` that stand for an argument vector."""
    match list(argv):
        case [shell, ("-c" | "-lc") as flag, script] if shell.rpartition("/")[2] in _SHELLS:
            return {"cmd": script, "shell": shell, "login": flag == "-lc"}
        case words:
            return {"cmd": join_words(words), "login": False}

"""Tools of which only the spec is read at the start; the rest is imported when the first call is on its way."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

from codex_py.protocol.encoding import decode_json
from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import Tool, ToolContext, ToolOutput

RunCall: TypeAlias = Callable[[ToolCall, ToolContext], Awaitable[ToolOutput]]


class LaterTool:
    """A tool whose spec is `NAME.json`; `load` imports what runs its calls."""

    def __init__(self, name: str, load: Callable[[], RunCall], *, parallel: bool = False) -> None:
        self.name = name
        self.parallel = parallel
        self._load = load

    def spec(self) -> dict[str, Any]:
        """The JSON shown to the model."""
        return decode_json((Path(__file__).parent / f"{self.name}.json").read_bytes())

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Do the work. Raises `ToolError` for failures the model can act on."""
        return await self._load()(call, context)


def commands_later(*, allow_login_shell: bool, max_poll_ms: int) -> list[Tool]:
    """The tools for commands: to run one, and to type into one that still runs."""

    def exec_command() -> RunCall:
        from codex_py.tools.exec_command import ExecCommand

        return ExecCommand(allow_login_shell=allow_login_shell).run

    def write_stdin() -> RunCall:
        from codex_py.tools.write_stdin import WriteStdin

        return WriteStdin(max_poll_ms=max_poll_ms).run

    return [LaterTool("exec_command", exec_command, parallel=True), LaterTool("write_stdin", write_stdin)]


def shown_later(*, pictures: bool, questions: bool, permissions: bool) -> list[Tool]:
    """The tools that come after those for commands and patches, in the order they are shown.

    `pictures` says that the model takes them; `questions` and `permissions` that there is somebody to ask for either.
    """
    # Not beside others: of two plans in one answer the second counts.
    tools: list[Tool] = [LaterTool("update_plan", _update_plan)]
    if pictures:
        tools.append(LaterTool("view_image", _view_image))
    if questions:
        tools.append(LaterTool("request_user_input", _request_user_input))
    if permissions:
        tools.append(LaterTool("request_permissions", _request_permissions))
    return tools


def hidden_later(*, allow_login_shell: bool, commands: bool = True) -> list[Tool]:
    """Tools that are run when a model calls them and not shown: older names, and what would be refused anyway."""
    older = [
        LaterTool("shell", lambda: _shell(allow_login_shell)),
        LaterTool("shell_command", lambda: _shell_command(allow_login_shell)),
    ]
    return [
        *(older if commands else ()),
        LaterTool("request_user_input", _request_user_input),
        LaterTool("request_permissions", _request_permissions),
    ]


def _update_plan() -> RunCall:
    from codex_py.tools.update_plan import update_plan

    return update_plan


def _view_image() -> RunCall:
    from codex_py.tools.view_image import view_image

    return view_image


def _request_user_input() -> RunCall:
    from codex_py.tools.request_user_input import request_user_input

    return request_user_input


def _request_permissions() -> RunCall:
    from codex_py.tools.request_permissions import request_permissions

    return request_permissions


def _shell(allow_login_shell: bool) -> RunCall:
    from codex_py.tools.shell import Shell

    return Shell(allow_login_shell=allow_login_shell).run


def _shell_command(allow_login_shell: bool) -> RunCall:
    from codex_py.tools.shell_command import ShellCommand

    return ShellCommand(allow_login_shell=allow_login_shell).run

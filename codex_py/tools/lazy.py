"""Tools of which only the spec is read at the start; the rest is imported when the first call is on its way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.protocol.encoding import decode_json
from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import RunCall, Tool, ToolContext, ToolOutput

AGENT_TOOLS: Final = frozenset({"spawn_agent", "send_input", "wait_agent", "close_agent", "list_agents"})


class LazyTool:
    """A tool whose spec is `NAME.json`; `load` imports what runs its calls."""

    def __init__(self, name: str, load: Callable[[], RunCall], *, parallel: bool = False, polls: bool = False) -> None:
        self.name = name
        self.parallel = parallel
        self.polls = polls
        self._load = load

    def spec(self) -> dict[str, Any]:
        """The JSON shown to the model."""
        return decode_json((Path(__file__).parent / f"{self.name}.json").read_bytes())

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Do the work. Raises `ToolError` for failures the model can act on."""
        return await self._load()(call, context)


def make_command_tools(*, allow_login_shell: bool, max_poll_ms: int) -> list[Tool]:
    """The tools for commands: to run one, and to type into one that still runs."""

    def exec_command() -> RunCall:
        from codex_py.tools.exec_command import ExecCommand

        return ExecCommand(allow_login_shell=allow_login_shell).run

    def write_stdin() -> RunCall:
        from codex_py.tools.write_stdin import WriteStdin

        return WriteStdin(max_poll_ms=max_poll_ms).run

    return [LazyTool("exec_command", exec_command, parallel=True), LazyTool("write_stdin", write_stdin, polls=True)]


def make_shown_tools(*, pictures: bool, questions: bool, permissions: bool) -> list[Tool]:
    """The tools that come after those for commands and patches, in the order they are shown.

    `pictures` says that the model takes them; `questions` and `permissions` that there is somebody to ask for either.
    """
    # Not beside others: of two plans in one answer the second counts.
    tools: list[Tool] = [LazyTool("update_plan", _update_plan)]
    if pictures:
        tools.append(LazyTool("view_image", _view_image))
    if questions:
        tools.append(LazyTool("request_user_input", _request_user_input))
    if permissions:
        tools.append(LazyTool("request_permissions", _request_permissions))
    return tools


class SpawnTool(LazyTool):
    """`spawn_agent`, whose spec names the roles there are."""

    def __init__(self, roles: Sequence[tuple[str, str]]) -> None:
        super().__init__("spawn_agent", _spawn_agent, parallel=True)
        self._roles = roles

    def spec(self) -> dict[str, Any]:
        """The JSON shown to the model; the same for the same roles."""
        spec = super().spec()
        role = spec["parameters"]["properties"]["agent_type"]
        role["description"] += "".join(f"\n- `{name}`: {about}" for name, about in self._roles)
        return spec


def make_agent_tools(roles: Sequence[tuple[str, str]]) -> list[Tool]:
    """The tools for agents. `roles` are names and what each is for, in the order they are shown."""
    return [
        SpawnTool(roles),
        # Not in parallel: input sent in the same response counts before the wait starts.
        LazyTool("send_input", _send_input),
        LazyTool("wait_agent", _wait_agent, polls=True),
        LazyTool("close_agent", _close_agent),
        LazyTool("list_agents", _list_agents, polls=True),
    ]


def make_skill_tool() -> Tool:
    """The tool that loads a skill."""
    return LazyTool("skill", _skill)


def make_hidden_tools(*, allow_login_shell: bool, commands: bool = True) -> list[Tool]:
    """Tools that are run when a model calls them and not shown: older names, and what would be refused anyway."""
    older = [
        LazyTool("shell", lambda: _shell(allow_login_shell)),
        LazyTool("shell_command", lambda: _shell_command(allow_login_shell)),
    ]
    return [
        *(older if commands else ()),
        LazyTool("request_user_input", _request_user_input),
        LazyTool("request_permissions", _request_permissions),
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


def _spawn_agent() -> RunCall:
    from codex_py.tools.agents import spawn_agent

    return spawn_agent


def _send_input() -> RunCall:
    from codex_py.tools.agents import send_input

    return send_input


def _wait_agent() -> RunCall:
    from codex_py.tools.agents import wait_agent

    return wait_agent


def _close_agent() -> RunCall:
    from codex_py.tools.agents import close_agent

    return close_agent


def _list_agents() -> RunCall:
    from codex_py.tools.agents import list_agents

    return list_agents


def _skill() -> RunCall:
    from codex_py.tools.skill import load_skill

    return load_skill


def _shell(allow_login_shell: bool) -> RunCall:
    from codex_py.tools.shell import Shell

    return Shell(allow_login_shell=allow_login_shell).run


def _shell_command(allow_login_shell: bool) -> RunCall:
    from codex_py.tools.shell_command import ShellCommandTool

    return ShellCommandTool(allow_login_shell=allow_login_shell).run

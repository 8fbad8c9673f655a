"""The tool calls of a session: what a tool gets to know, and what is made ready before the first one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from codex_py.core.agent_slot import AgentSlot
from codex_py.core.mcp_slot import McpSlot
from codex_py.core.questions import Questions
from codex_py.core.repeated_calls import RepeatedCalls
from codex_py.core.secrets import Secrets
from codex_py.core.turn_context import TurnContext, TurnSettings
from codex_py.protocol import events
from codex_py.protocol.items import ResponseItem, ToolCall
from codex_py.protocol.policy import SandboxPolicy, has_no_limits
from codex_py.protocol.value import Value
from codex_py.shell.command_line import CommandLineReader
from codex_py.tools.allowed import AllowedTools
from codex_py.tools.registry import ToolRegistry
from codex_py.tools.spec import ToolContext, ToolOutput

if TYPE_CHECKING:
    from codex_py.core.hands import Hands
    from codex_py.core.session_hooks import SessionHooks
    from codex_py.core.user_shell import UserShell
    from codex_py.protocol.live_process import LiveProcess


A = TypeVar("A")
R = TypeVar("R")


class ToolParts(Value):
    """The tools of a session. `can_ask` says that the front end answers questions, `chose_never` that an approval
    policy `never` is the user's own choice.

    `load_hands` is called once, in a thread, when the first call is on its way: many a session makes none. `users_env`
    is asked for what the user's own commands run with. `allows` says which tools of MCP servers may be used by name,
    where not all of them may. `env_notice` is a line for the user about what `env` lacks, shown at the first call.
    """

    registry: ToolRegistry
    env: dict[str, str]
    load_hands: Callable[[], Hands]
    agents: AgentSlot
    command_lines: CommandLineReader
    can_ask: bool = False
    chose_never: bool = False
    users_env: Callable[[], dict[str, str]] = dict
    mcp: McpSlot | None = None
    hooks: SessionHooks | None = None
    allows: Callable[[str], bool] | None = None
    env_notice: str = ""


class ToolRuns:
    """Runs calls. `emit` hears the tools' events; `warn` hears what the user should know, once each.

    `use_skill` gives the text of a skill for the model.
    """

    def __init__(
        self,
        parts: ToolParts,
        secrets: Secrets,
        questions: Questions,
        *,
        emit: Callable[[events.Event], None],
        warn: Callable[[str], None],
        use_skill: Callable[[str], Awaitable[str]],
    ) -> None:
        self._parts = parts
        self._use_skill = use_skill
        self._own = parts.registry
        self._registry = self._joined()
        self._secrets = secrets
        self._questions = questions
        self._emit = emit
        self._warn = warn
        self._hands: asyncio.Task[Hands] | None = None
        self._entrance = asyncio.Lock()
        # What the user granted for the rest of the running turn, in place of the policy it began with.
        self._granted: SandboxPolicy | None = None
        self._shells: set[UserShell] = set()
        self._repeated = RepeatedCalls()

    @property
    def registry(self) -> ToolRegistry:
        return self._registry

    @property
    def own(self) -> ToolRegistry:
        """Without the tools of MCP servers."""
        return self._own

    def offer(self, registry: ToolRegistry) -> None:
        """Other tools from now on, for other settings."""
        self._own = registry
        self._registry = self._joined()

    def new_turn(self) -> None:
        """Forget what was granted for the turn before, and show the model what has come since."""
        self._granted = None
        self._repeated.restart()
        self.join()

    def join(self) -> None:
        """Show the model the tools that MCP servers have brought meanwhile, from the next request on."""
        tools = self._parts.mcp and self._parts.mcp.tools
        if tools:
            for news in tools.join():
                self._warn(news)
            self._registry = self._joined()

    def warm_up(self, policy: SandboxPolicy, cwd: Path) -> asyncio.Task[Hands]:
        """Get ready for the first call of the session, once, beside whatever else is going on."""
        if self._hands is None:
            self._hands = asyncio.create_task(asyncio.to_thread(self._load, policy, cwd))
        return self._hands

    async def run(self, call: ToolCall, turn: TurnContext, ended: Callable[[ToolOutput], None]) -> ToolOutput:
        """Answer a call; the output holds no secret of the session, and `ended` has it before anybody is told."""
        # One behind the other: calls begin in their order, also those that come while the first one waits here.
        async with self._entrance:
            # Shielded, because an interrupted call must not take this from the next one.
            hands = await asyncio.shield(self.warm_up(turn.sandbox_policy, turn.cwd))
        policy = self._granted or turn.sandbox_policy
        parts = self._parts
        shortfall = hands.sandbox.shortfall(policy, turn.cwd)
        # Where nobody can be asked, the refusal of the first command says it.
        shown = shortfall if hands.allow_partial or parts.can_ask else None
        for warning in (*filter(None, [shown, parts.env_notice]), *hands.approvals.warnings, *hands.warnings):
            self._warn(warning)
        announcements, hooks = _Announcements(self._emit), parts.hooks
        context = ToolContext(
            call_id=call.call_id,
            cwd=turn.cwd,
            sandbox_policy=policy,
            approval=turn.approval,
            sandbox=hands.sandbox,
            processes=hands.processes,
            env=parts.env | self._secrets.env,
            output_tokens=turn.settings.output_tokens,
            emit=announcements,
            command_lines=parts.command_lines,
            ask=announcements.noted(self._questions.ask) if parts.can_ask else None,
            widen=self._widen,
            approvals=hands.approvals,
            shortfall=None if hands.allow_partial else shortfall,
            plan=turn.plan,
            guards_accidents=not (parts.chose_never and has_no_limits(policy, turn.approval)),
            agents=parts.agents.fill,
            use_skill=announcements.noted(self._use_skill),
        )
        began = time.monotonic()
        try:
            output = self._secrets.without(await self._registry.run(call, context, hooks and hooks.run_call))
            output = self._noted(call, output)
            ended(output)
            announcements.tell_of(call, output, time.monotonic() - began)
        finally:
            announcements.end()
        return output

    async def user_shell(self, command: str, settings: TurnSettings) -> ResponseItem:
        """Run a command of the user's own; gives back what the model reads of it. Nothing is asked about it."""
        from codex_py.core.user_shell import UserShell, UserShellPlace  # the seam: only for who runs one

        env = self._parts.users_env()
        withheld = [value for name, value in env.items() if name not in self._parts.env]
        place = UserShellPlace(settings.cwd, env, settings.model.output_tokens, self._secrets.redactor_with(withheld))
        shell = UserShell(command, place, self._emit)
        self._shells.add(shell)
        try:
            hands = await asyncio.shield(self.warm_up(settings.sandbox_policy, settings.cwd))
            return await shell.run(hands.processes)
        finally:
            self._shells.discard(shell)

    def stop_user_shells(self) -> bool:
        """Stop the user's own commands; whether there were any."""
        for shell in self._shells:
            shell.stop()
        return bool(self._shells)

    def processes(self) -> tuple[LiveProcess, ...]:
        """The commands that still run, the oldest first."""
        if self._hands is None or not self._hands.done():
            return ()
        from codex_py.core.live_processes import describe_processes  # the seam: only for who looks

        return describe_processes(self._hands.result().processes.live(), self._secrets.redact)

    async def stop_process(self, process_id: int) -> bool:
        """Kill a command with all it started; False when none with this id runs."""
        if self._hands is None or not self._hands.done():
            return False
        processes = self._hands.result().processes
        for session in processes.live():
            if session.id == process_id:
                await processes.stop(session)
                return True
        return False

    async def stop_all(self) -> None:
        """Stop every command, with all it has started."""
        if self._hands is not None:
            await (await self._hands).processes.kill_all()

    async def close(self) -> None:
        """Stop every process the tools left behind."""
        await self.stop_all()

    def _joined(self) -> ToolRegistry:
        tools = self._parts.mcp and self._parts.mcp.tools
        if not tools:
            return self._own
        allows = self._parts.allows
        return self._own.joined(tools if allows is None else AllowedTools(tools, allows))

    def _noted(self, call: ToolCall, output: ToolOutput) -> ToolOutput:
        if self._registry.may_repeat(call):
            self._repeated.restart()
            return output
        return self._repeated.note(call, output)

    def _widen(self, policy: SandboxPolicy) -> None:
        self._granted = policy

    def _load(self, policy: SandboxPolicy, cwd: Path) -> Hands:
        self._registry.warm_up(self._parts.command_lines)
        hands = self._parts.load_hands()
        hands.prepare(policy, cwd)
        return hands


class _Announcements:
    """Passes on the events of a call, and holds back the news of its end: what was told must be on the disk by then."""

    def __init__(self, emit: Callable[[events.Event], None]) -> None:
        self._emit = emit
        self._held: events.Event | None = None
        self._is_over = False
        self._is_silent = True

    def __call__(self, event: events.Event) -> None:
        self._is_silent = False
        self.release()
        if not self._is_over and isinstance(event, events.CommandFinished | events.PatchFinished):
            self._held = event
        else:
            self._emit(event)

    def noted(self, act: Callable[[A], Awaitable[R]]) -> Callable[[A], Awaitable[R]]:
        """Something that a call does and others tell of."""

        async def acted(given: A) -> R:
            result = await act(given)
            self._is_silent = False
            return result

        return acted

    def tell_of(self, call: ToolCall, output: ToolOutput, seconds: float) -> None:
        """The call has ended: nobody is to think that nothing happened, if nothing was told of it."""
        if self._is_silent:
            self._emit(
                events.ToolCallFinished(call.call_id, call.name, call.arguments, output.ok, seconds, output.text)
            )

    def end(self) -> None:
        """The call is answered. What its command does from now on, in the background, is told at once."""
        self._is_over = True
        self.release()

    def release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            self._emit(held)

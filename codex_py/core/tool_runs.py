"""The tool calls of a session: what a tool gets to know, and how its events are passed on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from codex_py.context.host_messages import background_command_ended
from codex_py.core.listeners import Questions
from codex_py.core.ports import AgentSpawner
from codex_py.core.secrets import Secrets
from codex_py.core.session_features import HookAccess, SessionCheckpoints, SessionMcp
from codex_py.core.turn_context import TurnContext, TurnSettings
from codex_py.protocol import events
from codex_py.protocol.items import ResponseItem, ToolCall
from codex_py.protocol.policy import SandboxPolicy
from codex_py.protocol.status import LiveProcess
from codex_py.protocol.value import Value
from codex_py.sandbox.ownership import describe_foreign_owner
from codex_py.shell.reader import CommandLineReader
from codex_py.tools.registry import AllowedTools, RepeatedCalls, ToolRegistry
from codex_py.tools.session_tools import SkillSearchTool
from codex_py.tools.spec import SkillCall, ToolContext, ToolOutput

if TYPE_CHECKING:
    from codex_py.core.tool_runtime import ToolRuntime


# Of a command that has ended in the background, so much is sent to the model unasked.
_COMMAND_SHOWN: Final = 1000
_TAIL_SHOWN: Final = 1000


class SkillAccess(Protocol):
    """Loads skills for the model by their names, and searches them."""

    async def use(self, call: SkillCall) -> str:
        """The text of a skill. Raises `ToolError`."""
        ...

    async def search(self, query: str, skill: str | None, limit: int) -> str:
        """Skills for a query, or passages of one skill. Raises `ToolError`."""
        ...

    def is_searchable(self) -> bool:
        """Whether the model is offered the search."""
        ...


A = TypeVar("A")
R = TypeVar("R")


class ToolServices(Value):
    """The tools of a session. `can_ask` says that the front end answers questions.

    `load_runtime` is called in a thread when the first call is on its way: many a session makes none.
    `users_env` is asked for what the user's own commands run with. `allows` says which tools of MCP servers may be used
    by name, where not all of them may. `env_notice` is a line for the user about what `env` lacks, shown at the first
    call. `checkpoints` are those of the user's session, also in an agent's.
    `rule_warnings` reads the files of rules for their faults: those are reported even where no
    command runs.
    """

    registry: ToolRegistry
    env: dict[str, str]
    load_runtime: Callable[[], ToolRuntime]
    command_lines: CommandLineReader
    hooks: HookAccess
    mcp: SessionMcp
    can_ask: bool = False
    users_env: Callable[[], dict[str, str]] = dict
    allows: Callable[[str], bool] | None = None
    env_notice: str = ""
    checkpoints: SessionCheckpoints = SessionCheckpoints()
    rule_warnings: Callable[[], Sequence[str]] | None = None


class ToolRuns:
    """Runs calls. `emit` gets the tools' events, and warnings that the user should see once.

    `agents` starts agents for the model; `skills` loads skills and searches them.
    """

    def __init__(
        self,
        services: ToolServices,
        secrets: Secrets,
        questions: Questions,
        *,
        emit: Callable[[events.Event], None],
        agents: Callable[[], AgentSpawner],
        skills: Callable[[], SkillAccess],
    ) -> None:
        self._services = services
        self.skills = skills
        # Decided before the first request: tools stand before everything that a prompt cache serves.
        self._searches_skills: bool | None = None
        # The names of the tools in the order in which the model has seen them, those of an earlier run first.
        self.shown: list[str] = []
        self._own = services.registry
        self._registry = self._joined()
        self._secrets = secrets
        self._questions = questions
        self._emit = emit
        self.agents = agents
        self._runtime: asyncio.Task[ToolRuntime] | None = None
        self._entrance = asyncio.Lock()
        # What the user granted for the rest of the running turn, in place of the policy it began with.
        self._granted: SandboxPolicy | None = None
        # The running turn, or the one before.
        self.turn: TurnContext | None = None
        self._shell_stops: set[asyncio.Future[None]] = set()
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

    def new_turn(self, turn: TurnContext) -> None:
        """Forget what was granted for the turn before, and show the model what has come since."""
        self.turn = turn
        if turn.parent is None:
            self._services.checkpoints.begin_turn(turn)
        self._granted = None
        self._repeated.restart()
        if self._searches_skills is None:
            before = self.shown
            self._searches_skills = SkillSearchTool.name in before if before else self.skills().is_searchable()
        self.join()

    def warm_up(self, policy: SandboxPolicy, cwd: Path) -> asyncio.Task[ToolRuntime]:
        """A call is on its way: get ready for it, beside whatever else is going on."""
        return self._load_once(policy, cwd)

    def join(self) -> None:
        """Show the model the tools of MCP servers that have come since."""
        for message in self._services.mcp.clients.join_tools():
            self._emit(events.Warned(message))
        self._registry = self._joined()

    async def report_after(self, work: Awaitable[R]) -> R:
        """Give back the result of the work of a turn, and however it ends, warn of what commands have made and of rules
        that cannot be used; of these in a session in which no command has run too."""
        try:
            return await work
        finally:
            for warning in await self._end_warnings():
                self._emit(events.Warned(warning))

    async def _end_warnings(self) -> Sequence[str]:
        if self._runtime is None:
            return await self._rule_warnings()
        if not self._runtime.done() or self._runtime.cancelled() or self._runtime.exception() is not None:
            return ()
        runtime = self._runtime.result()
        await asyncio.to_thread(runtime.sandbox.look_at_repositories)
        return (*runtime.sandbox.take_notices(), *runtime.approvals.warnings)

    async def _rule_warnings(self) -> Sequence[str]:
        if self._services.rule_warnings is not None:
            # Where no file can be opened any more, the error of the turn says so.
            with suppress(OSError):
                return await asyncio.to_thread(self._services.rule_warnings)
        return ()

    def _report_changes(self, runtime: ToolRuntime) -> None:
        for notice in runtime.sandbox.take_notices():
            self._emit(events.Warned(notice))

    async def run(self, call: ToolCall, turn: TurnContext, ended: Callable[[ToolOutput], None]) -> ToolOutput:
        """Answer a call. The output has no secret of the session; `ended` gets it before the end is emitted."""
        # One behind the other: calls begin in their order, also those that come while the first one waits here.
        async with self._entrance:
            # Shielded, because an interrupted call must not take this from the next one.
            runtime = await asyncio.shield(self.warm_up(turn.sandbox_policy, turn.cwd))
        policy = self._granted or turn.sandbox_policy
        services = self._services
        shortfall = runtime.sandbox.shortfall(policy, turn.cwd)
        # Where nobody can be asked, the refusal of the first command says it.
        shown = shortfall if runtime.allow_partial or services.can_ask else None
        unsearched = runtime.sandbox.unsearched(policy, turn.cwd)
        foreign = describe_foreign_owner(policy, turn.cwd)
        notices = filter(None, [shown, unsearched, foreign, services.env_notice])
        for warning in (*notices, *runtime.approvals.warnings, *runtime.warnings):
            self._emit(events.Warned(warning))
        call_events, skills = _CallEvents(self._emit), self.skills()
        context = ToolContext(
            call_id=call.call_id,
            cwd=turn.cwd,
            sandbox_policy=policy,
            approval=turn.approval,
            sandbox=runtime.sandbox,
            processes=runtime.processes,
            env=services.env | self._secrets.env,
            output_tokens=turn.settings.output_tokens,
            emit=call_events,
            command_lines=services.command_lines,
            commands=runtime.commands,
            ask=call_events.noted(self._questions.ask) if services.can_ask else None,
            widen=self._widen,
            approvals=runtime.approvals,
            shortfall=None if runtime.allow_partial else shortfall,
            plan=turn.plan,
            agents=self.agents,
            use_skill=call_events.noted(skills.use),
            search_skills=skills.search,
            before_write=partial(services.checkpoints.before_write, call.call_id),
        )
        began = time.monotonic()
        try:
            output = self._secrets.without(
                await self._registry.run(call, context, services.hooks.runner.around_call, self._repeated)
            )
            ended(output)
            call_events.end(call, output, time.monotonic() - began)
        finally:
            services.checkpoints.after_call(call.call_id, runs_on=bool(runtime.processes.live()))
            self._report_changes(runtime)
        return output

    async def user_shell(self, command: str, settings: TurnSettings) -> ResponseItem:
        """Run a command of the user's own; gives back what the model reads of it. Nothing is asked about it."""
        env = self._services.users_env()
        redactor = self._secrets.redactor_with(value for name, value in env.items() if name not in self._services.env)
        stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._shell_stops.add(stop)
        try:
            runtime = await asyncio.shield(self._load_once(settings.sandbox_policy, settings.cwd))
            return await runtime.run_user_shell(command, settings, env, redactor=redactor, emit=self._emit, stop=stop)
        finally:
            self._shell_stops.discard(stop)

    def stop_user_shells(self) -> bool:
        """Stop the user's own commands; whether there were any."""
        for stop in self._shell_stops:
            if not stop.done():
                stop.set_result(None)
        return bool(self._shell_stops)

    def processes(self) -> tuple[LiveProcess, ...]:
        """The commands that still run, the oldest first."""
        if self._runtime is None or not self._runtime.done():
            return ()
        return self._runtime.result().live_processes(self._secrets.redact)

    def take_ended(self) -> list[ResponseItem]:
        """A message for the model for each command that has ended in the background and was not asked about since."""
        if self._runtime is None or not self._runtime.done() or self._runtime.cancelled():
            return []
        redact = self._secrets.redact
        return [
            background_command_ended(
                session.id,
                redact(session.line)[:_COMMAND_SHOWN],
                exit_code=None if session.stopped_by_user else session.exit_code,
                output=redact(session.transcript())[-_TAIL_SHOWN:],
            )
            for session in self._runtime.result().processes.take_ended()
        ]

    async def stop_process(self, process_id: int) -> bool:
        """Kill a command with all it started; False when none with this id runs."""
        if self._runtime is None or not self._runtime.done():
            return False
        processes = self._runtime.result().processes
        for session in processes.live():
            if session.id == process_id:
                await processes.stop(session)
                return True
        return False

    async def stop_all(self) -> None:
        """Stop every command, with all it has started."""
        if self._runtime is not None:
            await (await self._runtime).processes.kill_all()

    async def close(self) -> None:
        """Stop every process the tools left behind."""
        await self.stop_all()

    def _joined(self) -> ToolRegistry:
        tools = self._services.mcp.clients.tools
        allows = self._services.allows
        own = self._own
        if self._searches_skills and (allows is None or allows(SkillSearchTool.name)):
            own = own.extended(SkillSearchTool())
        every = own if tools is None else own.joined(tools if allows is None else AllowedTools(tools, allows))
        if self._searches_skills is None:
            return every
        ordered = every.in_order(self.shown)
        self.shown = list(dict.fromkeys([*self.shown, *ordered.shown]))
        return ordered

    def _widen(self, policy: SandboxPolicy) -> None:
        self._granted = policy

    def _load_once(self, policy: SandboxPolicy, cwd: Path) -> asyncio.Task[ToolRuntime]:
        if self._runtime is None:
            self._runtime = asyncio.create_task(asyncio.to_thread(self._load, policy, cwd))
        return self._runtime

    def _load(self, policy: SandboxPolicy, cwd: Path) -> ToolRuntime:
        runtime = self._services.load_runtime()
        runtime.prepare(policy, cwd, self._services.command_lines)
        return runtime


class _CallEvents:
    """Emits the events of a call, and adds one at its end where there was none."""

    def __init__(self, emit: Callable[[events.Event], None]) -> None:
        self._emit = emit
        self._last: events.Event | None = None
        self._is_silent = True

    def __call__(self, event: events.Event) -> None:
        self._is_silent = False
        self._last = event
        self._emit(event)

    def noted(self, act: Callable[[A], Awaitable[R]]) -> Callable[[A], Awaitable[R]]:
        """An action of the call that others emit events about."""

        async def acted(argument: A) -> R:
            result = await act(argument)
            self._is_silent = False
            return result

        return acted

    def end(self, call: ToolCall, output: ToolOutput, seconds: float) -> None:
        """The output is on disk. The end of a command was emitted already where the user was asked after it."""
        if output.ended is not None and output.ended is not self._last:
            self(output.ended)
        elif self._is_silent:
            self(events.ToolCallFinished(call.call_id, call.name, call.arguments, output.ok, seconds, output.text))

"""The features of a session that are loaded when they are first needed: hooks, MCP clients, checkpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from codex_py.core.ports import (
    Checkpointer,
    HookRunner,
    HookSession,
    McpClients,
    NoCheckpoints,
    NoHooks,
    NoMcp,
    SessionAccess,
)
from codex_py.core.turn_context import TurnContext
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.policy import ReadOnly
from codex_py.protocol.status import FilesChanged, ListedHook
from codex_py.skills.model import Skill, SkillCatalog


class HookAccess:
    """Gives access to the `runner` of a session's hooks. `load` makes one when a skill brings the first hooks.

    The agents of a session have its hooks too; `parent` is that of the session that started the agent.
    """

    def __init__(self, runner: HookRunner, load: Callable[[], HookRunner], parent: HookAccess | None = None) -> None:
        self._runner = runner
        self._load = load
        self._parent = parent
        self._session: HookSession | None = None
        self._checkpoints = SessionCheckpoints()
        self._turn_id = ""

    @property
    def runner(self) -> HookRunner:
        """The hooks, which do nothing where there are none."""
        if isinstance(self._runner, NoHooks) and self._parent and not isinstance(self._parent.runner, NoHooks):
            return self._loaded()
        return self._runner

    def attach(self, session: HookSession, checkpoints: SessionCheckpoints) -> None:
        """Let hooks reach the session. Called once, before anything else."""
        self._session, self._checkpoints = session, checkpoints
        self._runner.attach(session)

    def begin_turn(self, turn_id: str) -> None:
        """Another turn begins: hooks of skills used in the one before are not run any more."""
        self._turn_id = turn_id
        self.runner.begin_turn(turn_id)

    async def stop(self, last_message: str | None) -> Sequence[ResponseItem]:
        """`HookRunner.stop`; what the hooks write is work of the turn."""
        checkpointer = self._checkpoints.checkpointer
        ends_writes = checkpointer.begin_writes()
        try:
            return await self.runner.stop(last_message)
        finally:
            if ends_writes:
                checkpointer.end_writes()

    def use_skill(self, skill: Skill) -> Sequence[str]:
        """Run the hooks of a skill for the rest of the turn; the events of those that the user trusts."""
        return self._loaded().use_skill(skill) if skill.options.hooks else ()

    def listed(self, catalog: SkillCatalog) -> tuple[ListedHook, ...]:
        """All hooks there are, those of skills last."""
        skills = [skill for skill in catalog.enabled() if skill.options.hooks]
        return (self._loaded() if skills else self.runner).listed(skills)

    def for_agent(self, thread_id: str, *, role: str, name: str) -> HookAccess:
        """The hooks of the session of an agent that this session starts."""

        def load() -> HookRunner:
            return self._loaded().for_agent(thread_id, role=role, name=name)

        return HookAccess(self.runner.for_agent(thread_id, role=role, name=name), load, self)

    def _loaded(self) -> HookRunner:
        if isinstance(self._runner, NoHooks):
            self._runner = self._load()
            if self._session is not None:
                self._runner.attach(self._session)
                self._runner.begin_turn(self._turn_id)
        return self._runner


class SessionMcp:
    """The MCP clients that a session shares with its agents: none until it has a server.

    `connect` makes them; `at_once` says that servers are configured, otherwise the first one a skill needs makes them.
    """

    def __init__(self, connect: Callable[[SessionAccess], McpClients], *, at_once: bool) -> None:
        self.clients: McpClients = NoMcp()
        self._connect = connect
        self._at_once = at_once
        self._access: SessionAccess | None = None

    def attach(self, access: SessionAccess) -> None:
        """Let servers reach the user's session from now on."""
        self._access = access
        if self._at_once:
            self.connected()

    def connected(self) -> McpClients:
        """The clients, made now if there are none."""
        assert self._access is not None
        if isinstance(self.clients, NoMcp):
            self.clients = self._connect(self._access)
        return self.clients


class SessionCheckpoints:
    """`load` makes what takes them, in a thread, when a turn that may write begins; without it there are none. It gets
    what warns.
    """

    def __init__(self, load: Callable[[Callable[[str], None]], Checkpointer] | None = None) -> None:
        self.checkpointer: Checkpointer = NoCheckpoints()
        self._warn: Callable[[str], None] = _ignore
        self._load = load
        self._turn: TurnContext | None = None
        self._begun: asyncio.Task[None] | None = None
        self._writing: set[str] = set()

    def attach(self, warn: Callable[[str], None]) -> None:
        """Let warnings reach the user; `warn` shows each line once."""
        if self._load is not None:
            self._warn = warn

    def begin_turn(self, turn: TurnContext) -> None:
        """Another turn begins: take its checkpoint while the model thinks. Returns at once."""
        self._turn, self._begun = turn, None
        if self._load is not None and not (turn.plan or isinstance(turn.sandbox_policy, ReadOnly)):
            self._begun = asyncio.create_task(self._begin(turn))

    async def before_write(self, call_id: str, paths: Sequence[Path] = ()) -> None:
        """Return when the state before the turn is on record; `paths` are about to be written by a call."""
        if self._begun is not None:
            # Shielded, because an interrupted call must not take this from the next one.
            await asyncio.shield(self._begun)
            self._writing.add(call_id)
            await self.checkpointer.note_writes(paths)

    def after_call(self, call_id: str, *, runs_on: bool) -> None:
        """A call has ended; with `runs_on` a command still runs."""
        if call_id in self._writing:
            self._writing.discard(call_id)
            if not (self._writing or runs_on):
                self.checkpointer.end_writes()

    async def finish_turn(
        self, turn: TurnContext, work: asyncio.Task[str | None], emit: Callable[[FilesChanged], None]
    ) -> str | None:
        """Wait for the work of a turn; then put on record what it has changed, and emit that."""
        try:
            return await work
        finally:
            if work.done() and turn.parent is None and self._begun is not None:
                begun, self._turn, self._begun = self._begun, None, None
                await begun
                if changed := await self.checkpointer.end():
                    emit(changed)

    async def _begin(self, turn: TurnContext) -> None:
        if isinstance(self.checkpointer, NoCheckpoints) and self._load is not None:
            loop, warn = asyncio.get_running_loop(), self._warn
            # They work in threads, and events belong to the loop's.
            self.checkpointer = await asyncio.to_thread(
                self._load, lambda message: loop.call_soon_threadsafe(warn, message) and None
            )
        self.checkpointer.begin(turn)


def _ignore(message: str) -> None:
    pass

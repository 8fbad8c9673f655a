"""The agents of a session: started, sent messages, waited for and stopped. Loaded when the first one is wanted."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from codex_py.context.host_messages import subagent_notification
from codex_py.core.conversation import TurnRunner
from codex_py.core.session_file import SessionFile
from codex_py.core.session_services import ParentSession
from codex_py.core.turn_context import texts_of
from codex_py.errors import ToolError, UserError
from codex_py.model.client import ParentTurn
from codex_py.protocol import events
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import UserInput
from codex_py.protocol.status import AgentState, AgentStatus, LiveProcess, status_payload
from codex_py.subagents.agent import SubagentSession, first_end
from codex_py.subagents.agent_services import (
    AgentPlan,
    build_agent_services,
    check_provider,
    find_role,
    find_skills,
    forked_items,
    may_do_more,
    tightened,
)
from codex_py.subagents.roles import AgentRole
from codex_py.subagents.stored import StoredAgents
from codex_py.text.tokens import truncate_middle
from codex_py.tools.spec import SpawnRequest

# Of agents that have ended, so many keep their sessions open; the older ones are opened again when they are needed.
_MAX_IDLE: Final = 16
# A shorter wait would have the model ask again and again.
_MIN_WAIT_SECONDS: Final = 10.0


class AgentTree:
    """The state shared by all agents of a user's session. At most `max_at_work` work at a time, `max_depth` deep."""

    def __init__(self, max_at_work: int, max_depth: int, roles: Mapping[str, AgentRole], file: SessionFile) -> None:
        self.max_at_work: Final = max_at_work
        self.max_depth: Final = max_depth
        self.roles: Final = roles
        self.file: Final = file
        self.names: Final[set[str]] = set()
        self.at_work: Final[set[str]] = set()
        self._newest_ms = 0

    def new_id(self) -> str:
        """An id that sorts after all before it, those of the same millisecond too: agents are listed by age."""
        self._newest_ms = max(self._newest_ms + 1, time.time_ns() // 1_000_000)
        return uuid7(self._newest_ms)

    def name_for(self, role: str) -> str:
        """A new name: `agent-1`, `explorer-2`."""
        stem, number = role or "agent", 1
        while f"{stem}-{number}" in self.names:
            number += 1
        self.names.add(f"{stem}-{number}")
        return f"{stem}-{number}"


class Subagents:
    """Implements `AgentSpawner`. The user learns of the agents from events, the model from items in its history."""

    def __init__(self, parent: TurnRunner, tree: AgentTree, *, depth: int) -> None:
        self._parent = parent
        self._tree = tree
        self._depth = depth
        self._open: dict[str, SubagentSession] = {}
        # Those whose sessions are closed, or have not been opened yet.
        self._stored = StoredAgents(tree.file.home, parent.services.thread_id, look=parent.services.stored is not None)
        # Messages about the end of an agent that the model may not have been sent yet.
        self._notifications: dict[str, ResponseItem] = {}
        self._is_closing = False

    async def spawn(self, request: SpawnRequest) -> AgentState:
        parent, tree = self._parent, self._tree
        role = find_role(request.role, tree.roles)
        skills = find_skills(role, request.skills, parent.services.skills.catalog, self._warn_for)
        self._check_capacity()
        tree.names.update(state.name for state in self.states())
        role_name = role.name if role else ""
        state = AgentState(
            tree.new_id(),
            tree.name_for(role_name),
            parent.services.thread_id,
            self._depth + 1,
            "\n".join(texts_of(request.task)),
            "pending_init",
            role=role_name,
        )
        history = forked_items(parent.history) if request.fork else ()
        agent = await self._open_session(state, AgentPlan(role, request.model, request.effort, history))
        self._notify(agent, None)
        started = agent.state
        agent.begin((*skills, *request.task))
        return started

    async def send(self, target: str, inputs: tuple[UserInput, ...], *, interrupt: bool) -> AgentState:
        before = self._known(target)
        agent = self._open.get(before.id)
        if agent is None or not agent.is_at_work:
            self._check_capacity()
        if agent is None:
            agent = await self._reopen_session(before)
        if interrupt and agent.is_at_work:
            # The model that interrupts it need not be notified.
            agent.is_heard = True
            agent.interrupt()
            await agent.ended()
        now, role = self._parent.settings.now, self._tree.roles.get(before.role)
        if agent.is_at_work:
            if may_do_more(agent.session.settings, now, role):
                raise ToolError(
                    f"the agent `{before.name}` works on as it began, and may do more than this session by now: with"
                    " `interrupt` it stops and goes on with what is allowed"
                )
            agent.steer(inputs)
            return before
        self._tree.at_work.add(before.id)
        # What the user has restricted meanwhile is restricted for it too.
        if (op := tightened(agent.session.settings, now, role)) is not None:
            await agent.session.submit(op)
        agent.begin(inputs)
        return before

    async def wait(self, targets: Sequence[str], seconds: float) -> Sequence[AgentState]:
        for target in targets:
            self._check_own(target)
        agents = [agent for target in targets if (agent := self._at_work(target))]
        if len(agents) == len(targets):
            await first_end(agents, max(seconds, _MIN_WAIT_SECONDS))
        states = [self.find(target) or AgentState(target, "", "", 0, "", "not_found") for target in targets]
        ended = [state for state in states if not state.is_at_work]
        for state in ended:
            self._note_heard(state)
        return ended

    async def close(self, target: str) -> AgentState:
        before = self._known(target)
        agent = self._open.get(before.id)
        if agent is None:
            raise ToolError(f"the agent `{target}` is closed already")
        agent.is_heard = True
        await self._close_session(agent, "shutdown")
        return before

    def find(self, target: str) -> AgentState | None:
        return next((state for state in self._own() if target in (state.id, state.name)), None)

    def states(self) -> Sequence[AgentState]:
        return [state for own in self._own() for state in (own, *self._below(own.id))]

    def items_of(self, agent_id: str) -> tuple[ResponseItem, ...]:
        for agent in self._open.values():
            if agent.state.id == agent_id:
                return agent.session.history.items
            if items := agent.session.load_agents().items_of(agent_id):
                return items
        return self._stored.items_of(agent_id)

    async def stop(self, agent_id: str) -> bool:
        for agent in self._open.values():
            if agent.state.id == agent_id and agent.is_at_work:
                agent.interrupt()
                await agent.ended()
                return True
            if await agent.session.agents.stop(agent_id):
                return True
        return False

    def processes(self) -> tuple[LiveProcess, ...]:
        return tuple(
            process if process.agent else process.replace(agent=agent.state.title)
            for agent in self._open.values()
            for process in agent.session.processes()
        )

    async def stop_process(self, process_id: int) -> bool:
        for agent in tuple(self._open.values()):
            if await agent.session.stop_process(process_id):
                return True
        return False

    def interrupt(self) -> None:
        for agent in self._open.values():
            # The model reads of the interrupt at the end of its own turn.
            agent.is_heard = True
            agent.interrupt()

    async def shut_down(self) -> None:
        self._is_closing = True
        # The outcome of these is never reported.
        cut_off = sorted(agent.state.name for agent in self._open.values() if agent.is_at_work and not agent.is_heard)
        if cut_off:
            are = "agent was" if len(cut_off) == 1 else "agents were"
            self._parent.listeners.warn(f"{len(cut_off)} {are} still at work and stopped: {', '.join(cut_off)}")
        await asyncio.gather(*(self._close_session(agent, None) for agent in tuple(self._open.values())))

    def _own(self) -> Sequence[AgentState]:
        stored = [state for state in self._stored.states() if state.id not in self._open]
        return sorted([*stored, *(agent.state for agent in self._open.values())], key=lambda state: state.id)

    def _below(self, agent_id: str) -> Sequence[AgentState]:
        agent = self._open.get(agent_id)
        return agent.session.load_agents().states() if agent else self._stored.below(agent_id)

    def _known(self, target: str) -> AgentState:
        self._check_own(target)
        state = self.find(target)
        if state is None:
            raise ToolError(f"there is no agent `{target}`; `list_agents` tells which there are")
        return state

    def _check_own(self, target: str) -> None:
        """Raises `ToolError` for an agent that another agent has started: only that one talks to it."""
        if self.find(target) is not None:
            return
        states = self.states()
        of_another = next((state for state in states if target in (state.id, state.name)), None)
        if of_another is not None:
            starter = next((state.name for state in states if state.id == of_another.parent), "another agent")
            raise ToolError(f"the agent `{target}` is not yours: `{starter}` has started it, and alone talks to it")

    def _check_capacity(self) -> None:
        tree = self._tree
        if self._is_closing:
            raise ToolError("this session is being closed: no agent can be started")
        if self._depth >= tree.max_depth:
            raise ToolError(
                f"an agent of this depth may start none (`agents.max_depth` is {tree.max_depth}): do the work yourself"
            )
        if len(tree.at_work) >= tree.max_at_work:
            raise ToolError(
                f"as many agents are at work as may be, {tree.max_at_work} (`agents.max_threads`): wait for one of them"
            )

    async def _open_session(self, state: AgentState, plan: AgentPlan) -> SubagentSession:
        """Raises `ToolError` when the session of an agent cannot be opened."""
        parent, tree = self._parent, self._tree
        check_provider(plan.role, parent.services.provider_name)
        tree.at_work.add(state.id)
        now = parent.settings.now
        try:
            runtime = await parent.runs.warm_up(now.sandbox_policy, now.cwd)
            may_spawn = state.depth < tree.max_depth
            services = build_agent_services(parent, runtime, tree.file, state, plan.replace(may_spawn=may_spawn))
            agent = SubagentSession(
                state.replace(model=services.settings.model.model),
                services,
                ParentSession(
                    parent.secrets.store,
                    parent.questions.ask,
                    self._parent_turn,
                    history=plan.history,
                    snapshot=parent.context_tracker.last_sent if plan.history else None,
                ),
                make_agents=lambda turns: Subagents(turns, tree, depth=state.depth),
                notify=self._notify,
            )
        except (UserError, OSError) as error:
            tree.at_work.discard(state.id)
            raise ToolError(f"the agent cannot be started: {error}") from error
        agent.session.subscribe(partial(self._forward, agent))
        self._open[state.id] = agent
        await self._close_idle()
        return agent

    async def _reopen_session(self, state: AgentState) -> SubagentSession:
        stored = self._stored.load(state.id)
        if stored is None:
            raise ToolError(f"the agent `{state.name}` is closed, and nothing was kept of it: start another one")
        role = self._tree.roles.get(state.role)
        if role is None and state.role:
            # What the role kept it from would be open to it.
            raise ToolError(f"the role `{state.role}` of the agent `{state.name}` is there no more: start another one")
        effort = (stored.turn_context or {}).get("effort")
        plan = AgentPlan(role, state.model or None, effort if isinstance(effort, str) else None, stored=stored)
        return await self._open_session(state, plan)

    def _parent_turn(self) -> ParentTurn:
        turn = self._parent.turn
        if turn is None:
            # The user has started it, between two turns.
            thread_id, turn_id = self._parent.services.thread_id, uuid7()
            return ParentTurn(thread_id, turn_id, thread_id, turn_id)
        return turn.as_parent()

    async def _close_idle(self) -> None:
        idle = [agent for agent in self._open.values() if not agent.is_at_work and agent.state.status != "pending_init"]
        for agent in idle[: max(0, len(idle) - _MAX_IDLE)]:
            await self._close_session(agent, None)

    async def _close_session(self, agent: SubagentSession, status: AgentStatus | None) -> None:
        await agent.close(status)
        self._stored.keep(agent.state, agent.session)
        self._open.pop(agent.state.id, None)

    def _notify(self, agent: SubagentSession, before: AgentStatus | None) -> None:
        """Report a change to the user, and an end that no call waits for to the model."""
        state = agent.state
        (self._tree.at_work.add if state.is_at_work else self._tree.at_work.discard)(state.id)
        self._parent.listeners.emit(events.AgentChanged(state, before))
        if state.is_at_work or agent.is_heard or self._is_closing:
            return
        agent.is_heard = True
        if not agent.awaited:
            budget = self._parent.settings.now.model.output_tokens
            message = None if state.message is None else truncate_middle(state.message, budget)
            item = subagent_notification(state.id, state.name, status_payload(state.status, message))
            self._notifications[state.id] = item
            self._parent.add_item(item)

    def _note_heard(self, state: AgentState) -> None:
        """The output of a call reports this end to the model: it needs no item as well."""
        agent = self._open.get(state.id)
        if agent is not None:
            agent.is_heard = True
        if (item := self._notifications.pop(state.id, None)) is not None:
            self._parent.pending.withdraw(item)

    def _forward(self, agent: SubagentSession, event: events.Event) -> None:
        """Emit events of an agent that the user should see in the session that started it."""
        match event:
            case events.AgentChanged() | events.Warned(code="sandbox_missing"):
                self._parent.listeners.emit(event)
            case events.Warned(message):
                self._warn_for(agent.state.title, message)
            case _:
                pass

    def _warn_for(self, name: str, message: str) -> None:
        if not self._parent.listeners.has_warned(message):
            self._parent.listeners.warn_once(f"{name}: {message}")

    def _at_work(self, target: str) -> SubagentSession | None:
        state = self.find(target)
        agent = self._open.get(state.id) if state else None
        return agent if agent is not None and agent.is_at_work else None

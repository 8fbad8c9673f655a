"""The agents of a session: started, talked to, waited for and stopped. Imported when the first one is wanted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from codex_py.context.host_messages import subagent_notification
from codex_py.core.agent import SubagentSession, first_end
from codex_py.core.agent_build import (
    AgentPlan,
    ParentContext,
    build_agent_services,
    check_provider,
    find_role,
    find_skills,
    forked_items,
    may_do_more,
    tightened,
)
from codex_py.core.session import Session
from codex_py.core.session_agents import AgentTree, LazySubagents
from codex_py.core.session_services import ParentSession, SubagentContext
from codex_py.core.stored_agents import StoredAgents
from codex_py.errors import ToolError, UserError
from codex_py.protocol import events
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import TextInput, UserInput
from codex_py.protocol.questions import AskUser
from codex_py.protocol.status import AgentState, AgentStatus, status_payload
from codex_py.rollout.format import SubagentSource
from codex_py.text.tokens import truncate_middle
from codex_py.tools.spec import SpawnRequest

if TYPE_CHECKING:
    from codex_py.protocol.status import LiveProcess

# Of agents that have ended, so many keep their sessions open; the older ones are opened again when they are needed.
_MAX_IDLE: Final = 16


class Subagents:
    """Those that one session has started. What happens to one is told to it by events, and to its model by items."""

    def __init__(self, context: SubagentContext, tree: AgentTree, *, depth: int) -> None:
        self._context = context
        self._tree = tree
        self._depth = depth
        self._open: dict[str, SubagentSession] = {}
        # Those that are open no longer, or not yet.
        self._stored = StoredAgents(tree.file, context.services.thread_id, look=context.services.stored is not None)
        # What has been put before the model of an agent's end, and may not have reached it.
        self._untold: dict[str, ResponseItem] = {}
        self._is_closing = False

    async def spawn(self, request: SpawnRequest) -> AgentState:
        """Start an agent; it works on when this returns. Raises `ToolError`."""
        role = find_role(request.role, self._tree.roles)
        context = self._context
        skills = find_skills(role, request.skills, find=context.skill, warn_for=context.warn_for)
        inputs = (*skills, *request.task)
        self._check_capacity()
        self._tree.names.update(state.name for state in self.states())
        name = self._tree.name_for(role.name if role else "")
        task = "\n".join(item.text for item in request.task if isinstance(item, TextInput))
        source = SubagentSource(self._context.services.thread_id, self._depth + 1, name, role.name if role else "")
        state = AgentState(
            self._tree.new_id(), name, source.parent_thread_id, source.depth, task, "pending_init", role=source.role
        )
        history = forked_items(self._context.history) if request.fork else ()
        deeper = state.depth < self._tree.limits.depth
        plan = AgentPlan(
            state.id, source, role, model=request.model, effort=request.effort, history=history, may_spawn=deeper
        )
        agent = await self._opened(state, plan)
        self._notify(agent, None)
        started = agent.state
        agent.begin(inputs)
        return started

    async def send(self, target: str, inputs: tuple[UserInput, ...], *, interrupt: bool) -> AgentState:
        """Tell an agent something; one whose session was let go is opened again. Raises `ToolError`."""
        before = self._known(target)
        agent = self._open.get(before.id)
        if agent is None:
            self._check_capacity()
            agent = await self._reopened(before)
        elif not agent.is_at_work:
            self._check_capacity()
        if interrupt and agent.is_at_work:
            # The one who interrupts knows.
            agent.is_heard = True
            agent.interrupt()
            await agent.ended()
        now, role = self._context.settings(), self._tree.roles.get(before.role)
        if agent.is_at_work:
            if may_do_more(agent.session.settings, now, role):
                raise ToolError(
                    f"the agent `{before.name}` works on as it began, and may do more than this session by now: with"
                    " `interrupt` it stops and goes on with what is allowed"
                )
            agent.steer(inputs)
            return before
        self._tree.at_work.add(before.id)
        # What the user has narrowed meanwhile holds for it too.
        if (op := tightened(agent.session.settings, now, role)) is not None:
            await agent.session.submit(op)
        agent.begin(inputs)
        return before

    async def wait(self, targets: Sequence[str], seconds: float) -> Sequence[AgentState]:
        """Wait until one of them is no longer at work; none after so many seconds. Raises `ToolError`."""
        for target in targets:
            self._check_own(target)
        agents = [agent for target in targets if (agent := self._at_work(target))]
        if len(agents) == len(targets):
            max_seconds = max(seconds, self._tree.limits.shortest_wait)
            await first_end(agents, max_seconds)
        states = [self.find(target) or _not_found(target) for target in targets]
        ended = [state for state in states if not state.is_at_work]
        for state in ended:
            self._note_heard(state)
        return ended

    async def close(self, target: str) -> AgentState:
        """Stop an agent and all it has started; its state before. Raises `ToolError`."""
        before = self._known(target)
        agent = self._open.get(before.id)
        if agent is None:
            raise ToolError(f"the agent `{target}` is closed already")
        agent.is_heard = True
        await self._let_go(agent, "shutdown")
        return before

    def find(self, target: str) -> AgentState | None:
        """The agent with this id or name; None when there is none."""
        return next((state for state in self._own() if target in (state.id, state.name)), None)

    def states(self) -> Sequence[AgentState]:
        """Every agent there is, the oldest first, each followed by its own."""
        return [state for own in self._own() for state in (own, *self._below(own.id))]

    def items_of(self, agent_id: str) -> tuple[ResponseItem, ...]:
        """What was said and done in an agent's session; empty for one that there is not."""
        for agent in self._open.values():
            if agent.state.id == agent_id:
                return agent.session.history.items
            if items := agent.session.agents.items_of(agent_id):
                return items
        return self._stored.items_of(agent_id)

    async def stop(self, agent_id: str) -> bool:
        """Stop what an agent does, for the user; False when it was at no work."""
        for agent in self._open.values():
            if agent.state.id == agent_id and agent.is_at_work:
                agent.interrupt()
                await agent.ended()
                return True
            if await agent.session.agents.stop(agent_id):
                return True
        return False

    def processes(self) -> tuple[LiveProcess, ...]:
        """The commands of theirs that still run, each with the agent it belongs to."""
        return tuple(
            process if process.agent else process.replace(agent=agent.state.title)
            for agent in self._open.values()
            for process in agent.session.processes()
        )

    async def stop_process(self, process_id: int) -> bool:
        """Kill a command of one of them; False when none with this id runs."""
        for agent in tuple(self._open.values()):
            if await agent.session.stop_process(process_id):
                return True
        return False

    def interrupt(self) -> None:
        """Stop what they all do, and their commands; returns at once."""
        for agent in self._open.values():
            # The one who interrupts knows; the model reads of it in its own turn's end.
            agent.is_heard = True
            agent.interrupt()

    async def shut_down(self) -> None:
        """End every one. Those still at work are told of: nobody will hear what they would have come to."""
        self._is_closing = True
        working = [agent for agent in self._open.values() if agent.is_at_work and not agent.is_heard]
        cut_off = sorted(agent.state.name for agent in working)
        if cut_off:
            are = "agent was" if len(cut_off) == 1 else "agents were"
            self._context.warn(f"{len(cut_off)} {are} still at work and stopped: {', '.join(cut_off)}")
        await asyncio.gather(*(self._let_go(agent, None) for agent in tuple(self._open.values())))

    def _own(self) -> Sequence[AgentState]:
        stored = [state for state in self._stored.states() if state.id not in self._open]
        return sorted([*stored, *(agent.state for agent in self._open.values())], key=lambda state: state.id)

    def _below(self, agent_id: str) -> Sequence[AgentState]:
        agent = self._open.get(agent_id)
        return agent.session.agents.states() if agent else self._stored.below(agent_id)

    def _known(self, target: str) -> AgentState:
        self._check_own(target)
        state = self.find(target)
        if state is None:
            raise ToolError(f"there is no agent `{target}`; `list_agents` tells which there are")
        return state

    def _check_own(self, target: str) -> None:
        """Raises `ToolError` for an agent of an agent: that one talks to it."""
        if self.find(target) is not None:
            return
        every = self.states()
        of_another = next((state for state in every if target in (state.id, state.name)), None)
        if of_another is not None:
            starter = next((state.name for state in every if state.id == of_another.parent), "another agent")
            raise ToolError(f"the agent `{target}` is not yours: `{starter}` has started it, and alone talks to it")

    def _check_capacity(self) -> None:
        limits = self._tree.limits
        if self._is_closing:
            raise ToolError("this session is being closed: no agent can be started")
        if self._depth >= limits.depth:
            raise ToolError(
                f"an agent of this depth may start none (`agents.max_depth` is {limits.depth}): do the work yourself"
            )
        if len(self._tree.at_work) >= limits.threads:
            raise ToolError(
                f"as many agents are at work as may be, {limits.threads} (`agents.max_threads`): wait for one of them"
            )

    async def _opened(self, state: AgentState, plan: AgentPlan) -> SubagentSession:
        """The session of an agent, open. Raises `ToolError` when it cannot be."""
        context, tree = self._context, self._tree
        check_provider(plan.role, context.services.provider_name)
        tree.at_work.add(state.id)
        try:
            parent = ParentContext(
                context.services, context.settings(), context.registry(), await context.load_runtime(), tree.file
            )
            services = build_agent_services(parent, plan)
            subagents: LazySubagents[SubagentContext] = LazySubagents(
                lambda inner: Subagents(inner, tree, depth=state.depth)
            )

            def open_session(ask: AskUser) -> Session:
                snapshot = context.context_tracker.last_sent if plan.history else None
                parent_session = ParentSession(
                    context.secret_store, ask, context.turn, history=plan.history, snapshot=snapshot
                )
                return Session(
                    services.replace(parent_session=parent_session, tools=services.tools.replace(agents=subagents))
                )

            agent = SubagentSession(
                state.replace(model=services.settings.model.model),
                open_session,
                ask=context.ask,
                notify=self._notify,
                report_crash=context.services.report_crash,
            )
        except (UserError, OSError) as error:
            tree.at_work.discard(state.id)
            raise ToolError(f"the agent cannot be started: {error}") from error
        agent.session.subscribe(self._passing_on(agent))
        self._open[state.id] = agent
        await self._let_idle_go()
        return agent

    async def _reopened(self, state: AgentState) -> SubagentSession:
        stored = self._stored.load(state.id)
        if stored is None:
            raise ToolError(f"the agent `{state.name}` is closed, and nothing was kept of it: start another one")
        source = SubagentSource(state.parent, state.depth, state.name, state.role)
        role, deeper = self._tree.roles.get(state.role), state.depth < self._tree.limits.depth
        if role is None and state.role:
            # What the role kept it from would be open to it.
            raise ToolError(f"the role `{state.role}` of the agent `{state.name}` is there no more: start another one")
        effort = (stored.turn_context or {}).get("effort")
        plan = AgentPlan(
            state.id,
            source,
            role,
            model=state.model or None,
            effort=effort if isinstance(effort, str) else None,
            stored=stored,
            may_spawn=deeper,
        )
        return await self._opened(state, plan)

    async def _let_idle_go(self) -> None:
        idle = [agent for agent in self._open.values() if not agent.is_at_work and agent.state.status != "pending_init"]
        for agent in idle[: max(0, len(idle) - _MAX_IDLE)]:
            await self._let_go(agent, None)

    async def _let_go(self, agent: SubagentSession, status: AgentStatus | None) -> None:
        await agent.close(status)
        self._stored.keep(agent.state, agent.session)
        self._open.pop(agent.state.id, None)

    def _notify(self, agent: SubagentSession, was: AgentStatus | None) -> None:
        """Tell the user of a change, and the model of an end that nobody waits for."""
        state = agent.state
        (self._tree.at_work.add if state.is_at_work else self._tree.at_work.discard)(state.id)
        self._context.emit(events.AgentChanged(state, was))
        if state.is_at_work or agent.is_heard or self._is_closing:
            return
        agent.is_heard = True
        if not agent.awaited:
            budget = self._context.settings().model.output_tokens
            message = None if state.message is None else truncate_middle(state.message, budget)
            item = subagent_notification(state.id, state.name, status_payload(state.status, message))
            self._untold[state.id] = item
            self._context.note(item)

    def _note_heard(self, state: AgentState) -> None:
        """The answer to its call tells the model of an end: no item is added as well."""
        agent = self._open.get(state.id)
        if agent is not None:
            agent.is_heard = True
        if (item := self._untold.pop(state.id, None)) is not None:
            self._context.withdraw(item)

    def _passing_on(self, agent: SubagentSession) -> Callable[[events.Event], None]:
        """What of an agent's events the user hears from the session that started it."""

        def listen(event: events.Event) -> None:
            match event:
                case events.AgentChanged():
                    self._context.emit(event)
                case events.Warned(code="sandbox_missing"):
                    self._context.emit(event)
                case events.Warned(message):
                    self._context.warn_for(agent.state.title, message)
                case _:
                    pass

        return listen

    def _at_work(self, target: str) -> SubagentSession | None:
        state = self.find(target)
        agent = self._open.get(state.id) if state else None
        return agent if agent is not None and agent.is_at_work else None


def _not_found(target: str) -> AgentState:
    return AgentState(target, "", "", 0, "", "not_found")

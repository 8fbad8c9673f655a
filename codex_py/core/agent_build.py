"""The parts of an agent's session: those of the session that starts it, cut down and made its own.

Everything that is not named here is shared: the connection to the model, the MCP servers, what reports a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from codex_py.context.initial import ContextSnapshot
from codex_py.core.agent_role import AgentRole
from codex_py.core.context_tracker import KnownContext
from codex_py.core.history import History
from codex_py.core.session_services import SessionServices
from codex_py.core.turn_context import TurnSettings
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.protocol.policy import DangerFullAccess, ReadOnly, SandboxMode, SandboxPolicy, WorkspaceWrite, mode_of
from codex_py.protocol.value import Value
from codex_py.rollout.format import SubagentSource
from codex_py.rollout.recorder import Recorder
from codex_py.tools.lazy import AGENT_TOOLS
from codex_py.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from codex_py.core.session_file import SessionFile
    from codex_py.core.tool_runtime import ToolRuntime
    from codex_py.rollout.reader import StoredSession

_THREAD_VARIABLE: Final = "CODEX_THREAD_ID"
_WIDTH: Final[tuple[SandboxMode, ...]] = ("read-only", "workspace-write", "danger-full-access")


class ParentContext(Value):
    """What a subagent's session is built from: services, settings in force and tools of the session that starts it.

    `runtime` runs its commands, `file` opens the rollouts.
    """

    services: SessionServices
    settings: TurnSettings
    registry: ToolRegistry
    runtime: ToolRuntime
    file: SessionFile


class AgentPlan(Value):
    """What is to be special about one agent. `history` is what it knows of the conversation, for one that is a fork.

    With `stored` it goes on with an earlier run.
    """

    thread_id: str
    source: SubagentSource
    role: AgentRole | None = None
    model: str | None = None
    effort: str | None = None
    history: tuple[ResponseItem, ...] = ()
    stored: StoredSession | None = None
    may_spawn: bool = False


def build_agent_services(parent: ParentContext, plan: AgentPlan) -> SessionServices:
    """The parts of the agent's session; who can reach the user in its name is put in afterwards.

    Raises `UserError` for settings that cannot be, such as a model without a name.
    """
    services, role = parent.services, plan.role or AgentRole("")
    settings, registry = _settings_and_tools(parent, plan, role)
    tools = services.tools.replace(
        registry=registry,
        env={**services.tools.env, _THREAD_VARIABLE: plan.thread_id},
        # Its own table of processes, so that they can all be stopped with it; the same sandbox and approvals.
        load_runtime=lambda: parent.runtime.replace(processes=parent.runtime.processes.empty()),
        hooks=services.tools.hooks and services.tools.hooks.for_agent(plan.thread_id, plan.source),
        allows=role.tools.allows if role.tools else None,
        can_ask=services.tools.can_ask and role.may_ask,
    )

    def open_recorder(warn: Callable[[str], None]) -> Recorder:
        written = settings.model.instructions
        return parent.file.open_agent(plan.thread_id, plan.source, stored=plan.stored, instructions=written, warn=warn)

    def snapshot(skills: str, now: TurnSettings) -> KnownContext:
        known = services.snapshot(skills, now)
        # It is not for an agent to plan; a fork has been told of it, and must not hear that it is over.
        plan_mode = known.snapshot.plan if plan.history else ""
        return known.replace(snapshot=_with_role(known.snapshot, role).replace(plan=plan_mode))

    return services.replace(
        thread_id=plan.thread_id,
        settings=settings,
        tools=tools,
        open_recorder=open_recorder,
        snapshot=snapshot,
        skills=services.skills.clone(),
        stored=plan.stored,
        warnings=(),
        notice=None,
        previous=None,
    )


def narrower(policy: SandboxPolicy, requested: SandboxMode | None) -> SandboxPolicy:
    """A policy cut down to a mode; one that would be wider stays as it is."""
    match requested, policy:
        case "read-only", _:
            return ReadOnly()
        case "workspace-write", DangerFullAccess():
            return WorkspaceWrite()
        case _:
            return policy


def tightened(own: TurnSettings, now: TurnSettings, role: AgentRole | None) -> OverrideTurnContext | None:
    """What an agent with the settings `own` has to change for the settings `now` of the session that started it.

    None when it may stay as it is.
    """
    policy = narrower(now.sandbox_policy, _mode_of(role or AgentRole("")))
    if (own.sandbox_policy, own.approval, own.plan) == (policy, now.approval, now.plan):
        return None
    return OverrideTurnContext(sandbox=policy, approval=now.approval, plan=now.plan)


def may_do_more(own: TurnSettings, now: TurnSettings, role: AgentRole | None) -> bool:
    """Whether an agent at work with the settings `own` may do what one that begins now may not."""
    policy = narrower(now.sandbox_policy, _mode_of(role or AgentRole("")))
    return (now.plan and not own.plan) or _WIDTH.index(mode_of(own.sandbox_policy)) > _WIDTH.index(mode_of(policy))


def forked_items(history: History) -> tuple[ResponseItem, ...]:
    """What a fork begins with: all that was said and done, without the calls that have no answer yet.

    The beginning of it is that of the other's requests, to the byte.
    """
    items = list(history.items_answered())
    # Thinking that led to a call which is left out makes no sense to a provider.
    while items and items[-1].type == "reasoning":
        items.pop()
    return tuple(items)


def _settings_and_tools(parent: ParentContext, plan: AgentPlan, role: AgentRole) -> tuple[TurnSettings, ToolRegistry]:
    before = parent.settings
    model, effort = plan.model or _model_of(role, before.model.model), plan.effort or role.effort
    settings, registry = before, parent.registry
    if model not in (None, before.model.model) or effort not in (None, before.model.effort):
        op = OverrideTurnContext(model=model, effort=effort)
        settings, other = parent.services.override(op, before)
        registry = other or registry
    settings = settings.replace(sandbox_policy=narrower(before.sandbox_policy, _mode_of(role)))
    return settings, _tools_for(registry, plan, role)


def _model_of(role: AgentRole, own: str) -> str | None:
    """The model of a role. Where the session's is none of Claude's, a file written for those means the session's."""
    is_claude_role = (role.model or "").startswith("claude-") and role.path is not None and role.path.suffix == ".md"
    return None if is_claude_role and "claude" not in own else role.model


def _mode_of(role: AgentRole) -> SandboxMode | None:
    return "read-only" if role.tools is not None and role.tools.reads_only else role.sandbox


def _tools_for(registry: ToolRegistry, plan: AgentPlan, role: AgentRole) -> ToolRegistry:
    # A fork keeps them in sight, so that its requests go on from the other's; calling them says why not.
    left_out = frozenset[str]() if plan.may_spawn or plan.history else AGENT_TOOLS
    choice = role.tools
    if not left_out and choice is None:
        return registry
    return registry.only(lambda name: name not in left_out and (choice is None or choice.allows(name)))


def _with_role(snapshot: ContextSnapshot, role: AgentRole) -> ContextSnapshot:
    texts: Sequence[str] = [text for text in (snapshot.developer_instructions, role.instructions) if text]
    return snapshot.replace(developer_instructions="\n\n".join(texts))

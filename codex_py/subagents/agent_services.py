"""What the session of an agent is built from: the services of its parent session, restricted by its role.

Everything that is not named here is shared: the connection to the model, the MCP servers, the crash reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from codex_py.context.initial import ContextSnapshot
from codex_py.core.context_tracker import KnownContext
from codex_py.core.conversation import TurnRunner
from codex_py.core.history import History
from codex_py.core.mentions import find_skill, for_a_model
from codex_py.core.session_file import SessionFile
from codex_py.core.session_services import SessionServices
from codex_py.core.tool_runtime import ToolRuntime
from codex_py.core.turn_context import TurnSettings
from codex_py.errors import ToolError
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import OverrideTurnContext, SkillInput, UserInput
from codex_py.protocol.policy import DangerFullAccess, ReadOnly, SandboxMode, SandboxPolicy, WorkspaceWrite, mode_of
from codex_py.protocol.status import AgentState
from codex_py.protocol.value import Value
from codex_py.rollout.format import SubagentSource
from codex_py.rollout.reader import StoredSession
from codex_py.rollout.recorder import Recorder
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.subagents.roles import AGENT_TOOLS, AgentRole
from codex_py.text.nearest import did_you_mean
from codex_py.tools.registry import ToolRegistry

_NO_ROLE: Final = AgentRole("")
_WIDTH: Final[tuple[SandboxMode, ...]] = ("read-only", "workspace-write", "danger-full-access")


class AgentPlan(Value):
    """The properties of one agent. `history` is the part of the conversation that a fork starts with.

    With `stored` it continues an earlier run.
    """

    role: AgentRole | None = None
    model: str | None = None
    effort: str | None = None
    history: tuple[ResponseItem, ...] = ()
    stored: StoredSession | None = None
    may_spawn: bool = False


def build_agent_services(
    parent: TurnRunner, runtime: ToolRuntime, file: SessionFile, state: AgentState, plan: AgentPlan
) -> SessionServices:
    """The services of the agent's session. Raises `UserError` for settings that cannot work."""
    services, role = parent.services, plan.role or _NO_ROLE
    settings, registry = _settings_and_tools(parent, plan, role)
    source = SubagentSource(state.parent, state.depth, state.name, state.role)
    tools = services.tools.replace(
        registry=registry,
        env={**services.tools.env, "CODEX_THREAD_ID": state.id},
        # Its own table of processes, so that they can all be stopped with it; the same sandbox and approvals.
        load_runtime=lambda: runtime.replace(processes=runtime.processes.empty()),
        hooks=services.tools.hooks.for_agent(state.id, role=state.role, name=state.name),
        allows=role.tools.allows if role.tools else None,
        can_ask=services.tools.can_ask and role.may_ask,
    )

    def open_recorder(warn: Callable[[str], None]) -> Recorder:
        written = settings.model.instructions
        return file.open_agent(state.id, source, stored=plan.stored, instructions=written, warn=warn)

    def snapshot(skills: str, now: TurnSettings) -> KnownContext:
        known = services.snapshot(skills, now)
        # An agent does not plan; but a fork has been sent the plan mode, and must not be sent that it is over.
        plan_mode = known.snapshot.plan if plan.history else ""
        return known.replace(snapshot=_with_role(known.snapshot, role).replace(plan=plan_mode))

    return services.replace(
        thread_id=state.id,
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


def tightened(own: TurnSettings, now: TurnSettings, role: AgentRole | None) -> OverrideTurnContext | None:
    """The change for an agent with the settings `own` under its parent's settings `now`; None for no change."""
    policy = _policy_for(role or _NO_ROLE, now.sandbox_policy)
    if (own.sandbox_policy, own.approval, own.plan) == (policy, now.approval, now.plan):
        return None
    return OverrideTurnContext(sandbox=policy, approval=now.approval, plan=now.plan)


def may_do_more(own: TurnSettings, now: TurnSettings, role: AgentRole | None) -> bool:
    """Whether an agent at work with the settings `own` may do what one that begins now may not."""
    policy = _policy_for(role or _NO_ROLE, now.sandbox_policy)
    return (now.plan and not own.plan) or _WIDTH.index(mode_of(own.sandbox_policy)) > _WIDTH.index(mode_of(policy))


def forked_items(history: History) -> tuple[ResponseItem, ...]:
    """The history a fork begins with: all of it but calls without an output, to the byte as its parent sends it."""
    items = list(history.items_answered())
    # Reasoning that led to a call which is left out makes no sense to a provider.
    while items and items[-1].type == "reasoning":
        items.pop()
    return tuple(items)


def find_role(name: str, roles: Mapping[str, AgentRole]) -> AgentRole | None:
    """The role of this name; None for no role. Raises `ToolError` that lists the known ones."""
    # What other programs call the absence of a role.
    if not name or name == "default":
        return roles.get(name)
    if (role := roles.get(name)) is not None:
        return role
    known = ", ".join(f"`{role_name}`" for role_name in roles)
    guess = f"{question} " if (question := did_you_mean(name, roles)) else ""
    raise ToolError(f"unknown agent_type `{name}`: {guess}there are {known}")


def find_skills(
    role: AgentRole | None, requested: Sequence[str], catalog: SkillCatalog, warn_for: Callable[[str, str], None]
) -> Sequence[UserInput]:
    """The skills an agent begins with, each once: those of its role, and those the model requests.

    Raises `ToolError` for an unknown name in a request; one in a role is a warning, because the model could not fix it.
    """
    found: list[Skill] = []
    # A role is written by people, who may name any skill.
    for name in role.skills if role else ():
        try:
            found.append(find_skill(catalog, name))
        except ToolError as error:
            warn_for(f"the agent role `{role.name if role else ''}`", str(error))
    found += [for_a_model(find_skill(catalog, name)) for name in requested]
    return list({skill.canonical_path: SkillInput(skill.name, skill.canonical_path) for skill in found}.values())


def check_provider(role: AgentRole | None, provider: str) -> None:
    """Raises `ToolError` for a role that is for another provider: its instructions must not go to this one."""
    if role is not None and role.provider not in (None, provider):
        raise ToolError(
            f"the role `{role.name}` is for the provider `{role.provider}`, and agents have that of their session,"
            f" `{provider}`: use another `agent_type`"
        )


def _settings_and_tools(parent: TurnRunner, plan: AgentPlan, role: AgentRole) -> tuple[TurnSettings, ToolRegistry]:
    settings, registry = parent.settings.now, parent.runs.own
    # A fork continues the requests of its parent, which another model would not know.
    usual = None if plan.history else parent.services.models.agents
    model, effort = plan.model or _model_of(role, settings.model.model) or usual, plan.effort or role.effort
    if model not in (None, settings.model.model) or effort not in (None, settings.model.effort):
        settings, other = parent.services.override(OverrideTurnContext(model=model, effort=effort), settings)
        registry = other or registry
    settings = settings.replace(sandbox_policy=_policy_for(role, parent.settings.now.sandbox_policy))
    return settings, _tools_for(registry, plan, role)


def _model_of(role: AgentRole, own: str) -> str | None:
    """The model of a role; a Claude model in a Claude Code file counts only in a session that runs one too."""
    is_claude_role = (role.model or "").startswith("claude-") and role.path is not None and role.path.suffix == ".md"
    return None if is_claude_role and "claude" not in own else role.model


def _policy_for(role: AgentRole, policy: SandboxPolicy) -> SandboxPolicy:
    """The policy of a session as a role restricts it; a role never widens it."""
    match "read-only" if role.tools is not None and role.tools.reads_only else role.sandbox, policy:
        case "read-only", _:
            return ReadOnly()
        case "workspace-write", DangerFullAccess():
            return WorkspaceWrite()
        case _:
            return policy


def _tools_for(registry: ToolRegistry, plan: AgentPlan, role: AgentRole) -> ToolRegistry:
    # A fork still sees them, so that its requests continue those of its parent; its calls are refused with the reason.
    left_out = frozenset[str]() if plan.may_spawn or plan.history else AGENT_TOOLS
    choice = role.tools
    if not left_out and choice is None:
        return registry
    return registry.only(lambda name: name not in left_out and (choice is None or choice.allows(name)))


def _with_role(snapshot: ContextSnapshot, role: AgentRole) -> ContextSnapshot:
    texts = filter(None, (snapshot.developer_instructions, role.instructions))
    return snapshot.replace(developer_instructions="\n\n".join(texts))

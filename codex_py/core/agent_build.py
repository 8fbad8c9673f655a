"""Starting an agent: what the model asks for looked up, and its session made from parts of its parent's.

Everything that is not named here is shared: the connection to the model, the MCP servers, what reports a crash.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from codex_py.context.initial import ContextSnapshot
from codex_py.core.context_tracker import KnownContext
from codex_py.core.history import History
from codex_py.core.session_agents import AgentRole
from codex_py.core.session_services import SessionServices
from codex_py.core.skill_names import for_a_model
from codex_py.core.turn_context import TurnSettings
from codex_py.errors import ToolError
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.ops import OverrideTurnContext, SkillInput, UserInput
from codex_py.protocol.policy import DangerFullAccess, ReadOnly, SandboxMode, SandboxPolicy, WorkspaceWrite, mode_of
from codex_py.protocol.value import Value
from codex_py.rollout.format import SubagentSource
from codex_py.rollout.recorder import Recorder
from codex_py.text.nearest import did_you_mean
from codex_py.tools.lazy import AGENT_TOOLS
from codex_py.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from codex_py.core.session_file import SessionFile
    from codex_py.core.tool_runtime import ToolRuntime
    from codex_py.rollout.reader import StoredSession
    from codex_py.skills.model import Skill


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
        hooks=services.tools.hooks.for_agent(plan.thread_id, role=plan.source.role, name=plan.source.nickname),
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


def find_role(name: str, roles: Mapping[str, AgentRole]) -> AgentRole | None:
    """The role of this name; None where none is wished. Raises `ToolError` that names those there are."""
    # What other programs call the absence of a role.
    if not name or name == "default":
        return roles.get(name)
    if (role := roles.get(name)) is not None:
        return role
    known = ", ".join(f"`{role_name}`" for role_name in roles)
    guess = f"{question} " if (question := did_you_mean(name, roles)) else ""
    raise ToolError(f"unknown agent_type `{name}`: {guess}there are {known}")


def find_skills(
    role: AgentRole | None,
    requested: Sequence[str],
    *,
    find: Callable[[str], Skill],
    warn_for: Callable[[str, str], None],
) -> Sequence[UserInput]:
    """The skills an agent begins with, each once: those of its role, and those the model wishes.

    `find` raises `ToolError` for the name of none. One that a role names costs a line: the model could not mend it.
    """
    named: list[Skill] = []
    # A role is written by people, who may ask for any skill.
    for name in role.skills if role else ():
        try:
            named.append(find(name))
        except ToolError as error:
            warn_for(f"the agent role `{role.name if role else ''}`", str(error))
    named += [for_a_model(find(name)) for name in requested]
    return list({skill.canonical_path: SkillInput(skill.name, skill.canonical_path) for skill in named}.values())


def check_provider(role: AgentRole | None, provider: str) -> None:
    """Raises `ToolError` for a role that is for another provider: what it is told must not go to this one."""
    if role is not None and role.provider not in (None, provider):
        raise ToolError(
            f"the role `{role.name}` is for the provider `{role.provider}`, and agents have that of their session,"
            f" `{provider}`: use another `agent_type`"
        )

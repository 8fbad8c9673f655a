"""The composition root: puts a session together.

The one place that knows every package. Each gets plain values from here, never the configuration.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from codex_py.auth.find_credentials import find_credentials
from codex_py.config.model_names import named_model
from codex_py.config.schema import Config
from codex_py.config.secret_values import secret_values
from codex_py.config.sections import ShellEnvironmentPolicy
from codex_py.context.agents_md import load_agents_md
from codex_py.context.environment import current_environment
from codex_py.context.initial import ContextSnapshot
from codex_py.context.instructions import plan_mode_on, tone_instructions
from codex_py.context.permissions import render_permissions
from codex_py.core.context_tracker import KnownContext
from codex_py.core.conversation import TurnRunner
from codex_py.core.model_access import open_pool, session_provider
from codex_py.core.model_pool import ModelPool
from codex_py.core.model_setup import (
    choose_model,
    compact_prompt,
    find_local_model,
    known_facts,
    login_rules,
    make_installation_id,
    model_settings,
)
from codex_py.core.ports import AgentSpawner, Checkpointer, HookRunner, McpClients, NoHooks, SessionAccess
from codex_py.core.resume import inherited_from, load_stored
from codex_py.core.rule_files import read_rule_files
from codex_py.core.secrets import command_env, key_names, withheld_credentials
from codex_py.core.session import Session
from codex_py.core.session_features import HookAccess, SessionCheckpoints, SessionMcp
from codex_py.core.session_file import SessionFile
from codex_py.core.session_request import ResumeTarget, SessionRequest
from codex_py.core.session_services import OtherModels, SessionServices
from codex_py.core.session_settings import OFFLINE_PROVIDER, choose_policy, overridden, read_check, session_notices
from codex_py.core.session_skills import SessionSkills, SkillSettings, skill_rules, skill_sources
from codex_py.core.tool_runs import ToolServices
from codex_py.core.tool_set import ToolSetContext, build_tools
from codex_py.core.turn_context import ModelSettings, TurnSettings
from codex_py.errors import ConfigError
from codex_py.hooks import may_have_hooks
from codex_py.log import report_crash
from codex_py.mcp import may_have_servers
from codex_py.model.catalog import ModelFacts
from codex_py.model.client import ModelClient
from codex_py.model.model_list import LocalChoice
from codex_py.model.providers import Provider, loopback_provider
from codex_py.process.env import tool_environment
from codex_py.process.shells import user_shell
from codex_py.programs import ProbeResults
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.rollout.format import StoredSession
from codex_py.rollout.recorder import Inherited
from codex_py.sandbox.policy import writable_roots
from codex_py.shell.reader import CommandLineReader, read_script_file
from codex_py.skills.roots import SkillRootsRequest
from codex_py.subagents.roles import SessionRoles
from codex_py.subagents.tools import make_agent_tools, session_roles
from codex_py.text.redact import Redactor
from codex_py.tools.registry import ToolRegistry

if TYPE_CHECKING:
    from codex_py.core.tool_runtime import ToolRuntime
    from codex_py.mcp.build import McpSetup

__all__ = ["OFFLINE_PROVIDER", "ResumeTarget", "SessionRequest", "open_session"]

_OFFLINE_NOTICE: Final = "this is the offline model: fixed rules, no AI, nothing leaves this machine"


@asynccontextmanager
async def open_session(request: SessionRequest) -> AsyncGenerator[Session, None]:
    """A session, closed at the end, with the built-in model where that is the provider.

    Raises `UserError` for settings that cannot work: no key, an unknown session, a file that cannot be read.
    """
    if request.loaded.config.model_provider != OFFLINE_PROVIDER:
        async with _opened(request, session_provider(request, request.loaded.config.model_provider)) as session:
            yield session
        return
    from codex_py.offline.server import OfflineModel  # only with --offline

    async with OfflineModel() as model:
        provider = loopback_provider(OFFLINE_PROVIDER, "offline rules", model.base_url)
        async with _opened(request, provider) as session:
            yield session


@asynccontextmanager
async def _opened(request: SessionRequest, provider: Provider) -> AsyncGenerator[Session, None]:
    local = await find_local_model(request.loaded, provider)
    telemetry = None
    if request.loaded.config.otel.get("endpoint"):
        try:
            from codex_py.telemetry.session import Telemetry  # only for who exports traces
        except ImportError as error:
            hint = 'install "codex-py[otel]", or remove `[otel]` from config.toml'
            raise ConfigError("`otel.endpoint` needs a package that is not installed", hint=hint) from error
        telemetry = Telemetry(request)
    session = _build_session(telemetry.request if telemetry else request, provider, local)
    if telemetry is not None:
        session.subscribe(telemetry)
    after_turn = None
    if request.loaded.config.notify or request.loaded.config.sessions.titles == "model":
        from codex_py.hooks.after_turn import AfterTurn  # only for who is notified, or wants titles

        after_turn = AfterTurn(request, session)
    try:
        await session.mcp.require()
        yield session
    finally:
        if after_turn is not None:
            await after_turn.close()
        await session.close()
        if telemetry is not None:
            telemetry.close()


def _build_session(request: SessionRequest, provider: Provider, local: LocalChoice | None) -> Session:
    config = request.loaded.config
    credentials = find_credentials(provider, env=request.env, home=request.home, rules=login_rules(config))
    if not request.ephemeral and provider.id != OFFLINE_PROVIDER:
        make_installation_id(request.home)
    stored, inherited = _stored_session(request)
    file = SessionFile(request, stored, inherited)
    thread_id = stored.meta.id if stored and not request.forks else request.thread_id or uuid7()
    facts = known_facts(config, model := local.model if local else choose_model(config, provider), local)
    settings = _model_settings(request, model, facts, provider)
    tool_env = _tool_env(request, keys := key_names(config, provider), thread_id)
    roles = session_roles(request)
    command_lines, known = CommandLineReader(read_script_file), ProbeResults()
    hooks = _hook_access(request, tool_env, thread_id, known)
    approval = (request.hooked_approval if hooks.runner.answers_questions else None) or request.approval
    tool_context = ToolSetContext(provider, approval, request.can_ask, make_agent_tools(config, roles))
    client = open_pool(request, provider, credentials, model=model, stored=stored)
    servers = _mcp_setup(request, known) if may_have_servers(request) else None
    mcp = _session_mcp(request, servers, known=known, provider=provider, client=client, pictures=facts.images)
    services = SessionServices(
        thread_id=thread_id,
        provider_name=provider.id,
        settings=TurnSettings(request.cwd, settings, choose_policy(request.loaded, request.extra_roots), approval),
        model=client,
        tools=ToolServices(
            build_tools(config, facts, settings, tool_context),
            tool_env,
            lambda: _load_runtime(request, known),
            command_lines,
            hooks,
            mcp,
            can_ask=request.can_ask,
            users_env=lambda: _users_env(request, keys),
            checkpoints=_checkpoints(request, thread_id, known),
            rule_warnings=partial(_rule_warnings, request),
            env_notice=(withheld := withheld_credentials(config, request.env, keys)).notice,
        ),
        open_recorder=lambda warn: file.open(thread_id, instructions=settings.instructions, warn=warn),
        redactor=Redactor((*credentials.secrets, *secret_values(config, request.env), *withheld.values)),
        snapshot=lambda skills, now: _snapshot(request, now, skills=skills),
        override=lambda op, now: _overridden(request, tool_context, client, op, now),
        skills=_session_skills(request, settings, tool_env, command_lines, keys=keys, servers=servers),
        mcp=mcp,
        report_crash=lambda error: report_crash(config.log_dir or request.state_home / "log", error),
        stored=stored,
        warnings=(
            *request.loaded.warnings,
            *([local.notice] if local and local.notice else []),
            *session_notices(request, settings, provider, known=facts.known, stored=stored),
            *(servers.table.notices if servers else ()),
            *(*hooks.runner.warnings, *roles.warnings),
        ),
        notice=_OFFLINE_NOTICE if provider.id == OFFLINE_PROVIDER else None,
        previous=_previous(request, provider, settings, stored),
        compact_prompt=compact_prompt(config),
        models=_other_models(config),
        reports_interrupts=config.agents.interrupt_message,
    )
    return Session(services, lambda turns: _make_agents(turns, config, roles, file))


def _make_agents(turns: TurnRunner, config: Config, roles: SessionRoles, file: SessionFile) -> AgentSpawner:
    from codex_py.subagents.spawner import AgentTree, Subagents  # only when an agent is started or looked for

    return Subagents(turns, AgentTree(config.agents.max_threads, config.agents.max_depth, roles.roles, file), depth=0)


def _other_models(config: Config) -> OtherModels:
    fallbacks = tuple(
        named_model(name, "fallback_models", configured=config.model_providers) for name in config.fallback_models
    )
    return OtherModels(fallbacks, config.compaction_model, config.agents.model)


def _mcp_setup(request: SessionRequest, known: ProbeResults) -> McpSetup:
    from codex_py.mcp.build import McpSetup  # only for who has MCP servers

    return McpSetup(request, known)


def _session_mcp(
    request: SessionRequest,
    servers: McpSetup | None,
    *,
    known: ProbeResults,
    provider: Provider,
    client: ModelClient,
    pictures: bool,
) -> SessionMcp:
    def connect(access: SessionAccess) -> McpClients:
        setup = servers or _mcp_setup(request, known)
        return setup.connect(access, provider=provider, client=client, pictures=pictures)

    return SessionMcp(connect, at_once=servers is not None and bool(servers.table.servers or servers.table.waiting))


def _checkpoints(request: SessionRequest, thread_id: str, known: ProbeResults) -> SessionCheckpoints:
    settings = request.loaded.config.checkpoints
    if request.ephemeral or not settings.enabled:
        return SessionCheckpoints()

    def load(warn: Callable[[str], None]) -> Checkpointer:
        from codex_py.checkpoints.session import TurnCheckpoints  # only for who changes files

        return TurnCheckpoints(request.state_home, thread_id, request.env, settings, known=known, warn=warn)

    return SessionCheckpoints(load)


def _model_settings(request: SessionRequest, model: str, facts: ModelFacts, provider: Provider) -> ModelSettings:
    settings = model_settings(request.loaded.config, model, facts, provider=provider)
    return settings if request.instructions is None else settings.replace(instructions=request.instructions)


def _hook_access(request: SessionRequest, env: Mapping[str, str], thread_id: str, known: ProbeResults) -> HookAccess:
    def load() -> HookRunner:
        from codex_py.hooks.session import HookContext, open_hooks  # only for who has hooks

        return open_hooks(HookContext(request, env, thread_id, known=known))

    has_some = may_have_hooks(request.loaded, home=request.home, cwd=request.cwd)
    return HookAccess(load() if has_some else NoHooks(), load)


def _rule_warnings(request: SessionRequest) -> Sequence[str]:
    ignores = request.ignore_rules
    return read_rule_files(request.loaded, home=request.home, cwd=request.cwd, ignore_rules=ignores).warnings


def _load_runtime(request: SessionRequest, known: ProbeResults) -> ToolRuntime:
    from codex_py.core.tool_runtime import load_tool_runtime  # many sessions call no tool

    return load_tool_runtime(
        request.loaded, known, home=request.home, cwd=request.cwd, env=request.env, ignore_rules=request.ignore_rules
    )


def _stored_session(request: SessionRequest) -> tuple[StoredSession | None, Inherited | None]:
    """The session to go on with, and what a fork of it begins with."""
    target = request.resume
    if target is None:
        return None, None
    cwd = None if target.any_directory else target.cwd or request.cwd
    stored = load_stored(request.state_home, name=target.thread_id, cwd=cwd, through_turn=target.turn)
    return stored, inherited_from(stored) if request.forks else None


def _tool_env(request: SessionRequest, keys: frozenset[str], thread_id: str) -> dict[str, str]:
    ids = {"CODEX_THREAD_ID": thread_id, "CODEX_SESSION_ID": thread_id}
    return command_env(request.loaded.config, request.env, keys, ids, request.home)


def _users_env(request: SessionRequest, keys: frozenset[str]) -> dict[str, str]:
    """The environment of the user's own commands: everything except the keys of providers."""
    rules = ShellEnvironmentPolicy(ignore_default_excludes=True)
    return tool_environment(request.env, rules, secrets=keys, home=request.home)


def _session_skills(
    request: SessionRequest,
    settings: ModelSettings,
    tool_env: Mapping[str, str],
    command_lines: CommandLineReader,
    *,
    keys: frozenset[str],
    servers: McpSetup | None,
) -> SessionSkills:
    config = request.loaded.config

    def roots_for(cwd: Path) -> SkillRootsRequest:
        return skill_sources(request.loaded, home=request.home, cwd=cwd, env=request.env)

    def load_checker():  # the check of installed skills
        from codex_py.services.skill_trust import consent_check  # only for who has installed skills

        return consent_check(request.home, request.env)

    skill_settings = SkillSettings(
        roots=roots_for(request.cwd),
        rules=skill_rules(request.loaded),
        never_install=config.skills.never_install_mcp,
        include_instructions=config.skills.include_instructions,
        context_window=settings.known_window,
        max_tokens=config.skills.max_context_tokens,
        share=config.skills.budget,
        env=tool_env,
        withheld_env={key: value for key, value in request.env.items() if key not in tool_env and key not in keys},
        configured_mcp=servers.table.skill_keys if servers else frozenset(),
        command_lines=command_lines,
        roots_for=roots_for,
        ledger_home=request.state_home,
        keep_ledger=config.skills.ledger and not request.ephemeral,
        checks_plain=bool(config.sandbox.deny_read),  # the default denials name no `SKILL.md`
        ranking=config.skills.ranking == "on",
        suggestions=config.skills.suggestions == "on",
        natural_names=config.skills.natural_names,
        load_checker=load_checker,
        asks_for_variables=config.features.skill_env_var_dependency_prompt,
        may_read=read_check(request.loaded, home=request.home, cwd=request.cwd, env=request.env),
    )
    return SessionSkills(skill_settings, request.cwd)


def _overridden(
    request: SessionRequest, tools: ToolSetContext, models: ModelPool, op: OverrideTurnContext, now: TurnSettings
) -> tuple[TurnSettings, ToolRegistry | None]:
    return overridden(
        op,
        now,
        loaded=request.loaded,
        extra_roots=request.extra_roots,
        tool_context=tools,
        find_provider=models.provider,
    )


def _snapshot(request: SessionRequest, now: TurnSettings, *, skills: str) -> KnownContext:
    config, policy = request.loaded.config, now.sandbox_policy
    roots = [root.path for root in writable_roots(policy, now.cwd, request.env, home=request.home)]
    agents_md = load_agents_md(
        request.home,
        now.cwd,
        project_root_markers=config.project_root_markers,
        max_bytes=config.project_doc_max_bytes,
        fallback_filenames=config.project_doc_fallback_filenames,
        may_read=read_check(request.loaded, home=request.home, cwd=now.cwd, env=request.env),
    )
    environment = current_environment(now.cwd, policy, shell=user_shell(request.env), env=request.env)
    permissions = render_permissions(policy, now.approval, writable_roots=roots)
    snapshot = ContextSnapshot(
        model=now.model.model,
        developer_instructions="\n\n".join(
            filter(None, (config.developer_instructions, tone_instructions(config.personality)))
        ),
        skills=skills,
        permissions=permissions if config.include_permissions_instructions else "",
        agents_md=agents_md.text,
        environment=environment if config.include_environment_context else None,
        plan=plan_mode_on() if now.plan else "",
    )
    return KnownContext(snapshot, agents_md.warnings)


def _previous(
    request: SessionRequest, provider: Provider, settings: ModelSettings, stored: StoredSession | None
) -> ModelSettings | None:
    """The model that a stored session ended with, when it is another one and this provider's."""
    if stored is None or stored.meta.model_provider != provider.id:
        return None
    before = (stored.turn_context or {}).get("model")
    if not isinstance(before, str) or before == settings.model:
        return None
    config = request.loaded.config
    return model_settings(config, before, known_facts(config, before, None), provider=provider)

"""The composition root: puts a session together.

The one place that knows every room. Each gets plain values from here, never the configuration.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from codex_py import __version__
from codex_py.config.load import LoadedConfig
from codex_py.config.schema import Config
from codex_py.context.agents_md import load_agents_md
from codex_py.context.environment import current_environment
from codex_py.context.initial import ContextSnapshot
from codex_py.context.permissions import render_permissions
from codex_py.core.git_checkout import read_git_state
from codex_py.core.model_settings import choose_model, model_settings
from codex_py.core.sandbox_policy import choose_policy, unreadable_patterns
from codex_py.core.session import KnownContext, Session, SessionParts
from codex_py.core.session_skills import SessionSkills, SkillSettings
from codex_py.core.skill_sources import skill_rules, skill_sources
from codex_py.core.tool_runs import ToolParts
from codex_py.core.turn_context import ModelSettings
from codex_py.log import write_crash_report
from codex_py.model.auth import find_credentials
from codex_py.model.catalog import facts_for
from codex_py.model.client import ModelClient
from codex_py.model.providers import Provider, loopback_provider, resolve_provider
from codex_py.process.env import EnvironmentRules, tool_environment
from codex_py.process.manager import ProcessManager
from codex_py.process.shells import user_shell
from codex_py.protocol.ids import timestamp, uuid7
from codex_py.protocol.policy import ApprovalPolicy, SandboxPolicy
from codex_py.protocol.value import Value
from codex_py.rollout.format import SessionMeta
from codex_py.rollout.reader import StoredSession, find_session, latest_session, load_session
from codex_py.rollout.recorder import NullRecorder, Recorder, RolloutRecorder
from codex_py.sandbox.command import Sandbox
from codex_py.sandbox.policy import writable_roots
from codex_py.skills.dependencies import mcp_key
from codex_py.text.redact import Redactor
from codex_py.tools.apply_patch import ApplyPatch
from codex_py.tools.exec_command import ExecCommand
from codex_py.tools.later import hidden_later, shown_later
from codex_py.tools.registry import ToolRegistry
from codex_py.tools.write_stdin import WriteStdin

if TYPE_CHECKING:
    from codex_py.tools.grants import Approvals

OFFLINE_PROVIDER: Final = "offline"
_OFFLINE_NOTICE: Final = "this is the offline model: fixed rules, no AI, nothing leaves this machine"


class ResumeTarget(Value):
    """Which stored session to go on with: by id, else the newest one, of this directory or of any."""

    thread_id: str | None = None
    any_directory: bool = False


class SessionRequest(Value):
    """What a front end asks for. `cwd` is a real path; `extra_roots` are writable too with workspace-write.

    `can_ask` says that the front end answers the session's questions; `ignore_rules` leaves `.rules` files out.
    """

    loaded: LoadedConfig
    home: Path
    cwd: Path
    env: Mapping[str, str]
    originator: str
    approval: ApprovalPolicy
    ephemeral: bool = False
    resume: ResumeTarget | None = None
    extra_roots: tuple[Path, ...] = ()
    can_ask: bool = False
    ignore_rules: bool = False


@asynccontextmanager
async def open_session(request: SessionRequest, *, offline_url: str | None = None) -> AsyncGenerator[Session, None]:
    """A session, closed at the end. `offline_url` is the address of the built-in model when that is the provider.

    Raises `UserError` for settings that cannot work: no key, an unknown session, a file that cannot be read.
    """
    session = Session(_parts(request, offline_url))
    try:
        yield session
    finally:
        await session.close()


def _parts(request: SessionRequest, offline_url: str | None) -> SessionParts:
    config = request.loaded.config
    provider = _provider(request, offline_url)
    credentials = find_credentials(provider, env=request.env, home=request.home)
    stored = _stored_session(request)
    thread_id = stored.meta.id if stored else uuid7()
    model = choose_model(config, provider)
    facts = facts_for(model, overrides=config.models)
    settings = model_settings(config, model, facts, local=provider.local and provider.id != OFFLINE_PROVIDER)
    policy = choose_policy(request.loaded, request.extra_roots)
    keys = _key_names(request, provider)
    tool_env = _tool_env(request, keys, thread_id)
    tools = [
        ExecCommand(allow_login_shell=config.allow_login_shell),
        WriteStdin(max_poll_ms=config.background_terminal_max_timeout),
        ApplyPatch(freeform=facts.apply_patch == "freeform"),
        *shown_later(
            pictures=facts.images,
            questions=request.can_ask,
            permissions=request.can_ask and request.approval != "never",
        ),
    ]
    registry = ToolRegistry(
        tools,
        hidden=hidden_later(allow_login_shell=config.allow_login_shell),
        hosted=_hosted_tools(config.web_search, provider, settings),
    )
    return SessionParts(
        thread_id=thread_id,
        provider_name=provider.id,
        cwd=request.cwd,
        settings=settings,
        sandbox_policy=policy,
        approval=request.approval,
        model=ModelClient(provider, credentials, originator=request.originator, version=__version__),
        tools=ToolParts(
            registry=registry,
            sandbox=Sandbox.detect(request.env, deny_read=unreadable_patterns(request.loaded, request.home)),
            processes=ProcessManager(),
            env=tool_env,
            load_approvals=lambda: _approvals(request),
            can_ask=request.can_ask,
        ),
        open_recorder=lambda warn: _recorder(request, stored, settings, warn, thread_id=thread_id),
        redactor=Redactor(credentials.secrets),
        snapshot=lambda skills: _snapshot(request, settings, policy, skills=skills),
        skills=SessionSkills(_skill_settings(request, settings, tool_env, keys=keys)),
        report_crash=lambda error: _report_crash(config.log_dir or request.home / "log", error),
        stored=stored,
        warnings=(*request.loaded.warnings, *_notices(request, settings, known=facts.known, stored=stored)),
        notice=_OFFLINE_NOTICE if provider.id == OFFLINE_PROVIDER else None,
    )


def _approvals(request: SessionRequest) -> Approvals:
    from codex_py.core.approval_rules import load_approvals  # the seam: rules are read beside the first request

    return load_approvals(request.loaded, home=request.home, cwd=request.cwd, ignore_rules=request.ignore_rules)


def _provider(request: SessionRequest, offline_url: str | None) -> Provider:
    config = request.loaded.config
    if offline_url is not None:
        return loopback_provider(OFFLINE_PROVIDER, "offline rules", offline_url)
    return resolve_provider(
        config.model_provider,
        configured=config.model_providers,
        env=request.env,
        openai_base_url=config.openai_base_url,
    )


def _hosted_tools(
    web_search: Literal["disabled", "cached", "live"], provider: Provider, settings: ModelSettings
) -> list[dict[str, Any]]:
    """What the provider runs itself. Another server refuses a request with a tool it does not know."""
    # OpenAI refuses to search with so little thinking.
    if provider.id != "openai" or web_search == "disabled" or settings.effort == "minimal":
        return []
    return [{"type": "web_search", "external_web_access": web_search == "live"}]


def _stored_session(request: SessionRequest) -> StoredSession | None:
    target = request.resume
    if target is None:
        return None
    if target.thread_id is not None:
        return load_session(find_session(request.home, target.thread_id))
    return load_session(latest_session(request.home, None if target.any_directory else request.cwd))


def _key_names(request: SessionRequest, provider: Provider) -> frozenset[str]:
    """The variables that hold a provider's key: no command gets them."""
    configured = [record.env_key for record in request.loaded.config.model_providers.values()]
    return frozenset(filter(None, ["OPENAI_API_KEY", "CODEX_API_KEY", provider.api_key_env, *configured]))


def _tool_env(request: SessionRequest, keys: frozenset[str], thread_id: str) -> dict[str, str]:
    rules = request.loaded.config.shell_environment_policy
    return tool_environment(
        request.env,
        EnvironmentRules(rules.inherit, rules.ignore_default_excludes, rules.exclude, rules.set, rules.include_only),
        secrets=keys,
        extra={"CODEX_THREAD_ID": thread_id, "CODEX_SESSION_ID": thread_id},
    )


def _recorder(
    request: SessionRequest,
    stored: StoredSession | None,
    settings: ModelSettings,
    warn: Callable[[str], None],
    *,
    thread_id: str,
) -> Recorder:
    if request.ephemeral:
        return NullRecorder()
    if stored is not None:
        return RolloutRecorder.resume(stored, warn=warn)
    meta = SessionMeta(
        id=thread_id,
        timestamp=timestamp(),
        cwd=str(request.cwd),
        originator=request.originator,
        cli_version=__version__,
        source="exec",
        model_provider=request.loaded.config.model_provider,
        base_instructions=settings.instructions,
        git=read_git_state(request.cwd),
    )
    return RolloutRecorder.create(request.home, meta, warn=warn)


def _skill_settings(
    request: SessionRequest, settings: ModelSettings, tool_env: Mapping[str, str], *, keys: frozenset[str]
) -> SkillSettings:
    config = request.loaded.config
    withheld = {name: value for name, value in request.env.items() if name not in tool_env and name not in keys}
    servers = config.mcp_servers.items()
    return SkillSettings(
        roots=skill_sources(request.loaded, home=request.home, cwd=request.cwd, env=request.env),
        rules=skill_rules(config),
        include_instructions=config.skills.include_instructions,
        context_window=settings.context_window,
        max_tokens=config.skills.max_context_tokens,
        env=tool_env,
        withheld_env=withheld,
        configured_mcp=frozenset(
            mcp_key(name, url=server.get("url"), command=server.get("command")) for name, server in servers
        ),
        keep_ledger=not request.ephemeral,
    )


def _snapshot(request: SessionRequest, settings: ModelSettings, policy: SandboxPolicy, *, skills: str) -> KnownContext:
    config: Config = request.loaded.config
    roots = [root.path for root in writable_roots(policy, request.cwd, request.env)]
    agents_md = load_agents_md(
        request.home,
        request.cwd,
        project_root_markers=config.project_root_markers,
        max_bytes=config.project_doc_max_bytes,
        fallback_filenames=config.project_doc_fallback_filenames,
    )
    environment = current_environment(request.cwd, policy, shell=user_shell(request.env), env=request.env)
    permissions = render_permissions(policy, request.approval, writable_roots=roots)
    snapshot = ContextSnapshot(
        model=settings.model,
        developer_instructions=config.developer_instructions or "",
        skills=skills,
        permissions=permissions if config.include_permissions_instructions else "",
        agents_md=agents_md.text,
        environment=environment if config.include_environment_context else None,
    )
    return KnownContext(snapshot, agents_md.warnings)


def _notices(
    request: SessionRequest, settings: ModelSettings, *, known: bool, stored: StoredSession | None
) -> list[str]:
    notices = list(stored.warnings) if stored else []
    if not known and request.loaded.config.model_provider != OFFLINE_PROVIDER:
        notices.append(
            f"nothing is known about the model `{settings.model}`: common defaults are used;"
            f' describe it under `[models."{settings.model}"]`'
        )
    before = (stored.turn_context or {}).get("model") if stored else None
    if before and before != settings.model:
        notices.append(f"this session was recorded with the model `{before}` and goes on with `{settings.model}`")
    return notices


def _report_crash(folder: Path, error: BaseException) -> str:
    report = write_crash_report(folder, error, version=__version__)
    where = f"details in `{report}`" if report else "and no log could be written"
    return f"this is a bug in codex-py: {type(error).__name__}; {where}"

"""The settings of turns: taken from the configuration, and changed by the user during a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from codex_py.config.load import LoadedConfig
from codex_py.config.model_names import split_model
from codex_py.config.schema import Config, word_for
from codex_py.context.instructions import fitted_instructions
from codex_py.core.model_setup import has_edit_tools, known_facts, model_settings
from codex_py.core.session_request import SessionRequest
from codex_py.core.tool_set import ToolSetContext, build_tools, web_search_notice
from codex_py.core.turn_context import ModelSettings, TurnSettings
from codex_py.errors import UserError
from codex_py.model.catalog import openai_models
from codex_py.model.providers import OPENAI_URL, Provider
from codex_py.paths import is_directory, real_path
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.protocol.policy import DangerFullAccess, ReadOnly, SandboxMode, SandboxPolicy, WorkspaceWrite, mode_of
from codex_py.rollout.format import StoredSession
from codex_py.sandbox.denials import default_denials, own_secrets
from codex_py.sandbox.unreadable import ReadRules
from codex_py.text.nearest import did_you_mean
from codex_py.tools.registry import ToolRegistry

OFFLINE_PROVIDER: Final = "offline"


def choose_policy(loaded: LoadedConfig, extra_roots: Sequence[Path] = ()) -> SandboxPolicy:
    """The policy of a session with these settings; `extra_roots` are writable too with workspace-write."""
    config = loaded.config
    # Whoever trusts a project expects work to be done there; everywhere else looking is all that was allowed.
    mode = config.sandbox_mode or ("workspace-write" if loaded.trust == "trusted" else "read-only")
    match mode:
        case "read-only":
            return ReadOnly()
        case "danger-full-access":
            return DangerFullAccess()
        case "workspace-write":
            rules = config.sandbox_workspace_write
            return WorkspaceWrite(
                writable_roots=(*rules.writable_roots, *extra_roots),
                network_access=rules.network_access,
                exclude_tmpdir_env_var=rules.exclude_tmpdir_env_var,
                exclude_slash_tmp=rules.exclude_slash_tmp,
                git=rules.git,
            )


def read_check(loaded: LoadedConfig, *, home: Path, cwd: Path, env: Mapping[str, str]) -> Callable[[Path], bool]:
    """Whether an absolute path may be read for the model.

    The rules are put together when they are first needed: what the default denials name lies behind a hidden name or
    in `Library`, and is no `SKILL.md`, so that any other plain file needs none of them.
    """

    @cache
    def rules() -> Callable[[Path], bool]:
        own = own_secrets(home, loaded.config.sandbox.allow_read, env)
        return ReadRules(denied_patterns(loaded, env), cwd, env, secrets=own).allows

    def may_read(path: Path) -> bool:
        if not loaded.config.sandbox.deny_read:
            is_skill = path.name == "SKILL.md"
            is_plain = not any(part.startswith(".") or part == "Library" for part in path.parts)
            if is_plain or is_skill:
                real = real_path(path)
                if real == str(path) or (is_skill and real.endswith("/SKILL.md")):
                    return True
        return rules()(path)

    return may_read


def denied_patterns(loaded: LoadedConfig, env: Mapping[str, str]) -> tuple[str, ...]:
    """Every path and pattern that no sandboxed command reads, `CODEX_HOME` aside: the default ones and the user's.

    The files with tokens of providers are among them.
    """
    rules = loaded.config.sandbox
    logins = (provider.auth or {} for provider in loaded.config.model_providers.values())
    tokens = [str(login["file"]) for login in logins if login.get("file")]
    return (*(path for path, _ in default_denials(env, rules.allow_read)), *rules.deny_read, *tokens)


def overridden(
    op: OverrideTurnContext,
    now: TurnSettings,
    *,
    loaded: LoadedConfig,
    extra_roots: Sequence[Path],
    tool_context: ToolSetContext,
    find_provider: Callable[[str], Provider],
) -> tuple[TurnSettings, ToolRegistry | None]:
    """The settings with what the op changes, and the tools for another model; None where they stay as they are.

    Tools stand in front of everything in a provider's cache, so that nothing less than a model changes them.

    `find_provider` opens the provider of a name. Raises `UserError` for one that cannot be asked, a model without a
    name, a directory that is none, and what the administrator does not allow.
    """
    _check(op, loaded)
    provider, model = _chosen_model(op, now, loaded.config, find_provider)
    tool_context = tool_context.replace(provider=provider)
    config = _config_for(op, now, loaded.config, model)
    facts = known_facts(config, model, None)
    settings = now.model
    if (op.model, op.effort, op.summary) != (None, None, None):
        # What the session began with stays in front of everything, whatever a file says meanwhile, but for the tools.
        has_edits = has_edit_tools(config, model, provider.id)
        instructions = fitted_instructions(now.model.instructions, has_edit_tools=has_edits)
        settings = model_settings(config, model, facts, provider=provider).replace(instructions=instructions)
        if (provider.id, model) == (now.model.provider, now.model.model):
            # What a local server said of its window is not asked for again.
            settings = settings.replace(
                context_window=now.model.context_window, assumes_window=now.model.assumes_window
            )
    policy = now.sandbox_policy
    if isinstance(op.sandbox, str):
        policy = choose_policy(loaded.replace(config=config), extra_roots)
    elif op.sandbox is not None:
        policy = op.sandbox
    plan = now.plan if op.plan is None else op.plan
    after = TurnSettings(op.cwd or now.cwd, settings, policy, op.approval or now.approval, plan)
    before = (now.model.provider, now.model.model, now.model.effort)
    if (settings.provider, settings.model, settings.effort) == before:
        return after, None
    new_context = tool_context if settings.model == now.model.model else tool_context.replace(approval=after.approval)
    return after, build_tools(config, facts, settings, new_context)


def _chosen_model(
    op: OverrideTurnContext, now: TurnSettings, config: Config, find_provider: Callable[[str], Provider]
) -> tuple[Provider, str]:
    if op.model is None or op.provider is not None:
        return find_provider(op.provider or now.model.provider), op.model or now.model.model
    current = find_provider(now.model.provider)
    chosen, model = split_model(
        op.model,
        configured=config.model_providers,
        current=current.id,
        is_gateway=current.id == "openai" and current.base_url != OPENAI_URL,
    )
    return find_provider(chosen) if chosen else current, model


def _config_for(op: OverrideTurnContext, now: TurnSettings, config: Config, model: str) -> Config:
    same = model == now.model.model
    effort = op.effort
    if effort is None:
        effort = now.model.effort if same else config.model_reasoning_effort
    return config.replace(
        model_reasoning_effort=effort or None,
        model_reasoning_summary=op.summary or (now.model.summary if same else config.model_reasoning_summary),
        sandbox_mode=_mode(op) or config.sandbox_mode,
    )


def _check(op: OverrideTurnContext, loaded: LoadedConfig) -> None:
    allowed = loaded.requirements
    if op.model is not None and not op.model.strip():
        raise UserError("the model has no name")
    if op.cwd is not None and not is_directory(op.cwd):
        raise UserError(f"`{op.cwd}` is not a directory")
    mode = _mode(op)
    if mode is not None and mode not in allowed.sandbox_modes:
        raise _not_allowed("sandbox mode", mode, allowed.sandbox_modes)
    if op.approval is not None and word_for(op.approval) not in allowed.approval_policies:
        raise _not_allowed("approval policy", word_for(op.approval), allowed.approval_policies)


def _mode(op: OverrideTurnContext) -> SandboxMode | None:
    return op.sandbox if op.sandbox is None or isinstance(op.sandbox, str) else mode_of(op.sandbox)


def _not_allowed(what: str, value: str, allowed: Sequence[str]) -> UserError:
    shown = ", ".join(f"`{choice}`" for choice in allowed)
    return UserError(f"the {what} `{value}` is not allowed on this machine", hint=f"allowed are {shown}")


def session_notices(
    request: SessionRequest, settings: ModelSettings, provider: Provider, *, known: bool, stored: StoredSession | None
) -> list[str]:
    """The lines for the user about the settings a session begins with."""
    notices = list(stored.warnings) if stored else []
    notices += filter(None, [web_search_notice(request.loaded, provider, settings)])
    if not known and request.loaded.config.model_provider != OFFLINE_PROVIDER:
        guess = (
            f"{question} "
            if (question := did_you_mean(settings.model, (*openai_models(), *request.loaded.config.models)))
            else ""
        )
        notices.append(
            f"unknown model `{settings.model}`: {guess}assuming a window of {settings.context_window:,} tokens; "
            f'if the name is right, set `[models."{settings.model}"] context_window`'
        )
    before = (stored.turn_context or {}).get("model") if stored else None
    if before and before != settings.model:
        notices.append(f"this session was recorded with the model `{before}` and goes on with `{settings.model}`")
    if stored is not None and (stored.world_state or {}).get("plan_mode"):
        notices.append(
            "this session was left in plan mode, which is over: files may be changed again, as the permissions allow"
        )
    return notices

"""`/model`, `/approvals`, `/sandbox`, `/plan`, `/theme`, `/vim`, `/rename`: how the session and the screen behave, and
what the session is called, from now on.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import Any, Final, cast

from codex_py.config.edit import set_value
from codex_py.config.model_sections import REASONING_EFFORT
from codex_py.config.schema import APPROVAL_POLICIES, SANDBOX_MODES
from codex_py.core.resume import find_stored
from codex_py.errors import UserError
from codex_py.paths import short_path
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.protocol.policy import mode_of
from codex_py.rollout.listing import name_complaint, save_name
from codex_py.services.models import OfferedModels, describe_unknown_model, is_well_known, offered_models
from codex_py.text.nearest import did_you_mean
from codex_py.ui.repl.panels.forms import Form, waited_for
from codex_py.ui.repl.panels.settings import (
    WITHOUT_SANDBOX,
    ModelChoice,
    choose_approval,
    choose_model,
    choose_sandbox,
    choose_theme,
    keep_sheet,
)
from codex_py.ui.repl.slash_command import CommandContext, SlashCommand


async def _model(context: CommandContext, words: str) -> None:
    if words:
        name, _, effort = words.partition(" ")
        if effort:
            _parse_choice(effort.strip(), REASONING_EFFORT.words, "effort")
        await _use_model(context, OverrideTurnContext(model=name, effort=effort.strip() or None))
        await warn_of_unknown_model(context, show_waiting=True)
        return
    now = context.session.settings.model
    config = context.launch.loaded.config
    chosen = await choose_model(context.asker, lambda: list_models(context), current=now.model, effort=now.effort)
    if chosen is None:
        return
    provider = _provider(context) if chosen.listed else None
    await _use_model(context, OverrideTurnContext(model=chosen.model, provider=provider, effort=chosen.effort or ""))
    if (chosen.model, chosen.effort) != (config.model, config.model_reasoning_effort):
        await _offer_to_save(context, chosen)


def list_models(context: CommandContext) -> Coroutine[Any, Any, OfferedModels]:
    """Ask the provider of the session for its models."""
    config = context.launch.loaded.config
    return offered_models(config, _provider(context), env=context.launch.env, home=context.launch.home)


def _provider(context: CommandContext) -> str:
    return context.session.settings.model.provider or context.launch.loaded.config.model_provider


async def warn_of_unknown_model(context: CommandContext, *, show_waiting: bool = False) -> None:
    """Warn of a model that its provider does not list; of one that lists none, when it is nearly a known name."""
    name, config = context.session.settings.model.model, context.launch.loaded.config
    config = config.replace(model_provider=_provider(context))
    if is_well_known(config, name):
        return
    offered = None
    with contextlib.suppress(UserError):
        listing = list_models(context)
        about = "asking the provider for its models…"
        offered = await (waited_for(context.asker, "Models", listing, about=about) if show_waiting else listing)
    if warning := describe_unknown_model(config, name, offered):
        context.session.warn(warning)


async def _use_model(context: CommandContext, op: OverrideTurnContext) -> None:
    await context.session.submit(op)
    after = context.session.settings.model
    context.output.note(f"model: {after.model}" + (f", effort {after.effort}" if after.effort else ""))


async def _offer_to_save(context: CommandContext, chosen: ModelChoice) -> None:
    """Whether it is the user's model from now on, in the file that counts in sessions begun like this one."""
    profile = context.launch.request.profile
    file = context.launch.home / (f"{profile}.config.toml" if profile else "config.toml")
    if not await context.asker.choose(keep_sheet(chosen, short_path(file, context.user_home))):
        return
    settings = [("model", context.session.settings.model.model)]
    if (provider := _provider(context)) != context.launch.loaded.config.model_provider:
        settings.append(("model_provider", provider))
    effort = chosen.effort or context.session.settings.model.effort
    if effort and (chosen.effort or context.launch.loaded.config.model_reasoning_effort):
        settings.append(("model_reasoning_effort", effort))
    for key, value in settings:
        set_value(file, (key,), value)
    context.output.note(f"saved in `{short_path(file, context.user_home)}`")


async def _approvals(context: CommandContext, words: str) -> None:
    allowed = context.launch.loaded.requirements.approval_policies
    chosen: Any = _parse_choice(words, APPROVAL_POLICIES, "approval policy") if words else None
    chosen = chosen or await choose_approval(context.asker, context.session.settings.approval, allowed)
    if chosen is not None:
        await context.session.submit(OverrideTurnContext(approval=chosen))
        context.output.note(f"approvals: {chosen}")


async def _sandbox(context: CommandContext, words: str) -> None:
    allowed = context.launch.loaded.requirements.sandbox_modes
    current = mode_of(context.session.settings.sandbox_policy)
    chosen: Any = _parse_choice(words, SANDBOX_MODES, "sandbox") if words else None
    chosen = chosen or await choose_sandbox(context.asker, current, allowed)
    if chosen == "danger-full-access" and not context.accepts_full_access:
        context.accepts_full_access = await context.asker.choose(WITHOUT_SANDBOX)
        if not context.accepts_full_access:
            return
    if chosen is not None:
        await context.session.submit(OverrideTurnContext(sandbox=chosen))
        context.output.note(f"sandbox: {chosen}")


async def _plan(context: CommandContext, words: str) -> None:
    is_on = context.session.settings.plan
    if not words or not is_on:
        await context.session.submit(OverrideTurnContext(plan=not is_on or bool(words)))
        context.output.note(
            "plan mode is off"
            if context.session.settings.plan is False
            else "plan mode: nothing is written until you accept a plan"
        )
    if words:
        context.front.send_message(words)


async def _theme(context: CommandContext, words: str) -> None:
    chosen = words or await choose_theme(context.asker, context.theme, context.front.set_theme)
    if chosen is None:
        return
    context.front.set_theme(chosen)
    context.theme = chosen
    _save_setting(context, "theme", chosen)
    context.output.note(f"theme: {chosen}")


async def _vim(context: CommandContext, words: str) -> None:
    if words:
        _parse_choice(words, ("on", "off"), "choice")
    context.is_vim = words == "on" if words else not context.is_vim
    context.front.set_vim(on=context.is_vim)
    _save_setting(context, "vim_mode_default", context.is_vim)
    context.output.note(f"vi keys are {'on' if context.is_vim else 'off'}")


def _save_setting(context: CommandContext, key: str, value: str | bool) -> None:
    """Remember it in the user's file; that it cannot be is no reason not to do it now."""
    try:
        set_value(context.launch.home / "config.toml", ("tui", key), value)
    except UserError as error:
        context.output.fail(f"it counts for this session only: {error}", hint=error.hint)


def _parse_choice(word: str, words: tuple[Any, ...], what: str) -> object:
    if word not in words:
        names = cast("tuple[str, ...]", words)
        guess = f"{question} " if (question := did_you_mean(word, names)) else ""
        *others, last = [f"`{name}`" for name in names]
        choices = f"{', '.join(others)} or {last}" if others else last
        raise UserError(f"unknown {what} `{word[:80]}`: use {choices}", hint=guess.strip() or None)
    return word


async def _rename(context: CommandContext, words: str) -> None:
    home, thread_id = context.launch.home, context.session.thread_id
    try:
        await asyncio.to_thread(find_stored, home, name=thread_id, cwd=None)
    except UserError as error:
        hint = "send a message first; with `--ephemeral` nothing is kept"
        raise UserError("this session is not kept yet, so there is nothing to name", hint=hint) from error
    if words == "auto":
        name = await waited_for(context.asker, "Title", context.session.side.title_now(), about="(Esc goes back)")
    else:
        form = Form("What is this session called?", check=name_complaint, enter="name it")
        name = words or await context.asker.enter(form)
    if name is not None:
        context.output.note(f"this session is named `{await asyncio.to_thread(save_name, home, thread_id, name)}`")


SETTINGS: Final = (
    SlashCommand("model", "choose the model and how long it thinks", _model, "[NAME [EFFORT]]"),
    SlashCommand("approvals", "choose when commands need your approval", _approvals, "[POLICY]"),
    SlashCommand("sandbox", "choose what commands may change", _sandbox, "[MODE]"),
    SlashCommand("plan", "plan mode on and off: nothing is written until you accept a plan", _plan, "[WISH]"),
    SlashCommand("theme", "choose the colours", _theme, "[NAME]"),
    SlashCommand("vim", "vi keys on and off", _vim, "[on|off]"),
    SlashCommand("rename", "name this session: `codex-py resume NAME` goes on with it", _rename, "[NAME | auto]"),
)

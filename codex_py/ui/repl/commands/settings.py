"""`/model`, `/approvals`, `/sandbox`, `/plan`, `/theme`, `/vim`, `/rename`: how the session and the screen behave, and
what the session is called, from now on.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final, cast

from codex_py.config.edit import set_value
from codex_py.config.schema import APPROVAL_POLICIES, SANDBOX_MODES
from codex_py.config.sections import REASONING_EFFORT
from codex_py.core.offered_models import known_models, offered_models
from codex_py.core.offered_sessions import name_session, name_trouble
from codex_py.core.stored_sessions import find_stored
from codex_py.errors import UserError
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.protocol.policy import mode_of
from codex_py.text.nearest import did_you_mean
from codex_py.ui.repl.desk import Desk
from codex_py.ui.repl.panels.forms import Form
from codex_py.ui.repl.panels.models import ModelChoice, choose_model, keep_sheet
from codex_py.ui.repl.panels.policies import choose_approval, choose_sandbox
from codex_py.ui.repl.panels.themes import choose_theme
from codex_py.ui.repl.panels.wording import short_path
from codex_py.ui.repl.slash import Command


async def _model(desk: Desk, words: str) -> None:
    if words:
        name, _, effort = words.partition(" ")
        if effort:
            _one_of(effort.strip(), REASONING_EFFORT.words)
        await _use_model(desk, OverrideTurnContext(model=name, effort=effort.strip() or None))
        if name not in (known := known_models(desk.place.loaded.config)) and (guess := did_you_mean(name, known)):
            desk.voice.note(f"unknown model `{name}`; {guess}")
        return
    now = desk.session.settings.model
    config = desk.place.loaded.config
    chosen = await choose_model(
        desk.asker,
        lambda: offered_models(config, config.model_provider, env=desk.place.env, home=desk.place.home),
        current=now.model,
        effort=now.effort,
    )
    if chosen is None:
        return
    await _use_model(desk, OverrideTurnContext(model=chosen.model, effort=chosen.effort or ""))
    if (chosen.model, chosen.effort) != (config.model, config.model_reasoning_effort):
        await _offer_to_keep(desk, chosen)


async def _use_model(desk: Desk, op: OverrideTurnContext) -> None:
    await desk.session.submit(op)
    after = desk.session.settings.model
    desk.voice.note(f"model: {after.model}" + (f", effort {after.effort}" if after.effort else ""))


async def _offer_to_keep(desk: Desk, chosen: ModelChoice) -> None:
    """Whether it is the user's model from now on, in the file that counts in sessions begun like this one."""
    profile = desk.place.request.profile
    file = desk.place.home / (f"{profile}.config.toml" if profile else "config.toml")
    if not await desk.asker.choose(keep_sheet(chosen, short_path(file, desk.user_home))):
        return
    kept = [("model", chosen.model)]
    effort = chosen.effort or desk.session.settings.model.effort
    if effort and (chosen.effort or desk.place.loaded.config.model_reasoning_effort):
        kept.append(("model_reasoning_effort", effort))
    for key, value in kept:
        set_value(file, (key,), value)
    desk.voice.note(f"kept in `{short_path(file, desk.user_home)}`")


async def _approvals(desk: Desk, words: str) -> None:
    allowed = desk.place.loaded.requirements.approval_policies
    chosen: Any = _one_of(words, APPROVAL_POLICIES) if words else None
    chosen = chosen or await choose_approval(desk.asker, desk.session.settings.approval, allowed)
    if chosen is not None:
        await desk.session.submit(OverrideTurnContext(approval=chosen))
        desk.voice.note(f"approvals: {chosen}")


async def _sandbox(desk: Desk, words: str) -> None:
    allowed = desk.place.loaded.requirements.sandbox_modes
    current = mode_of(desk.session.settings.sandbox_policy)
    chosen: Any = _one_of(words, SANDBOX_MODES) if words else None
    chosen = chosen or await choose_sandbox(desk.asker, current, allowed)
    if chosen is not None:
        await desk.session.submit(OverrideTurnContext(sandbox=chosen))
        desk.voice.note(f"sandbox: {chosen}")


async def _plan(desk: Desk, words: str) -> None:
    is_on = desk.session.settings.plan
    if not words or not is_on:
        await desk.session.submit(OverrideTurnContext(plan=not is_on or bool(words)))
        desk.voice.note(
            "plan mode is off"
            if desk.session.settings.plan is False
            else "plan mode: nothing is written until you accept a plan"
        )
    if words:
        desk.front.say(words)


async def _theme(desk: Desk, words: str) -> None:
    chosen = words or await choose_theme(desk.asker, desk.theme, desk.front.set_theme)
    if chosen is None:
        return
    desk.front.set_theme(chosen)
    desk.theme = chosen
    _keep(desk, "theme", chosen)
    desk.voice.note(f"theme: {chosen}")


async def _vim(desk: Desk, words: str) -> None:
    if words:
        _one_of(words, ("on", "off"))
    desk.is_vim = words == "on" if words else not desk.is_vim
    desk.front.set_vim(on=desk.is_vim)
    _keep(desk, "vim_mode_default", desk.is_vim)
    desk.voice.note(f"vi keys are {'on' if desk.is_vim else 'off'}")


def _keep(desk: Desk, key: str, value: str | bool) -> None:
    """Remember it in the user's file; that it cannot be is no reason not to do it now."""
    try:
        set_value(desk.place.home / "config.toml", ("tui", key), value)
    except UserError as error:
        desk.voice.fail(f"it counts for this session only: {error}", hint=error.hint)


def _one_of(word: str, words: tuple[Any, ...]) -> object:
    if word not in words:
        names = cast("tuple[str, ...]", words)
        guess = f"{question} " if (question := did_you_mean(word, names)) else ""
        raise UserError(
            f"`{word}` is not allowed here", hint=f"{guess}choose from {', '.join(f'`{one}`' for one in names)}"
        )
    return word


async def _rename(desk: Desk, words: str) -> None:
    home, thread_id = desk.place.home, desk.session.thread_id
    try:
        await asyncio.to_thread(find_stored, home, wanted=thread_id, cwd=None)
    except UserError as error:
        hint = "send a message first; with `--ephemeral` nothing is kept"
        raise UserError("this session is not kept yet, so there is nothing to name", hint=hint) from error
    name = words or await desk.asker.enter(Form("What is this session called?", check=name_trouble, enter="name it"))
    if name is not None:
        desk.voice.note(f"this session is named `{await asyncio.to_thread(name_session, home, thread_id, name)}`")


SETTINGS: Final = (
    Command("model", "choose the model and how long it thinks", _model, "[NAME [EFFORT]]"),
    Command("approvals", "choose when commands need your yes", _approvals, "[POLICY]"),
    Command("sandbox", "choose what commands may change", _sandbox, "[MODE]"),
    Command("plan", "plan mode on and off: nothing is written until you accept a plan", _plan, "[WISH]"),
    Command("theme", "choose the colours", _theme, "[NAME]"),
    Command("vim", "vi keys on and off", _vim, "[on|off]"),
    Command("rename", "name this session: `codex-py resume NAME` goes on with it", _rename, "[NAME]"),
)

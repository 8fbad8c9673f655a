"""Applies the front matter of the skills in use to the rest of a turn: model, effort, hooks.

The one resolver for every way a skill is used. The changes end with the turn.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

from codex_py.core.fallback import ModelFallback
from codex_py.core.sampling import Sampler
from codex_py.core.session_services import SessionServices
from codex_py.core.turn_context import CurrentSettings, ModelSettings
from codex_py.errors import ModelError, UserError
from codex_py.model.client import TurnState
from codex_py.model.failures import TOO_LONG
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.skills.model import Skill
from codex_py.text.nearest import did_you_mean
from codex_py.text.sanitize import sanitize_line

AppliedOptions: TypeAlias = tuple[tuple[str, str], ...]

_SAME: Final = ("", "inherit", "default")
_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_CLAUDE: Final = ("haiku", "sonnet", "opus", "claude", "best", "opusplan")


class SkillOptionsInForce:
    """The options of the skills of the running turn. A value that is refused costs a warning, and nothing else."""

    def __init__(
        self,
        services: SessionServices,
        settings: CurrentSettings,
        fallback: ModelFallback,
        warn: Callable[[str], None],
    ) -> None:
        self._services = services
        self._fallback = fallback
        self._settings = settings
        self._warn = warn
        self._applied: dict[Path, AppliedOptions] = {}
        # Those of the model before a skill chose another one, and those to go on with.
        self._before: ModelSettings | None = None
        self._coming: ModelSettings | None = None

    def begin_turn(self) -> None:
        """Go back to what the user has chosen."""
        self._applied.clear()
        self._before = self._coming = None
        self._fallback.begin_turn()

    def apply(self, skill: Skill) -> AppliedOptions:
        """Let the options of a skill hold for the rest of the turn, once; those that do, as they are written."""
        path = skill.canonical_path
        if path not in self._applied:
            dynamic = (("dynamic", "true"),) if skill.options.dynamic else ()
            self._applied[path] = (*self._apply_model(skill), *dynamic, *self._apply_hooks(skill))
        return self._applied[path]

    def note_fork(self, skill: Skill, role: str) -> None:
        """A skill runs as a subagent, in whose session its other options hold."""
        self._applied[skill.canonical_path] = (("context", "fork"), *((("agent", role),) if role else ()))

    def next_sampler(self, sampler: Sampler) -> Sampler:
        """The sampler for the next request, with the model and the effort that a skill asks for."""
        settings, self._coming = self._coming, None
        if settings is None:
            return sampler
        return _with_settings(sampler, settings)

    def fall_back(self, sampler: Sampler, error: ModelError) -> Sampler | None:
        """The sampler with the user's own model, when the one that a skill asks for is refused; else a fallback."""
        before, self._before = self._before, None
        chosen = sampler.turn.settings
        if before is None or error.retryable or error.unreachable or error.code == TOO_LONG:
            self._before = before
            return self._fallback.next_sampler(sampler, error)
        self._settings.now = self._settings.now.replace(model=before)
        what = f"model `{chosen.model}`" if chosen.model != before.model else f"effort `{chosen.effort}`"
        self._warn(f"the {what} that a skill asks for is refused ({error}); `{before.model}` goes on with this turn")
        return _with_settings(sampler, before)

    def _apply_model(self, skill: Skill) -> AppliedOptions:
        now = self._settings.now
        model = self._usable_model(skill, now.model)
        effort = self._usable_effort(skill)
        if (model or now.model.model, effort or now.model.effort) == (now.model.model, now.model.effort):
            return tuple((key, value) for key, value in (("model", model), ("effort", effort)) if value)
        # The provider is the session's: a skill must not send the conversation to another one.
        op = OverrideTurnContext(model=model or None, effort=effort or None, provider=now.model.provider or None)
        try:
            after, _ = self._services.override(op, now)
        except UserError as error:
            self._refuse(skill, "`model` and `effort`", str(error))
            return ()
        if self._before is None:
            self._before = now.model
        self._coming = after.model
        self._settings.now = now.replace(model=after.model)
        return tuple((key, value) for key, value in (("model", model), ("effort", effort)) if value)

    def _usable_model(self, skill: Skill, now: ModelSettings) -> str:
        model = skill.options.model
        if model.lower() in _SAME:
            return ""
        if model.lower().startswith(_CLAUDE) and "claude" not in now.model:
            self._refuse(skill, f"`model: {model}`", f"this session asks `{now.model}`")
            return ""
        if any(char.isspace() for char in model):
            self._refuse(skill, f"`model: {model}`", "it is not the name of a model")
            return ""
        return model

    def _usable_effort(self, skill: Skill) -> str:
        effort = skill.options.effort
        if effort in _SAME or effort in _EFFORTS:
            return "" if effort in _SAME else effort
        guess = did_you_mean(effort, _EFFORTS)
        self._refuse(skill, f"`effort: {effort}`", guess or f"there are {', '.join(_EFFORTS)}")
        return ""

    def _apply_hooks(self, skill: Skill) -> AppliedOptions:
        run = self._services.tools.hooks.use_skill(skill)
        return (("hooks", ", ".join(run)),) if run else ()

    def _refuse(self, skill: Skill, what: str, why: str) -> None:
        self._warn(f"the skill `{sanitize_line(skill.name)}`: {what} is left out: {why}")


def _with_settings(sampler: Sampler, settings: ModelSettings) -> Sampler:
    turn = sampler.turn
    is_other = settings.model != turn.settings.model
    state = TurnState() if is_other else sampler.turn_state
    return sampler.replace(turn=turn.replace(settings=settings), turn_state=state)

"""Which model goes on with a turn when its own one does not answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from codex_py.core.sampling import Sampler
from codex_py.core.session_services import SessionServices
from codex_py.core.tool_runs import ToolRuns
from codex_py.core.transcript import Transcript
from codex_py.core.turn_context import CurrentSettings, TurnContext
from codex_py.errors import ModelError, UserError
from codex_py.model.client import TurnState
from codex_py.model.error_bodies import NO_MODEL, TOO_LONG
from codex_py.model.failures import ANSWER_LIMIT, FILTERED, REFUSED
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.rollout.format import MODEL_FALLBACK, fallback_payload
from codex_py.tools.registry import ToolRegistry

# What the account has used up, or may not use for hours, and a model that is gone: another provider may have both.
_OUTAGES: Final = frozenset({"quota", "rate_limit", "overloaded", "network", "timeout"})
_GONE: Final = frozenset({NO_MODEL, "not_found_error"})
# What another model would be refused too, or has said itself.
_OF_REQUEST: Final = frozenset({TOO_LONG, FILTERED, REFUSED, ANSWER_LIMIT})


class ModelFallback:
    """The models of `fallback_models`, tried in their order, each once a turn; the next turn begins with its own."""

    def __init__(
        self,
        services: SessionServices,
        settings: CurrentSettings,
        runs: ToolRuns,
        transcript: Transcript,
        warn: Callable[[str], None],
    ) -> None:
        self._services = services
        self._settings = settings
        self._runs = runs
        self._transcript = transcript
        self._warn = warn
        self._next = 0
        self._usual_tools: ToolRegistry | None = None

    def begin_turn(self) -> None:
        """Go back to the model that the user has chosen."""
        self._next = 0
        if self._usual_tools is not None:
            self._runs.offer(self._usual_tools)
            self._usual_tools = None

    def next_sampler(self, sampler: Sampler, error: ModelError) -> Sampler | None:
        """The sampler for the next model; None if `error` is not an outage or no model is left."""
        if not is_outage(error):
            return None
        fallbacks: Final = self._services.models.fallbacks
        while self._next < len(fallbacks):
            provider, model = fallbacks[self._next]
            self._next += 1
            now = self._settings.now
            if (provider, model) == (now.model.provider, now.model.model):
                continue
            try:
                after, tools = self._services.override(OverrideTurnContext(model=model, provider=provider), now)
                self._services.model.require_price(provider, model, after.model.service_tier)
            except UserError as problem:
                self._warn(f"`{provider}/{model}` cannot go on with this turn: {problem}")
                continue
            if tools is not None:
                self._usual_tools = self._usual_tools or self._runs.own
                self._runs.offer(tools)
            self._settings.now = now.replace(model=after.model)
            before, to = now.model, after.model
            models = {"before": (before.provider, before.model), "after": (to.provider, to.model)}
            payload = fallback_payload(sampler.turn.turn_id, **models, reason=str(error))
            self._transcript.record(MODEL_FALLBACK, payload)
            self._warn(f"`{now.model.model}` does not answer ({error}); `{provider}/{model}` goes on with this turn")
            return sampler.replace(turn=sampler.turn.replace(settings=after.model), turn_state=TurnState())
        return None

    def compaction_turn(self, turn: TurnContext) -> TurnContext:
        """The turn with the model that writes summaries, where there is one that can be asked."""
        name = self._services.models.compaction
        if name is None:
            return turn
        try:
            after, _ = self._services.override(OverrideTurnContext(model=name), self._settings.now)
        except UserError as error:
            self._warn(f"`compaction_model` cannot be asked: {error}")
            return turn
        return turn.replace(settings=after.model)


def is_outage(error: ModelError) -> bool:
    """Whether another provider may do better: this one is overloaded, over quota, or gone."""
    if error.code in _OF_REQUEST:
        return False
    return error.retryable or error.unreachable or error.failure in _OUTAGES or error.code in _GONE

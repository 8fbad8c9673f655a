"""The options of a session that a client shows: the mode, the model, and the reasoning effort."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from codex_py.config.load import LoadedConfig
from codex_py.config.model_sections import REASONING_EFFORT
from codex_py.core.turn_context import TurnSettings
from codex_py.errors import UserError
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.protocol.policy import ApprovalWord, SandboxMode, approval_name, mode_of
from codex_py.server.acp.content import Json
from codex_py.services.models import known_models

_PLAN: Final = "plan"
_CONFIGURED: Final = "configured"
_SHOWN: Final = 80


class _Mode(NamedTuple):
    id: str
    name: str
    description: str
    sandbox: SandboxMode
    approval: ApprovalWord


_MODES: Final = (
    _Mode("read-only", "Read only", "Writes nothing and asks nothing", "read-only", "never"),
    _Mode("ask", "Ask", "Reads; asks before it writes or leaves the sandbox", "read-only", "on-request"),
    _Mode("auto", "Write here", "Writes in the project; asks before it leaves that", "workspace-write", "on-request"),
    _Mode("full-access", "Full access", "No sandbox and no questions", "danger-full-access", "never"),
)
_PLANNING: Final = {
    "id": _PLAN,
    "name": "Plan",
    "description": "Looks and plans; nothing is written until you accept the plan",
}


class Modes:
    """The modes of one session: those the administrator allows, and the configured one."""

    def __init__(self, loaded: LoadedConfig, settings: TurnSettings) -> None:
        rules = loaded.requirements
        self._allowed = [
            mode for mode in _MODES if mode.sandbox in rules.sandbox_modes and mode.approval in rules.approval_policies
        ]
        self._configured = settings

    def current(self, settings: TurnSettings) -> str:
        """The mode that the settings amount to."""
        return _PLAN if settings.plan else _mode_of(settings)

    def offered(self) -> Sequence[Json]:
        """The modes to choose from."""
        modes: list[Json] = [
            {"id": allowed.id, "name": allowed.name, "description": allowed.description} for allowed in self._allowed
        ]
        settings = self._configured
        if _mode_of(settings) == _CONFIGURED:
            about = f"Sandbox {mode_of(settings.sandbox_policy)}, approvals {approval_name(settings.approval)}"
            modes.insert(0, {"id": _CONFIGURED, "name": "As configured", "description": about})
        return [*modes, _PLANNING]

    def state(self, settings: TurnSettings) -> Json:
        """The modes and the current one, as the answer to opening a session has them."""
        return {"currentModeId": self.current(settings), "availableModes": list(self.offered())}

    def change_to(self, mode: str) -> OverrideTurnContext:
        """The override that changes the mode. Raises `UserError` for a mode that is not offered."""
        if mode == _PLAN:
            return OverrideTurnContext(plan=True)
        if chosen := next((candidate for candidate in self._allowed if candidate.id == mode), None):
            return OverrideTurnContext(sandbox=chosen.sandbox, approval=chosen.approval, plan=False)
        if mode == _CONFIGURED and _mode_of(self._configured) == _CONFIGURED:
            settings = self._configured
            return OverrideTurnContext(sandbox=settings.sandbox_policy, approval=settings.approval, plan=False)
        offered = ", ".join(f"`{candidate['id']}`" for candidate in self.offered())
        raise UserError(f"there is no mode `{mode[:_SHOWN]}`", hint=f"there are {offered}")


def _mode_of(settings: TurnSettings) -> str:
    sandbox, approval = mode_of(settings.sandbox_policy), settings.approval
    return next((mode.id for mode in _MODES if (mode.sandbox, mode.approval) == (sandbox, approval)), _CONFIGURED)


_DEFAULT: Final = "default"


class Options:
    """The options of one session."""

    def __init__(self, loaded: LoadedConfig, modes: Modes) -> None:
        self._config = loaded.config
        self._modes = modes

    def shown(self, settings: TurnSettings) -> list[Json]:
        """All of them, with what is chosen."""
        model, effort = settings.model.model, settings.model.effort
        modes = [
            {"value": mode["id"], "name": mode["name"], "description": mode["description"]}
            for mode in self._modes.offered()
        ]
        return [
            _select("mode", "Mode", self._modes.current(settings), modes),
            _select("model", "Model", model, _values(self._models(model))),
            _select("thought_level", "Reasoning effort", effort or _DEFAULT, _values(self._efforts(effort))),
        ]

    def change(self, option: str, value: object, settings: TurnSettings) -> OverrideTurnContext:
        """The override that sets an option. Raises `UserError` for a value that is not offered."""
        shown = next((choice for choice in self.shown(settings) if choice["id"] == option), None)
        if shown is None:
            raise UserError(
                f"there is no option `{option[:_SHOWN]}`", hint="there are `mode`, `model`, `thought_level`"
            )
        if not isinstance(value, str) or value not in [choice["value"] for choice in shown["options"]]:
            raise UserError(f"`{str(value)[:_SHOWN]}` is no value of the option `{option}`")
        match option:
            case "mode":
                return self._modes.change_to(value)
            case "model":
                return OverrideTurnContext(model=value)
            case _:
                return OverrideTurnContext(effort="" if value == _DEFAULT else value)

    def _models(self, current: str) -> Sequence[str]:
        known = known_models(self._config)
        return known if current in known else (current, *known)

    def _efforts(self, current: str | None) -> Sequence[str]:
        words = (_DEFAULT, *REASONING_EFFORT.words)
        return words if current is None or current in words else (*words, current)


def _select(category: str, title: str, current: str, options: list[Json]) -> Json:
    return {
        "id": category,
        "name": title,
        "category": category,
        "type": "select",
        "currentValue": current,
        "options": options,
    }


def _values(words: Sequence[str]) -> list[Json]:
    return [{"value": word, "name": word} for word in words]

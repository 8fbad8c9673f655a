"""The modes of a session: what it may do and when it asks, under names that clients offer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from codex_py.config.load import LoadedConfig
from codex_py.core.turn_context import TurnSettings
from codex_py.errors import UserError
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.protocol.policy import ApprovalWord, SandboxMode, approval_name, mode_of
from codex_py.server.acp.content import Json

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
    """The modes that one session offers: those the administrator allows, and that of its configuration."""

    def __init__(self, loaded: LoadedConfig, settings: TurnSettings) -> None:
        rules = loaded.requirements
        self._allowed = [
            mode for mode in _MODES if mode.sandbox in rules.sandbox_modes and mode.approval in rules.approval_policies
        ]
        self._configured = settings

    def current(self, settings: TurnSettings) -> str:
        """The mode that the settings are."""
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
        """What makes the session go into a mode. Raises `UserError` for one that it does not offer."""
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

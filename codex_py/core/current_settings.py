"""The settings of a session: those the user has chosen for the next turn, and those that hold now."""

from __future__ import annotations

from collections.abc import Callable

from codex_py.core.turn_context import TurnSettings
from codex_py.protocol.events import SettingsChanged
from codex_py.protocol.ops import OverrideTurnContext
from codex_py.tools.registry import ToolRegistry


class CurrentSettings:
    """`override` gives the settings an op asks for, and other tools where they need them; `offer` takes those."""

    def __init__(
        self,
        first: TurnSettings,
        override: Callable[[OverrideTurnContext, TurnSettings], tuple[TurnSettings, ToolRegistry | None]],
        offer: Callable[[ToolRegistry], None],
    ) -> None:
        self.next = first
        # Those of the running turn, or of the one before.
        self.now = first
        self._override = override
        self._offer = offer
        self._tools: ToolRegistry | None = None

    def change(self, op: OverrideTurnContext) -> SettingsChanged | None:
        """What the user wants from the next turn on; None when it is what holds already. Raises `UserError`."""
        before = self.next
        self.next, tools = self._override(op, before)
        self._tools = tools or self._tools
        return None if self.next == before else self.next.changed_event()

    def take(self) -> TurnSettings:
        """Let what the user has chosen hold now."""
        self.now = self.next.in_force()
        if self._tools is not None:
            self._offer(self._tools)
            self._tools = None
        return self.now

"""The tokens a session has cost, and those of its running turn."""

from __future__ import annotations

from codex_py.protocol.events import UsageReported
from codex_py.protocol.usage import TokenUsage


class TokenCount:
    """Adds up what the provider reports."""

    def __init__(self) -> None:
        self.session = TokenUsage()
        self.turn = TokenUsage()

    def restore(self, usage: TokenUsage) -> None:
        """Go on from what an earlier run has cost."""
        self.session = usage

    def begin_turn(self) -> None:
        self.turn = TokenUsage()

    def note(self, cost: TokenUsage, last: TokenUsage, window: int | None) -> UsageReported:
        """Add a cost; `last` is what the next request takes."""
        self.session += cost
        self.turn += cost
        return UsageReported(last, self.session, window, self.turn)

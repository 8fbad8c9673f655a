"""The tokens a session has used, how full the context is, and whether that is too full."""

from __future__ import annotations

from codex_py.core.history import History
from codex_py.core.turn_context import ModelSettings
from codex_py.protocol.events import UsageReported
from codex_py.protocol.usage import TokenUsage
from codex_py.protocol.value import Value
from codex_py.text.tokens import estimate_tokens


class Fill(Value):
    """Tokens of the next request, and those of its first part: what stood there when this window began."""

    total: int
    prefix: int = 0


class Counted(Value):
    """Tokens of the next request; `measured` says that the provider counted most of them.

    `limit` is how many of them have the history compacted, None for never.
    """

    total: int
    measured: bool
    limit: int | None


def compaction_limit(window: int | None, configured: int | None) -> int | None:
    """Tokens from which on the history is compacted: the user's limit, at most 90 % of the window; None for never."""
    ceiling = None if window is None else window * 9 // 10
    limits = [limit for limit in (ceiling, configured) if limit is not None]
    return min(limits, default=None)


def is_too_full(fill: Fill, settings: ModelSettings) -> bool:
    """Whether the history should be compacted before the next request to this model."""
    configured = settings.auto_compact_tokens
    if settings.auto_compact_scope == "body_after_prefix" and configured is not None:
        ceiling = compaction_limit(settings.context_window, None)
        return fill.total - fill.prefix >= configured or (ceiling is not None and fill.total >= ceiling)
    limit = compaction_limit(settings.context_window, configured)
    return limit is not None and fill.total >= limit


class ContextMeter:
    """Follows the size of a history: the server's last count, and four bytes a token for what came after it."""

    def __init__(self, history: History) -> None:
        self._history = history
        self._counted = 0
        self._covered = 0
        self._prefix: int | None = None

    @property
    def has_count(self) -> bool:
        """Whether the provider has counted this history, or a part of it."""
        return self._counted > 0

    def note_response(self, usage: TokenUsage, covered: int) -> None:
        """Take the server's count, which is that of the first `covered` items. A count of nothing is not one."""
        if usage.total_tokens > 0:
            self._counted, self._covered = usage.total_tokens, covered
            if self._prefix is None:
                self._prefix = usage.input_tokens

    def restart(self) -> None:
        """Forget what was counted: the history was replaced."""
        self._counted = self._covered = 0
        self._prefix = None

    def fill(self, settings: ModelSettings, tools: bytes, *, coming: int = 0) -> Fill:
        """What the next request takes; `coming` is bytes that will be added before it."""
        if self._counted:
            added = self._history.weight_since(self._covered)
            return Fill(self._counted + estimate_tokens(added + coming), self._prefix or 0)
        fixed = len(settings.instructions.encode("utf-8", "surrogatepass")) + len(tools)
        return Fill(estimate_tokens(fixed + self._history.weight_since(0) + coming), self._prefix or 0)


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

"""The conversation of a session: a log of encoded items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from codex_py.protocol.items import Exchange, ResponseItem, ToolCall, call_output, exchange_of
from codex_py.text.tokens import counted_bytes

ABORTED: Final = "aborted"


class History:
    """Appended to, never edited; `replace`, for a compaction and for items that a server refuses, is the one exception.

    `on_record` sees each item as it enters. `window` counts the compactions so far.
    """

    def __init__(self, on_record: Callable[[ResponseItem], None]) -> None:
        self._items: list[ResponseItem] = []
        self._open: list[Exchange] = []
        self._pending_outputs: dict[str, ResponseItem] = {}
        self._on_record = on_record
        # The weight of all items up to each one, so that what was added since is a subtraction.
        self._weights: list[int] = [0]
        self.window = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def items(self) -> tuple[ResponseItem, ...]:
        return tuple(self._items)

    def items_answered(self) -> tuple[ResponseItem, ...]:
        """The items before the first call that has no answer yet."""
        waiting = {call.call_id for call in self._open}
        first = len(self._items)
        for index in range(len(self._items) - 1, -1, -1):
            if not waiting:
                break
            call = exchange_of(self._items[index])
            if call is not None and not call.is_output and call.call_id in waiting:
                waiting.discard(call.call_id)
                first = index
        return tuple(self._items[:first])

    @property
    def encoded(self) -> list[bytes]:
        """The bytes of each item, in order: the `input` of the next request."""
        return [item.encoded for item in self._items]

    def weight_since(self, index: int) -> int:
        """Bytes of the items from an index on, a picture counted for what it costs."""
        return self._weights[-1] - self._weights[min(index, len(self._items))]

    def append(self, *items: ResponseItem) -> None:
        """Add items at the end. An output that no open call waits for is left out: no provider accepts it."""
        for item in items:
            if self._take(item):
                self._on_record(item)

    def load(
        self,
        items: Iterable[ResponseItem],
        *,
        window: int = 0,
        pending_outputs: Mapping[str, ResponseItem] | None = None,
    ) -> None:
        """Load the items of an earlier run, which are on disk already.

        An output whose call was lost is left out, because no provider accepts it. `pending_outputs` has the outputs
        that were known when that run was killed and were not yet in the history.
        """
        self._pending_outputs = dict(pending_outputs or {})
        self.window = window
        for item in items:
            self._take(item)

    def replace(self, items: Iterable[ResponseItem], *, compacted: bool = True) -> None:
        """Start over with these items. `on_record` does not see them."""
        self._items.clear()
        self._open.clear()
        self._weights = [0]
        self.load(items, window=self.window + compacted)

    def close_open_calls(self) -> None:
        """Answer the calls that never ran or never ended, so that the next request is still valid."""
        for call in tuple(self._open):
            aborted = call_output(ToolCall(call.call_id, "", "", custom=call.custom), ABORTED)
            self.append(self._pending_outputs.pop(call.call_id, aborted))

    def _take(self, item: ResponseItem) -> bool:
        """Add an item, unless it is one that may not stand in a request."""
        if not self._note_call(item):
            return False
        self._items.append(item)
        self._weights.append(self._weights[-1] + counted_bytes(item.encoded))
        return True

    def _note_call(self, item: ResponseItem) -> bool:
        """Keep the list of unanswered calls; whether the item may stand in a request."""
        exchange = exchange_of(item)
        if exchange is None:
            return True
        if exchange.is_output:
            return self._answer(exchange.call_id)
        self._open.append(exchange)
        return True

    def _answer(self, call_id: str) -> bool:
        for index, call in enumerate(self._open):
            if call.call_id == call_id:
                del self._open[index]
                return True
        return False

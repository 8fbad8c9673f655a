"""The conversation of a session: a log of encoded items."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from codex_py.protocol.items import Exchange, ResponseItem, ToolCall, call_output, exchange_of

ABORTED: Final = "aborted"


class History:
    """Appended to, never edited. `on_record` sees each item as it enters."""

    def __init__(self, on_record: Callable[[ResponseItem], None]) -> None:
        self._items: list[ResponseItem] = []
        self._open: list[Exchange] = []
        self._on_record = on_record

    @property
    def items(self) -> tuple[ResponseItem, ...]:
        return tuple(self._items)

    @property
    def encoded(self) -> list[bytes]:
        """The bytes of each item, in order: the `input` of the next request."""
        return [item.encoded for item in self._items]

    def append(self, *items: ResponseItem) -> None:
        """Add items at the end. An output that no open call waits for is left out: no provider accepts it."""
        for item in items:
            if self._note_call(item):
                self._items.append(item)
                self._on_record(item)

    def adopt(self, items: Iterable[ResponseItem]) -> None:
        """Take over the items of an earlier run, which are on disk already.

        An output whose call was lost is left out, because no provider accepts it.
        """
        for item in items:
            if self._note_call(item):
                self._items.append(item)

    def close_open_calls(self) -> None:
        """Answer the calls that never ran or never ended, so that the next request is still valid."""
        calls = [ToolCall(call.call_id, "", "", custom=call.custom) for call in self._open]
        self.append(*(call_output(call, ABORTED) for call in calls))

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

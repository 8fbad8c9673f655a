"""The items of a thread that have started and not ended; each is started once and ended once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from codex_py.server.app.items import Item, now_ms

# The one type of item that may outlast its turn.
_OUTLASTS: Final = "commandExecution"


class _Open(NamedTuple):
    """An item, when it started, and its turn, which is also the one it ends in."""

    item: Item
    began: int
    turn_id: str


class OpenItems:
    """Open items by key: the id of a call, or a word for items of which one is open at a time.

    `notify` sends a notification about an item of a turn; `turn_id` gives the running turn.
    """

    def __init__(self, notify: Callable[[str, str, Item, dict[str, Any]], None], turn_id: Callable[[], str]) -> None:
        self._notify = notify
        self._turn_id = turn_id
        self._open: dict[str, list[_Open]] = {}
        # Announced by a question, before the work starts.
        self._pending: set[str] = set()
        # Ended by their question and not by a turn.
        self._held: set[str] = set()

    def get(self, key: str) -> Item | None:
        """The open item with this key; of several the first."""
        opened = self._open.get(key)
        return opened[0].item if opened else None

    def turn_of(self, key: str) -> str:
        """The turn of the item that is open under a key, else the running one."""
        opened = self._open.get(key)
        return opened[0].turn_id if opened else self._turn_id()

    def begin_pending(self, key: str, item: Item, *, keep: bool = False) -> None:
        """Announce an item that the client is asked about before it begins, unless it was announced.

        With `keep` no turn ends it.
        """
        if not self._open.get(key):
            self.begin(key, item)
            (self._held if keep else self._pending).add(key)

    def begin(self, key: str, item: Item) -> None:
        """Notify that an item has started, unless a question has announced it already."""
        if key in self._pending:
            self._pending.discard(key)
            return
        opened = _Open(item, now_ms(), self._turn_id())
        self._open.setdefault(key, []).append(opened)
        stamped = _stamped(item, opened.began, None)
        self._notify("item/started", opened.turn_id, stamped, {"startedAtMs": opened.began})

    def end(self, key: str, item: Item) -> Item:
        """Notify that an item has ended, and first that it started if that was not sent; gives back the item sent."""
        if not self._open.get(key):
            self.begin(key, item)
        self._pending.discard(key)
        self._held.discard(key)
        opened = self._open[key].pop(0)
        if not self._open[key]:
            del self._open[key]
        return self._end(opened, item)

    def end_turn(self, unfinished: Callable[[Item], Item | None]) -> None:
        """End the open items of a turn that has ended, except commands, which may go on.

        Items that were only asked about are declined. `unfinished` gives the final form of the others, None to send
        nothing.
        """
        left, self._open = self._open, {}
        pending, self._pending = self._pending, set()
        for key, opened in left.items():
            for open_item in opened:
                if key in pending:
                    self._end(open_item, {**open_item.item, "status": "declined"})
                elif key in self._held or open_item.item["type"] == _OUTLASTS:
                    self._open.setdefault(key, []).append(open_item)
                elif (item := unfinished(open_item.item)) is not None:
                    self._end(open_item, item)

    def close(self) -> None:
        """End the items that are left: the commands that turns have left running end with the thread."""
        left, self._open = self._open, {}
        for open_item in (open_item for opened in left.values() for open_item in opened):
            self._end(open_item, {**open_item.item, "status": "failed"})

    def _end(self, opened: _Open, item: Item) -> Item:
        now = now_ms()
        stamped = _stamped(item, opened.began, now)
        self._notify("item/completed", opened.turn_id, stamped, {"completedAtMs": now})
        return stamped


def _stamped(item: Item, began: int, ended: int | None) -> Item:
    return {**item, "startedAtMs": began, "completedAtMs": ended}

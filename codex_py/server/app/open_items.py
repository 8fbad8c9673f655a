"""The items of a thread that have begun and not ended: each begins once and ends once."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from codex_py.server.app.items import Item

# Those that end with their turn, whatever became of them; commands may go on after it.
_OUTLASTS: Final = "commandExecution"


class OpenItems:
    """By a key: the id of a call, or a word for what there is one of at a time. `tell` sends a notification."""

    def __init__(self, tell: Callable[[str, Item, dict[str, Any]], None]) -> None:
        self._tell = tell
        self._open: dict[str, list[tuple[Item, int]]] = {}
        # Begun by a question, before the work.
        self._asked: set[str] = set()

    def get(self, key: str) -> Item | None:
        """The item that is open under a key, the one that began first."""
        opened = self._open.get(key)
        return opened[0][0] if opened else None

    def ask(self, key: str, item: Item) -> None:
        """Tell of an item that the client is asked about before it begins, unless it has been told of."""
        if not self._open.get(key):
            self.begin(key, item)
            self._asked.add(key)

    def begin(self, key: str, item: Item) -> None:
        """Tell that an item begins; of one that a question has told of already nothing is told."""
        if key in self._asked:
            self._asked.discard(key)
            return
        now = _now_ms()
        self._open.setdefault(key, []).append((item, now))
        self._tell("item/started", _stamped(item, now, None), {"startedAtMs": now})

    def end(self, key: str, item: Item) -> Item:
        """Tell that an item has ended, and first that it began where nobody has; gives back what was told."""
        if not self._open.get(key):
            self.begin(key, item)
        self._asked.discard(key)
        _, began = self._open[key].pop(0)
        if not self._open[key]:
            del self._open[key]
        now = _now_ms()
        told = _stamped(item, began, now)
        self._tell("item/completed", told, {"completedAtMs": now})
        return told

    def forget(self, key: str) -> None:
        """What was begun under a key never ends."""
        self._open.pop(key, None)

    def end_turn(self) -> None:
        """Forget what its turn leaves behind, but for commands, which may go on."""
        self._asked.clear()
        self._open = {
            key: kept
            for key, opened in self._open.items()
            if (kept := [one for one in opened if one[0]["type"] == _OUTLASTS])
        }


def _stamped(item: Item, began: int, ended: int | None) -> Item:
    return {**item, "startedAtMs": began, "completedAtMs": ended}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000

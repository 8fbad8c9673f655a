"""What comes in beside a running turn: what the user says to it, and what their own commands came to."""

from __future__ import annotations

from collections.abc import Sequence

from codex_py.protocol.input import UserInput
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.value import Value


class Said(Value):
    """What the user said, and the message it makes; None when only skills were picked. `context` goes with it."""

    input: tuple[UserInput, ...]
    message: ResponseItem | None
    context: tuple[ResponseItem, ...] = ()


class LateInput:
    """Waits for the next request in the order it came."""

    def __init__(self) -> None:
        self._waiting: list[Said | ResponseItem] = []

    def add(self, late: Said | ResponseItem) -> None:
        self._waiting.append(late)

    def withdraw(self, item: ResponseItem) -> None:
        """Take an item back, unless somebody has it already."""
        self._waiting = [late for late in self._waiting if late is not item]

    @property
    def wants_answer(self) -> bool:
        """Whether the user has said something the model has not read."""
        return any(isinstance(late, Said) for late in self._waiting)

    def take(self) -> Sequence[Said | ResponseItem]:
        """All of it, which waits no longer."""
        taken, self._waiting = self._waiting, []
        return taken

    def take_items(self) -> list[ResponseItem]:
        """Only what wants no answer."""
        items = [late for late in self._waiting if isinstance(late, ResponseItem)]
        self._waiting = [late for late in self._waiting if isinstance(late, Said)]
        return items

    def take_said(self) -> list[Said]:
        """Only what the user said."""
        said = [late for late in self._waiting if isinstance(late, Said)]
        self._waiting = [late for late in self._waiting if not isinstance(late, Said)]
        return said

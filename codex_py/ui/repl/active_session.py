"""The active session, as the screen and the keys see it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from codex_py.ui.repl.chips import Composed
from codex_py.ui.repl.layout import LayoutParts
from codex_py.ui.repl.menu import MenuSource


class ActiveSession(Protocol):
    """What the active session does for the keys and the screen. Every method returns at once."""

    surroundings: LayoutParts
    sources: Sequence[MenuSource]

    @property
    def cwd(self) -> Path: ...

    def submit(self, message: Composed) -> bool:
        """Take a message or a command; False when it was neither."""
        ...

    def steer(self, message: Composed) -> bool:
        """Send it to the running turn; a command is taken like one that is sent, with the same answer."""
        ...

    def interrupt(self) -> Sequence[Composed] | None:
        """Stop what runs; gives back what was queued, None when nothing ran."""
        ...

    def take_last_queued(self) -> Composed | None:
        """The message queued last, to be changed; None when none is."""
        ...

    def press(self, action: str) -> None:
        """Do what a key stands for, by the name of the action."""
        ...

    def leave(self) -> None:
        """Quit."""
        ...

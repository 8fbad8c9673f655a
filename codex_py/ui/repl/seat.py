"""The session in front, as the screen and the keys see it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from codex_py.ui.repl.chips import Composed
from codex_py.ui.repl.layout import Surroundings
from codex_py.ui.repl.menu import Source


class Seat(Protocol):
    """What a session does for who sits in front of it. Every method returns at once."""

    surroundings: Surroundings
    sources: Sequence[Source]

    @property
    def cwd(self) -> Path: ...

    def submit(self, message: Composed) -> bool:
        """Take a message or a command; False when it was neither."""
        ...

    def steer(self, message: Composed) -> bool:
        """Say it to the running turn; a command is taken like one that is sent, with the same answer."""
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

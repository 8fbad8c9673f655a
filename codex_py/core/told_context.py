"""What the model has been told about where it works, and what it has yet to be told."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from codex_py.context.initial import ContextSnapshot, context_items
from codex_py.core.transcript import Transcript
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.value import Value


class KnownContext(Value):
    """What the model should know at this moment, and what the user should know about that."""

    snapshot: ContextSnapshot
    warnings: tuple[str, ...] = ()


class ToldContext:
    """Remembers what was told last. `look` gives what holds now; `warn` hears what the user should know, once each."""

    def __init__(self, look: Callable[[], KnownContext], transcript: Transcript, warn: Callable[[str], None]) -> None:
        self._look = look
        self._transcript = transcript
        self._warn = warn
        self._told: ContextSnapshot | None = None

    @property
    def told(self) -> ContextSnapshot | None:
        """What was told last; None when nothing was."""
        return self._told

    def inherit(self, told: ContextSnapshot) -> None:
        """Go on from what another session has told, whose items this one begins with."""
        self._told = told
        self._transcript.context_told(told.to_record())

    def take_over(self, world_state: object) -> None:
        """Go on from what an earlier run has told."""
        self._told = ContextSnapshot.from_record(world_state)

    def news(self, append: Callable[[Sequence[ResponseItem]], None]) -> None:
        """Have what the model does not know yet appended: everything at first, later only what changed."""
        now = self._now()
        append(context_items(self._told, now))
        if now != self._told:
            self._transcript.context_told(now.to_record())
        self._told = now

    def coming(self) -> Sequence[ResponseItem]:
        """What `news` would append now."""
        return context_items(self._told, self._now())

    def afresh(self, begin: Callable[[Sequence[ResponseItem]], None]) -> None:
        """Have everything told again, to a history that begins anew."""
        now = self._now()
        begin(context_items(None, now))
        self._transcript.context_told(now.to_record())
        self._told = now

    def _now(self) -> ContextSnapshot:
        known = self._look()
        for warning in known.warnings:
            self._warn(warning)
        return known.snapshot

"""What a turn asks of the hooks of its session. Without hooks nothing of them is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from codex_py.config.hook_files import HookContext, has_hooks
from codex_py.core.listeners import Listeners
from codex_py.core.secrets import Secrets
from codex_py.core.transcript import Transcript
from codex_py.core.turn_context import TurnSettings
from codex_py.core.user_input import PendingInput, PendingMessage, texts_of
from codex_py.errors import CodexError
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.value import Value

if TYPE_CHECKING:
    from codex_py.hooks.session import SessionHooks


def session_hooks(context: HookContext) -> SessionHooks | None:
    """The hooks of a session; None where none are configured."""
    if not has_hooks(context.loaded, home=context.home, cwd=context.cwd):
        return None
    from codex_py.hooks.session import open_hooks  # the seam: only for who has hooks

    return open_hooks(context)


class PromptRefused(CodexError):
    """A hook does not let what the user said reach the model."""


class TurnHooks(Value):
    """What a turn asks of hooks."""

    hooks: SessionHooks | None
    listeners: Listeners
    transcript: Transcript

    def attach(
        self, secrets: Secrets, *, settings: Callable[[], TurnSettings], note: Callable[[ResponseItem], None]
    ) -> None:
        """Let hooks reach the session, before anything else; `note` puts an item into the model's next request."""
        if self.hooks is not None:
            self.hooks.attach(self.listeners, secrets, self.transcript, settings=settings, note=note)

    def begin_turn(self, turn_id: str) -> None:
        """Another turn begins."""
        if self.hooks is not None:
            self.hooks.begin_turn(turn_id)

    async def opening(self) -> Sequence[ResponseItem]:
        """What hooks add to the context of a new session, with its first turn. Raises `PromptRefused`."""
        if self.hooks is None:
            return ()
        items = await self.hooks.begin()
        if self.hooks.halted is not None:
            raise PromptRefused(f"a hook has ended the turn: {self.hooks.halted}")
        return items

    async def admit(self, waiting: Sequence[PendingMessage]) -> Sequence[PendingMessage]:
        """What the user said, with what hooks add to it. Raises `PromptRefused` when they let none of it through."""
        if self.hooks is None:
            return waiting
        refusals: list[str] = []
        admitted: list[PendingMessage] = []
        for message in waiting:
            refusal, context = await self.hooks.admit("\n".join(texts_of(message.input)))
            if refusal is None:
                admitted.append(message.replace(context=tuple(context)))
            else:
                refusals.append(f"the prompt was blocked by a UserPromptSubmit hook and is dropped: {refusal}")
        if refusals and not admitted:
            raise PromptRefused("; ".join(dict.fromkeys(refusals)))
        for refusal in refusals:
            self.listeners.warn(refusal)
        return admitted

    async def admit_pending(
        self, waiting: Sequence[PendingMessage | ResponseItem], pending: PendingInput
    ) -> Sequence[PendingMessage | ResponseItem]:
        """The same for input that arrives during a turn, which goes on whatever hooks say.

        When it is interrupted meanwhile, all of it waits again.
        """
        if self.hooks is None:
            return waiting
        admitted: list[PendingMessage | ResponseItem] = []
        try:
            for item in waiting:
                admitted += [item] if isinstance(item, ResponseItem) else await self._admit_message(item)
        except asyncio.CancelledError:
            for item in waiting:
                pending.add(item)
            raise
        return admitted

    async def _admit_message(self, message: PendingMessage) -> Sequence[PendingMessage]:
        try:
            return await self.admit([message])
        except PromptRefused as refusal:
            self.listeners.warn(str(refusal))
            return ()

    @property
    def has_halted(self) -> bool:
        """Whether a hook has ended all work of the turn."""
        return self.hooks is not None and self.hooks.halted is not None

    async def sent_back(self, last_message: str | None) -> Sequence[ResponseItem]:
        """The model has nothing left to do: what a hook sends it back to work with; nothing when the turn may end."""
        return () if self.hooks is None else await self.hooks.stop(last_message)

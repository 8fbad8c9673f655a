"""The checkpoints of a session over its turns: one is begun when a turn is about to call a tool, beside the model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from codex_py.core.ports import NO_CHECKPOINT, Checkpointer, NoCheckpoints
from codex_py.core.turn_context import TurnContext
from codex_py.protocol.policy import ReadOnly
from codex_py.protocol.status import FilesChanged
from codex_py.shell.reader import Danger


class SessionCheckpoints:
    """`load` makes what takes them, in a thread, once a turn may write; without it there are none. It gets what warns.

    From then on there is one for every turn, so that what the user changes between turns is on record too.
    """

    def __init__(self, load: Callable[[Callable[[str], None]], Checkpointer] | None = None) -> None:
        self.checkpointer: Checkpointer = NoCheckpoints()
        self._warn: Callable[[str], None] = _ignore
        self._load = load
        self._turn: TurnContext | None = None
        self._begun: asyncio.Task[None] | None = None

    def attach(self, warn: Callable[[str], None]) -> None:
        """Let warnings reach the user; `warn` shows each line once."""
        if self._load is not None:
            self._warn = warn

    def begin_turn(self, turn: TurnContext) -> None:
        """Another turn begins. Returns at once."""
        if self._load is not None:
            self._turn, self._begun = turn, None
        if not isinstance(self.checkpointer, NoCheckpoints):
            self.expect_writes()

    def expect_writes(self) -> None:
        """A tool call is on its way: take the checkpoint of the turn, if there is none yet. Returns at once."""
        turn = self._turn
        if self._begun is not None or self._load is None or turn is None:
            return
        if not (turn.plan or isinstance(turn.sandbox_policy, ReadOnly)):
            self._begun = asyncio.create_task(self._begin(turn))

    async def before_write(self, paths: Sequence[Path] = ()) -> None:
        """Return when the state before the turn is on record; `paths` are about to be written."""
        self.expect_writes()
        if self._begun is not None:
            # Shielded, because an interrupted call must not take this from the next one.
            await asyncio.shield(self._begun)
            await self.checkpointer.note_writes(paths)

    async def why_lost(self, danger: Danger) -> str | None:
        """Why what it may take away could not be brought back, as a clause; None when it could."""
        await self.before_write()
        return await self.checkpointer.why_lost(danger) if self._begun is not None else NO_CHECKPOINT

    async def finish_turn(
        self, turn: TurnContext, work: asyncio.Task[str | None], emit: Callable[[FilesChanged], None]
    ) -> str | None:
        """Wait for the work of a turn; then put on record what it has changed, and emit that."""
        try:
            return await work
        finally:
            if work.done() and turn.parent is None and self._begun is not None:
                begun, self._turn, self._begun = self._begun, None, None
                await begun
                if changed := await self.checkpointer.end():
                    emit(changed)

    async def _begin(self, turn: TurnContext) -> None:
        if isinstance(self.checkpointer, NoCheckpoints) and self._load is not None:
            loop, warn = asyncio.get_running_loop(), self._warn
            # They work in threads, and events belong to the loop's.
            self.checkpointer = await asyncio.to_thread(
                self._load, lambda message: loop.call_soon_threadsafe(warn, message) and None
            )
        await self.checkpointer.begin(turn)


def _ignore(message: str) -> None:
    pass

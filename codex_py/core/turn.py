"""One turn: from a user's message to the model having nothing left to do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from codex_py.core.sampling import Sampler
from codex_py.protocol.usage import TokenUsage


@dataclass(slots=True)
class Turn:
    """`note_usage` hears what each response cost, after the outputs of its calls are recorded."""

    sampler: Sampler
    note_usage: Callable[[TokenUsage], None]

    async def run(self) -> str | None:
        """Sample and run tools until a response asks for nothing; return that response's message."""
        while True:
            answer = await self.sampler.sample()
            if answer.usage is not None:
                self.note_usage(answer.usage)
            if not answer.wants_more:
                return answer.message

"""The `write_stdin` tool: typing into a command that was left running, or looking at what it has printed."""

from __future__ import annotations

from typing import Final

from codex_py.protocol.items import ToolCall
from codex_py.tools.spec import Tool, ToolContext, ToolOutput, TypedText

MIN_POLL_MS: Final = 5_000
MAX_POLL_MS: Final = 300_000


class WriteStdin(Tool):
    """`max_poll_ms` bounds how long a look without typing may wait."""

    name = "write_stdin"
    type = "runs"
    polls = True
    hook_view = TypedText("chars")

    def __init__(self, *, max_poll_ms: int = MAX_POLL_MS) -> None:
        self._poll_ms = (MIN_POLL_MS, max(max_poll_ms, MIN_POLL_MS))

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Type, wait until the command ends or the time is over, and answer with the new output.

        The answer that tells the exit code is the last: the session ID is unknown from then on.
        """
        from codex_py.tools.typed_input import type_and_wait

        return await type_and_wait(self.read(call), context, self._poll_ms)

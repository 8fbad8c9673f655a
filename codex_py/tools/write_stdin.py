"""The `write_stdin` tool: typing into a command that was left running, and looking at what it printed since."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

from codex_py.errors import ToolError
from codex_py.process.session import RunningCommand
from codex_py.protocol.encoding import decode_json
from codex_py.protocol.events import CommandInput
from codex_py.protocol.items import ToolCall
from codex_py.tools.command_line import read_text
from codex_py.tools.exec_command import MAX_YIELD_MS, MIN_YIELD_MS
from codex_py.tools.exec_output import compose_reply, standing_of
from codex_py.tools.spec import ToolContext, ToolOutput
from codex_py.tools.typed_input import check_plan, note_typed, permit_input

MIN_POLL_MS: Final = 5_000
MAX_POLL_MS: Final = 300_000

_CTRL_C: Final = "\x03"
_FAILED: Final = "write_stdin failed"


class WriteStdin:
    """`max_poll_ms` bounds how long a look without typing may wait."""

    name = "write_stdin"
    parallel = False
    polls = True

    def __init__(self, *, max_poll_ms: int = MAX_POLL_MS) -> None:
        self._max_poll_ms = max(max_poll_ms, MIN_POLL_MS)

    def spec(self) -> dict[str, Any]:
        """The JSON shown to the model."""
        return decode_json((Path(__file__).parent / "write_stdin.json").read_bytes())

    async def run(self, call: ToolCall, context: ToolContext) -> ToolOutput:
        """Type, wait until the command ends or the time is over, and answer with the new output.

        The answer that tells the exit code is the last: the session ID is unknown from then on.
        """
        arguments = read_text(call)
        session = _live(arguments.session_id, context)
        check_plan(arguments.chars, session, context)
        if arguments.chars and session.tty:
            await permit_input(arguments.chars, session, context)
        context.emit(CommandInput(session.call_id, session.line, arguments.chars))
        began = time.monotonic()
        if arguments.chars:
            _type(session, arguments.chars)
            note_typed(arguments.chars, session)
        await session.wait(self._patience(arguments.chars, arguments.yield_time_ms))
        reply = compose_reply(
            session.take(),
            standing=standing_of(session.exit_code, session.id),
            seconds=time.monotonic() - began,
            max_tokens=arguments.max_output_tokens,
            cap=context.output_tokens,
        )
        if session.exit_code is not None:
            context.processes.forget(session)
        return ToolOutput(reply)

    def _patience(self, chars: str, requested_ms: int | None) -> float:
        least, most = (MIN_YIELD_MS, MAX_YIELD_MS) if chars else (MIN_POLL_MS, self._max_poll_ms)
        return max(least, min(requested_ms or 0, most)) / 1000


def _live(session_id: int, context: ToolContext) -> RunningCommand:
    try:
        return context.processes.get(session_id)
    except ToolError as error:
        raise ToolError(f"{_FAILED}: {error}") from error


def _type(session: RunningCommand, chars: str) -> None:
    if not chars.strip(_CTRL_C) and not session.tty:
        session.interrupt()
    elif session.exit_code is None:
        try:
            session.write(chars.encode("utf-8", "replace"))
        except ToolError as error:
            raise ToolError(f"{_FAILED}: {error}") from error

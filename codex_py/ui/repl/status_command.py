"""A status line of the user's own: a command whose first line of output is shown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Final

from codex_py.errors import UserError
from codex_py.protocol import events
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.policy import ReadOnly
from codex_py.services.single_command import SandboxCommand, SingleCommand
from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.launch import LaunchContext

_SECONDS: Final = 2.0
_MAX_BYTES: Final = 4096
_COLOR: Final = re.compile(r"\x1b\[[0-9;:]*[mK]")
_TIMED_OUT: Final = 124


class StatusCommand:
    """A listener of a session: the command runs at its beginning, after each turn and when settings change.

    It runs in a read-only sandbox, for two seconds at most, with what `facts` gives as JSON on its input. `show` gets
    its line, and why there is none.
    """

    def __init__(
        self,
        command: str,
        launch: LaunchContext,
        facts: Callable[[], Mapping[str, object]],
        show: Callable[[str], None],
    ) -> None:
        self._command = command
        self._launch = launch
        self._facts = facts
        self._show = show
        self._wanted = asyncio.Event()
        self._wanted.set()

    def note_event(self, event: events.Event) -> None:
        """Run it again when there is something else to show."""
        ends = events.TurnCompleted | events.TurnFailed | events.TurnInterrupted
        if isinstance(event, ends | events.SettingsChanged | events.UsageReported):
            self._wanted.set()

    async def run(self) -> None:
        """Run it whenever that is wanted, until this is cancelled."""
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            self._show(await self._line())

    async def _line(self) -> str:
        launch = self._launch
        request = SandboxCommand(
            ("/bin/sh", "-c", self._command), launch.cwd, ReadOnly(), seconds=_SECONDS, cap=_MAX_BYTES, typed=True
        )
        command = SingleCommand(launch.loaded, request)
        facts = encode_json(dict(self._facts()))
        writing = asyncio.create_task(command.write(facts + b"\n", end=True))
        try:
            result = await command.run(launch.home, launch.env)
        except UserError as error:
            return f"status line: {error}"
        finally:
            writing.cancel()
        if result.exit_code == _TIMED_OUT:
            return f"status line: no answer within {_SECONDS:g} s"
        if result.exit_code:
            return f"status line: exit {result.exit_code}"
        first, *_ = result.stdout.decode(errors="replace").split("\n", 1)
        return sanitize_line(_COLOR.sub("", first)).strip()

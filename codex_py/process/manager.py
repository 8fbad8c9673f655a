"""The live commands of one session."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from codex_py.errors import ToolError
from codex_py.process.env import WithheldEnv
from codex_py.process.profiles import LoginProfiles
from codex_py.process.session import RunningCommand
from codex_py.process.spawn import CommandSpec, start_child
from codex_py.process.sweep import MARKER, Watchdog, command_marker, kill_marked, marking, new_prefix, set_watch

MAX_LIVE = 64
_RECENT = 8
_STOP_SECONDS = 2.0
_FIRST_ID, _LAST_ID = 1000, 99999


class ProcessManager:
    """The table of live commands of one session: at most 64, none outlives `kill_all`.

    `profiles` is what is known of the session's login shells, which bring back nothing that is `withheld`.
    `home` is our own directory.
    """

    def __init__(self, withheld: WithheldEnv | None = None, home: Path | None = None) -> None:
        self.profiles = LoginProfiles(self.run, withheld, home)
        self._withheld = withheld
        self._home = home
        self._live: dict[int, RunningCommand] = {}
        self._straying: list[RunningCommand] = []
        self._mark = new_prefix()
        self._started = 0
        self._needs_sweep = False
        self._watchdog: Watchdog | None = None

    def empty(self) -> ProcessManager:
        """A table for another session with the same settings."""
        return ProcessManager(self._withheld, self._home)

    async def start(self, spec: CommandSpec) -> RunningCommand:
        """Start a command and enter it in the table; raise `ToolError` when it cannot start.

        When 64 are live, one gives way: of all but the 8 used last the one that has already ended, else the one
        unused for longest.
        """
        self._started += 1
        marker = command_marker(self._mark, self._started)
        try:
            # Again after each wait: others may have started meanwhile.
            while len(self._live) >= MAX_LIVE:
                await self.close(self._least_needed())
            if not spec.sandboxed:
                self._watch_over_daemons()
            with marking(marker):
                child = start_child(spec, {MARKER: marker})
        except BaseException:
            spec.discard()
            raise
        spec.close_fds()
        session = RunningCommand(self._free_id(), spec, child, marker=marker)
        self._live[session.id] = session
        return session

    async def run(self, spec: CommandSpec, seconds: float) -> RunningCommand:
        """Run a command of the program's own to its end; after `seconds` it is killed. Its output is dropped."""
        session = await self.start(spec)
        try:
            if await session.wait(seconds):
                return session
        finally:
            # A process that it left, such as an agent for keys, lives as long as those of other commands.
            if session.exit_code is not None:
                self.forget(session)
            else:
                await self.close(session)
        return session

    def get(self, session_id: int) -> RunningCommand:
        """The live command with this id; raise `ToolError` when there is none."""
        session = self._live.get(session_id)
        if session is None:
            raise ToolError(f"Unknown process id {session_id}: its command has ended, or there never was one")
        return session

    def forget(self, session: RunningCommand) -> None:
        """Remove a command whose end was reported from the table."""
        self._live.pop(session.id, None)
        session.let_go()
        self._straying = [stray for stray in self._straying if stray.lingers]
        if session.lingers:
            self._straying.append(session)

    async def close(self, session: RunningCommand) -> None:
        """Kill a command with all it started, and reap it."""
        self._live.pop(session.id, None)
        session.kill()
        if not session.sandboxed:
            kill_marked(session.marker)
        await session.close()

    def live(self) -> list[RunningCommand]:
        """The commands that still run, the oldest first."""
        return sorted(
            (session for session in self._live.values() if session.exit_code is None),
            key=lambda session: session.started,
        )

    def take_ended(self) -> list[RunningCommand]:
        """The commands that have ended since the last call, and whose end was not reported."""
        ended = [
            session for session in self._live.values() if session.exit_code is not None and not session.end_reported
        ]
        for session in ended:
            session.end_reported = True
        return ended

    async def stop(self, session: RunningCommand) -> None:
        """Kill a command and its processes for the user. It stays in the table, because its end may be awaited."""
        session.stopped_by_user = True
        session.kill()
        if not session.sandboxed:
            kill_marked(session.marker)
        await session.wait(_STOP_SECONDS)

    async def kill_all(self) -> None:
        """Kill and reap every command with all it started, what it left in the background included."""
        sessions = [*self._live.values(), *self._straying]
        self._live.clear()
        self._straying.clear()
        for session in sessions:
            session.kill()
        if self._needs_sweep:
            kill_marked(self._mark)
            self._needs_sweep = False
        if self._watchdog is not None:
            self._watchdog.dismiss()
            self._watchdog = None
        await asyncio.gather(*(session.close() for session in sessions))

    def _watch_over_daemons(self) -> None:
        if not self._needs_sweep:
            self._needs_sweep = True
            self._watchdog = set_watch(self._mark)

    def _least_needed(self) -> RunningCommand:
        by_use = sorted(self._live.values(), key=lambda session: session.last_used)
        candidates = by_use[:-_RECENT]
        return next((session for session in candidates if session.exit_code is not None), candidates[0])

    def _free_id(self) -> int:
        while True:
            chosen = _FIRST_ID + int.from_bytes(os.urandom(4), "big") % (_LAST_ID - _FIRST_ID + 1)
            if chosen not in self._live:
                return chosen

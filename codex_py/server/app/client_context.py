"""The state that all requests of one client share: its name, its threads, and their event translators."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.core.session_skills import skill_rules
from codex_py.protocol import events
from codex_py.protocol.ops import ReloadSkills
from codex_py.server.app.client_questions import ClientQuestions
from codex_py.server.app.event_translator import EventTranslator
from codex_py.server.app.settings import settings_payload
from codex_py.server.messages import Params, RpcError
from codex_py.server.peer import AppServerPeer
from codex_py.server.pipes import complain
from codex_py.server.threads import LiveThread, Opening, ServerHostProtocol, Threads
from codex_py.services.single_command import SingleCommand
from codex_py.services.skill_admin import SkillWatch

_LOOK_SECONDS: Final = 1.0
_SHOWN: Final = 80
_FIRST_PARTY: Final = frozenset({"codex_cli_rs", "codex-tui", "codex_vscode"})


class MethodResult(NamedTuple):
    """The result of a request. `follow_up` runs after it is sent; `opened_thread` is the thread it has opened."""

    result: Mapping[str, Any]
    follow_up: Callable[[], Awaitable[None] | None] | None = None
    opened_thread: str | None = None


def page_of(entries: Sequence[Any], params: Params, *, max_size: int, size: int) -> dict[str, Any]:
    """The entries that `cursor` and `limit` ask for, by default `size`, and the next cursor. Raises `RpcError`."""
    cursor = params.text_or_none("cursor") or "0"
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise RpcError(f"invalid cursor: `{cursor[:_SHOWN]}`")
    end = int(cursor) + (params.integer("limit", maximum=max_size) or size)
    return {"data": entries[int(cursor) : end], "nextCursor": str(end) if end < len(entries) else None}


class ClientContext:
    """One client. `name` is the client's for itself, empty until it has introduced itself.

    `extra_roots` are more directories of skills; `commands` are the client's own running commands, by its ids for them.
    """

    def __init__(
        self, host: ServerHostProtocol, connection: AppServerPeer, report_crash: Callable[[BaseException], str]
    ) -> None:
        self.host: Final = host
        self.connection: Final = connection
        self.threads: Final = Threads(host, report_crash)
        self._report_crash = report_crash
        self.name = ""
        self.extra_roots: tuple[Path, ...] = ()
        self.commands: dict[str, SingleCommand] = {}
        self._translators: dict[str, EventTranslator] = {}
        self._skills = SkillWatch(host.home, host.env)
        self._watching: asyncio.Task[None] | None = None
        self._looking = asyncio.Lock()

    def live(self, thread_id: str) -> LiveThread:
        """The live thread with this id. Raises `RpcError`."""
        thread = self.threads.get(thread_id.lower())
        if thread is None:
            raise RpcError(f"thread not found: {thread_id[:_SHOWN]}")
        return thread

    def translator(self, thread: LiveThread) -> EventTranslator:
        """The translator of a live thread's events."""
        return self._translators[thread.id]

    async def open(self, opening: Opening) -> LiveThread:
        """Open a thread. No event is sent before its translator is released. Raises `UserError`."""
        thread = await self.threads.open(opening, self._make_listener)
        if self.extra_roots:
            thread.session.skills.use_extra_roots(self.extra_roots)
        return thread

    async def watch_skills(self) -> None:
        """Notify the client from now on when the skills of a live thread change on disk."""
        await self._look_at_skills()
        if self._watching is None:
            self._watching = asyncio.create_task(self._keep_looking())
            self._watching.add_done_callback(self._note_unwatched)

    async def close_thread(self, thread: LiveThread) -> None:
        """End a thread, and notify the client."""
        await thread.close()
        if (translator := self._translators.pop(thread.id, None)) is not None:
            translator.close()
        status = {"threadId": thread.id, "status": {"type": "notLoaded"}}
        self.connection.notify("thread/status/changed", status)

    async def use_extra_roots(self, roots: tuple[Path, ...]) -> None:
        """Also search these directories for skills, in all sessions."""
        self.extra_roots = roots
        for thread in self.threads:
            thread.session.skills.use_extra_roots(roots)

    async def use_skill_rules(self) -> None:
        """Apply the configuration's current rules for skills to all sessions."""
        for thread in self.threads:
            loaded = await asyncio.to_thread(self.host.load, thread.opening.cwd, thread.opening.settings)
            thread.session.skills.use_rules(skill_rules(loaded))

    async def reload_skills(self) -> None:
        """Have all sessions reload their skills with their next turn."""
        for thread in self.threads:
            await thread.session.submit(ReloadSkills())

    async def close(self) -> None:
        """End every thread in order."""
        if self._watching is not None:
            self._watching.cancel()
        await self.threads.close_all()
        for translator in self._translators.values():
            translator.close()

    def _make_listener(self, thread: LiveThread) -> Callable[[events.Event], None]:
        translator = self._translators[thread.id] = EventTranslator(
            thread.id,
            self.connection.notify,
            lambda: settings_payload(thread.session.settings, thread.loaded.config),
        )
        translator.hold_back()
        # Only OpenAI's own clients may be asked to install the MCP servers that a skill needs.
        installs = self.name in _FIRST_PARTY or self.name.startswith("Codex ")
        questions = ClientQuestions(self.connection, translator, installs=installs)

        def hear(event: events.Event) -> None:
            translator(event)
            questions.note_event(thread, event)

        return hear

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            await self._look_at_skills()

    def _note_unwatched(self, watching: asyncio.Task[None]) -> None:
        if not watching.cancelled() and (error := watching.exception()) is not None:
            complain(f"warning: changes of skills are no longer noticed: {self._report_crash(error)}")

    async def _look_at_skills(self) -> None:
        async with self._looking:
            directories = {thread.session.settings.cwd: thread.loaded for thread in self.threads}
            looks = [
                await asyncio.to_thread(self._skills.has_changed, cwd, loaded, self.extra_roots)
                for cwd, loaded in directories.items()
            ]
        if any(looks):
            self.connection.notify("skills/changed", {})

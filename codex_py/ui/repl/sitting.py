"""A session that has its seat: what the keys and the screen want of it, put together from its parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from prompt_toolkit.formatted_text import StyleAndTextTuples

from codex_py.errors import UserError
from codex_py.render.lines import to_fragments
from codex_py.render.message import render_queued
from codex_py.ui.repl.chips import Composed
from codex_py.ui.repl.commands import COMMANDS
from codex_py.ui.repl.commands.prompts import commands_now
from codex_py.ui.repl.completion import CommandSource, SkillSource, invocable
from codex_py.ui.repl.conversation import Conversation
from codex_py.ui.repl.desk import Desk, Quit
from codex_py.ui.repl.files import FileSource
from codex_py.ui.repl.layout import Surroundings
from codex_py.ui.repl.live import Live
from codex_py.ui.repl.menu import Source
from codex_py.ui.repl.notify import Notices
from codex_py.ui.repl.slash import Command, find_command, looks_like_command
from codex_py.ui.repl.status import StatusKeeper
from codex_py.ui.repl.tasks import SideTasks

_MOST_QUEUED: Final = 3


class Parts:
    """What a sitting is made of."""

    def __init__(
        self, desk: Desk, conversation: Conversation, live: Live, *, status: StatusKeeper, notices: Notices
    ) -> None:
        self.desk = desk
        self.conversation = conversation
        self.live = live
        self.status = status
        self.notices = notices


class Sitting:
    """The seat of a session. `remember` keeps what was typed; `actions` are set when it is seated."""

    def __init__(
        self,
        parts: Parts,
        *,
        tasks: SideTasks,
        remember: Callable[[str], None],
        refresh: Callable[[], None],
    ) -> None:
        self._parts = parts
        self._tasks = tasks
        self._remember = remember
        self.actions: Mapping[str, Callable[[], object]] = {}
        desk = parts.desk
        self.sources: Sequence[Source] = (
            CommandSource(self._commands, desk.catalog),
            SkillSource(desk.catalog),
            FileSource(lambda: desk.cwd, refresh),
        )
        self.surroundings = Surroundings(
            live=parts.live.rows,
            has_live=lambda: not parts.live.is_empty,
            is_working=lambda: not parts.live.is_empty,
            queued=self._queued,
            has_queued=lambda: bool(parts.conversation.queue or parts.conversation.steered),
            status=self._status,
        )

    @property
    def cwd(self) -> Path:
        return self._parts.desk.cwd

    def submit(self, message: Composed) -> bool:
        text = message.text.strip()
        if text.startswith("!") and text[1:].strip():
            self._remember(text)
            self._parts.conversation.shell(text[1:].strip())
            return True
        if (asked := find_command(text, self._commands())) is not None:
            if self._parts.conversation.is_busy and not asked.command.while_running:
                self._parts.desk.voice.fail(f"`/{asked.command.name}` has to wait for the end of the turn")
                return False
            self._remember(text)
            self._run(asked.command.run(self._parts.desk, asked.words))
            return True
        skill_message = self._skill_alias(message)
        if skill_message is None:
            return False
        self._remember(text)
        self._parts.conversation.say(skill_message)
        return True

    def steer(self, message: Composed) -> None:
        if message.text.startswith(("/", "!")):
            self.submit(message)
            return
        self._remember(message.text)
        self._parts.conversation.steer(message)

    def interrupt(self) -> Sequence[str] | None:
        if not self._parts.conversation.can_be_stopped:
            return None
        return [message.typed for message in self._parts.conversation.interrupt()]

    def take_last_queued(self) -> str | None:
        last = self._parts.conversation.take_last_queued()
        return last.typed if last else None

    def press(self, action: str) -> None:
        if act := self.actions.get(action):
            act()

    def leave(self) -> None:
        self._parts.desk.front.leave(Quit())

    def note_focus(self, *, has_focus: bool) -> None:
        self._parts.notices.has_focus = has_focus

    def run_command(self, name: str) -> None:
        """Run a command that a key stands for."""
        command = next(one for one in COMMANDS if one.name == name)
        self._run(command.run(self._parts.desk, ""))

    def _commands(self) -> Sequence[Command]:
        return commands_now(self._parts.desk.session.mcp)

    def _run(self, work: Awaitable[None]) -> None:
        async def carried_out() -> None:
            try:
                await work
            except UserError as error:
                self._parts.desk.voice.fail(str(error), hint=error.hint)

        self._tasks.start(carried_out())

    def _skill_alias(self, message: Composed) -> Composed | None:
        """A message `/skill-name …` mentions that skill; None for a command that there is not."""
        text = message.text.strip()
        if not looks_like_command(text):
            return message
        name, _, rest = text[1:].partition(" ")
        found = next((skill for skill in invocable(self._parts.desk.catalog()) if skill.name == name), None)
        if found is None:
            self._parts.desk.voice.fail(f"there is no command or skill `/{name}`", hint="`/help` lists them")
            return None
        return message.mentioning(f"${name} {rest}".strip(), found.name, found.path)

    def _queued(self, width: int) -> StyleAndTextTuples:
        conversation = self._parts.conversation
        rows: StyleAndTextTuples = []
        waiting = [*conversation.steered, *conversation.queue]
        theme = self._parts.live.theme()
        for message in waiting[:_MOST_QUEUED]:
            for row in to_fragments(render_queued(message.typed), width=width, theme=theme)[:1]:
                rows += [*row, ("", "\n")]
        if len(waiting) > _MOST_QUEUED:
            rows.append(("class:dim", f"  and {len(waiting) - _MOST_QUEUED} more\n"))
        return rows[:-1] if rows and rows[-1][1] == "\n" else rows

    def _status(self, width: int) -> StyleAndTextTuples:
        busy = self._parts.conversation.is_busy
        return self._parts.status.fragments(width, hint="Enter queues · Ctrl-S steers" if busy else "? help")

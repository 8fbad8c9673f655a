"""A session that has its seat: what the keys and the screen want of it, put together from its parts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from prompt_toolkit.formatted_text import StyleAndTextTuples

from codex_py.config.keymap import resolve_keys, shown_key
from codex_py.errors import UserError
from codex_py.render.lines import to_fragments
from codex_py.render.message import render_queued
from codex_py.ui.repl.chips import Composed
from codex_py.ui.repl.commands import COMMANDS
from codex_py.ui.repl.commands.prompts import commands_now
from codex_py.ui.repl.completion import (
    SHELL,
    CommandSource,
    ShellSource,
    SkillSource,
    shell_command,
    skill_alias,
    unknown_command,
)
from codex_py.ui.repl.conversation import Conversation
from codex_py.ui.repl.desk import Desk, Quit
from codex_py.ui.repl.files import FileSource
from codex_py.ui.repl.layout import Surroundings
from codex_py.ui.repl.live import Live
from codex_py.ui.repl.menu import Source
from codex_py.ui.repl.slash import Command, find_command, looks_like_command, words_unwanted
from codex_py.ui.repl.status import StatusKeeper
from codex_py.ui.repl.tasks import SideTasks

_MOST_QUEUED: Final = 3


class Parts:
    """What a sitting is made of."""

    def __init__(self, desk: Desk, conversation: Conversation, live: Live, *, status: StatusKeeper) -> None:
        self.desk = desk
        self.conversation = conversation
        self.live = live
        self.status = status


class Sitting:
    """The seat of a session. `remember` keeps what was typed and `typed_before` gives it back, the latest first;
    `actions` are set when it is seated.
    """

    def __init__(
        self,
        parts: Parts,
        *,
        tasks: SideTasks,
        remember: Callable[[str], None],
        typed_before: Callable[[], Sequence[str]],
        refresh: Callable[[], None],
    ) -> None:
        self._parts = parts
        self._tasks = tasks
        self._remember = remember
        self.actions: Mapping[str, Callable[[], object]] = {}
        desk = parts.desk
        keys, _ = resolve_keys(desk.place.tui.keymap)
        told = (("submit", "queues"), ("steer", "steers"))
        self._busy_hint = " · ".join(f"{shown_key(keys[name][0])} {does}" for name, does in told if keys[name])
        files = FileSource(lambda: desk.cwd, desk.programs, refresh)
        if desk.place.loaded.project_root is not None:
            tasks.start(files.prepare())
        self.sources: Sequence[Source] = (
            CommandSource(self._commands, desk.catalog),
            SkillSource(desk.catalog),
            files,
            ShellSource(typed_before),
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
        if text.startswith(SHELL):
            return self._run_shell(text)
        if (asked := find_command(text, self._commands())) is not None:
            if self._parts.conversation.is_busy and not asked.command.while_running:
                self._parts.desk.voice.fail(f"`/{asked.command.name}` has to wait for the end of the turn")
                return False
            if complaint := words_unwanted(asked):
                self._parts.desk.voice.fail(complaint)
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

    def steer(self, message: Composed) -> bool:
        if message.text.startswith(SHELL) or looks_like_command(message.text):
            return self.submit(message)
        self._remember(message.text)
        self._parts.conversation.steer(message)
        return True

    def interrupt(self) -> Sequence[Composed] | None:
        return self._parts.conversation.interrupt() if self._parts.conversation.can_be_stopped else None

    def take_last_queued(self) -> Composed | None:
        return self._parts.conversation.take_last_queued()

    def press(self, action: str) -> None:
        if act := self.actions.get(action):
            act()

    def leave(self) -> None:
        self._parts.desk.front.leave(Quit())

    def run_command(self, name: str) -> None:
        """Run a command that a key stands for."""
        command = next(one for one in COMMANDS if one.name == name)
        self._run(command.run(self._parts.desk, ""))

    def _commands(self) -> Sequence[Command]:
        return commands_now(self._parts.desk.session.mcp)

    def _run_shell(self, text: str) -> bool:
        try:
            command = shell_command(text)
        except UserError as error:
            self._parts.desk.voice.fail(str(error), hint=error.hint)
            return False
        self._remember(text)
        self._parts.conversation.shell(command)
        return True

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
        found = skill_alias(text, self._parts.desk.catalog())
        if found is None:
            complaint, hint = unknown_command(text, self._commands(), self._parts.desk.catalog())
            self._parts.desk.voice.fail(complaint, hint=hint)
            return None
        skill, mentioning = found
        return message.mentioning(mentioning, skill.name, skill.path)

    def _queued(self, width: int) -> StyleAndTextTuples:
        conversation = self._parts.conversation
        rows: StyleAndTextTuples = []
        steers = len(conversation.steered)
        waiting = [*conversation.steered, *conversation.queue]
        theme = self._parts.live.theme()
        for number, message in enumerate(waiting[:_MOST_QUEUED]):
            entry = render_queued(message.typed, steers=number < steers)
            for row in to_fragments(entry, width=width, theme=theme)[:1]:
                rows += [*row, ("", "\n")]
        if len(waiting) > _MOST_QUEUED:
            rows += [("class:dim", f"  and {len(waiting) - _MOST_QUEUED} more"), ("", "\n")]
        return rows[:-1] if rows and rows[-1][1] == "\n" else rows

    def _status(self, width: int) -> StyleAndTextTuples:
        is_busy = self._parts.conversation.is_busy
        # That of an idle session stands in the empty input too.
        return self._parts.status.fragments(width, hint=self._busy_hint if is_busy else "? help", is_needed=is_busy)

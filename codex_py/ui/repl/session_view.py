"""The active session as the keys and the screen see it, with its status line."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from prompt_toolkit.formatted_text import StyleAndTextTuples

from codex_py.config.tui import format_key, resolve_keys
from codex_py.core.session import Session
from codex_py.core.session_file import read_git_state
from codex_py.errors import UserError
from codex_py.protocol import events
from codex_py.protocol.policy import mode_of
from codex_py.protocol.usage import context_share
from codex_py.render.entry import to_fragments
from codex_py.render.message import render_queued
from codex_py.render.status import Status, fill_status, status_segments
from codex_py.text.display import cut_to_cells
from codex_py.ui.repl.chips import Composed
from codex_py.ui.repl.commands import COMMANDS, commands_now
from codex_py.ui.repl.files import FileSource
from codex_py.ui.repl.input import Composer
from codex_py.ui.repl.layout import LayoutParts
from codex_py.ui.repl.live import Live
from codex_py.ui.repl.menu import MenuSource
from codex_py.ui.repl.named_skills import NamedSkills, mentions_refused, settle_mentions
from codex_py.ui.repl.slash_command import CommandContext, Quit, SlashCommand, SlashRequest, looks_like_command
from codex_py.ui.repl.turns import MessageQueue, SideTasks
from codex_py.ui.repl.typed_line import (
    SHELL,
    CommandSource,
    MessageLine,
    NoteLine,
    ShellLine,
    ShellSource,
    SkillLine,
    SkillSource,
    add_note,
    read_line,
)

_MIN_WIDTH_FOR_HINT: Final = 60


class StatusKeeper:
    """A listener of a session, for its status line; `home` is shown as `~`."""

    def __init__(self, session: Session, home: Path | None) -> None:
        self._session = session
        self._home = home
        # The calls whose commands go on in the background.
        self._running: set[str] = set()
        self._filled: float | None = None
        self._tokens = 0
        # What is shown in place of the usual line: a template, or what a command has printed.
        self.template = ""
        self.own: str | None = None
        self._branch = self._cost = ""
        self.look_at_branch()

    def note_event(self, event: events.Event) -> None:
        """Note what changes the status."""
        match event:
            case events.SessionStarted(resumed=count) if count:
                use = self._session.context_use()
                self._filled = use.total / use.window if use.window else None
                self._tokens = self._session.spending.session.total_tokens
                costs = self._session.spending.costs().session
                self._cost = costs.in_words() if costs.requests else ""
            case events.UsageReported(last, total, window, costs=costs):
                self._tokens = total.total_tokens
                self._filled = context_share(last, window)
                self._cost = costs.session.in_words()
            case events.CommandDetached(call_id):
                self._running.add(call_id)
            case events.CommandFinished(call_id):
                self._running.discard(call_id)
                self.look_at_branch()
            case events.SettingsChanged() | events.TurnCompleted():
                self.look_at_branch()
            case _:
                pass

    def look_at_branch(self) -> None:
        """Read the branch again: a command may have changed it."""
        git = read_git_state(self._session.settings.cwd)
        self._branch = (git.branch if git else None) or ""

    def now(self) -> Status:
        """The current content of the status line."""
        settings = self._session.settings
        return Status(
            model=settings.model.model,
            effort=settings.model.effort,
            cwd=settings.cwd,
            sandbox=mode_of(settings.sandbox_policy),
            context_left=None if self._filled is None else 1 - self._filled,
            branch=self._branch,
            plan=settings.plan,
            running=len(self._running),
            home=self._home,
            cost=self._cost,
        )

    def facts(self) -> Mapping[str, object]:
        """The same for a command of the user's."""
        now = self.now()
        left = None if now.context_left is None else round(max(0.0, now.context_left), 3)
        return {
            "session_id": self._session.thread_id,
            "model": now.model,
            "effort": now.effort,
            "cwd": str(now.cwd),
            "branch": now.branch,
            "sandbox": now.sandbox,
            "context_left": left,
            "running": now.running,
            "tokens": self._tokens,
            "cost": now.cost,
        }

    def _own_segments(self, available: int) -> list[tuple[str, str]]:
        """The user's own line; none where there is nothing to show."""
        own = fill_status(self.template, self.now(), self._tokens) if self.template else self.own
        return [(cut_to_cells(own, max(1, available)), "status")] if own else []

    def fragments(self, width: int, *, hint: str = "", is_needed: bool = True) -> StyleAndTextTuples:
        """The line, with a hint at its end if it fits; a needed one replaces segments of the line."""
        available = width - 2 - (len(hint) + 2 if is_needed and width >= _MIN_WIDTH_FOR_HINT else 0)
        segments = self._own_segments(available) or status_segments(self.now(), max(1, available))
        shown: StyleAndTextTuples = [("", "  "), *((f"class:{style}", text) for text, style in segments)]
        used = 2 + sum(len(text) for text, _ in segments)
        if hint and width - used > len(hint) + 2:
            shown.append(("class:menu.note", " " * (width - used - len(hint) - 1) + hint))
        return shown if width > 2 else []


_MAX_QUEUED: Final = 3


class ViewServices:
    """The services a session view is built from."""

    def __init__(
        self, context: CommandContext, conversation: MessageQueue, live: Live, *, status: StatusKeeper
    ) -> None:
        self.context = context
        self.conversation = conversation
        self.live = live
        self.status = status


class SessionView:
    """The view of one session. `actions` are set when the view is built."""

    def __init__(self, services: ViewServices, composer: Composer, *, tasks: SideTasks) -> None:
        self._services = services
        self._composer = composer
        self._tasks = tasks
        self.actions: Mapping[str, Callable[[], object]] = {}
        context = services.context
        keys, _ = resolve_keys(context.launch.tui.keymap)
        hints = (("submit", "queues"), ("steer", "steers"))
        self._busy_hint = " · ".join(f"{format_key(keys[name][0])} {does}" for name, does in hints if keys[name])
        files = FileSource(lambda: context.cwd, context.programs, composer.refresh_menu)
        if context.launch.loaded.project_root is not None:
            tasks.start(files.prepare())
        self.sources: Sequence[MenuSource] = (
            CommandSource(self._commands, context.catalog, context.look_again),
            SkillSource(context.catalog, context.look_again),
            files,
            ShellSource(composer.history.latest_first),
        )
        natural_names = context.launch.loaded.config.skills.natural_names
        self.named = NamedSkills(composer, context.catalog, natural_names)
        self.surroundings = LayoutParts(
            live=services.live.rows,
            has_live=lambda: not services.live.is_empty,
            is_working=lambda: not services.live.is_empty,
            queued=self._queued,
            has_queued=lambda: bool(services.conversation.queue or services.conversation.steered),
            status=self._status,
            named=self.named.fragments,
            has_named=lambda: self.named.is_shown,
        )

    @property
    def cwd(self) -> Path:
        return self._services.context.cwd

    def submit(self, message: Composed) -> bool:
        text = message.text.strip()
        context, conversation = self._services.context, self._services.conversation
        try:
            line = read_line(text, self._commands(), context.catalog())
            if isinstance(line, SlashRequest) and conversation.is_busy and not line.command.while_running:
                raise UserError(f"`/{line.command.name}` has to wait for the end of the turn")
        except UserError as error:
            context.output.fail(str(error), hint=error.hint)
            return False
        self._remember(text)
        match line:
            case ShellLine(command):
                conversation.shell(command)
            case NoteLine(note):
                self._run(self._add_note(message, note))
            case SlashRequest():
                self._run(line.command.run(context, line.words))
            case SkillLine(skill, mentioning):
                self._deliver(message.mentioning(mentioning, skill.name, skill.path), conversation.send)
            case MessageLine():
                self._deliver(message, conversation.send)
        return True

    def steer(self, message: Composed) -> bool:
        if message.text.startswith(SHELL) or looks_like_command(message.text):
            return self.submit(message)
        self._remember(message.text)
        self._deliver(message, self._services.conversation.steer)
        return True

    def _deliver(self, message: Composed, send: Callable[[Composed], None]) -> None:
        """Send a message at once, or hold it back until it is known what it mentions."""
        context = self._services.context

        async def ask() -> None:
            settled = await settle_mentions(context.asker, message, refused, context.show_path)
            if settled is None:
                self._composer.put_back([message])
            else:
                send(settled)

        if refused := mentions_refused(context.session, message):
            self._tasks.start(ask())
        else:
            send(message)

    async def _add_note(self, message: Composed, note: str) -> None:
        if not await add_note(self._services.context, note):
            self._deliver(message, self._services.conversation.send)

    def _remember(self, text: str) -> None:
        self._composer.history.add(text, session_id=self._services.context.session.thread_id)

    def interrupt(self) -> Sequence[Composed] | None:
        return self._services.conversation.interrupt() if self._services.conversation.can_be_stopped else None

    def take_last_queued(self) -> Composed | None:
        return self._services.conversation.take_last_queued()

    def press(self, action: str) -> None:
        if act := self.actions.get(action):
            act()

    def leave(self) -> None:
        self._services.context.front.leave(Quit())

    def run_command(self, name: str) -> None:
        """Run a command that a key stands for."""
        command = next(command for command in COMMANDS if command.name == name)
        self._run(command.run(self._services.context, ""))

    def _commands(self) -> Sequence[SlashCommand]:
        return commands_now(self._services.context)

    def _run(self, work: Awaitable[None]) -> None:
        async def run_and_report() -> None:
            try:
                await work
            except UserError as error:
                self._services.context.output.fail(str(error), hint=error.hint)

        self._tasks.start(run_and_report())

    def _queued(self, width: int) -> StyleAndTextTuples:
        conversation = self._services.conversation
        rows: StyleAndTextTuples = []
        steers = len(conversation.steered)
        waiting = [*conversation.steered, *conversation.queue]
        theme = self._services.live.theme()
        for number, message in enumerate(waiting[:_MAX_QUEUED]):
            entry = render_queued(message.typed, steers=number < steers)
            for row in to_fragments(entry, width=width, theme=theme)[:1]:
                rows += [*row, ("", "\n")]
        if len(waiting) > _MAX_QUEUED:
            rows += [("class:dim", f"  and {len(waiting) - _MAX_QUEUED} more"), ("", "\n")]
        return rows[:-1] if rows and rows[-1][1] == "\n" else rows

    def _status(self, width: int) -> StyleAndTextTuples:
        is_busy = self._services.conversation.is_busy
        # That of an idle session stands in the empty input too.
        return self._services.status.fragments(width, hint=self._busy_hint if is_busy else "? help", is_needed=is_busy)

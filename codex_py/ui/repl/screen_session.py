"""A session on a screen that is drawn: its events go to the scrollback, its input and status are below."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from codex_py.core.session import Session
from codex_py.protocol import events
from codex_py.protocol.events import Event
from codex_py.protocol.ops import AnswerQuestion, Begin, ImageInput, Op
from codex_py.render.entry import Flow, ScrollbackEntry
from codex_py.render.event import render_answer, render_event, render_notice
from codex_py.render.status import banner_lines
from codex_py.render.theme import Theme
from codex_py.render.transcript import recent_turns, render_items
from codex_py.rollout.transcript import shown_messages
from codex_py.text.display import counted
from codex_py.ui.repl.actions import Actions
from codex_py.ui.repl.app import FrontEnd
from codex_py.ui.repl.chips import Chips, Composed
from codex_py.ui.repl.commands.settings import warn_of_unknown_model
from codex_py.ui.repl.launch import LaunchContext, LaunchHost, LaunchOptions
from codex_py.ui.repl.live import Live
from codex_py.ui.repl.panels.askers import PanelAsker
from codex_py.ui.repl.panels.questions import QuestionQueue
from codex_py.ui.repl.screen import TerminalScreen
from codex_py.ui.repl.session_loop import SessionLoop, session_banner
from codex_py.ui.repl.session_view import SessionView, StatusKeeper, ViewServices
from codex_py.ui.repl.slash_command import CommandContext, Destination, Quit
from codex_py.ui.repl.status_command import StatusCommand
from codex_py.ui.repl.terminal import Notices
from codex_py.ui.repl.turns import MessageQueue, PlanKeeper, SideTasks


class Printer:
    """The output sink of a session on a screen."""

    def __init__(self, screen: TerminalScreen, theme: Callable[[], Theme], cwd: Path) -> None:
        self._screen = screen
        self._flow = Flow()
        self._theme = theme
        # Paths below it are shown from there.
        self.cwd = cwd

    def note(self, text: str) -> None:
        self.show(render_notice(text))

    def fail(self, message: str, *, hint: str | None = None) -> None:
        self.show(render_notice(message, "error", hint=hint))

    def show(self, entry: ScrollbackEntry) -> None:
        self._screen.print_above(self._flow.lines(entry, width=self._screen.width, theme=self._theme()))

    def show_lines(self, lines: Sequence[str]) -> None:
        """Show what is drawn already."""
        self._screen.print_above(["", *lines] if self._flow.gap_before(ScrollbackEntry()) else lines)

    def event(self, event: Event, *, expanded: bool = False) -> None:
        entry = render_event(event, expanded=expanded, cwd=self.cwd)
        if entry is not None:
            self.show(entry)


_TURNS_SHOWN_AGAIN: Final = 5
_MAX_SHOWN_AGAIN: Final = 400


class ScreenSessions(SessionLoop):
    """The sessions of one run on a screen."""

    def __init__(self, front: FrontEnd, host: LaunchHost) -> None:
        self._front = front
        self._printer = Printer(front.screen, lambda: front.theme, front.launch.cwd)
        super().__init__(host, front.launch, PanelAsker(front.panels.show, self._badge), self._printer)
        self._questions: QuestionQueue | None = None

    async def run_program(self, argv: Sequence[str]) -> int:
        return await self._front.run_program(argv)

    def put_back(self, text: str) -> None:
        self._front.composer.set_text(text)

    def use(self, launch: LaunchContext) -> None:
        self._front.launch = self.launch = launch

    async def run_session(self, session: Session) -> Destination:
        next_destination: asyncio.Future[Destination] = asyncio.get_running_loop().create_future()
        front = _SessionFront(self._front, next_destination)
        context = CommandContext(
            *(self.launch, session),
            asker=self.asker,
            output=self._printer,
            front=front,
            rewinds=self.host.rewinds,
        )
        async with asyncio.TaskGroup() as tasks:
            live = self._live()
            conversation = MessageQueue(
                session, self._printer, live, tasks=tasks, changed=lambda: self._working_changed(conversation, live)
            )
            front.begin_with(conversation)
            side = SideTasks(tasks)
            view = self._build_view(context, conversation, live, side)
            await session.submit(Begin())
            self._show_again(session)
            self._front.controls.set_session(view)
            side.start(warn_of_unknown_model(context))
            options = self.take_options()
            if options.prompt or options.images:
                conversation.send(_first_message(options))
            destination = await next_destination
            self._front.controls.set_session(None)
            side.cancel()
            conversation.interrupt()
        if isinstance(destination, Quit) and len(session.history) and not self.host.is_ephemeral:
            self._printer.note(f"go on with this session: codex-py resume {session.thread_id}")
        self._front.controls.leaving = session.interrupt
        return destination

    def _build_view(
        self, context: CommandContext, conversation: MessageQueue, live: Live, side: SideTasks
    ) -> SessionView:
        """Build the view of a session and its services, and subscribe them to the session."""
        session, composer, screen = context.session, self._front.composer, self._front.screen
        status = StatusKeeper(session, self._user_home)
        status.template = self.launch.tui.status_line
        if command := self.launch.tui.status_command:
            self._run_status_command(command, status, session, side)
        notices = Notices(self.launch.tui, self.launch.env, screen.emit, lambda: self._front.controls.has_focus)
        view = SessionView(ViewServices(context, conversation, live, status=status), composer, tasks=side)
        actions = Actions(
            context,
            composer,
            tasks=side,
            look=lambda: (screen.width, self._front.theme),
            run_command=view.run_command,
        )
        view.actions = actions.by_name()
        # Ctrl-C in a question stops the turn that asks.
        questions = self._questions = QuestionQueue(
            PanelAsker(self._front.panels.show, self._badge, self._front.controls.interrupt),
            lambda question, value: session.submit(AnswerQuestion(question, value)),
            is_typing=self._is_typing,
            home=context.user_home,
            theme=lambda: self._front.theme,
            on_answered=lambda text, answers: self._printer.show(render_answer(text, answers)),
        )
        side.start(questions.run())
        plans = PlanKeeper(
            self.asker,
            conversation.begin,
            side,
            is_typing=self._is_typing,
            has_more=lambda: bool(conversation.queue),
        )

        def note_asking(event: events.Event) -> None:
            if isinstance(event, events.QuestionRaised | events.QuestionClosed):
                self._working_changed(conversation, live)

        listeners: tuple[Callable[[events.Event], None], ...] = (
            partial(self._greet, context),
            context.note_event,
            status.note_event,
            questions.note_event,
            conversation.note_event,
            actions.note_event,
            plans.note_event,
            notices,
            note_asking,
        )
        for listener in listeners:
            session.subscribe(listener)
        return view

    def _run_status_command(self, command: str, status: StatusKeeper, session: Session, side: SideTasks) -> None:
        def show(line: str) -> None:
            status.own = line
            self._front.screen.draw_soon()

        own = StatusCommand(command, self.launch, status.facts, show)
        session.subscribe(own.note_event)
        side.start(own.run())

    def _live(self) -> Live:
        live = Live(
            self._printer,
            lambda: self._front.theme,
            lambda: self._front.screen.draw_soon(live.take_in),
            animated=self.launch.tui.animations,
            hides_reasoning=self.launch.loaded.config.hide_agent_reasoning,
        )
        return live

    def _is_typing(self) -> bool:
        return bool(self._front.composer.text)

    def _badge(self) -> str:
        waiting = self._front.panels.waiting + (self._questions.waiting if self._questions else 0)
        return f"{waiting} more" if waiting > 0 else ""

    @property
    def _user_home(self) -> Path | None:
        home = self.launch.env.get("HOME")
        return Path(home) if home else None

    def _greet(self, context: CommandContext, event: events.Event) -> None:
        if not isinstance(event, events.SessionStarted):
            return
        banner = session_banner(context, event)
        self._printer.show_lines(banner_lines(banner, width=self._front.screen.width, theme=self._front.theme))

    def _show_again(self, session: Session) -> None:
        """The last turns of a resumed session, and how many came before."""
        cwd = session.settings.cwd
        recent = recent_turns(session.history.items, cwd=cwd, max_turns=_TURNS_SHOWN_AGAIN)
        if recent.left_out:
            turns = counted(recent.left_out, "earlier turn")
            self._printer.note(f"{turns} not shown; Ctrl-T shows all of the session")
        shown = shown_messages(session.rollout) if session.rollout else {}
        entries = list(islice(render_items(recent.items, cwd=cwd, shown=shown), 10_000))
        for entry in entries[-_MAX_SHOWN_AGAIN:]:
            self._printer.show(entry)

    def _working_changed(self, conversation: MessageQueue, live: Live) -> None:
        self._front.note_working(working=conversation.is_busy, asking=live.is_asking)
        self._front.screen.draw()


def _first_message(options: LaunchOptions) -> Composed:
    message = Chips().compose(options.prompt)
    if options.shown:
        message = message.shown_as(options.shown)
    pictures = tuple(ImageInput(path) for path in options.images)
    return message.replace(inputs=(*pictures, *message.inputs))


class _SessionFront:
    """The services of the front end for the commands of one session."""

    def __init__(self, front: FrontEnd, next_destination: asyncio.Future[Destination]) -> None:
        self._front = front
        self._next_destination = next_destination
        self._conversation: MessageQueue | None = None
        self.set_theme = front.set_theme
        self.run_program = front.run_program
        self.interrupt = front.controls.interrupt
        self.emit = front.screen.emit

    def begin_with(self, conversation: MessageQueue) -> None:
        self._conversation = conversation

    def leave(self, destination: Destination) -> None:
        if not self._next_destination.done():
            self._next_destination.set_result(destination)

    def send_message(self, text: str, *, typed: str = "") -> None:
        if self._conversation is not None:
            message = Chips().compose(text)
            self._conversation.send(message.shown_as(typed) if typed else message)

    def begin(self, op: Op) -> None:
        if self._conversation is not None:
            self._conversation.begin(op)

    def insert_skill(self, name: str, path: Path, prompt: str) -> None:
        self._front.composer.insert_skill(name, path, prompt=prompt)

    def set_vim(self, *, on: bool) -> None:
        self._front.set_vim(on=on)

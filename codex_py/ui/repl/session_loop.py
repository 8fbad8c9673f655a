"""The loop over sessions: open one, print its events to the scrollback, and go on to the next one the user chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from codex_py.core.build import open_session
from codex_py.core.session import Session
from codex_py.errors import LoginNeeded, UserError
from codex_py.programs import is_over_ssh
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
from codex_py.ui.repl.first_run import reach_a_model
from codex_py.ui.repl.launch import LaunchHost, LaunchOptions
from codex_py.ui.repl.live import Live
from codex_py.ui.repl.opening import EarlySession, banner_of
from codex_py.ui.repl.panels.askers import PanelAsker
from codex_py.ui.repl.panels.questions import QuestionQueue
from codex_py.ui.repl.screen import TerminalScreen
from codex_py.ui.repl.session_start import describe_resumed, first_destination, settle_start, way_back
from codex_py.ui.repl.session_view import SessionView, StatusKeeper, ViewServices
from codex_py.ui.repl.slash_command import CommandContext, Destination, OpenSession, Quit
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

    def begin_below(self) -> None:
        """Note that something stands there already."""
        self._flow.gap_before(ScrollbackEntry())

    def event(self, event: Event, *, expanded: bool = False) -> None:
        entry = render_event(event, expanded=expanded, cwd=self.cwd)
        if entry is not None:
            self.show(entry)


_TURNS_SHOWN_AGAIN: Final = 5
_MAX_SHOWN_AGAIN: Final = 400


class SessionLoop:
    """The sessions of one run of the program, one after the other."""

    def __init__(self, front: FrontEnd, host: LaunchHost, early: EarlySession | None) -> None:
        self._front = front
        self._host = host
        self._launch = front.launch
        self._options = LaunchOptions()
        self._printer = Printer(front.screen, lambda: front.theme, front.launch.cwd)
        self._asker = PanelAsker(front.panels.show, self._badge)
        self._questions: QuestionQueue | None = None
        # The first session, where it is open already.
        self._early = early
        if early is not None and early.has_begun:
            self._printer.begin_below()

    async def run(self, options: LaunchOptions) -> None:
        """Until the user quits. Raise `UserError` when the first session cannot be opened."""
        self._options = options
        settled = await settle_start(self._asker, self._host, self._front.launch)
        if settled is None:
            return
        self._front.launch = self._launch = settled
        destination = await first_destination(self._asker, self._launch, options)
        before: OpenSession | None = None
        while isinstance(destination, OpenSession):
            try:
                destination = await self._rewound(destination)
                async with self._early or open_session(self._host.prepare(self._launch, destination.target)) as session:
                    destination = await self._run_session(session)
                    before = way_back(session, is_ephemeral=self._host.is_ephemeral)
                    self._front.controls.leaving = session.interrupt
            except UserError as error:
                self._early = None
                if isinstance(error, LoginNeeded):
                    destination = await self._set_up(destination)
                elif before is None:
                    raise
                else:
                    self._printer.fail(str(error), hint=error.hint)
                    destination, before = before, None

    async def _rewound(self, destination: OpenSession) -> OpenSession:
        """Rewind the session that is opened next, where that is wanted; its message returns into the input."""
        if destination.draft:
            self._front.composer.set_text(destination.draft)
        target, request = destination.target, destination.rewind
        if target is None or request is None or target.thread_id is None:
            return destination
        rewound = await asyncio.to_thread(self._host.rewinds().rewind, target.thread_id, request)
        self._printer.note("\n".join(rewound.lines))
        if rewound.message:
            self._front.composer.set_text(rewound.message)
        return OpenSession(target)

    async def _set_up(self, destination: Destination) -> Destination:
        """There is no model to ask yet."""
        over_ssh = is_over_ssh(self._launch.env)
        run_program = self._front.run_program
        if not await reach_a_model(self._asker, self._host, self._launch, run_program, over_ssh=over_ssh):
            return Quit()
        self._front.launch = self._launch = self._host.read_context()
        return destination

    async def _run_session(self, session: Session) -> Destination:
        """One session, until it is left."""
        next_destination: asyncio.Future[Destination] = asyncio.get_running_loop().create_future()
        front = _SessionFront(self._front, next_destination)
        context = CommandContext(
            *(self._launch, session),
            asker=self._asker,
            output=self._printer,
            front=front,
            rewinds=self._host.rewinds,
        )
        async with asyncio.TaskGroup() as tasks:
            live = self._live()
            conversation = MessageQueue(
                session, self._printer, live, tasks=tasks, changed=lambda: self._working_changed(conversation, live)
            )
            front.begin_with(conversation)
            side = SideTasks(tasks)
            has_begun = self._early is not None
            view = self._build_view(context, conversation, live, side)
            if not has_begun:
                await session.submit(Begin())
            self._show_again(session)
            self._front.controls.set_session(view)
            side.start(warn_of_unknown_model(context))
            if self._options.prompt or self._options.images:
                conversation.send(self._first_message())
            destination = await next_destination
            self._front.controls.set_session(None)
            side.cancel()
            conversation.interrupt()
        if isinstance(destination, Quit) and len(session.history) and not self._host.is_ephemeral:
            self._printer.note(f"go on with this session: codex-py resume {session.thread_id}")
        return destination

    def _build_view(
        self, context: CommandContext, conversation: MessageQueue, live: Live, side: SideTasks
    ) -> SessionView:
        """Build the view of a session and its services, and subscribe them to the session."""
        session, composer, screen = context.session, self._front.composer, self._front.screen
        status = StatusKeeper(session, self._user_home)
        status.template = self._launch.tui.status_line
        if command := self._launch.tui.status_command:
            self._run_status_command(command, status, session, side)
        notices = Notices(self._launch.tui, self._launch.env, screen.emit, lambda: self._front.controls.has_focus)
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
            self._asker,
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
        self._subscribe(session, listeners)
        return view

    def _subscribe(self, session: Session, listeners: Sequence[Callable[[Event], None]]) -> None:
        """Have the listeners hear the session, and what it has said already. The first one greets."""
        for listener in listeners:
            session.subscribe(listener)
        early, self._early = self._early, None
        for event in early.take_events() if early else ():
            # The greeting is on the screen.
            for listener in listeners[1:]:
                listener(event)

    def _run_status_command(self, command: str, status: StatusKeeper, session: Session, side: SideTasks) -> None:
        def show(line: str) -> None:
            status.own = line
            self._front.screen.draw_soon()

        own = StatusCommand(command, self._launch, status.facts, show)
        session.subscribe(own.note_event)
        side.start(own.run())

    def _live(self) -> Live:
        live = Live(
            self._printer,
            lambda: self._front.theme,
            lambda: self._front.screen.draw_soon(live.take_in),
            animated=self._launch.tui.animations,
            hides_reasoning=self._launch.loaded.config.hide_agent_reasoning,
        )
        return live

    def _is_typing(self) -> bool:
        return bool(self._front.composer.text)

    def _badge(self) -> str:
        waiting = self._front.panels.waiting + (self._questions.waiting if self._questions else 0)
        return f"{waiting} more" if waiting > 0 else ""

    @property
    def _user_home(self) -> Path | None:
        home = self._launch.env.get("HOME")
        return Path(home) if home else None

    def _greet(self, context: CommandContext, event: events.Event) -> None:
        if not isinstance(event, events.SessionStarted):
            return
        resumed = describe_resumed(context, event)
        banner = banner_of(event, context.session, context.user_home, resumed=resumed)
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

    def _first_message(self) -> Composed:
        message = Chips().compose(self._options.prompt)
        if self._options.shown:
            message = message.shown_as(self._options.shown)
        pictures = tuple(ImageInput(path) for path in self._options.images)
        self._options = LaunchOptions()
        return message.replace(inputs=(*pictures, *message.inputs))

    def _working_changed(self, conversation: MessageQueue, live: Live) -> None:
        self._front.note_working(working=conversation.is_busy, asking=live.is_asking)
        self._front.screen.draw()


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

"""The terminal session in plain lines: for a terminal that cannot be drawn on, for pipes, and for screen readers.

Nothing is ever redrawn: each event is printed once, in words, and input is read line by line.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import termios
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from pathlib import Path
from typing import Final

from codex_py.core.session import Session
from codex_py.errors import LoginNeeded, UserError
from codex_py.protocol import events
from codex_py.protocol.ops import AnswerQuestion, Begin, ImageInput, Op, SkillInput, TextInput, UserShell, UserTurn
from codex_py.render.entry import ScrollbackEntry, to_lines
from codex_py.render.plain import PlainPrinter
from codex_py.render.status import banner_lines
from codex_py.render.theme import Theme
from codex_py.text.sanitize import sanitize, without_styles
from codex_py.ui.repl.commands import commands_now
from codex_py.ui.repl.launch import LaunchContext, LaunchHost, LaunchOptions
from codex_py.ui.repl.panels.askers import LineAsker
from codex_py.ui.repl.panels.questions import QuestionQueue
from codex_py.ui.repl.session_loop import SessionLoop, session_banner
from codex_py.ui.repl.slash_command import CommandContext, Destination, Quit, SlashRequest
from codex_py.ui.repl.typed_line import MessageLine, NoteLine, ShellLine, SkillLine, add_note, read_line

_MONO: Final = Theme("mono", "none")
_WIDTH: Final = 80
_QUIT_SECONDS: Final = 2.0
_STATUS: Final = {signal.SIGTERM: 143, signal.SIGHUP: 129}


def run_in_lines(host: LaunchHost, launch: LaunchContext, options: LaunchOptions) -> int:
    """Go through sessions until the input ends or the user quits; the exit status."""
    return asyncio.run(_run(host, launch, options))


async def _run(host: LaunchHost, launch: LaunchContext, options: LaunchOptions) -> int:
    talk = _Talk()
    loop = asyncio.get_running_loop()
    for number, status in _STATUS.items():
        loop.add_signal_handler(number, talk.end, status)
    loop.add_signal_handler(signal.SIGINT, talk.interrupt)
    await _LineSessions(talk, host, launch).run(options)
    return talk.status


class _Talk:
    """The lines that come in, and those that go out."""

    def __init__(self) -> None:
        self.status = 0
        self.on_interrupt: Callable[[], bool] = lambda: False
        self._lines: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._ended = False
        self._quit_pressed_at = -_QUIT_SECONDS
        # A thread of its own, which nobody waits for: a read of a terminal cannot be taken back.
        threading.Thread(target=self._read_on, daemon=True).start()

    async def read(self, prompt: str, hidden: bool = False) -> str | None:
        """The next line, None at the end of the input. A hidden one is not shown while it is typed."""
        if self._ended:
            return None
        with _unseen() if hidden else contextlib.nullcontext():
            self._put(prompt)
            line = await self._lines.get()
        if hidden:
            self._put("\n")
        self._ended = line is None
        return line

    def write(self, text: str) -> None:
        """Print sanitized text, one line or more."""
        self._put(sanitize(text) + "\n")

    def fail(self, message: str, *, hint: str | None = None) -> None:
        """Print an error."""
        self.write(f"error: {message}" + (f"; {hint}" if hint else ""))

    def interrupt(self) -> None:
        """Ctrl-C: what runs stops; with nothing to stop, the second one in a row leaves."""
        if self.on_interrupt():
            return
        if time.monotonic() - self._quit_pressed_at < _QUIT_SECONDS:
            self.end(130)
            return
        self._quit_pressed_at = time.monotonic()
        self.write("\npress Ctrl-C again to quit")

    def end(self, status: int) -> None:
        """Leave."""
        self.status = status
        self._lines.put_nowait(None)
        self.on_interrupt()

    async def run_program(self, argv: Sequence[str]) -> int:
        """Run a program on the terminal; its status, 127 when it cannot be started."""
        try:
            process = await asyncio.create_subprocess_exec(*argv)
        except (OSError, ValueError):
            return 127
        return await process.wait()

    def _read_on(self) -> None:
        with contextlib.suppress(RuntimeError):
            for line in sys.stdin:
                self._loop.call_soon_threadsafe(self._lines.put_nowait, line.rstrip("\r\n"))
            self._loop.call_soon_threadsafe(self._lines.put_nowait, None)

    @staticmethod
    def _put(text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(sys.stdout.fileno(), text.encode(errors="replace"))


class _LineSessions(SessionLoop):
    """The sessions of one run, in lines."""

    def __init__(self, talk: _Talk, host: LaunchHost, launch: LaunchContext) -> None:
        super().__init__(host, launch, LineAsker(talk.read, talk.write), _LineOutput(talk))
        self._talk = talk

    async def run_program(self, argv: Sequence[str]) -> int:
        return await self._talk.run_program(argv)

    async def run_session(self, session: Session) -> Destination:
        return await _LineSession(self._talk, self, session).run(self.take_options())

    async def set_up(self, error: LoginNeeded) -> bool:
        if not (sys.stdin.isatty() and await super().set_up(error)):
            raise error
        return True


class _LineOutput:
    def __init__(self, talk: _Talk) -> None:
        self._talk = talk
        self._print_whole = PlainPrinter(talk.write)
        self._print = PlainPrinter(talk.write, brief=True)

    def note(self, text: str) -> None:
        self._talk.write(text)

    def fail(self, message: str, *, hint: str | None = None) -> None:
        self._talk.fail(message, hint=hint)

    def show(self, entry: ScrollbackEntry) -> None:
        self._talk.write(_bare(to_lines(entry, width=_WIDTH, theme=_MONO)))

    def event(self, event: events.Event, *, expanded: bool = False) -> None:
        (self._print_whole if expanded else self._print)(event)


class _LineSession:
    """One session, and the front end of its commands."""

    def __init__(self, talk: _Talk, sessions: SessionLoop, session: Session) -> None:
        self._talk = talk
        self._session = session
        self._destination: Destination | None = None
        self._waiting: list[Op] = []
        self._running: asyncio.Task[None] | None = None
        asker, self._output = sessions.asker, sessions.output
        self._context = CommandContext(
            sessions.launch, session, asker=asker, output=self._output, front=self, rewinds=sessions.host.rewinds
        )
        self._questions = QuestionQueue(asker, lambda question, value: session.submit(AnswerQuestion(question, value)))
        self.run_program = talk.run_program

    async def run(self, options: LaunchOptions) -> Destination:
        """Until it is left, or the input ends."""
        for listener in (self._greet, self._context.note_event, self._questions.note_event, self._output.event):
            self._session.subscribe(listener)
        self._talk.on_interrupt = self._interrupt
        asking = asyncio.create_task(self._questions.run())
        try:
            await self._session.submit(Begin())
            if options.prompt or options.images:
                pictures = tuple(ImageInput(path) for path in options.images)
                self.begin(UserTurn((*pictures, TextInput(options.prompt))))
            while self._destination is None:
                while self._waiting:
                    await self._run_op(self._waiting.pop(0))
                await self._next_line()
        finally:
            asking.cancel()
            self._talk.on_interrupt = lambda: False
        return self._destination

    def leave(self, destination: Destination) -> None:
        self._destination = destination

    def send_message(self, text: str, *, typed: str = "") -> None:
        self.begin(UserTurn((TextInput(text),)))

    def begin(self, op: Op) -> None:
        self._waiting.append(op)

    def interrupt(self) -> None:
        """Commands are read between turns here."""

    def insert_skill(self, name: str, path: Path, prompt: str) -> None:
        self._output.note(f"to use it, write ${name} in your message")

    def set_theme(self, name: str) -> None:
        """Nothing is drawn here."""

    def set_vim(self, *, on: bool) -> None:
        """Lines are edited by the terminal."""

    def emit(self, sequence: str) -> None:
        """A terminal that cannot be drawn on gets no escape sequences."""

    async def _next_line(self) -> None:
        line = await self._talk.read("> " if sys.stdin.isatty() else "")
        if line is None:
            self._destination = Quit()
        elif line.strip():
            await self._report_errors(self._take_line("/help" if line.strip() == "?" else line))

    async def _take_line(self, line: str) -> None:
        context = self._context
        match read_line(line.strip(), commands_now(context), context.catalog()):
            case ShellLine(command):
                self.begin(UserShell(command))
            case NoteLine(note):
                if not await add_note(context, note):
                    self.send_message(line)
            case SlashRequest() as request:
                await request.command.run(context, request.words)
            case SkillLine(skill, text):
                self.begin(UserTurn((SkillInput(skill.name, skill.path), TextInput(text))))
            case MessageLine():
                self.send_message(line)

    async def _run_op(self, op: Op) -> None:
        self._running = asyncio.create_task(self._report_errors(self._session.submit(op)))
        try:
            await self._running
        finally:
            self._running = None

    async def _report_errors(self, work: Awaitable[None]) -> None:
        try:
            await work
        except UserError as error:
            self._output.fail(str(error), hint=error.hint)

    def _interrupt(self) -> bool:
        if self._running is None:
            return False
        self._session.interrupt()
        return True

    def _greet(self, event: events.Event) -> None:
        if isinstance(event, events.SessionStarted):
            banner = session_banner(self._context, event)
            self._talk.write(_bare(banner_lines(banner, width=_WIDTH, theme=_MONO)))


def _bare(lines: Sequence[str]) -> str:
    """Lines without weight and slant, which are escape sequences too."""
    return "\n".join(without_styles(line) for line in lines)


@contextlib.contextmanager
def _unseen() -> Generator[None]:
    """Nothing that is typed is shown; where the input is no terminal, nothing is anyway."""
    try:
        before = termios.tcgetattr(sys.stdin.fileno())
    except (termios.error, OSError, ValueError):
        yield
        return
    quiet = [*before]
    quiet[3] = before[3] & ~termios.ECHO
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, quiet)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)

"""`exec`: one turn without anybody at the keyboard, from a prompt to an exit status."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from codex_py.core.session import Session
from codex_py.errors import UserError
from codex_py.exec.human import HumanPrinter
from codex_py.exec.jsonl import JsonlPrinter
from codex_py.protocol import events
from codex_py.protocol.input import ImageInput, TextInput
from codex_py.protocol.ops import UserTurn
from codex_py.protocol.value import Value
from codex_py.text.sanitize import sanitize

_EXIT_STATUS: Final = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class ExecRequest(Value):
    """What one run is asked to do and where its results go."""

    prompt: str
    version: str
    images: tuple[Path, ...] = ()
    output_schema: dict[str, Any] | None = None
    last_message_file: Path | None = None
    json_lines: bool = False
    color: Literal["auto", "always", "never"] = "auto"
    hide_reasoning: bool = False


@dataclass(slots=True)
class _Outcome:
    """What became of the turn, as the events told it."""

    completed: bool = False
    last_message: str | None = None
    signal: signal.Signals | None = None
    stdout_closed: bool = False

    def __call__(self, event: events.Event) -> None:
        if isinstance(event, events.TurnCompleted):
            self.completed = True
            self.last_message = event.last_message

    @property
    def status(self) -> int:
        if self.signal is not None:
            return _EXIT_STATUS[self.signal]
        return 0 if self.completed and not self.stdout_closed else 1


async def run_exec(session: Session, request: ExecRequest) -> int:
    """Run the turn, print it, and give back the exit status: 0, 1, or 130, 143, 129 after a signal."""
    outcome = _Outcome()

    def on_stdout_closed() -> None:
        outcome.stdout_closed = True
        session.interrupt()

    printer = _printer(request, on_stdout_closed)
    session.subscribe(outcome)
    session.subscribe(_without_reasoning(printer) if request.hide_reasoning else printer)
    loop = asyncio.get_running_loop()

    def on_signal(number: signal.Signals) -> None:
        if outcome.signal is not None:
            return
        outcome.signal = number
        session.interrupt()

    for number in _EXIT_STATUS:
        loop.add_signal_handler(number, on_signal, number)
    inputs = (*(ImageInput(path) for path in request.images), TextInput(request.prompt))
    await session.submit(UserTurn(inputs, request.output_schema))
    if outcome.completed:
        _deliver(request, outcome)
    return outcome.status


def _printer(request: ExecRequest, on_stdout_closed: Callable[[], None]) -> Callable[[events.Event], None]:
    if request.json_lines:
        return JsonlPrinter(_StdoutLines(on_stdout_closed))
    color = request.color == "always" or (
        request.color == "auto" and sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    )
    return HumanPrinter(_write_stderr, prompt=request.prompt, version=request.version, color=color)


def _without_reasoning(listener: Callable[[events.Event], None]) -> Callable[[events.Event], None]:
    def listen(event: events.Event) -> None:
        if not isinstance(event, events.ReasoningDone | events.ReasoningDelta):
            listener(event)

    return listen


class _StdoutLines:
    """Whole lines to stdout, each written at once; a reader that went away is told once and then forgotten."""

    def __init__(self, on_closed: Callable[[], None]) -> None:
        self._on_closed = on_closed
        self._closed = False

    def __call__(self, line: bytes) -> None:
        if self._closed:
            return
        try:
            write_all(sys.stdout.fileno(), line)
        except OSError as error:
            self._closed = True
            _tell_failed_stdout(error)
            self._on_closed()


def _write_stderr(text: str) -> None:
    try:
        write_all(sys.stderr.fileno(), text.encode(errors="backslashreplace"))
    except OSError:
        # Nobody reads the talk; the work and its result do not depend on it.
        return


def _tell_failed_stdout(error: OSError) -> None:
    """A reader that went away knows it; a full disk has to be told."""
    if not isinstance(error, BrokenPipeError):
        _write_stderr(f"error: cannot write to stdout: {error.strerror}\n")


def _deliver(request: ExecRequest, outcome: _Outcome) -> None:
    """The answer: alone on stdout, and in the file that was asked for. A file that fails loses nothing of it."""
    if not request.json_lines and outcome.last_message is not None:
        _print_answer(outcome, outcome.last_message)
    if request.last_message_file is not None:
        try:
            request.last_message_file.write_bytes((outcome.last_message or "").encode(errors="replace"))
        except OSError as error:
            raise UserError(f"cannot write `{request.last_message_file}`: {error.strerror}") from error


def _print_answer(outcome: _Outcome, message: str) -> None:
    if sys.stdout.isatty():
        # On a terminal that shows stderr too, the answer has just been seen.
        if sys.stderr.isatty():
            return
        message = sanitize(message)
    try:
        write_all(sys.stdout.fileno(), message.encode(errors="replace") + b"\n")
    except OSError as error:
        _tell_failed_stdout(error)
        outcome.stdout_closed = True


def write_all(descriptor: int, content: bytes) -> None:
    """Write every byte, also to a pipe that takes them in pieces; raise `OSError` when the reader is gone."""
    view = memoryview(content)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:
            # Somebody made the pipe non-blocking; it is shared with whoever holds the other end.
            select.select([], [descriptor], [])

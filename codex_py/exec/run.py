"""`exec`: runs one turn without a user at the keyboard, from a prompt to an exit status."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from codex_py.core.session import Session
from codex_py.errors import UserError
from codex_py.exec.jsonl import JsonlPrinter
from codex_py.exec.streams import Output
from codex_py.protocol import events
from codex_py.protocol.failures import FailureCode, exit_status, failure_code
from codex_py.protocol.ops import Compact, ImageInput, TextInput, UserTurn
from codex_py.protocol.policy import ReadOnly
from codex_py.protocol.usage import BUDGET_REACHED, Costs
from codex_py.protocol.value import Value
from codex_py.render.plain import PlainPrinter
from codex_py.rollout.format import StoredSession
from codex_py.rollout.recorder import NOT_SAVED
from codex_py.text.display import first_words
from codex_py.text.files import os_reason
from codex_py.text.sanitize import sanitize, sanitize_line

_MAX_SHOWN: Final = 200
_STORED_ANSWER: Final = "the stored answer of an earlier run; `--again` asks the model again\n"
_NO_ANSWER: Final = "the turn ended without an answer"
_UNAPPROVED: Final = "the task needs an approval, and nobody can be asked here: {}"

Show: TypeAlias = Callable[[events.Event], None]
_End: TypeAlias = events.TurnCompleted | events.TurnFailed | events.TurnInterrupted


class Ending:
    """A listener that passes events on to `show`, but holds back the end of the turn until `finish`.

    With `needs_answer`, a turn without a final message counts as failed; with `needs_approvals`, one that lacked an
    approval and did nothing after that.
    """

    def __init__(self, show: Show, *, needs_answer: bool, needs_approvals: bool) -> None:
        self._show = show
        self._needs_answer = needs_answer
        self._needs_approvals = needs_approvals
        self._end: _End | None = None
        self._ran_command = False
        self._no_sandbox: str | None = None
        # The approval that the last call lacked; None once a call after it has done something.
        self._unapproved: str | None = None
        self.answer: str | None = None
        self.completed = False
        self.failure: events.TurnFailed | None = None
        # Whether the session's own record says that the turn was completed, although it counts as failed.
        self.overruled = False
        self._last_message: str | None = None
        self.not_saved = ""

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.TurnCompleted() | events.TurnFailed() | events.TurnInterrupted():
                self._end = event
            case events.Warned(message, code="sandbox_missing"):
                self._no_sandbox = message
            case events.TurnStarted():
                # Input that came too late for one turn starts another.
                self._show_end()
                self._show(event)
            case _:
                self._note(event)
                self._show(event)

    def _note(self, event: events.Event) -> None:
        match event:
            case events.ApprovalMissing(_, reason):
                self._unapproved = reason
            case events.CommandFinished(status=status, exit_code=exit_code, only_reads=only_reads):
                self._ran_command = self._ran_command or status != "declined"
                if exit_code == 0 and not only_reads:
                    self._unapproved = None
            case events.PatchFinished(ok=True) | events.McpCallFinished(status="completed"):
                self._unapproved = None
            case events.MessageDone(text):
                self._last_message = text
            case events.Warned(message) if message.startswith(NOT_SAVED):
                self.not_saved = message
            case _:
                pass

    async def finish(self, session: Session) -> None:
        """Stop the commands that still run, and show the end of the turn; sets `completed` and `answer`."""
        for process in session.processes():
            await session.stop_process(process.id)
            shown = first_words(process.command, _MAX_SHOWN)
            session.warn(f"`{shown}` was still running when the turn ended, and was stopped")
        self._show_end()

    def _show_end(self) -> None:
        end, self._end = self._end, None
        if end is None:
            return
        failed = self._failure(end)
        if self._no_sandbox and (failed is None or failed.failure != "sandbox"):
            self._show(events.Warned(self._no_sandbox))
        if failed is not None:
            self.overruled = True
            end = failed
        self._show(end)
        self.completed = isinstance(end, events.TurnCompleted)
        self.answer = end.last_message if isinstance(end, events.TurnCompleted) else None
        if isinstance(end, events.TurnFailed):
            self.failure = end
            if end.code == BUDGET_REACHED or end.failure in ("approval_needed", "refused"):
                # What the turn has come to so far: paid for, or what the model says of the approval or its refusal.
                self.answer = self._last_message

    def _failure(self, end: _End) -> events.TurnFailed | None:
        """How a turn that the model has completed has failed all the same; None if it has not."""
        if not isinstance(end, events.TurnCompleted):
            return None
        failed: tuple[str, FailureCode] | None = None
        if self._no_sandbox and not self._ran_command:
            failed = self._no_sandbox, "sandbox"
        elif self._needs_approvals and self._unapproved is not None:
            failed = _UNAPPROVED.format(sanitize_line(self._unapproved)), "approval_needed"
        elif self._needs_answer and not (end.last_message or "").strip():
            failed = _NO_ANSWER, "internal"
        return events.TurnFailed(end.turn_id, failed[0], failure=failed[1]) if failed else None


_SECONDS_TO_END: Final = 4.0
_EXIT_STATUS: Final[dict[int, int]] = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class ExecRequest(Value):
    """The task of one run, and where its results go.

    `needs_approvals` says that the user has chosen an approval policy under which they would be asked, though `exec`
    asks nobody. `short_messages` says that the reader of the JSON lines cannot read lines of 64 KiB, not even for the
    answer. `task` is recorded with the prompt; `watch` is sent every event that is shown. `give_up` is called when a
    run that was told to end has not ended in time, just before the process ends.
    """

    prompt: str
    images: tuple[Path, ...] = ()
    output_schema: dict[str, Any] | None = None
    last_message_file: Path | None = None
    last_message_name: str | None = None
    json_lines: bool = False
    needs_approvals: bool = False
    short_messages: bool = False
    color: Literal["auto", "always", "never"] = "auto"
    hide_reasoning: bool = False
    task: str = ""
    watch: Show | None = None
    give_up: Callable[[], None] | None = None


class RunEnd(Value):
    """How a run ended; `code` is None for success. With `overruled` only this program counts the turn as failed."""

    status: int
    code: FailureCode | None
    message: str = ""
    answer: str | None = None
    overruled: bool = False


class _Outcome:
    """The state of the run that decides its exit status."""

    def __init__(self) -> None:
        self.completed = False
        self.failure: events.TurnFailed | None = None
        self.signal: int | None = None
        self.interrupted = False
        self.is_over = False
        self.stdout_closed = False
        self.output = Output()

    def note_signal(self, number: int, _: object) -> None:
        """Note a signal. It may arrive between any two instructions, so nothing else is done here."""
        self.signal = self.signal or number
        self.output.hurry()

    @property
    def status(self) -> int:
        if self.signal is not None:
            return _EXIT_STATUS[self.signal]
        if self.failure is not None:
            return exit_status(self.code or "internal")
        return 0 if self.completed and not self.stdout_closed else 1

    @property
    def code(self) -> FailureCode | None:
        """None when the turn was completed, even if nobody read its answer."""
        if self.signal is not None:
            return "interrupted"
        if self.failure is not None:
            return failure_code(self.failure.failure) or "internal"
        return None if self.completed else "interrupted"


async def run_exec(session: Session, request: ExecRequest) -> RunEnd:
    """Run the turn, print it, and say how it ended."""
    outcome = _Outcome()

    def interrupt() -> None:
        if outcome.signal == signal.SIGTERM and not outcome.interrupted:
            end_in_time(request.give_up, lambda: session.hooks.runner.stop_waiting(kills=True))
        # A second interrupt would cut off the recording of the first. After the turn only hooks are waited for.
        if not outcome.interrupted or outcome.is_over:
            outcome.interrupted = True
            session.interrupt()

    def on_stdout_closed() -> None:
        outcome.stdout_closed = True
        interrupt()

    printer = make_printer(request, outcome.output, on_stdout_closed)
    if request.watch is not None:
        printer = _both(printer, request.watch)
    op = _op_for(request, resumed=len(session.history) > 0)
    show = _without_reasoning(printer) if request.hide_reasoning else printer
    ending = Ending(show, needs_answer=isinstance(op, UserTurn), needs_approvals=request.needs_approvals)
    session.subscribe(ending)
    loop = asyncio.get_running_loop()

    for number in _EXIT_STATUS:
        loop.add_signal_handler(number, interrupt)
        # The loop does not run while a write waits for a slow reader; this handler reaches the write itself.
        signal.signal(number, outcome.note_signal)
    await session.submit(op)
    outcome.is_over = True
    await ending.finish(session)
    outcome.completed, outcome.failure = ending.completed, ending.failure
    if ending.completed or ending.answer is not None:
        _deliver(request, outcome, ending.answer)
    if ending.not_saved:
        _write_stderr(outcome.output, f"warning: this session cannot be resumed: {ending.not_saved}\n")
    message = outcome.failure.message if outcome.failure is not None else ""
    return RunEnd(outcome.status, outcome.code, message, ending.answer, ending.overruled)


def failure_of(error: UserError) -> FailureCode:
    """The code of an error that kept a turn from beginning."""
    return failure_code(error.failure) or ("config" if error.status == exit_status("config") else "internal")


def failed_start(error: UserError) -> events.TurnFailed:
    """The end of a run whose turn could not begin."""
    hint = f"; {error.hint}" if error.hint else ""
    return events.TurnFailed("", sanitize_line(f"{error}{hint}"), failure=failure_of(error))


def print_error(error: UserError) -> None:
    """End the JSON lines of a run whose turn could not begin."""
    JsonlPrinter(_StdoutLines(Output(), lambda: None))(failed_start(error))


def print_stored(stored: StoredSession, request: ExecRequest, answer: str) -> RunEnd:
    """Print the answer that an earlier run of a session has given, as a run does that has just been given it."""
    outcome = _Outcome()
    context = stored.turn_context or {}
    started = events.SessionStarted(
        stored.meta.id,
        str(context.get("model", "")),
        stored.meta.model_provider,
        Path(str(context.get("cwd") or stored.meta.cwd)),
        "never",
        ReadOnly(),
        None,
        None,
        resumed=len(stored.items),
    )
    completed = events.TurnCompleted("", answer, stored.usage, stored.usage, Costs(stored.spending, stored.spending))
    lines = make_printer(request, outcome.output, lambda: None) if request.json_lines else None
    for event in (started, events.TurnStarted(""), events.MessageDone(answer), completed):
        for show in filter(None, (lines, request.watch)):
            show(event)
    if lines is None:
        _write_stderr(outcome.output, _STORED_ANSWER)
    outcome.completed = True
    _deliver(request, outcome, answer)
    return RunEnd(outcome.status, None, answer=answer)


def end_in_time(*last_steps: Callable[[], None] | None) -> None:
    """End the process soon, whatever it is busy with: who sends SIGTERM sends SIGKILL some seconds later."""

    def end() -> None:
        try:
            for step in last_steps:
                if step is not None:
                    step()
        finally:
            os._exit(_EXIT_STATUS[signal.SIGTERM])

    timer = threading.Timer(_SECONDS_TO_END, end)
    timer.daemon = True
    timer.start()


def _both(first: Show, second: Show) -> Show:
    def show(event: events.Event) -> None:
        first(event)
        second(event)

    return show


def _op_for(request: ExecRequest, *, resumed: bool) -> UserTurn | Compact:
    """The op for a prompt: a turn, or for `/compact [FOCUS]` in a resumed session a compaction."""
    words = request.prompt.split(maxsplit=1)
    if words[:1] == ["/compact"] and resumed and not request.images:
        return Compact("".join(words[1:]).strip())
    inputs = (*(ImageInput(path) for path in request.images), TextInput(request.prompt, task=request.task))
    return UserTurn(inputs, request.output_schema)


def make_printer(request: ExecRequest, output: Output, on_stdout_closed: Callable[[], None]) -> Show:
    """The listener that shows the events of a run, as lines on stderr or as JSON on stdout."""
    if request.json_lines:
        return JsonlPrinter(_StdoutLines(output, on_stdout_closed), short_messages=request.short_messages)
    color = request.color == "always" or (
        request.color == "auto" and sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    )
    return PlainPrinter(lambda text: _write_stderr(output, f"{text}\n"), color=color)


def _without_reasoning(listener: Show) -> Show:
    def listen(event: events.Event) -> None:
        if not isinstance(event, events.ReasoningDone | events.ReasoningDelta):
            listener(event)

    return listen


class _StdoutLines:
    """Writes whole lines to stdout, and reports once that the reader is gone."""

    def __init__(self, output: Output, on_closed: Callable[[], None]) -> None:
        self._output = output
        self._on_closed = on_closed
        self._closed = False

    def __call__(self, line: bytes) -> None:
        if self._closed:
            return
        try:
            self._output.write(sys.stdout.fileno(), line)
        except OSError as error:
            self._closed = True
            _report_failed_stdout(self._output, error)
            self._on_closed()


def _write_stderr(output: Output, text: str) -> None:
    try:
        output.write(sys.stderr.fileno(), text.encode(errors="backslashreplace"))
    except OSError:
        # Nobody reads stderr; the work and its result do not depend on it.
        return


def _report_failed_stdout(output: Output, error: OSError) -> None:
    """Report a failed write to stdout, such as for a full disk, unless the reader is gone or does not read."""
    if not isinstance(error, BrokenPipeError | TimeoutError):
        _write_stderr(output, f"error: cannot write to stdout: {os_reason(error)}\n")


def _deliver(request: ExecRequest, outcome: _Outcome, answer: str | None) -> None:
    """Write the answer to stdout, and to the file of `-o`; stdout comes first, in case the file cannot be written."""
    if not request.json_lines and answer is not None:
        _print_answer(outcome, answer)
    if request.last_message_file is not None:
        try:
            message = (answer or "").encode(errors="replace")
            outcome.output.write_file(request.last_message_file, message)
        except OSError as error:
            raise UserError(f"cannot write `{request.last_message_name}`: {os_reason(error)}") from error


def _print_answer(outcome: _Outcome, message: str) -> None:
    if sys.stdout.isatty():
        # On a terminal that shows stderr too, the answer has just been seen.
        if sys.stderr.isatty():
            return
        message = sanitize(message)
    try:
        outcome.output.write(sys.stdout.fileno(), message.encode(errors="replace") + b"\n")
    except OSError as error:
        _report_failed_stdout(outcome.output, error)
        outcome.stdout_closed = True

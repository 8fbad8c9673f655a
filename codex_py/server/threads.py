"""The live sessions of one process by thread id, and what they need from whoever starts the server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from codex_py.config.load import ConfigRequest, LoadedConfig
from codex_py.core.session import Session
from codex_py.core.session_request import ResumeTarget
from codex_py.errors import UserError
from codex_py.protocol import events
from codex_py.protocol.ops import (
    AcceptPlan,
    AnswerQuestion,
    Begin,
    Compact,
    Op,
    Steer,
    UserInput,
    UserShell,
    UserTurn,
)
from codex_py.protocol.questions import QuestionAnswer
from codex_py.protocol.value import Value
from codex_py.rollout.transcript import RewindChoice
from codex_py.services.git import GitReader

# The type of program that session lists show for clients.
SESSION_SOURCE: Final = "vscode"


class Opening(Value):
    """A session that a client asks for: its directory, its settings, and the stored session it continues.

    `cwd` is a real path. `settings` are values of configuration keys, dotted or nested, that count like flags of the
    command line. `originator` is the client's name. `instructions` replace the built-in base instructions. `servers`
    are tables of MCP servers for this session only.
    """

    cwd: Path
    settings: Mapping[str, Any] = MappingProxyType({})
    target: ResumeTarget | None = None
    ephemeral: bool = False
    originator: str = ""
    extra_roots: tuple[Path, ...] = ()
    instructions: str | None = None
    servers: Mapping[str, Mapping[str, Any]] = MappingProxyType({})


class RollbackOutcome(Value):
    """The result for the files, as `sessions rewind --json` prints it, and the message the session went back before."""

    files: Mapping[str, Any]
    lines: tuple[str, ...]
    message: str
    notices: tuple[str, ...]


class ServerHostProtocol(Protocol):
    """The services that a server needs from the command line that started it.

    `home` is CODEX_HOME, `env` the environment of this process.
    """

    home: Path
    env: Mapping[str, str]

    def request(self, cwd: Path, settings: Mapping[str, Any]) -> ConfigRequest:
        """The request for a directory's configuration with these settings."""
        ...

    def load(self, cwd: Path, settings: Mapping[str, Any]) -> LoadedConfig:
        """The configuration in force for a directory, under these settings. Raise `UserError` for wrong ones."""
        ...

    def roll_back(self, thread_id: str, choice: RewindChoice) -> RollbackOutcome:
        """Go back in a session that is closed, or see what would happen. Blocks: for a thread. Raises `UserError`."""
        ...

    def open(self, opening: Opening, loaded: LoadedConfig) -> AbstractAsyncContextManager[Session]:
        """A session that can ask questions, closed at the end. Raise `UserError` when it cannot be opened."""
        ...


# Makes the listener of a thread, which gets every event of it, on the loop's thread.
MakeListener: TypeAlias = "Callable[[LiveThread], Callable[[events.Event], None]]"


class LiveThread:
    """A session and its running turn. Methods return while turns run; results are reported by events.

    `turn_id` is that of the running turn, None while none runs.
    """

    def __init__(
        self,
        session: Session,
        opening: Opening,
        loaded: LoadedConfig,
        *,
        env: Mapping[str, str],
        make_listener: MakeListener,
        report_crash: Callable[[BaseException], str],
    ) -> None:
        self.session: Final = session
        self.opening: Final = opening
        self.loaded: Final = loaded
        # A reader of the repository in which the session works.
        self.git: Final = lambda: GitReader(session.settings.cwd, env, session.settings.sandbox_policy)
        self.turn_id: str | None = None
        self._report_crash = report_crash
        self._tasks: set[asyncio.Task[None]] = set()
        self._open_questions: set[str] = set()
        self._begins: list[asyncio.Future[str]] = []
        self._turn_task: asyncio.Task[Any] | None = None
        self._is_closing = False
        self._keeper: asyncio.Task[None] | None = None
        self._leave: asyncio.Event | None = None
        self._hear = make_listener(self)
        session.subscribe(self._note_event)

    @property
    def id(self) -> str:
        return self.session.thread_id

    def attach(self, keeper: asyncio.Task[None], leave: asyncio.Event) -> None:
        """Note the task that keeps the session open, and the event that makes it close the session."""
        self._keeper, self._leave = keeper, leave

    async def begin(self) -> None:
        """Let the session emit its settings and warnings."""
        await self.session.submit(Begin())

    async def start_turn(self, inputs: tuple[UserInput, ...], *, schema: dict[str, Any] | None = None) -> str:
        """Begin a turn; gives back its id as soon as it has begun.

        Raises `UserError` while another one runs, and for an input that cannot be read.
        """
        self._check_idle()
        return await self._begun(UserTurn(inputs, schema)) or ""

    async def compact(self, focus: str = "") -> str | None:
        """Begin a turn that compacts the history; its id, or None when there is nothing to compact."""
        self._check_idle()
        return await self._begun(Compact(focus))

    async def accept_plan(self) -> str:
        """Leave plan mode and start the turn that carries out the plan; gives back its id."""
        return await self._begun(AcceptPlan()) or ""

    async def steer(self, inputs: tuple[UserInput, ...]) -> str:
        """Add input to the running turn; gives back the id of the turn that takes it, which is the next one if the
        running one has just ended. Raises `UserError` when none runs, and for an input that cannot be read.
        """
        turn_id = self.turn_id
        if turn_id is None:
            raise UserError("no turn is running")
        return await self._begun(Steer(inputs)) or turn_id

    def shell(self, command: str) -> None:
        """Run a command as the user. Raises `UserError` while the session is being closed."""
        self._check_open()
        self._run(self.session.submit(UserShell(command)))

    def interrupt(self) -> bool:
        """Stop the running turn and the user's own commands; False when there is nothing to stop."""
        if not self._tasks:
            return False
        self.session.take_back()
        self.session.interrupt()
        return True

    async def answer(self, question_id: str, value: QuestionAnswer | None) -> None:
        """Answer a question, as `ops.AnswerQuestion`, if it is still open."""
        if question_id in self._open_questions:
            self._open_questions.remove(question_id)
            await self.session.submit(AnswerQuestion(question_id, value))

    def answer_by(self, question_id: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run the work that finds and gives the answer to a question. If it fails, the question gets no answer."""
        task = asyncio.create_task(work)
        task.add_done_callback(lambda done: self._note_answered(question_id, done))
        return task

    async def idle(self) -> None:
        """Return when nothing runs."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Stop what runs, and end the session: its hooks, its commands, its file."""
        self._is_closing = True
        self.interrupt()
        await self.idle()
        if self._leave is not None and self._keeper is not None:
            self._leave.set()
            await asyncio.wait([self._keeper])

    async def _begun(self, op: Op) -> str | None:
        """Submit an op; gives back the id of the turn it starts, None when it ends without one."""
        self._check_open()
        begins: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._begins.append(begins)
        task = self._run(self.session.submit(op))
        try:
            await asyncio.wait([task, begins], return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._begins.remove(begins)
        if begins.done():
            return begins.result()
        if (error := task.exception()) is not None:
            raise error
        return None

    def _check_idle(self) -> None:
        if self.turn_id is not None:
            raise UserError(f"the turn `{self.turn_id}` is running")

    def _check_open(self) -> None:
        if self._is_closing:
            raise UserError("the session is being closed")

    def _run(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)
        return task

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        message = "it was stopped" if error is None else str(error)
        if error is not None and not isinstance(error, UserError):
            message = self._note_crash(error)
        if self.turn_id is not None and task is self._turn_task:
            # The turn is over either way; end it for those who wait for its end.
            self._note_event(events.TurnFailed(self.turn_id, message))

    def _note_crash(self, error: BaseException) -> str:
        """Report a crash and warn about it; gives back the warning."""
        message = self._report_crash(error)
        self.session.warn(message)
        return message

    def _note_answered(self, question_id: str, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._note_crash(error)
            self._run(self.answer(question_id, None))

    def _note_event(self, event: events.Event) -> None:
        match event:
            case events.TurnStarted(turn_id):
                self.turn_id, self._turn_task = turn_id, asyncio.current_task()
                if self._is_closing:
                    self.session.interrupt()
                for begins in self._begins:
                    if not begins.done():
                        begins.set_result(turn_id)
            case events.TurnCompleted() | events.TurnFailed() | events.TurnInterrupted():
                self.turn_id = None
            case events.QuestionRaised(question):
                self._open_questions.add(question.id)
            case events.QuestionClosed(question_id):
                self._open_questions.discard(question_id)
            case _:
                pass
        self._hear(event)


class _OpenedSession(NamedTuple):
    """The session of a keeper task once it is open, and the event that makes the task close it."""

    ready: asyncio.Future[Session]
    leave: asyncio.Event


class Threads:
    """Opens and closes sessions. Each has a task, its keeper, which opens it, keeps it open, and closes it.

    `report_crash` logs a bug and gives back a line about it.
    """

    def __init__(self, host: ServerHostProtocol, report_crash: Callable[[BaseException], str]) -> None:
        self._host = host
        self._report_crash = report_crash
        self._live: dict[str, LiveThread] = {}
        self._keepers: dict[asyncio.Task[None], _OpenedSession] = {}
        self._is_closing = False

    def __iter__(self) -> Iterator[LiveThread]:
        """The live threads, in the order they were opened."""
        return iter(tuple(self._live.values()))

    def get(self, thread_id: str) -> LiveThread | None:
        """The live thread with this id."""
        return self._live.get(thread_id)

    async def open(self, opening: Opening, make_listener: MakeListener) -> LiveThread:
        """Open a session.

        No event is sent before `LiveThread.begin`. Raises `UserError` for invalid settings, and for a session that does
        not exist or that another process writes to.
        """
        # Reads files, maybe from a slow disk, so not on the loop.
        loaded = await asyncio.to_thread(self._host.load, opening.cwd, opening.settings)
        if self._is_closing:
            raise _ending()
        opened = _OpenedSession(asyncio.get_running_loop().create_future(), asyncio.Event())
        keeper = asyncio.create_task(self._keep(opening, loaded, opened))
        self._keepers[keeper] = opened
        keeper.add_done_callback(lambda done: self._note_end(done, opened.ready))
        try:
            session = await asyncio.shield(opened.ready)
        except asyncio.CancelledError:
            _stop(keeper, opened)
            raise
        env, report_crash = self._host.env, self._report_crash
        thread = LiveThread(session, opening, loaded, env=env, make_listener=make_listener, report_crash=report_crash)
        thread.attach(keeper, opened.leave)
        self._live[session.thread_id] = thread
        keeper.add_done_callback(lambda _: self._forget(thread))
        return thread

    async def close_all(self) -> None:
        """Close every thread, all at once; threads that are being opened are not."""
        self._is_closing = True
        for keeper, opened in self._keepers.items():
            if not opened.ready.done():
                _stop(keeper, opened)
        await asyncio.gather(*(thread.close() for thread in self))
        for opened in self._keepers.values():
            opened.leave.set()
        while self._keepers:
            await asyncio.wait(self._keepers)

    async def _keep(self, opening: Opening, loaded: LoadedConfig, opened: _OpenedSession) -> None:
        async with self._host.open(opening, loaded) as session:
            opened.ready.set_result(session)
            await opened.leave.wait()

    def _note_end(self, keeper: asyncio.Task[None], ready: asyncio.Future[Session]) -> None:
        del self._keepers[keeper]
        error = None if keeper.cancelled() else keeper.exception()
        if not ready.done():
            ready.set_exception(error or _ending())
            # Nobody may wait for it any more.
            ready.exception()
        elif error is not None:
            self._report_crash(error)

    def _forget(self, thread: LiveThread) -> None:
        if self._live.get(thread.id) is thread:
            del self._live[thread.id]


def _stop(keeper: asyncio.Task[None], opened: _OpenedSession) -> None:
    """Close a session, or cancel its opening."""
    opened.leave.set()
    if not opened.ready.done():
        keeper.cancel()


def _ending() -> UserError:
    return UserError("the session is not opened: the server is ending")

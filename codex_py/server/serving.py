"""A server's life at stdin and stdout: the requests under way, each a task of its own, and an end in order."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol

from codex_py.server.messages import INTERNAL_ERROR, ClientCall, RpcError
from codex_py.server.peer import Peer
from codex_py.server.pipes import LineSource, LineTooLong, Outbox, complain

_STATUSES: Final = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 129}


class Service(Protocol):
    """What is served."""

    async def serve(self, source: LineSource) -> None:
        """Take what the client says, until its end."""
        ...

    async def close(self) -> None:
        """End what is under way, in order."""
        ...


async def serve_at_stdio(begin: Callable[[Outbox], Service]) -> int:
    """Serve the client that started this program; the exit status: 0 when it goes, else that of a signal."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[int] = loop.create_future()

    def end(status: int) -> None:
        if not over.done():
            over.set_result(status)

    def lose(reason: str) -> None:
        complain(f"warning: {reason}: ending")
        end(0)

    for number, status in _STATUSES.items():
        loop.add_signal_handler(number, end, status)
    outbox = Outbox(sys.stdout.fileno(), lose)
    service = begin(outbox)
    source = LineSource(sys.stdin.fileno())
    serving = asyncio.create_task(service.serve(source))
    await asyncio.wait([serving, over], return_when=asyncio.FIRST_COMPLETED)
    serving.cancel()
    await asyncio.wait([serving])
    await service.close()
    await outbox.close(source.ended)
    if not serving.cancelled() and (error := serving.exception()) is not None:
        raise error
    return over.result() if over.done() else 0


# More are not read before some of these are over.
_MAX_SHORT: Final = 4096
# More of those that may wait for the client itself are refused: it could not end one of them if nothing were read.
_MAX_LONG: Final = 4096
# A client that has said its last may still listen.
_LAST_SECONDS: Final = 2.0


class ClientRequest:
    """A request, which is answered once."""

    def __init__(self, call: ClientCall, peer: Peer) -> None:
        self.call: Final = call
        self._peer = peer
        self._is_answered = False

    def answer(self, result: Mapping[str, Any]) -> None:
        self._is_answered = True
        self._peer.answer(self.call.id, result)

    def refuse(self, error: RpcError) -> None:
        self._is_answered = True
        self._peer.refuse(self.call.id, error)

    def note_bug(self, line: str) -> None:
        """Something failed that must not: in what was asked, or in what followed from it."""
        if not self._is_answered:
            self.refuse(RpcError(line, code=INTERNAL_ERROR))
        complain(f"error: {line}")


class Requests:
    """`report_crash` keeps what must not happen and gives a line about it."""

    def __init__(self, report_crash: Callable[[BaseException], str]) -> None:
        self._report_crash = report_crash
        self._running: set[asyncio.Task[None]] = set()
        self._short: set[asyncio.Task[None]] = set()
        self._has_ended = asyncio.Event()

    @property
    def has_capacity(self) -> bool:
        """Whether one more that is long may begin."""
        return len(self._running) - len(self._short) < _MAX_LONG

    async def read(self, source: LineSource, take: Callable[[bytes | LineTooLong], None]) -> None:
        """Take what the client says, until its end; the requests that are short then have a little time left."""
        async with aclosing(source.lines()) as lines:
            async for line in lines:
                take(line)
                while len(self._short) >= _MAX_SHORT:
                    self._has_ended.clear()
                    await self._has_ended.wait()
        if self._short:
            _, unfinished = await asyncio.wait(self._short, timeout=_LAST_SECONDS)
            for task in unfinished:
                task.cancel()

    def begin(
        self, work: Coroutine[Any, Any, None], failed: Callable[[str], None], *, is_long: bool = False
    ) -> asyncio.Task[None]:
        """Carry a request out; `failed` hears of a bug. One that `is_long` is not waited for at the end."""
        task = asyncio.create_task(work)
        self._running.add(task)
        if not is_long:
            self._short.add(task)
        task.add_done_callback(lambda done: self._note_end(done, failed))
        return task

    async def settle(self) -> None:
        """Wait a little for all of them, then stop those that are left."""
        if self._running:
            await asyncio.wait(self._running, timeout=_LAST_SECONDS)
        await self.stop()

    async def stop(self) -> None:
        """Stop all of them."""
        for task in tuple(self._running):
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    def _note_end(self, task: asyncio.Task[None], failed: Callable[[str], None]) -> None:
        self._running.discard(task)
        self._short.discard(task)
        self._has_ended.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            failed(self._report_crash(error))

"""The client at the other end of the pipe: messages to it, its replies, and its running requests."""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import aclosing
from typing import Any, Final, Protocol, TypeAlias

from codex_py.server.messages import (
    INTERNAL_ERROR,
    ClientCall,
    Notice,
    Reply,
    RequestId,
    RpcError,
    Unreadable,
    encode_message,
    read_message,
)
from codex_py.server.pipes import LineSource, Outbox, complain

ReplyFuture: TypeAlias = asyncio.Future[Mapping[str, Any] | None]

_MUCH: Final = 8 * 1024 * 1024
_VERSION: Final = {"jsonrpc": "2.0"}


class Peer:
    """Only our own requests wait for the client; their ids count up from `first_id`."""

    def __init__(self, outbox: Outbox, *, first_id: int) -> None:
        self._outbox = outbox
        self._next_id = first_id
        self._pending: dict[RequestId, ReplyFuture] = {}

    @property
    def is_behind(self) -> bool:
        """Whether the client has a lot to read yet."""
        return self._outbox.waiting > _MUCH

    def answer(self, request_id: RequestId, result: Mapping[str, Any]) -> None:
        """Answer a request of the client."""
        self.send({"id": request_id, "result": result})

    def refuse(self, request_id: RequestId | None, error: RpcError) -> None:
        """Answer a refused request with an error; a line that is not a valid message may have no id."""
        self.send({"error": {"code": error.code, "message": str(error)}, "id": request_id})

    def receive(self, line: bytes | None) -> ClientCall | Notice | None:
        """A request or notification of the client; None for a reply, and for an invalid line, which is refused.

        A second reply, or one to no open request, is dropped.
        """
        match read_message(line):
            case Reply(request_id, result):
                reply = self._pending.pop(request_id, None)
                if reply is not None and not reply.done():
                    reply.set_result(result)
                return None
            case Unreadable(error, request_id):
                self.refuse(request_id, error)
                return None
            case message:
                return message

    def take_back(self, request_id: RequestId) -> None:
        """Stop waiting for a reply."""
        reply = self._pending.pop(request_id, None)
        if reply is not None:
            reply.cancel()

    def send(self, message: Mapping[str, Any]) -> None:
        self._outbox.put(encode_message(message))

    def send_request(self, method: str, params: Mapping[str, Any]) -> tuple[RequestId, ReplyFuture]:
        """Send a request; gives back its id, and the future of its reply: None for an error."""
        request_id = self._next_id
        self._next_id += 1
        self._pending[request_id] = reply = asyncio.get_running_loop().create_future()
        self.send({"id": request_id, "method": method, "params": params})
        return request_id, reply


class AppServerPeer(Peer):
    """A client of the app-server protocol, which has no JSON-RPC version and lets clients unsubscribe."""

    def __init__(self, outbox: Outbox) -> None:
        super().__init__(outbox, first_id=0)
        self._unwanted: frozenset[str] = frozenset()

    def leave_out(self, methods: frozenset[str]) -> None:
        """Send none of these notifications."""
        self._unwanted = methods

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification, unless the client has unsubscribed from it."""
        # A client that is far behind gets no progress notifications: whole items follow.
        if method in self._unwanted or (method.endswith(("elta", "/progress")) and self.is_behind):
            return
        self.send({"method": method, "params": params, "emittedAtMs": time.time_ns() // 1_000_000})


class AcpPeer(Peer):
    """A client of the Agent Client Protocol.

    `replay_lock` is held while a stored session is replayed, so that replays follow one another and take no more memory
    than one.
    """

    def __init__(self, outbox: Outbox) -> None:
        super().__init__(outbox, first_id=1)
        self.replay_lock: Final = asyncio.Lock()

    async def caught_up(self) -> None:
        """Wait while the client has a lot to read, and let other tasks run."""
        await asyncio.sleep(0)
        await self._outbox.wait_for_capacity(_MUCH)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification."""
        self.send({"method": method, "params": params})

    async def request(
        self, method: str, params: Mapping[str, Any], *, is_stopped: Callable[[], bool]
    ) -> Mapping[str, Any] | None:
        """Send a request and wait for its reply; None for an error.

        When this is cancelled, the request is cancelled too, unless the client has done that itself (`is_stopped`).
        """
        request_id, reply = self.send_request(method, params)
        try:
            return await reply
        except asyncio.CancelledError:
            if not is_stopped():
                self.notify("$/cancel_request", {"requestId": request_id})
            raise
        finally:
            self.take_back(request_id)

    def send(self, message: Mapping[str, Any]) -> None:
        super().send({**_VERSION, **message})


class Service(Protocol):
    """A server for one client."""

    async def serve(self, source: LineSource) -> None:
        """Read the client's messages until the input ends."""
        ...

    async def close(self) -> None:
        """Stop running work, in order."""
        ...


async def serve_at_stdio(begin: Callable[[Outbox], Service]) -> int:
    """Serve the client that started this program; the exit status: 0 when its input ends, else that of a signal."""
    loop = asyncio.get_running_loop()
    over: asyncio.Future[int] = loop.create_future()

    def end(status: int) -> None:
        if not over.done():
            over.set_result(status)

    def lose(reason: str) -> None:
        complain(f"warning: {reason}: ending")
        end(0)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, 128 + number)
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


# With more running requests, reading pauses.
_MAX_SHORT: Final = 4096
# More requests that wait for the client itself are refused: if reading paused, the client could not end one of them.
_MAX_LONG: Final = 4096
# After its input has ended, a client may still read.
_LAST_SECONDS: Final = 2.0


class ClientRequest:
    """A request of the client, answered once."""

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
        """Report a bug in the request, or in the work that followed its answer."""
        if not self._is_answered:
            self.refuse(RpcError(line, code=INTERNAL_ERROR))
        complain(f"error: {line}")


class Requests:
    """The running requests. `report_crash` logs a bug and gives a line about it."""

    def __init__(self, report_crash: Callable[[BaseException], str]) -> None:
        self._report_crash = report_crash
        self._running: set[asyncio.Task[None]] = set()
        self._short: set[asyncio.Task[None]] = set()
        self._has_ended = asyncio.Event()

    @property
    def has_capacity(self) -> bool:
        """Whether another long request may start."""
        return len(self._running) - len(self._short) < _MAX_LONG

    async def read(self, source: LineSource, take: Callable[[bytes | None], None]) -> None:
        """Read the client's messages until the input ends; short requests then have a little time left."""
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
        """Run a request; `failed` is called with a line about a bug. At the end, `is_long` ones are not waited for."""
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

"""The client at the other end of the pipe: messages to it, its replies, and the requests it has under way."""

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
    PARSE_ERROR,
    ClientCall,
    Notice,
    Reply,
    RequestId,
    RpcError,
    Unreadable,
    encode_message,
    read_message,
)
from codex_py.server.pipes import LineSource, LineTooLong, Outbox, complain

ReplyFuture: TypeAlias = asyncio.Future[Mapping[str, Any] | None]

_MUCH: Final = 8 * 1024 * 1024
_VERSION: Final = {"jsonrpc": "2.0"}


class Peer:
    """Nothing here waits for the client but a request of ours. The ids of those count up from `first_id`."""

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
        """Answer a request that is not carried out, and what is no request at all."""
        self.send(error.to_message(request_id))

    def receive(self, line: bytes | LineTooLong) -> ClientCall | Notice | None:
        """What the client asks or tells; None for a reply, and for what cannot be read and is refused.

        A second reply, and one that nobody waits for, is dropped.
        """
        is_too_long = isinstance(line, LineTooLong)
        match Unreadable(RpcError(str(line), code=PARSE_ERROR)) if is_too_long else read_message(line):
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
        """Wait for a reply no longer."""
        reply = self._pending.pop(request_id, None)
        if reply is not None:
            reply.cancel()

    def send(self, message: Mapping[str, Any]) -> None:
        self._outbox.put(encode_message(message))

    def _next_request(self) -> tuple[RequestId, ReplyFuture]:
        """The id of a new request, and what will hold the reply: None for an error."""
        request_id = self._next_id
        self._next_id += 1
        self._pending[request_id] = reply = asyncio.get_running_loop().create_future()
        return request_id, reply


class AppServerPeer(Peer):
    """A client of the app-server: it leaves the version of JSON-RPC out, and may choose what it hears of."""

    def __init__(self, outbox: Outbox) -> None:
        super().__init__(outbox, first_id=0)
        self._unwanted: frozenset[str] = frozenset()

    def leave_out(self, methods: frozenset[str]) -> None:
        """Send none of these notifications."""
        self._unwanted = methods

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the client something, unless it does not want to hear of it."""
        # Of a client that is far behind, what only shows progress is dropped: whole items follow.
        if method in self._unwanted or (method.endswith(("elta", "/progress")) and self.is_behind):
            return
        self.send({"method": method, "params": params, "emittedAtMs": time.time_ns() // 1_000_000})

    def send_request(self, method: str, params: Mapping[str, Any]) -> tuple[RequestId, ReplyFuture]:
        """Ask the client; gives back the id of the request, and what will hold the reply: None for an error."""
        request_id, reply = self._next_request()
        self.send({"method": method, "id": request_id, "params": params})
        return request_id, reply


class AcpPeer(Peer):
    """A client of the Agent Client Protocol.

    `replay_lock` is held while a stored session is replayed: the client gets replays one after the other, and all of
    them take no more memory and time from others than one.
    """

    def __init__(self, outbox: Outbox) -> None:
        super().__init__(outbox, first_id=1)
        self.replay_lock: Final = asyncio.Lock()

    async def caught_up(self) -> None:
        """Wait as long as the client has a lot to read, and let others have their turn."""
        await asyncio.sleep(0)
        await self._outbox.wait_for_capacity(_MUCH)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the client something."""
        self.send({"method": method, "params": params})

    async def request(
        self, method: str, params: Mapping[str, Any], *, is_stopped: Callable[[], bool]
    ) -> Mapping[str, Any] | None:
        """Ask the client; None when it answers with an error.

        When this is cancelled the request is taken back, unless the client `is_stopped`: it has taken it back itself.
        """
        request_id, reply = self._next_request()
        self.send({"id": request_id, "method": method, "params": params})
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

"""The client at the other end of the pipe: what is sent to it, and its replies to our requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from codex_py.server.messages import (
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
from codex_py.server.pipes import LineTooLong, Outbox

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

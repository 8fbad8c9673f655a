"""The client at the other end: notifications, requests and replies sent to it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from codex_py.server.messages import Reply, RequestId, RpcError, encode_message
from codex_py.server.pipes import Outbox

_MUCH: Final = 8 * 1024 * 1024
_VERSION: Final = {"jsonrpc": "2.0"}


class Peer:
    """Speaks JSON-RPC 2.0. Nothing here waits for the client but a request of ours."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._count = 0
        self._pending: dict[RequestId, asyncio.Future[Mapping[str, Any] | None]] = {}
        self._replay_lock = asyncio.Lock()

    @property
    def is_behind(self) -> bool:
        """Whether the client has a lot to read yet."""
        return self._outbox.waiting > _MUCH

    @property
    def replay_lock(self) -> asyncio.Lock:
        """Held while a stored session is replayed: the client gets replays one after the other.

        What all of them have in memory, and the time they take from everybody else, is that of one.
        """
        return self._replay_lock

    async def caught_up(self) -> None:
        """Wait as long as the client has a lot to read, and let others have their turn."""
        await asyncio.sleep(0)
        await self._outbox.wait_for_capacity(_MUCH)

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the client something."""
        self._send({"method": method, "params": params})

    def answer(self, request_id: RequestId, result: Mapping[str, Any]) -> None:
        """Answer a request of the client."""
        self._send({"id": request_id, "result": result})

    def refuse(self, request_id: RequestId | None, error: RpcError) -> None:
        """The answer to a request that is not carried out, and to what is no request at all."""
        self._send(error.to_message(request_id))

    async def request(
        self, method: str, params: Mapping[str, Any], *, is_stopped: Callable[[], bool]
    ) -> Mapping[str, Any] | None:
        """Ask the client; None when it answers with an error.

        When this is cancelled the request is taken back, unless the client `is_stopped`: it has taken it back itself.
        """
        self._count += 1
        number = self._count
        answer = self._pending[number] = asyncio.get_running_loop().create_future()
        self._send({"id": number, "method": method, "params": params})
        try:
            return await answer
        except asyncio.CancelledError:
            if not is_stopped():
                self.notify("$/cancel_request", {"requestId": number})
            raise
        finally:
            del self._pending[number]

    def hear(self, reply: Reply) -> None:
        """An answer of the client; one that nobody waits for is dropped."""
        answer = self._pending.get(reply.id)
        if answer is not None and not answer.done():
            answer.set_result(reply.result)

    def _send(self, message: Mapping[str, Any]) -> None:
        self._outbox.put(encode_message({**_VERSION, **message}))

"""The line to the client: answers, notifications, and requests of ours with their answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from codex_py.protocol.encoding import as_object
from codex_py.server.messages import RequestId, RpcError, encode_message

# Of a client that is so far behind, what only shows progress is dropped: whole items follow.
_MANY_WAITING: Final = 8 * 1024 * 1024


class ClientConnection:
    """Sends messages through `put`, in order; `waiting` gives the bytes that the client has not taken yet."""

    def __init__(self, put: Callable[[bytes], None], waiting: Callable[[], int]) -> None:
        self._put = put
        self._waiting = waiting
        self._unwanted: frozenset[str] = frozenset()
        self._next_id = 0
        self._pending: dict[RequestId, asyncio.Future[Mapping[str, Any] | None]] = {}

    def leave_out(self, methods: frozenset[str]) -> None:
        """Send none of these notifications."""
        self._unwanted = methods

    def answer(self, request_id: RequestId, result: Mapping[str, Any]) -> None:
        self._put(encode_message({"id": request_id, "result": result}))

    def refuse(self, request_id: RequestId | None, error: RpcError) -> None:
        self._put(encode_message(error.to_message(request_id)))

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell the client something, unless it does not want to hear of it."""
        if method in self._unwanted or (method.endswith(("elta", "/progress")) and self._waiting() > _MANY_WAITING):
            return
        self._put(encode_message({"method": method, "params": params, "emittedAtMs": time.time_ns() // 1_000_000}))

    def send_request(
        self, method: str, params: Mapping[str, Any]
    ) -> tuple[RequestId, asyncio.Future[Mapping[str, Any] | None]]:
        """Ask the client; gives back the id of the request, and what will hold the answer: None for an error."""
        request_id = self._next_id
        self._next_id += 1
        answer: asyncio.Future[Mapping[str, Any] | None] = asyncio.get_running_loop().create_future()
        self._pending[request_id] = answer
        self._put(encode_message({"method": method, "id": request_id, "params": params}))
        return request_id, answer

    def take_back(self, request_id: RequestId) -> None:
        """Wait for an answer no longer; one that still comes is dropped."""
        answer = self._pending.pop(request_id, None)
        if answer is not None:
            answer.cancel()

    def note_reply(self, request_id: RequestId, result: Mapping[str, Any] | None) -> None:
        """The client has answered. A second answer, and one that nobody waits for, is dropped."""
        answer = self._pending.pop(request_id, None)
        if answer is not None and not answer.done():
            answer.set_result(None if result is None else as_object(result))

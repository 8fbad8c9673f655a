"""The app-server: takes requests line by line, has them carried out beside each other, and ends in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, cast

from codex_py.errors import UserError
from codex_py.server.app.client_context import ClientContext, MethodResult
from codex_py.server.app.connection import ClientConnection
from codex_py.server.app.methods import METHODS
from codex_py.server.app.start import initialize
from codex_py.server.host import ServerHostProtocol
from codex_py.server.messages import (
    PARSE_ERROR,
    ClientCall,
    Reply,
    RpcError,
    Unreadable,
    read_message,
)
from codex_py.server.params import Params
from codex_py.server.pipes import LineSource, LineTooLong, Outbox
from codex_py.server.requests import ClientRequest, Requests
from codex_py.server.serving import serve_at_stdio

# These must not wait for what they are about.
_AT_ONCE: Final = frozenset({"turn/interrupt"})
# This takes as long as the client lets it.
_LONG: Final = "command/exec"


async def run_app_server(host: ServerHostProtocol, report_crash: Callable[[BaseException], str]) -> int:
    """Serve the client at stdin and stdout; the exit status. `report_crash` keeps a bug and gives a line about it."""

    def begin(outbox: Outbox) -> AppServer:
        connection = ClientConnection(outbox.put, lambda: outbox.waiting)
        return AppServer(ClientContext(host, connection, report_crash), report_crash)

    return await serve_at_stdio(begin)


class AppServer:
    """Requests about one thread are carried out in the order they came, all others at once."""

    def __init__(self, context: ClientContext, report_crash: Callable[[BaseException], str]) -> None:
        self._context = context
        self._connection = context.connection
        self._requests = Requests(report_crash)
        self._last: dict[str, asyncio.Task[None]] = {}

    async def serve(self, source: LineSource) -> None:
        """Until the input ends."""
        await self._requests.read(source, self._take)

    async def close(self) -> None:
        """Stop the requests under way, and end every thread in order."""
        await self._requests.stop()
        await self._context.close()

    def _take(self, line: bytes | LineTooLong) -> None:
        if isinstance(line, LineTooLong):
            self._connection.refuse(None, RpcError(str(line), code=PARSE_ERROR))
            return
        match read_message(line):
            case ClientCall() as call:
                self._begin(call)
            case Reply(request_id, result):
                self._connection.note_reply(request_id, result)
            case Unreadable(error, request_id):
                self._connection.refuse(request_id, error)
            case _:
                # What a client only tells, such as `initialized`, changes nothing here.
                pass

    def _begin(self, call: ClientCall) -> None:
        thread_id = _thread_of(call)
        before = None if thread_id is None else self._last.get(thread_id)
        request = ClientRequest(call, self._connection)
        is_long = call.method == _LONG
        if is_long and not self._requests.has_capacity:
            request.refuse(RpcError(f"too many requests of the kind `{_LONG}` are under way"))
            return
        task = self._requests.begin(self._answer(request, before), request.note_bug, is_long=is_long)
        if thread_id is not None:
            self._let_wait_for(task, thread_id)

    def _let_wait_for(self, task: asyncio.Task[None], thread_id: str) -> None:
        """The next request about the thread begins after this one."""
        self._last[thread_id] = task
        task.add_done_callback(lambda done: self._forget(thread_id, done))

    def _forget(self, thread_id: str, done: asyncio.Task[None]) -> None:
        if self._last.get(thread_id) is done:
            del self._last[thread_id]

    async def _answer(self, request: ClientRequest, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        try:
            answered = await self._run_method(request.call)
        except RpcError as error:
            request.refuse(error)
        except UserError as error:
            hint = f"; {error.hint}" if error.hint else ""
            request.refuse(RpcError(f"{error}{hint}"))
        else:
            task = asyncio.current_task()
            if task is not None and answered.opened_thread is not None and answered.opened_thread not in self._last:
                # Its client knows the thread now, and it is open when what follows has been done.
                self._let_wait_for(task, answered.opened_thread)
            request.answer(answered.result)
            if answered.follow_up is not None:
                await answered.follow_up()

    async def _run_method(self, call: ClientCall) -> MethodResult:
        if call.method == "initialize":
            return initialize(self._context, Params(call.params))
        if self._context.client is None:
            raise RpcError("not initialized")
        method = METHODS.get(call.method)
        if method is None:
            raise RpcError(f"invalid request: unknown method `{call.method[:200]}`")
        return await method(self._context, Params(call.params))


def _thread_of(call: ClientCall) -> str | None:
    """The thread whose requests this one waits for."""
    params = call.params
    if call.method in _AT_ONCE or not isinstance(params, dict):
        return None
    thread_id = cast("Mapping[str, object]", params).get("threadId")
    return thread_id.lower() if isinstance(thread_id, str) else None

"""The server of the Agent Client Protocol: reads messages line by line, and closes sessions in order at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from codex_py.protocol.encoding import as_object
from codex_py.server.acp.agent import AcpAgent
from codex_py.server.messages import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    ClientCall,
    Notice,
    RequestId,
    RpcError,
)
from codex_py.server.peer import AcpPeer, ClientRequest, Requests, serve_at_stdio
from codex_py.server.pipes import LineSource, Outbox, complain
from codex_py.server.threads import ServerHostProtocol, Threads

# The one request that takes as long as a turn takes.
_PROMPT: Final = "session/prompt"
_INVALID_PARAMS: Final = -32602


async def run_acp(host: ServerHostProtocol, report_crash: Callable[[BaseException], str]) -> int:
    """Serve the client at stdin and stdout; the exit status. `report_crash` logs a bug and gives a line about it."""
    return await serve_at_stdio(lambda outbox: _Server(outbox, host, report_crash))


class _Server:
    def __init__(self, outbox: Outbox, host: ServerHostProtocol, report_crash: Callable[[BaseException], str]) -> None:
        self._peer = AcpPeer(outbox)
        self._threads = Threads(host, report_crash)
        self._agent = AcpAgent(host, self._threads, self._peer)
        self._requests = Requests(report_crash)
        # The sessions of running prompts, by the ids of their requests.
        self._prompts: dict[RequestId, object] = {}

    async def serve(self, source: LineSource) -> None:
        """Serve until the input ends and the last requests, except prompts, are answered."""
        await self._requests.read(source, self._take)

    async def close(self) -> None:
        """Close every session in order, and with it the requests about it."""
        self._agent.stop()
        await self._threads.close_all()
        await self._requests.settle()

    def _take(self, line: bytes | None) -> None:
        match self._peer.receive(line):
            case ClientCall() as call:
                self._begin(call)
            case Notice("session/cancel", params):
                self._cancel(as_object(params).get("sessionId"))
            case Notice("$/cancel_request", params):
                number = as_object(params).get("requestId")
                if isinstance(number, str | int) and number in self._prompts:
                    self._cancel(self._prompts[number])
            case _:
                # Unknown notifications need no answer.
                pass

    def _begin(self, call: ClientCall) -> None:
        request = ClientRequest(call, self._peer)
        is_prompt = call.method == _PROMPT
        if is_prompt and not self._requests.has_capacity:
            request.refuse(RpcError("too many prompts wait already", code=INTERNAL_ERROR))
            return
        task = self._requests.begin(self._answer(request), request.note_bug, is_long=is_prompt)
        if is_prompt:
            self._prompts[call.id] = as_object(call.params).get("sessionId")
            task.add_done_callback(lambda _: self._prompts.pop(call.id, None))

    def _cancel(self, session_id: object) -> None:
        # As a task, so that requests that came before it have started by then.
        self._requests.begin(self._agent.cancel(session_id), complain)

    async def _answer(self, request: ClientRequest) -> None:
        try:
            result, then = await self._agent.carry_out(request.call.method, request.call.params)
        except RpcError as error:
            # The app-server has one code for all invalid requests; this protocol has a finer one.
            code = _INVALID_PARAMS if error.code == INVALID_REQUEST else error.code
            request.refuse(RpcError(str(error), code=code))
            return
        request.answer(result)
        if then is not None:
            await then()

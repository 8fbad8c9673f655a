"""The app-server: reads requests line by line, runs them concurrently, and closes threads in order at the end."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias, cast

from codex_py import __version__
from codex_py.errors import UserError
from codex_py.server.app import command_methods, config_methods, skill_methods, thread_methods, turn_methods
from codex_py.server.app.client_context import ClientContext, MethodResult
from codex_py.server.messages import ClientCall, Params, RpcError
from codex_py.server.peer import AppServerPeer, ClientRequest, Requests, serve_at_stdio
from codex_py.server.pipes import LineSource, Outbox
from codex_py.server.threads import ServerHostProtocol

Method: TypeAlias = Callable[[ClientContext, Params], Awaitable[MethodResult]]

METHODS: Final[Mapping[str, Method]] = {
    "thread/start": thread_methods.start,
    "thread/resume": thread_methods.resume,
    "thread/fork": thread_methods.fork,
    "thread/list": thread_methods.list_threads,
    "thread/loaded/list": thread_methods.loaded,
    "thread/read": thread_methods.read,
    "thread/turns/list": thread_methods.turns_list,
    "thread/name/set": thread_methods.set_name,
    "thread/archive": thread_methods.archive,
    "thread/unarchive": thread_methods.unarchive,
    "thread/delete": thread_methods.delete,
    "thread/unsubscribe": thread_methods.unsubscribe,
    "thread/rollback": thread_methods.rollback,
    "thread/compact/start": turn_methods.compact,
    "thread/shellCommand": turn_methods.shell,
    "thread/settings/update": turn_methods.update_settings,
    "turn/start": turn_methods.start,
    "turn/steer": turn_methods.steer,
    "turn/interrupt": turn_methods.interrupt,
    "review/start": turn_methods.review,
    "skills/list": skill_methods.list_skills,
    "skills/config/write": skill_methods.write_config,
    "skills/extraRoots/set": skill_methods.set_extra_roots,
    "model/list": config_methods.list_models,
    "config/read": config_methods.read_config,
    "account/read": config_methods.read_account,
    "account/login/start": config_methods.log_in,
    "account/logout": config_methods.log_out,
    "command/exec": command_methods.run,
    "command/exec/write": command_methods.write,
    "command/exec/terminate": command_methods.terminate,
}


# The protocol version, sent where clients look for the version of Codex CLI.
PROTOCOL: Final = "0.169.0"
_MAX_NAME_LENGTH: Final = 128


def initialize(context: ClientContext, params: Params) -> MethodResult:
    """Handle the client's introduction, which it may send once. Raises `RpcError`."""
    if context.name:
        raise RpcError("already initialized")
    info = params.nested("clientInfo")
    if info is None:
        raise params.missing("clientInfo")
    name, version = info.text("name"), info.text_or_none("version") or ""
    # It goes into a header of every request to the provider.
    if not name or not (name + version).isascii() or not (name + version).isprintable() or len(name) > _MAX_NAME_LENGTH:
        raise RpcError(
            "invalid request: `clientInfo.name` and `clientInfo.version` must be short printable ASCII texts"
        )
    capabilities = params.nested("capabilities")
    if capabilities is not None:
        context.connection.leave_out(frozenset(capabilities.texts("optOutNotificationMethods") or ()))
    context.name = name
    system = os.uname()
    platform, client = f"{system.sysname}; {system.machine}", f"{name}; {version}"
    return MethodResult(
        {
            "userAgent": f"{name}/{PROTOCOL} ({platform}) codex-py/{__version__} ({client})",
            "codexHome": str(context.host.home),
            "platformFamily": "unix",
            "platformOs": "macos" if sys.platform == "darwin" else "linux",
        }
    )


# Requests that must not wait for earlier requests about the same thread.
_AT_ONCE: Final = frozenset({"turn/interrupt"})
# The one request whose duration the client decides.
_LONG: Final = "command/exec"


async def run_app_server(host: ServerHostProtocol, report_crash: Callable[[BaseException], str]) -> int:
    """Serve the client at stdin and stdout; the exit status. `report_crash` logs a bug and gives a line about it."""
    return await serve_at_stdio(lambda outbox: AppServer(outbox, host, report_crash))


class AppServer:
    """Runs requests about the same thread in the order they came, and all others at once."""

    def __init__(self, outbox: Outbox, host: ServerHostProtocol, report_crash: Callable[[BaseException], str]) -> None:
        self._connection = AppServerPeer(outbox)
        self._context = ClientContext(host, self._connection, report_crash)
        self._requests = Requests(report_crash)
        self._last: dict[str, asyncio.Task[None]] = {}

    async def serve(self, source: LineSource) -> None:
        """Until the input ends."""
        await self._requests.read(source, self._take)

    async def close(self) -> None:
        """Stop the requests under way, and end every thread in order."""
        await self._requests.stop()
        await self._context.close()

    def _take(self, line: bytes | None) -> None:
        # Notifications of the client, such as `initialized`, change nothing here.
        if isinstance(call := self._connection.receive(line), ClientCall):
            self._begin(call)

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
                # The client knows the thread now; later requests about it wait until it is open.
                self._let_wait_for(task, answered.opened_thread)
            request.answer(answered.result)
            if answered.follow_up is not None and (pending := answered.follow_up()) is not None:
                await pending

    async def _run_method(self, call: ClientCall) -> MethodResult:
        if call.method == "initialize":
            return initialize(self._context, Params(call.params))
        if not self._context.name:
            raise RpcError("not initialized")
        method = METHODS.get(call.method)
        if method is None:
            raise RpcError(f"invalid request: unknown method `{call.method[:200]}`")
        return await method(self._context, Params(call.params))


def _thread_of(call: ClientCall) -> str | None:
    """The thread whose earlier requests this request waits for."""
    params = call.params
    if call.method in _AT_ONCE or not isinstance(params, dict):
        return None
    thread_id = cast("Mapping[str, object]", params).get("threadId")
    return thread_id.lower() if isinstance(thread_id, str) else None

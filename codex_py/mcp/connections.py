"""The servers of a session: started in the background, kept by one task each, called from anywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from codex_py.errors import UserError
from codex_py.mcp.catalog import Catalog, McpTool, describe_changes, load_catalog, save_catalog
from codex_py.mcp.child import ServerChild
from codex_py.mcp.host import (
    McpContext,
    McpFailed,
    McpHost,
    McpLoginNeeded,
    SignIn,
    auth_status,
)
from codex_py.mcp.servers import (
    McpServer,
    describe_unknown_tools,
    exposed_credential,
    find_missing_env,
    insecure_http_refusal,
    server_environment,
)
from codex_py.paths import is_directory
from codex_py.programs import ProgramFinder, program_finder
from codex_py.protocol.command import PreparedCommand
from codex_py.protocol.policy import DangerFullAccess, extra_roots
from codex_py.text.address import is_plain_http
from codex_py.text.display import counted
from codex_py.text.sanitize import sanitize_line

if TYPE_CHECKING:
    from codex_py.mcp.connection import Link

_MAX_RESTARTS: Final = 3
_TAIL_LINES: Final = 20
_SHOWN_LINES: Final = 3


class ServerState:
    """One server: what is known of it, and its connection once there is one. `seen` says that it was met before."""

    def __init__(self, server: McpServer, catalog: Catalog | None) -> None:
        self.server: Final = server
        self.catalog = catalog
        self.seen = catalog is not None
        self.failure: McpFailed | None = None
        self.stderr: list[str] = []
        # Whether the user is about to sign in where that is wanted.
        self.signs_in = False
        self.starts = 0
        self.owner: asyncio.Task[None] | None = None
        self.up: asyncio.Future[Link] | None = None
        # What has come since the session began, until it is shown to the model.
        self.fresh: Catalog | None = None
        # What it offers now, which may differ from what the model was shown.
        self.live: Catalog | None = None

    @property
    def known(self) -> Catalog | None:
        """The current offer of the server, or the one from its last connection."""
        return self.live or self.catalog

    def tool(self, name: str) -> McpTool | None:
        """The known description of a tool."""
        return next((tool for tool in self.known.tools if tool.name == name), None) if self.known else None

    def describe(self) -> str:
        """How the server is doing, in a few words."""
        if self.failure is not None:
            return f"failed: {self.failure}"
        running = "runs" if self.live is not None else "starts" if self.up is not None else "not started yet"
        if self.known is None:
            return running
        prompts = [counted(len(self.known.prompts), "prompt")] if self.known.prompts else []
        return ", ".join([running, counted(len(self.known.tools), "tool"), *prompts])


class McpConnections:
    """A table of live servers. `start` begins; `close` ends all of them, and waits until they have."""

    def __init__(self, servers: Sequence[McpServer], context: McpContext, host: McpHost) -> None:
        self._context = context
        self._host = host
        self._states = {server.name: ServerState(server, load_catalog(context.home, server)) for server in servers}
        self._importing = asyncio.Lock()
        self._closed = False

    @property
    def states(self) -> tuple[ServerState, ...]:
        """Every server, sorted by name."""
        return tuple(self._states[name] for name in sorted(self._states))

    def state(self, name: str) -> ServerState | None:
        """One server, by its name."""
        return self._states.get(name)

    def add(self, server: McpServer) -> ServerState:
        """One more server, not started yet."""
        state = ServerState(server, load_catalog(self._context.home, server))
        self._states[server.name] = state
        return state

    def start(self) -> None:
        """Start what is not started; returns at once."""
        for state in self._states.values():
            if state.owner is None:
                self._begin(state)

    async def link(self, name: str, *, sign_in: SignIn | None = None) -> Link:
        """The connection of a server, waited for. A lost one is opened again. Raises `McpFailed`."""
        state = self._states.get(name)
        if state is None or self._closed:
            raise McpFailed(f"there is no MCP server `{sanitize_line(name)}`")
        if state.owner is None or (state.owner.done() and self._may_restart(state, sign_in)):
            self._begin(state, sign_in)
        up, owner = state.up, state.owner
        assert up is not None
        assert owner is not None
        link = await asyncio.shield(up)
        if not link.lost.done():
            return link
        if link.has_answered:
            state.starts = 0
        if state.starts > _MAX_RESTARTS:
            raise McpFailed(f"the MCP server `{name}` has ended {state.starts} times: {link.lost.result()}")
        await asyncio.wait([owner])
        # Another call may have waited for the same end, and restarted it.
        again = self._begin(state) if state.up is up else state.up
        assert again is not None
        return await asyncio.shield(again)

    def give_up(self, state: ServerState) -> None:
        """Stop waiting for a server that is not up yet."""
        if state.owner is not None and state.up is not None and not state.up.done():
            state.owner.cancel()

    async def settle(self, states: Sequence[ServerState], *, seconds: float | None = None) -> tuple[ServerState, ...]:
        """Wait until these are up or have failed; gives back those that are not `seconds` later."""
        waiting = [state.up for state in states if state.up is not None]
        if waiting:
            await asyncio.wait(waiting, timeout=seconds)
        return tuple(state for state in states if state.up is not None and not state.up.done())

    async def close(self) -> None:
        """End every connection and every process."""
        self._closed = True
        owners = [state.owner for state in self._states.values() if state.owner is not None]
        for owner in owners:
            owner.cancel()
        if owners:
            await asyncio.wait(owners)

    def _may_restart(self, state: ServerState, sign_in: SignIn | None) -> bool:
        """Whether a server that has ended is started for who asks for it; one that failed at its start is not.

        Where a login was wanted there may be one now, also one that was got elsewhere.
        """
        is_open = state.failure is None
        if _wants_login(state):
            is_open = auth_status(state.server, self._context.tokens) == "o_auth"
        return sign_in is not None or (is_open and state.starts <= _MAX_RESTARTS)

    def _begin(self, state: ServerState, sign_in: SignIn | None = None) -> asyncio.Future[Link]:
        state.starts += 1
        state.failure = None
        state.up = up = asyncio.get_running_loop().create_future()
        # Nobody may be waiting for it when it fails.
        up.add_done_callback(_retrieve)
        state.owner = asyncio.create_task(self._own(state, up, sign_in))
        return up

    async def _own(self, state: ServerState, up: asyncio.Future[Link], sign_in: SignIn | None) -> None:
        """Everything the SDK does for one server happens within this task."""
        failure: McpFailed | None = McpFailed("its start was stopped")
        try:
            failure = await self._serve(state, up, sign_in)
        except McpFailed as error:
            failure = error
        finally:
            if failure is not None and not up.done():
                state.failure = _named(state.server, failure)
                up.set_exception(state.failure)
        if failure is not None and state.failure is not None and not (state.signs_in and _wants_login(state)):
            self._host.warn(f"{state.failure}{_quoted(state.stderr)}")

    async def _serve(self, state: ServerState, up: asyncio.Future[Link], sign_in: SignIn | None) -> McpFailed | None:
        """Keep a connection until it is lost; gives back why there was none."""
        server = state.server
        if missing := find_missing_env(server, self._context.env):
            return McpFailed(f"the environment variable `{missing[0]}` is not set")
        if credential := self._exposed(server, sign_in):
            return McpFailed(insecure_http_refusal(server, credential))
        for mode in ("legacy", "auto"):
            child = await self._child(server)
            sdk: Any = None
            link: Link | None = None
            try:
                # The first server takes half a second of work here, beside the first request.
                async with self._importing:
                    sdk = await asyncio.to_thread(_import_connection)
                link = made = sdk.Link(server, self._host, child.tail if child else None)
                async with asyncio.timeout(None if sign_in else server.start_seconds) as limit:
                    async with sdk.connected(made, self._context, mode=mode, child=child, sign_in=sign_in) as catalog:
                        limit.reschedule(None)
                        await self._keep(state, up, made, catalog)
                return None
            except TimeoutError:
                timed_out = f"it did not start within {server.start_seconds:g} s (`startup_timeout_sec`)"
                return McpFailed(f"{timed_out}{self._restriction(server)}")
            except Exception as error:
                if up.done():
                    return None
                if mode == "legacy" and link is not None and sdk.wants_other_handshake(error):
                    continue
                return _failure(link, error, self._restriction(server))
            finally:
                if child is not None:
                    await child.stop()
                    state.stderr = child.tail.lines(_TAIL_LINES)
        return None

    def _exposed(self, server: McpServer, sign_in: SignIn | None) -> str | None:
        """The credential, a login included, that would be sent unencrypted; None if there is none."""
        if (credential := exposed_credential(server)) or server.url is None or server.allow_insecure_http:
            return credential
        has_login = sign_in is not None or auth_status(server, self._context.tokens) == "o_auth"
        return "its login" if has_login and is_plain_http(server.url) else None

    async def _keep(self, state: ServerState, up: asyncio.Future[Link], link: Link, catalog: Catalog) -> None:
        changed = asyncio.Event()
        link.on_list_changed = changed.set
        self._store_catalog(state, catalog)
        up.set_result(link)
        while not link.lost.done():
            waiting = asyncio.create_task(changed.wait())
            try:
                await asyncio.wait([waiting, link.lost], return_when=asyncio.FIRST_COMPLETED)
            finally:
                waiting.cancel()
            if changed.is_set() and not link.lost.done():
                changed.clear()
                state.fresh = await link.catalog()
                self._store_catalog(state, state.fresh)

    def _store_catalog(self, state: ServerState, catalog: Catalog) -> None:
        """Store the offer of a server. Tools that the model has already seen stay unchanged in this session."""
        for remark in catalog.remarks:
            self._host.warn(f"MCP server `{state.server.name}`: {remark}")
        known, was_up = state.known, state.live is not None
        stored = state.live = catalog._replace(remarks=())
        if known is not None:
            self._warn_changes(state.server, known, stored, additions=not was_up)
        if not was_up:
            for remark in describe_unknown_tools(state.server, [tool.name for tool in stored.tools]):
                self._host.warn(remark)
        if not state.seen and state.catalog is None:
            state.catalog = state.fresh = stored
        if load_catalog(self._context.home, state.server) != stored:
            save_catalog(self._context.home, state.server, stored)

    def _warn_changes(self, server: McpServer, before: Catalog, after: Catalog, *, additions: bool) -> None:
        """A tool the user trusts may mean something else today. New ones of a running server join with a notice."""
        old, new = ([tool for tool in catalog.tools if server.offers(tool.name)] for catalog in (before, after))
        if changes := describe_changes(old, new, additions=additions):
            self._host.warn(
                f"the tools of the MCP server `{sanitize_line(server.name)}` are not what they were ({changes});"
                " the model is shown that from the next session on"
            )

    async def _child(self, server: McpServer) -> ServerChild | None:
        if server.url is not None:
            return None
        if server.cwd is not None and not is_directory(server.cwd):
            raise McpFailed(f"there is no directory `{sanitize_line(str(server.cwd))}` (`cwd`)")
        env = server_environment(server, self._context.env) | dict(self._context.mark)
        start = PreparedCommand(server.argv, server.cwd or self._context.cwd, env)
        if server.sandbox == "outside":
            start = self._with_trusted_programs(server, start)
        if server.pin or server.plugin:
            start = await self._agreed(server, start)
        try:
            return await ServerChild.start(start)
        except (OSError, ValueError) as error:
            reason = (error.strerror or str(error)).lower() if isinstance(error, OSError) else str(error)
            raise McpFailed(f"cannot start `{sanitize_line(server.command or '')}`: {reason}") from error

    def _with_trusted_programs(self, server: McpServer, start: PreparedCommand) -> PreparedCommand:
        """The start of a server that no sandbox holds: neither it nor what it starts is a program of a command's."""
        programs = self._programs(start.env)
        try:
            program = programs.find_chosen(start.argv[0], "its `command`")
        except UserError as error:
            raise McpFailed(f"{error} ({error.hint})") from error
        return start.replace(argv=(program, *start.argv[1:]), env={**start.env, "PATH": programs.trusted_path()})

    def _programs(self, env: Mapping[str, str]) -> ProgramFinder:
        limits = self._context.limits()
        return program_finder(env, limits.cwd, (self._context.cwd, *extra_roots(limits.policy)))

    async def _agreed(self, server: McpServer, start: PreparedCommand) -> PreparedCommand:
        """The start of a project's or a plugin's server as the user has agreed to it."""
        preparing = asyncio.ensure_future(
            asyncio.to_thread(self._context.confine, server, start, self._context.limits())
        )
        try:
            return await asyncio.shield(preparing)
        except asyncio.CancelledError:
            preparing.add_done_callback(_undo)
            raise

    def _restriction(self, server: McpServer) -> str:
        """A possible reason for a failure: the sandbox, or a program passed over because commands may write it."""
        if server.sandbox == "outside":
            env = server_environment(server, self._context.env)
            name = server.command or "/"
            passed_over = None if "/" in name else self._programs(env).find_untrusted(name)
            return f" (`{passed_over}` was passed over: commands may write it)" if passed_over else ""
        if isinstance(self._context.limits().policy, DangerFullAccess):
            return ""
        if server.plugin:
            return " (it runs in the sandbox: `sandbox` of its table says so)"
        more = "`--outside` allows" if server.sandbox == "network" else "`--network` or `--outside` allow"
        return f" (it runs in the sandbox; `codex-py mcp trust {sanitize_line(server.name)}` with {more} more)"


def _wants_login(state: ServerState) -> bool:
    return isinstance(state.failure, McpLoginNeeded)


def _import_connection() -> ModuleType:
    from codex_py.mcp import connection  # only once a server is started

    return connection


def _failure(link: Link | None, error: Exception, restriction: str) -> McpFailed:
    failure = McpFailed(type(error).__name__) if link is None else link.why(error)
    return McpFailed(f"{failure}{restriction}") if restriction else failure


def _named(server: McpServer, failure: McpFailed) -> McpFailed:
    """The failure as one line that says which server it is about."""
    message = f"the MCP server `{sanitize_line(server.name)}` is not available: {failure}"
    return McpLoginNeeded(message) if isinstance(failure, McpLoginNeeded) else McpFailed(message)


def _quoted(lines: Sequence[str]) -> str:
    return f"; it said: {sanitize_line(' | '.join(lines[-_SHOWN_LINES:]))[:300]}" if lines else ""


def _undo(preparing: asyncio.Future[PreparedCommand]) -> None:
    """Nobody starts what has been prepared."""
    if not preparing.cancelled() and preparing.exception() is None:
        preparing.result().discard()


def _retrieve(up: asyncio.Future[Any]) -> None:
    if not up.cancelled():
        up.exception()

"""One live connection to a server, through the SDK. Importing this takes a second of work: done in the background.

Whoever enters `connected` leaves it in the same task: the SDK's cancel scopes want that. Calls may come from any task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import mcp_types as types
from mcp import Client, MCPError
from mcp.client.auth import OAuthFlowError
from mcp.client.session import ClientRequestContext, IncomingMessage
from pydantic import BaseModel, ValidationError

from codex_py.mcp.catalog import Catalog, read_catalog
from codex_py.mcp.child import ServerChild, Tail
from codex_py.mcp.elicitation import ElicitationAnswer, answer_elicitation
from codex_py.mcp.host import McpContext, McpFailed, McpHost, McpLoginNeeded, Progress, SignIn
from codex_py.mcp.oauth import ServerLogin
from codex_py.mcp.repair import LenientStream, as_sent
from codex_py.mcp.servers import McpServer
from codex_py.mcp.transports import (
    TOO_LONG,
    describe_error,
    first_of,
    has_code_of_lost,
    http_streams,
    is_lost,
    not_connected,
    says_too_long,
    stdio_streams,
)
from codex_py.protocol.encoding import as_list

_Report = Callable[[Progress], None]

_MAX_PAGES: Final = 64
# Codes of answers that mean: not this handshake, the other one.
_OTHER_HANDSHAKE: Final = (types.UNSUPPORTED_PROTOCOL_VERSION, types.METHOD_NOT_FOUND)
_NO_SESSION: Final = 404
_CLOSED: Final = "the connection was closed"
_LOGGERS: Final = ("mcp", "client", "httpx2", "httpcore2")


class Link:
    """A connection that is up. Raises `McpFailed` for everything a server can get wrong."""

    def __init__(self, server: McpServer, host: McpHost, tail: Tail | None) -> None:
        self.server: Final = server
        self.tail: Final = tail or Tail()
        # Set when nothing more will come, with the reason.
        self.lost: Final[asyncio.Future[str]] = asyncio.get_running_loop().create_future()
        self.on_list_changed: Callable[[], None] = _nothing
        # Whether any call was answered.
        self.has_answered = False
        # Whether a user is there to sign in.
        self.signs_in = False
        self._host = host
        self._client: Client | None = None
        self._calls = 0
        self._limits: set[asyncio.Timeout] = set()
        self._asking: set[asyncio.Task[ElicitationAnswer]] = set()
        self._leaving: set[asyncio.Future[BaseModel]] = set()
        self._status: int | None = None

    async def call_tool(self, name: str, arguments: dict[str, Any], report: _Report) -> dict[str, Any]:
        """The `CallToolResult` as it stands on the wire; `report` gets its progress."""

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            report(Progress(progress, total, message or ""))

        return await self._request(lambda client: client.call_tool(name, arguments, progress_callback=hear))

    async def list_resources(self, cursor: str | None, *, templates: bool = False) -> dict[str, Any]:
        """One page of the resources, or of their templates; an empty one of a server that has none."""
        try:
            if templates:
                return await self._request(lambda client: client.list_resource_templates(cursor=cursor))
            return await self._request(lambda client: client.list_resources(cursor=cursor))
        except McpFailed:
            if self.lost.done() or self._client is None or self._client.server_capabilities.resources is not None:
                raise
            return {}

    async def read_resource(self, uri: str) -> dict[str, Any]:
        return await self._request(lambda client: client.read_resource(uri))

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> dict[str, Any]:
        return await self._request(lambda client: client.get_prompt(name, arguments))

    async def catalog(self) -> Catalog:
        """All the server offers now."""
        client = self._client
        assert client is not None
        has = client.server_capabilities
        tools = prompts = list[Any]()
        if has.tools is not None:
            tools = await _pages(lambda cursor: client.list_tools(cursor=cursor), "tools")
        if has.prompts is not None:
            prompts = await _pages(lambda cursor: client.list_prompts(cursor=cursor), "prompts")
        return read_catalog(tools, prompts, client.instructions or "")

    def lose(self, reason: str) -> None:
        """Note that nothing more will come."""
        if not self.lost.done():
            self.lost.set_result(reason)

    def end(self) -> None:
        """Note that the connection is over, and why if that is known."""
        self.lose(str(self._refusal() or _CLOSED))

    def attach(self, client: Client) -> None:
        self._client = client

    def note_refusal(self, status: int) -> None:
        self._status = status

    def why(self, error: BaseException) -> McpFailed:
        """An error of the SDK in one line for people and models."""
        first = first_of(error)
        if isinstance(first, McpFailed):
            return first
        if is_lost(first) and self.lost.done():
            return McpFailed(self.lost.result())
        if isinstance(first, OAuthFlowError) and self.signs_in:
            return McpFailed(f"the sign-in failed: {describe_error(first)}")
        if isinstance(first, OAuthFlowError):
            return self._login_needed()
        if (refusal := self._refusal()) is not None:
            return refusal
        if self.server.url and (reason := not_connected(first, self.server.url)) is not None:
            return McpFailed(reason)
        status = f" (HTTP {self._status})" if self._status else ""
        return McpFailed(f"{describe_error(first)}{status}")

    def _has_ended_session(self, error: MCPError) -> bool:
        # Some servers have no status of its own for a session they do not know, but this code.
        return self._status == _NO_SESSION or (self._status is not None and has_code_of_lost(error))

    def _refusal(self) -> McpFailed | None:
        """The failure to report after a 401 or 403; None after any other status."""
        if self._status not in (401, 403):
            return None
        if not self.server.authorizes:
            return self._login_needed()
        name = self.server.bearer_token_env_var
        sent = f"the token in `{name}`" if name else "the configured `Authorization` header"
        return McpFailed(f"the server refuses {sent} (HTTP {self._status})")

    def _login_needed(self) -> McpLoginNeeded:
        return McpLoginNeeded(f"the server wants a login: `codex-py mcp login {self.server.name}`")

    async def _request(self, send: Callable[[Client], Awaitable[BaseModel]]) -> dict[str, Any]:
        if self._client is None or self.lost.done():
            raise McpFailed("the connection is gone")
        self._calls += 1
        self._status = None
        seconds = self.server.call_seconds
        limit = asyncio.timeout(seconds)
        # A task of its own: one that is given up takes its time to tell the server so, and nobody waits for that.
        sent = asyncio.ensure_future(send(self._client))
        sent.add_done_callback(_retrieve)
        try:
            async with limit:
                self._limits.add(limit)
                result = await asyncio.shield(sent)
        except TimeoutError:
            raise McpFailed(f"no answer within {seconds:g} s") from None
        except MCPError as error:
            if is_lost(error):
                self.lose(await self._reason(error))
            elif self._has_ended_session(error):
                self.lose("the server knows the session no more")
            raise self.why(error) from error
        except (ValidationError, RuntimeError, ValueError, anyio.ClosedResourceError) as error:
            raise self.why(error) from error
        finally:
            self._limits.discard(limit)
            self._leave(sent)
            self._calls -= 1
            if not self._calls:
                for task in self._asking:
                    task.cancel()
        self.has_answered = True
        return as_sent(result)

    def _leave(self, sent: asyncio.Future[BaseModel]) -> None:
        if not sent.done():
            sent.cancel()
            self._leaving.add(sent)
            sent.add_done_callback(self._leaving.discard)

    async def _reason(self, error: MCPError) -> str:
        """Why the connection ended, which the transport may know a moment later."""
        if says_too_long(error.message):
            return TOO_LONG
        try:
            async with asyncio.timeout(0.5):
                return await asyncio.shield(self.lost)
        except TimeoutError:
            return str(self._refusal() or _CLOSED)

    async def elicit(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        if not self._calls:
            return types.ElicitResult(action="decline")
        request = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        asking = asyncio.ensure_future(answer_elicitation(self.server.name, request, self._host.ask))
        self._asking.add(asking)
        self._reschedule(None)
        try:
            await asyncio.wait([asking])
        finally:
            asking.cancel()
            self._asking.discard(asking)
            if not self._asking:
                self._reschedule(self.server.call_seconds)
        answered = ElicitationAnswer("cancel") if asking.cancelled() else asking.result()
        return types.ElicitResult.model_validate({"action": answered.action, "content": answered.content})

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        request = params.model_dump(by_alias=True, mode="json", exclude_none=True)
        answer = await self._host.sample(self.server.name, request)
        if answer is None:
            return types.ErrorData(code=types.INVALID_REQUEST, message="sampling is refused")
        return types.CreateMessageResult.model_validate(answer)

    async def list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate({"roots": [_root(directory) for directory in self._host.roots()]})

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.tail.append(f"{params.level}: {params.data}\n".encode(errors="replace")[:4096])

    async def hear(self, message: IncomingMessage) -> None:
        if isinstance(message, types.ToolListChangedNotification | types.PromptListChangedNotification):
            self.on_list_changed()

    def _reschedule(self, seconds: float | None) -> None:
        """A call's time stands still while a person thinks."""
        when = None if seconds is None else asyncio.get_running_loop().time() + seconds
        for limit in self._limits:
            limit.reschedule(when)


async def _pages(page: Callable[[str | None], Awaitable[BaseModel]], field: str) -> list[Any]:
    """All items of a list, page by page; a server that never ends it is cut off."""
    found: list[Any] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        try:
            answer = as_sent(await page(cursor))
        except MCPError as error:
            if error.code != types.METHOD_NOT_FOUND:
                raise
            break
        found += as_list(answer.get(field))
        cursor = answer.get("nextCursor")
        if not isinstance(cursor, str) or not cursor:
            break
    return found


def wants_other_handshake(error: BaseException) -> bool:
    """Whether a failed beginning says that the server knows only the newer handshake."""
    first = first_of(error)
    return isinstance(first, MCPError) and first.code in _OTHER_HANDSHAKE


@asynccontextmanager
async def connected(
    link: Link, context: McpContext, *, mode: str, child: ServerChild | None, sign_in: SignIn | None = None
) -> AsyncGenerator[Catalog, None]:
    """Do the handshake on an open link and yield what the server offers. `child` is the process of a started server.

    `mode` is the handshake: `legacy` is the one every server knows, `auto` begins with the newer one. Raises whatever
    the SDK raises; `Link.why` says it in one line.
    """
    _keep_quiet()
    link.signs_in = sign_in is not None
    async with _client(link, _lenient(_streams(link, context, child, sign_in)), mode, context) as client:
        link.attach(client)
        try:
            yield await link.catalog()
        finally:
            link.end()


@asynccontextmanager
async def _lenient(streams: Any) -> AsyncGenerator[tuple[Any, Any], None]:
    async with streams as (read, write):
        yield LenientStream(read), write


def _streams(link: Link, context: McpContext, child: ServerChild | None, sign_in: SignIn | None) -> Any:
    if child is not None:
        return stdio_streams(child, link.lose)
    server = link.server
    auth = None if server.authorizes else ServerLogin(server, context, sign_in)
    return http_streams(server, context.env, auth, on_refusal=link.note_refusal)


def _client(link: Link, streams: Any, mode: str, context: McpContext) -> Client:
    return Client(
        streams,
        mode=mode,
        cache=None,
        elicitation_callback=link.elicit,
        sampling_callback=link.sample if link.server.sampling else None,
        list_roots_callback=link.list_roots,
        logging_callback=link.log,
        message_handler=link.hear,
        client_info=types.Implementation(name="codex-py", version=context.version),
    )


def _keep_quiet() -> None:
    """Keep the SDK's log off the screen: without a handler Python would print it."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
            logger.propagate = False


def _root(directory: Path) -> dict[str, str]:
    return {"uri": directory.as_uri(), "name": directory.name}


def _retrieve(request: asyncio.Future[BaseModel]) -> None:
    """Retrieve the outcome, so that asyncio does not report an unretrieved exception."""
    if not request.cancelled():
        request.exception()


def _nothing() -> None:
    """The default of what listens for changes."""

"""The methods of the Agent Client Protocol, version 1, that clients call, and the login they ask for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeAlias

from codex_py import __version__
from codex_py.core.model_setup import has_login
from codex_py.core.session_request import ResumeTarget
from codex_py.errors import LoginNeeded, UserError
from codex_py.protocol import events
from codex_py.protocol.encoding import is_uuid
from codex_py.rollout.archive import delete_session
from codex_py.rollout.listing import SessionQuery, describe_damaged, list_sessions
from codex_py.rollout.summary import SessionSummary
from codex_py.rollout.transcript import RewindChoice
from codex_py.server.acp.commands import REWIND_METHOD, called_rewind, describe_rewind, read_rewind, rewind_payload
from codex_py.server.acp.content import Json
from codex_py.server.acp.conversation import AcpSession
from codex_py.server.acp.params import Abilities, directories_of, directory_of, read_abilities, read_prompt, servers_of
from codex_py.server.messages import INTERNAL_ERROR, Params, RpcError
from codex_py.server.peer import AcpPeer
from codex_py.server.pipes import complain
from codex_py.server.threads import (
    LiveThread,
    Opening,
    RollbackOutcome,
    ServerHostProtocol,
    Threads,
)
from codex_py.text.display import first_words

AUTH_REQUIRED: Final = -32000
_LOGIN: Final = "login"
_TERMINAL: Final = "terminal-login"
_HOW: Final = "run `codex-py login` in a terminal, or set `OPENAI_API_KEY` where codex-py is started"


def auth_methods(*, has_terminal: bool) -> list[Json]:
    """The ways to log in. With `has_terminal` the client can start a program in a terminal."""
    methods: list[Json] = [
        {"id": _LOGIN, "name": "Log in with codex-py", "description": "Run `codex-py login` in a terminal first"},
    ]
    if has_terminal:
        methods.append({"type": "terminal", "id": _TERMINAL, "name": "Log in with ChatGPT", "args": ["--login"]})
    return methods


def check_login(host: ServerHostProtocol, method: str) -> None:
    """Raise `RpcError` where there is no login and no key for the configured provider, and for an unknown method.

    Raises `UserError` where the configuration cannot be read.
    """
    if method not in (_LOGIN, _TERMINAL):
        raise RpcError(f"invalid request: there is no authentication method `{method[:80]}`")
    loaded = host.load(host.home.parent, {})
    if not has_login(loaded.config, env=host.env, home=host.home):
        raise RpcError(f"nobody is logged in; {_HOW}", code=AUTH_REQUIRED)


def login_error(error: UserError) -> RpcError:
    """The protocol's error for a `UserError`."""
    if isinstance(error, LoginNeeded):
        return RpcError(f"{error}; {_HOW}", code=AUTH_REQUIRED)
    return RpcError(f"{error}; {error.hint}" if error.hint else str(error))


_Method: TypeAlias = Callable[[Params], Awaitable[Json]]

_VERSION: Final = 1
_METHOD_NOT_FOUND: Final = -32601
_NOT_FOUND: Final = -32002
_ORIGINATOR: Final = "codex_acp"
_PAGE: Final = 100
_MAX_TITLE_LENGTH: Final = 100
_CAPABILITIES: Final[Mapping[str, Any]] = {
    "loadSession": True,
    "promptCapabilities": {"image": True, "audio": False, "embeddedContext": True},
    "mcpCapabilities": {"http": True, "sse": False},
    "sessionCapabilities": {
        "list": {},
        "delete": {},
        "fork": {},
        "resume": {},
        "close": {},
        "additionalDirectories": {},
    },
}


class AcpAgent:
    """The sessions of one client."""

    def __init__(self, host: ServerHostProtocol, threads: Threads, peer: AcpPeer) -> None:
        self._host = host
        self._threads = threads
        self._peer = peer
        self._conversations: dict[str, AcpSession] = {}
        # Sessions that are being opened or closed: requests about one wait for that.
        self._changing: dict[str, asyncio.Event] = {}
        self._abilities = Abilities()
        self._methods: Mapping[str, _Method] = {
            "initialize": self._initialize,
            "authenticate": self._authenticate,
            "session/new": self._new,
            "session/load": partial(self._take_up, replays=True),
            "session/resume": partial(self._take_up, replays=False),
            "session/fork": self._fork,
            "session/list": self._list,
            "session/close": self._close,
            "session/delete": self._delete,
            "session/prompt": self._prompt,
            REWIND_METHOD: self._rewind,
            "session/set_mode": self._set_mode,
            "session/set_config_option": self._set_option,
        }

    async def carry_out(self, method: str, params: object) -> tuple[Json, Callable[[], Awaitable[None]] | None]:
        """The answer to a request, and what to run after it is sent. Raises `RpcError`."""
        work = self._methods.get(method)
        if work is None:
            raise RpcError(f"there is no method `{method[:80]}`", code=_METHOD_NOT_FOUND)
        try:
            result = await work(Params(params))
        except UserError as error:
            raise login_error(error) from error
        opened = result.pop("_opened", None)
        return result, opened.begin if isinstance(opened, AcpSession) else None

    async def cancel(self, session_id: object) -> None:
        """Stop the work of a session; an unknown id is ignored."""
        if not isinstance(session_id, str):
            return
        # A prompt sent earlier may be waiting for the same session to open.
        await self._settled(session_id)
        if (conversation := self._conversations.get(session_id)) is not None:
            conversation.cancel()

    def stop(self) -> None:
        """Stop the work of every session, and drop prompts that wait."""
        for conversation in self._conversations.values():
            conversation.cancel()

    async def _initialize(self, params: Params) -> Json:
        self._abilities = read_abilities(params.table("clientCapabilities") or {})
        return {
            "protocolVersion": _VERSION,
            "agentCapabilities": _CAPABILITIES,
            "agentInfo": {"name": "codex-py", "title": "codex-py", "version": __version__},
            "authMethods": auth_methods(has_terminal=self._abilities.terminal),
        }

    async def _authenticate(self, params: Params) -> Json:
        await asyncio.to_thread(check_login, self._host, params.text("methodId"))
        return {}

    async def _new(self, params: Params) -> Json:
        try:
            return await self._open(params, None)
        except LoginNeeded:
            raise
        except UserError as error:
            # The request is valid; a setting is wrong, or a required server is missing.
            raise RpcError(str(login_error(error)), code=INTERNAL_ERROR) from error

    async def _fork(self, params: Params) -> Json:
        session_id = _stored_id(params)
        await self._settled(session_id)
        return await self._open(params, ResumeTarget(session_id, any_directory=True, fork=True))

    async def _take_up(self, params: Params, *, replays: bool) -> Json:
        """Open a stored session with the settings in the request; one that is open here is closed first."""
        session_id = _stored_id(params)
        async with self._alone_with(session_id):
            live = self._conversations.get(session_id)
            if live is not None:
                if live.is_busy:
                    raise RpcError(f"invalid request: the session `{session_id[:80]}` is busy")
                await self._end(session_id)
            result = await self._open(params, ResumeTarget(session_id, any_directory=True))
            if replays:
                await result["_opened"].replay()
        del result["sessionId"]
        return result

    async def _open(self, params: Params, target: ResumeTarget | None) -> Json:
        opening = Opening(
            cwd=directory_of(params),
            target=target,
            originator=_ORIGINATOR,
            extra_roots=directories_of(params),
            servers=servers_of(params),
        )
        conversation = await self._open_session(opening)
        return {"sessionId": conversation.thread.id, **conversation.state(), "_opened": conversation}

    async def _open_session(self, opening: Opening) -> AcpSession:
        def make_listener(thread: LiveThread) -> Callable[[events.Event], None]:
            conversation = self._conversations[thread.id] = AcpSession(thread, self._peer, self._abilities)
            return conversation.hear

        thread = await self._threads.open(opening, make_listener)
        return self._conversations[thread.id]

    async def _list(self, params: Params) -> Json:
        directory = params.text_or_none("cwd")
        cwd = Path(directory) if directory else None
        found = await asyncio.to_thread(list_sessions, self._host.home, SessionQuery(cwd))
        cursor = params.text_or_none("cursor")
        start = _page_start(cursor, found)
        payload: Json = {"sessions": [_listed(session) for session in found[start : start + _PAGE]]}
        if cursor is None and (damaged := await asyncio.to_thread(describe_damaged, self._host.home, cwd)):
            complain(f"warning: {damaged}")
            payload["_meta"] = {"codex-py/warning": damaged}
        if len(found) > start + _PAGE:
            payload["nextCursor"] = found[start + _PAGE - 1].id
        return payload

    async def _close(self, params: Params) -> Json:
        async with self._alone_with(params.text("sessionId")):
            await self._end(self._opened_session(params).thread.id)
        return {}

    async def _delete(self, params: Params) -> Json:
        session_id = params.text("sessionId")
        async with self._alone_with(session_id):
            await self._end(session_id)
            found = await asyncio.to_thread(list_sessions, self._host.home, SessionQuery())
            stored = next((session for session in found if session.id == session_id), None)
            if stored is not None:
                await asyncio.to_thread(delete_session, stored.path)
        return {}

    async def _prompt(self, params: Params) -> Json:
        conversation = await self._named(params)
        prompt = read_prompt(params)
        if (request := called_rewind(prompt.text)) is not None:
            done = await self._go_back(conversation, request)
            self._opened_session(params).show_message(describe_rewind(done))
            return {"stopReason": "end_turn"}
        return await conversation.prompt(prompt)

    async def _rewind(self, params: Params) -> Json:
        return rewind_payload(await self._go_back(await self._named(params), read_rewind(params)))

    async def _go_back(self, conversation: AcpSession, request: RewindChoice) -> RollbackOutcome:
        """Close a session, which stops all that runs in it, go back, and open it again as it was opened."""
        session_id, opening = conversation.thread.id, conversation.thread.opening
        if request.dry_run:
            return await asyncio.to_thread(self._host.roll_back, session_id, request)
        async with self._alone_with(session_id):
            await self._end(session_id)
            try:
                return await asyncio.to_thread(self._host.roll_back, session_id, request)
            finally:
                target = ResumeTarget(session_id, any_directory=True)
                again = await self._open_session(opening.replace(target=target))
                await again.begin()

    async def _set_mode(self, params: Params) -> Json:
        conversation = await self._named(params)
        await conversation.set_mode(params.text("modeId"))
        return {}

    async def _set_option(self, params: Params) -> Json:
        conversation = await self._named(params)
        option, value = params.text("configId"), params.raw("value")
        return {"configOptions": await conversation.set_option(option, value)}

    async def _named(self, params: Params) -> AcpSession:
        await self._settled(params.text("sessionId"))
        return self._opened_session(params)

    def _opened_session(self, params: Params) -> AcpSession:
        session_id = params.text("sessionId")
        conversation = self._conversations.get(session_id)
        if conversation is None:
            raise RpcError(f"there is no open session `{session_id[:80]}`", code=_NOT_FOUND)
        return conversation

    @asynccontextmanager
    async def _alone_with(self, session_id: str) -> AsyncGenerator[None, None]:
        """Keep other requests from opening, closing or using the session meanwhile."""
        await self._settled(session_id)
        done = self._changing[session_id] = asyncio.Event()
        try:
            yield
        finally:
            del self._changing[session_id]
            done.set()

    async def _settled(self, session_id: str) -> None:
        """Wait until no request is opening or closing the session."""
        while (changing := self._changing.get(session_id)) is not None:
            await changing.wait()

    async def _end(self, session_id: str) -> None:
        conversation = self._conversations.get(session_id)
        if conversation is not None:
            conversation.cancel()
            # Closed before it is forgotten, so that it sees the end of its turn.
            await conversation.thread.close()
            del self._conversations[session_id]


def _stored_id(params: Params) -> str:
    """The id of a stored session. Names are not accepted, because every message about a session carries its id."""
    session_id = params.text("sessionId")
    if not is_uuid(session_id):
        raise RpcError(f"there is no session `{session_id[:80]}`", code=_NOT_FOUND)
    return session_id


def _page_start(cursor: str | None, found: list[SessionSummary]) -> int:
    """The index at which a page begins: after the last session of the page before."""
    if cursor is None:
        return 0
    index = next((position for position, session in enumerate(found) if session.id == cursor), None)
    if index is None:
        raise RpcError("invalid request: `cursor` is unknown, or its session is gone")
    return index + 1


def _listed(session: SessionSummary) -> Json:
    title = session.name or first_words(session.first_prompt, _MAX_TITLE_LENGTH)
    return {
        "sessionId": session.id,
        "cwd": session.cwd,
        "updatedAt": session.updated,
        **({"title": title} if title else {}),
    }

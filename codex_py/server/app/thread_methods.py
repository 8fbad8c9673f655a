"""Requests about threads: opening them, reading them, and putting them in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from codex_py.core.offered_sessions import (
    SessionSummary,
    archive_session,
    delete_session,
    find_exactly,
    name_session,
    summary_of,
    unarchive_session,
)
from codex_py.core.past_turns import PastTurn, past_turns
from codex_py.core.session_request import ResumeTarget
from codex_py.errors import UserError
from codex_py.protocol.ids import is_uuid
from codex_py.server.app.desk import Answered, Desk
from codex_py.server.app.openings import read_live_override, read_opening
from codex_py.server.app.settings import told_opening
from codex_py.server.app.threads_told import NOT_LOADED, told_live, told_stored
from codex_py.server.app.turns import past_turn
from codex_py.server.live_thread import LiveThread
from codex_py.server.messages import RpcError
from codex_py.server.params import Params, here

_SHOWN: Final = 80


async def start(desk: Desk, params: Params) -> Answered:
    """`thread/start`"""
    thread = await desk.open(read_opening(params, cwd=here(), originator=desk.name))
    return await _opened(desk, thread, None, turns=False)


async def resume(desk: Desk, params: Params) -> Answered:
    """`thread/resume`: a stored thread, or one that is live already, whose settings change where that is asked for."""
    thread_id = _thread_id(params)
    if (live := desk.threads.get(thread_id)) is not None:
        if (op := read_live_override(params)) is not None:
            await live.override(op)
        thread = await _told(desk, live, turns=not params.flag("excludeTurns"))
        return Answered({"thread": thread, **told_opening(live.session.settings, live.loaded.config)})
    stored = await _stored(desk, thread_id)
    if stored.archived:
        raise RpcError(f"session {thread_id} is archived: `thread/unarchive` brings it back")
    target = ResumeTarget(thread_id=thread_id, any_directory=True)
    return await _reopen(desk, params, stored, target)


async def fork(desk: Desk, params: Params) -> Answered:
    """`thread/fork`: a new thread that goes on from a stored one, from its end or from the end of a turn."""
    thread_id = _thread_id(params)
    stored = await _stored(desk, thread_id)
    target = ResumeTarget(thread_id=thread_id, any_directory=True, fork=True, turn=await _turn_number(stored, params))
    return await _reopen(desk, params, stored, target)


async def read(desk: Desk, params: Params) -> Answered:
    """`thread/read`"""
    thread_id, turns = _thread_id(params), params.flag("includeTurns")
    live = desk.threads.get(thread_id)
    if live is not None:
        if turns and live.session.rollout is None:
            raise RpcError("the turns of an ephemeral thread are not kept: read it without `includeTurns`")
        return Answered({"thread": await _told(desk, live, turns=turns), "readState": None})
    stored = await _stored(desk, thread_id)
    found = await _turns_of(stored.path, None) if turns else []
    return Answered({"thread": told_stored(stored, NOT_LOADED, found), "readState": None})


async def set_name(desk: Desk, params: Params) -> Answered:
    """`thread/name/set`"""
    thread_id = _thread_id(params)
    await _stored(desk, thread_id)
    name = await asyncio.to_thread(name_session, desk.host.home, thread_id, params.text("name"))

    async def tell() -> None:
        desk.connection.notify("thread/name/updated", {"threadId": thread_id, "threadName": name})

    return Answered({}, tell)


async def archive(desk: Desk, params: Params) -> Answered:
    """`thread/archive`: a live thread is ended first."""
    return await _put_away(desk, params, archive_session, "thread/archived")


async def delete(desk: Desk, params: Params) -> Answered:
    """`thread/delete`: the same."""
    return await _put_away(desk, params, delete_session, "thread/deleted")


async def unarchive(desk: Desk, params: Params) -> Answered:
    """`thread/unarchive`"""
    thread_id = _thread_id(params)
    path = await asyncio.to_thread(find_exactly, desk.host.home, thread_id)
    back = await asyncio.to_thread(unarchive_session, path)
    stored = await asyncio.to_thread(summary_of, desk.host.home, back)
    tell = partial(_tell, desk, "thread/unarchived", thread_id)
    return Answered({"thread": told_stored(stored, NOT_LOADED)}, tell)


async def unsubscribe(desk: Desk, params: Params) -> Answered:
    """`thread/unsubscribe`: nobody wants to hear of the thread any more, so that it ends."""
    live = desk.threads.get(_thread_id(params))
    if live is None:
        return Answered({"status": "notLoaded"})

    async def close() -> None:
        await desk.close_thread(live)
        await _tell(desk, "thread/closed", live.id)

    return Answered({"status": "unsubscribed"}, close)


async def loaded(desk: Desk, params: Params) -> Answered:
    """`thread/loaded/list`"""
    return Answered({"data": [thread.id for thread in desk.threads], "nextCursor": None})


async def turns_list(desk: Desk, params: Params) -> Answered:
    """`thread/turns/list`: pages of a thread's turns, the newest first unless the client wants it otherwise."""
    thread_id = _thread_id(params)
    live = desk.threads.get(thread_id)
    stored = await _stored(desk, thread_id)
    turns = await _turns_of(stored.path, live.turn_id if live else None)
    if params.one_of("sortDirection", ("asc", "desc")) != "asc":
        turns.reverse()
    start_at = _cursor(params)
    end = start_at + (params.whole("limit", most=10_000) or 25)
    following = str(end) if end < len(turns) else None
    return Answered({"data": turns[start_at:end], "nextCursor": following, "backwardsCursor": None})


async def _reopen(desk: Desk, params: Params, stored: SessionSummary, target: ResumeTarget) -> Answered:
    """Open a stored thread. Only its conversation comes from the file, which may be somebody else's.

    As in `exec resume`, approvals, sandbox, model, provider and directory are the client's or the user's own.
    """
    thread = await desk.open(read_opening(params, cwd=here(), originator=desk.name, target=target))
    return await _opened(desk, thread, stored, turns=not params.flag("excludeTurns"))


async def _opened(desk: Desk, thread: LiveThread, stored: SessionSummary | None, *, turns: bool) -> Answered:
    """The answer to opening a thread; `stored` is what it goes on with. One that cannot be told of is closed again."""
    try:
        told = await _told(desk, thread, turns=False)
        if stored is not None and stored.id != thread.id:
            # Nothing has been written to its own file yet.
            told |= {"forkedFromId": stored.id, "preview": stored.first_prompt}
        if stored is not None and turns:
            told["turns"] = await _turns_of(stored.path, None, through=thread.opening.target)
    except BaseException:
        await desk.close_thread(thread)
        raise

    async def begin() -> None:
        if stored is None or stored.id != thread.id:
            desk.connection.notify("thread/started", {"thread": {**told, "turns": []}})
        else:
            status = {"threadId": thread.id, "status": desk.teller(thread).status}
            desk.connection.notify("thread/status/changed", status)
        desk.teller(thread).release()
        await thread.begin()
        await desk.watch_skills()

    return Answered({"thread": told, **told_opening(thread.session.settings, thread.loaded.config)}, begin, thread.id)


async def _told(desk: Desk, thread: LiveThread, *, turns: bool) -> dict[str, Any]:
    teller = desk.teller(thread)
    path = thread.session.rollout
    summary = None
    if path is not None:
        try:
            summary = await asyncio.to_thread(summary_of, desk.host.home, path)
        except UserError:
            # Nothing has been written to it yet.
            summary = None
    told = told_live(thread, teller.status, summary, preview=teller.first_prompt)
    if turns and summary is not None:
        told["turns"] = await _turns_of(summary.path, thread.turn_id)
    return told


async def _turns_of(path: Path, running: str | None, *, through: ResumeTarget | None = None) -> list[dict[str, Any]]:
    """The turns of a file, up to the one at whose end a fork leaves."""
    end = through.turn if through else None
    found = await asyncio.to_thread(past_turns, path)
    return [past_turn(turn, running=running) for turn in (found if end is None else _first_turns(found, end))]


def _first_turns(turns: Sequence[PastTurn], number: int) -> Sequence[PastTurn]:
    """The turns up to the one of this number: counted are those in which the user said something."""
    said = [place for place, turn in enumerate(turns) if turn.is_users]
    return turns[: said[number - 1] + 1] if number <= len(said) else turns


async def _stored(desk: Desk, thread_id: str) -> SessionSummary:
    """What is stored of a thread. Raises `UserError`."""
    home = desk.host.home
    path = await asyncio.to_thread(find_exactly, home, thread_id)
    return await asyncio.to_thread(summary_of, home, path)


async def _put_away(desk: Desk, params: Params, put: Callable[[Path], object], told: str) -> Answered:
    thread_id = _thread_id(params)
    path = await asyncio.to_thread(find_exactly, desk.host.home, thread_id)
    if (live := desk.threads.get(thread_id)) is not None:
        await desk.close_thread(live)
    await asyncio.to_thread(put, path)
    return Answered({}, partial(_tell, desk, told, thread_id))


async def _tell(desk: Desk, method: str, thread_id: str) -> None:
    desk.connection.notify(method, {"threadId": thread_id})


async def _turn_number(stored: SessionSummary, params: Params) -> int | None:
    """Which turn a fork leaves at the end of, counted from 1 among those in which the user said something."""
    through, before = params.text_or_none("lastTurnId"), params.text_or_none("beforeTurnId")
    if through is None and before is None:
        return None
    turns = await asyncio.to_thread(past_turns, stored.path)
    wanted = through or before or ""
    place = next((place for place, turn in enumerate(turns) if turn.id == wanted), None)
    if place is None:
        raise RpcError(f"no turn `{wanted[:_SHOWN]}` in thread {stored.id}")
    number = sum(turn.is_users for turn in turns[: place + (1 if through is not None else 0)])
    if number == 0:
        raise RpcError("there is nothing before the first turn: start a new thread")
    return number


def _thread_id(params: Params) -> str:
    thread_id = params.text("threadId").lower()
    if not is_uuid(thread_id):
        raise RpcError(f"invalid thread id: `{thread_id[:_SHOWN]}`")
    return thread_id


def _cursor(params: Params) -> int:
    cursor = params.text_or_none("cursor")
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 10):
        raise RpcError(f"invalid cursor: `{cursor[:_SHOWN]}`")
    return int(cursor)

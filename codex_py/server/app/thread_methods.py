"""Requests about threads: opening, reading, listing, renaming, archiving and deleting them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

from codex_py.core.session_request import ResumeTarget
from codex_py.errors import UserError
from codex_py.protocol.encoding import is_uuid
from codex_py.protocol.ops import StopWork
from codex_py.rollout.archive import archive_session, delete_session, unarchive_session
from codex_py.rollout.listing import (
    SessionQuery,
    describe_damaged,
    find_exactly,
    list_sessions,
    load_summary,
    real_directory,
    save_name,
)
from codex_py.rollout.stored_turns import past_turns
from codex_py.rollout.summary import SessionSummary
from codex_py.rollout.transcript import RewindChoice, read_turns
from codex_py.server.app.client_context import ClientContext, MethodResult, page_of
from codex_py.server.app.items import past_turn
from codex_py.server.app.settings import opening_payload, read_live_override, read_opening
from codex_py.server.app.thread_payloads import NOT_LOADED, live_thread_payload, source_type, stored_thread_payload
from codex_py.server.messages import Params, RpcError
from codex_py.server.threads import LiveThread

_SHOWN: Final = 80
_PAGE: Final = 25


async def start(context: ClientContext, params: Params) -> MethodResult:
    """`thread/start`"""
    thread = await context.open(read_opening(params, originator=context.name))
    return await _opened(context, thread, None, turns=False)


async def resume(context: ClientContext, params: Params) -> MethodResult:
    """`thread/resume`: open a stored thread, or return a live one after applying the settings in the request."""
    thread_id = _thread_id(params)
    if (live := context.threads.get(thread_id)) is not None:
        if (op := read_live_override(params)) is not None:
            await live.session.submit(op)
        thread = await _thread_payload(context, live, turns=not params.flag("excludeTurns"))
        return MethodResult({"thread": thread, **opening_payload(live.session.settings, live.loaded.config)})
    stored = await _stored_thread(context, thread_id)
    if stored.archived:
        raise RpcError(f"session {thread_id} is archived: `thread/unarchive` brings it back")
    target = ResumeTarget(thread_id=thread_id, any_directory=True)
    return await _reopen(context, params, stored, target)


async def fork(context: ClientContext, params: Params) -> MethodResult:
    """`thread/fork`: a new thread that continues a stored one from its end or from the end of a turn."""
    thread_id = _thread_id(params)
    stored = await _stored_thread(context, thread_id)
    target = ResumeTarget(thread_id=thread_id, any_directory=True, fork=True, turn=await _turn_number(stored, params))
    return await _reopen(context, params, stored, target)


async def read(context: ClientContext, params: Params) -> MethodResult:
    """`thread/read`"""
    thread_id, turns = _thread_id(params), params.flag("includeTurns")
    live = context.threads.get(thread_id)
    if live is not None:
        if turns and live.session.rollout is None:
            raise RpcError("the turns of an ephemeral thread are not kept: read it without `includeTurns`")
        return MethodResult({"thread": await _thread_payload(context, live, turns=turns), "readState": None})
    stored = await _stored_thread(context, thread_id)
    found = await _turns_of(stored.path, None) if turns else []
    return MethodResult({"thread": stored_thread_payload(stored, NOT_LOADED, found), "readState": None})


async def set_name(context: ClientContext, params: Params) -> MethodResult:
    """`thread/name/set`"""
    thread_id = _thread_id(params)
    await _stored_thread(context, thread_id)
    name = await asyncio.to_thread(save_name, context.host.home, thread_id, params.text("name"))
    renamed = {"threadId": thread_id, "threadName": name}
    return MethodResult({}, partial(context.connection.notify, "thread/name/updated", renamed))


async def archive(context: ClientContext, params: Params) -> MethodResult:
    """`thread/archive`: a live thread is ended first."""
    return await _put_away(context, params, archive_session, "thread/archived")


async def delete(context: ClientContext, params: Params) -> MethodResult:
    """`thread/delete`: the same."""
    return await _put_away(context, params, delete_session, "thread/deleted")


async def unarchive(context: ClientContext, params: Params) -> MethodResult:
    """`thread/unarchive`"""
    thread_id = _thread_id(params)
    path = await asyncio.to_thread(find_exactly, context.host.home, thread_id)
    back = await asyncio.to_thread(unarchive_session, path)
    stored = await asyncio.to_thread(load_summary, context.host.home, back)
    notify = partial(context.connection.notify, "thread/unarchived", {"threadId": thread_id})
    return MethodResult({"thread": stored_thread_payload(stored, NOT_LOADED)}, notify)


async def unsubscribe(context: ClientContext, params: Params) -> MethodResult:
    """`thread/unsubscribe`: the client is done with the thread, so it is closed."""
    live = context.threads.get(_thread_id(params))
    if live is None:
        return MethodResult({"status": "notLoaded"})

    async def close() -> None:
        await context.close_thread(live)
        context.connection.notify("thread/closed", {"threadId": live.id})

    return MethodResult({"status": "unsubscribed"}, close)


async def loaded(context: ClientContext, params: Params) -> MethodResult:
    """`thread/loaded/list`"""
    return MethodResult({"data": [thread.id for thread in context.threads], "nextCursor": None})


async def turns_list(context: ClientContext, params: Params) -> MethodResult:
    """`thread/turns/list`: pages of a thread's turns, the newest first unless the client wants it otherwise."""
    thread_id = _thread_id(params)
    live = context.threads.get(thread_id)
    stored = await _stored_thread(context, thread_id)
    turns = await _turns_of(stored.path, live.turn_id if live else None)
    if params.choice("sortDirection", ("asc", "desc")) != "asc":
        turns.reverse()
    return MethodResult({**page_of(turns, params, max_size=10_000, size=_PAGE), "backwardsCursor": None})


async def _reopen(context: ClientContext, params: Params, stored: SessionSummary, target: ResumeTarget) -> MethodResult:
    """Open a stored thread. Only the conversation is taken from its file, which another person may have written.

    As in `exec resume`, approvals, sandbox, model, provider and directory come from the client or the user's settings.
    """
    thread = await context.open(read_opening(params, originator=context.name, target=target))
    return await _opened(context, thread, stored, turns=not params.flag("excludeTurns"))


async def _opened(
    context: ClientContext, thread: LiveThread, stored: SessionSummary | None, *, turns: bool
) -> MethodResult:
    """The result of opening a thread, which `stored` continues. The thread is closed again if that fails."""
    try:
        payload = await _thread_payload(context, thread, turns=False)
        if stored is not None and stored.id != thread.id:
            # Nothing has been written to its own file yet.
            payload |= {"forkedFromId": stored.id, "preview": stored.first_prompt}
        if stored is not None and turns:
            target = thread.opening.target
            payload["turns"] = await _turns_of(stored.path, None, through=target.turn if target else None)
    except BaseException:
        await context.close_thread(thread)
        raise

    async def begin() -> None:
        if stored is None or stored.id != thread.id:
            context.connection.notify("thread/started", {"thread": {**payload, "turns": []}})
        else:
            status = {"threadId": thread.id, "status": context.translator(thread).status}
            context.connection.notify("thread/status/changed", status)
        context.translator(thread).release()
        await thread.begin()
        await context.watch_skills()

    return MethodResult(
        {"thread": payload, **opening_payload(thread.session.settings, thread.loaded.config)}, begin, thread.id
    )


async def _thread_payload(context: ClientContext, thread: LiveThread, *, turns: bool) -> dict[str, Any]:
    translator = context.translator(thread)
    path = thread.session.rollout
    summary = None
    if path is not None:
        # Nothing may have been written to it yet.
        with suppress(UserError):
            summary = await asyncio.to_thread(load_summary, context.host.home, path)
    payload = live_thread_payload(thread, translator.status, summary, translator.first_prompt)
    if turns and summary is not None:
        payload["turns"] = await _turns_of(summary.path, thread.turn_id)
    return payload


async def _turns_of(path: Path, running: str | None, *, through: int | None = None) -> list[dict[str, Any]]:
    """The turns of a file, up to a number; only turns with a message of the user are counted."""
    turns = await asyncio.to_thread(past_turns, path)
    user_turns = [index for index, turn in enumerate(turns) if turn.is_users]
    if through is not None and through <= len(user_turns):
        turns = turns[: user_turns[through - 1] + 1]
    return [past_turn(turn, running=running) for turn in turns]


async def _stored_thread(context: ClientContext, thread_id: str) -> SessionSummary:
    """The stored summary of a thread. Raises `UserError`."""
    home = context.host.home
    path = await asyncio.to_thread(find_exactly, home, thread_id)
    return await asyncio.to_thread(load_summary, home, path)


async def _put_away(context: ClientContext, params: Params, put: Callable[[Path], object], method: str) -> MethodResult:
    thread_id = _thread_id(params)
    path = await asyncio.to_thread(find_exactly, context.host.home, thread_id)
    if (live := context.threads.get(thread_id)) is not None:
        await context.close_thread(live)
    await asyncio.to_thread(put, path)
    return MethodResult({}, partial(context.connection.notify, method, {"threadId": thread_id}))


async def _turn_number(stored: SessionSummary, params: Params) -> int | None:
    """The number of the last turn that a fork contains; only turns with a message of the user are counted."""
    through, before = params.text_or_none("lastTurnId"), params.text_or_none("beforeTurnId")
    if through is None and before is None:
        return None
    turns = await asyncio.to_thread(past_turns, stored.path)
    turn_id = through or before or ""
    index = next((position for position, turn in enumerate(turns) if turn.id == turn_id), None)
    if index is None:
        raise RpcError(f"no turn `{turn_id[:_SHOWN]}` in thread {stored.id}")
    number = sum(turn.is_users for turn in turns[: index + (1 if through is not None else 0)])
    if number == 0:
        raise RpcError("there is nothing before the first turn: start a new thread")
    return number


def _thread_id(params: Params) -> str:
    thread_id = params.text("threadId").lower()
    if not is_uuid(thread_id):
        raise RpcError(f"invalid thread id: `{thread_id[:_SHOWN]}`")
    return thread_id


_MAX_ROLLBACK: Final = 1_000_000


async def rollback(context: ClientContext, params: Params) -> MethodResult:
    """`thread/rollback`: drop `numTurns` turns at the end, or with `undo` take the last rollback back.

    `files` brings the files back too, `conversation: false` only these; with `dryRun` nothing is written. Turns and
    commands that run are stopped first, unless it is a dry run.
    """
    thread_id = params.text("threadId").lower()
    stored = await _stored_thread(context, thread_id)
    request = RewindChoice(
        await _rollback_target(params, stored.path),
        files=params.flag("files"),
        conversation=params.flag("conversation", default=True),
        copies_conflicts=params.flag("copyConflicts"),
        dry_run=params.flag("dryRun"),
    )
    if not (request.files or request.conversation):
        raise RpcError("`files` and `conversation` cannot both be false: nothing would go back")
    live = context.threads.get(thread_id)
    if live is not None and not request.dry_run:
        await live.session.submit(StopWork())
        await context.close_thread(live)
    try:
        done = await asyncio.to_thread(context.host.roll_back, thread_id, request)
    finally:
        result = None
        if live is not None and not request.dry_run:
            target = ResumeTarget(thread_id=thread_id, any_directory=True)
            thread = await context.open(live.opening.replace(target=target))
            result = await _opened(context, thread, stored, turns=True)
    if result is None:
        stored = await asyncio.to_thread(load_summary, context.host.home, stored.path)
        result = MethodResult({"thread": stored_thread_payload(stored, NOT_LOADED)})
    files = {"files": dict(done.files)} if request.files else {}
    return result._replace(result={**result.result, "message": done.message, "notices": list(done.notices), **files})


async def _rollback_target(params: Params, path: Path) -> str:
    if params.flag("undo"):
        return "latest"
    count = params.integer("numTurns", maximum=_MAX_ROLLBACK)
    if not count:
        raise RpcError("`numTurns` must be at least 1")
    turns = await asyncio.to_thread(read_turns, path)
    if not turns:
        raise RpcError("there is no turn to roll back")
    return str(max(1, len(turns) - count + 1))


_SORT_KEYS: Final = ("created_at", "updated_at", "recency_at", "section_position")
_MAX_THREADS: Final = 1000
_AGENTS: Final = ("subAgent", "subAgentThreadSpawn")


async def list_threads(context: ClientContext, params: Params) -> MethodResult:
    """`thread/list`: a page of the stored threads, by default the newest first and without those of agents."""
    key = params.choice("sortKey", _SORT_KEYS) or "created_at"
    descending = params.choice("sortDirection", ("asc", "desc")) != "asc"
    found = await asyncio.to_thread(_find_threads, context, params)
    found.sort(key=lambda session: _sort_key(session, key), reverse=descending)
    cursor = params.text_or_none("cursor")
    if cursor is None:
        archived = params.flag("archived")
        damaged = await asyncio.to_thread(describe_damaged, context.host.home, None, archived=archived)
        if damaged:
            context.connection.notify("warning", {"threadId": None, "message": damaged})
    else:
        stamp, mark, last = cursor.partition("|")
        if not mark:
            raise RpcError(f"invalid cursor: `{cursor[:_SHOWN]}`")
        found = [
            session
            for session in found
            if (_sort_key(session, key) < (stamp, last)) == descending and session.id != last
        ]
    page = found[: params.integer("limit", maximum=_MAX_THREADS) or _PAGE]
    following = _cursor_at(page[-1], key) if page and len(page) < len(found) else None
    backwards = _cursor_at(page[0], key) if page else None
    threads = [_listed_payload(context, session) for session in page]
    return MethodResult({"data": threads, "readStates": None, "nextCursor": following, "backwardsCursor": backwards})


def _find_threads(context: ClientContext, params: Params) -> list[SessionSummary]:
    source_types = set(params.texts("sourceKinds") or ())
    query = SessionQuery(
        search=params.text_or_none("searchTerm") or "",
        archived=params.flag("archived"),
        agents=not source_types.isdisjoint(_AGENTS),
        parent=params.text_or_none("parentThreadId") or "",
    )
    directories = _directories(params)
    providers, originators = params.texts("modelProviders"), params.texts("originators")
    excluded = params.texts("excludedThreadIds") or ()
    return [
        session
        for session in list_sessions(context.host.home, query)
        if (directories is None or real_directory(session.cwd) in directories)
        and (not providers or session.provider in providers)
        and (not originators or session.originator in originators)
        and (not source_types or not source_types.isdisjoint(_AGENTS if session.parent else (source_type(session),)))
        and session.id not in excluded
    ]


def _directories(params: Params) -> Sequence[str] | None:
    """One directory or a list of them."""
    if (value := params.raw("cwd")) is None:
        return None
    listed = (params.text("cwd"),) if isinstance(value, str) else params.texts("cwd") or ()
    return [real_directory(directory) for directory in listed]


def _sort_key(session: SessionSummary, key: str) -> tuple[str, str]:
    return (session.created if key == "created_at" else session.updated, session.id)


def _cursor_at(session: SessionSummary, key: str) -> str:
    return "|".join(_sort_key(session, key))


def _listed_payload(context: ClientContext, session: SessionSummary) -> dict[str, Any]:
    live = context.threads.get(session.id)
    return stored_thread_payload(session, NOT_LOADED if live is None else context.translator(live).status)

"""`thread/list`: the stored threads that a client asks for, page by page."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any, Final

from codex_py.core.offered_sessions import SessionQuery, SessionSummary, list_sessions
from codex_py.server.app.desk import Answered, Desk
from codex_py.server.app.threads_told import NOT_LOADED, told_stored
from codex_py.server.messages import RpcError
from codex_py.server.params import Params

_SORT_KEYS: Final = ("created_at", "updated_at", "recency_at", "section_position")
_PAGE: Final = 25
_MOST: Final = 1000
_AGENTS: Final = ("subAgent", "subAgentThreadSpawn")


async def list_threads(desk: Desk, params: Params) -> Answered:
    """The newest first, unless the client wants it otherwise; those of agents only when it asks for them."""
    key = params.one_of("sortKey", _SORT_KEYS) or "created_at"
    descending = params.one_of("sortDirection", ("asc", "desc")) != "asc"
    found = [one for one in await asyncio.to_thread(_stored, desk, params) if _is_wanted(one, params)]
    found.sort(key=lambda one: _place(one, key), reverse=descending)
    cursor = params.text_or_none("cursor")
    if cursor is not None:
        stamp, mark, last = cursor.partition("|")
        if not mark:
            raise RpcError(f"invalid cursor: `{cursor[:80]}`")
        found = [one for one in found if (_place(one, key) < (stamp, last)) == descending and one.id != last]
    page = found[: params.whole("limit", most=_MOST) or _PAGE]
    following = _cursor(page[-1], key) if page and len(page) < len(found) else None
    backwards = _cursor(page[0], key) if page else None
    told = [_told(desk, one) for one in page]
    return Answered({"data": told, "readStates": None, "nextCursor": following, "backwardsCursor": backwards})


def _stored(desk: Desk, params: Params) -> list[SessionSummary]:
    kinds = params.texts("sourceKinds") or ()
    parent = params.text_or_none("parentThreadId") or ""
    query = SessionQuery(
        search=params.text_or_none("searchTerm") or "",
        archived=params.flag("archived"),
        agents=bool(parent) or any(kind in _AGENTS for kind in kinds),
        parent=parent,
    )
    return list_sessions(desk.host.home, query)


def _is_wanted(one: SessionSummary, params: Params) -> bool:
    folders = _folders(params)
    providers = params.texts("modelProviders")
    originators = params.texts("originators")
    kinds = params.texts("sourceKinds")
    return (
        (folders is None or _real(one.cwd) in folders)
        and (not providers or one.provider in providers)
        and (not originators or one.originator in originators)
        and (not kinds or _kind(one) in kinds or (bool(one.parent) and "subAgent" in kinds))
        and one.id not in (params.texts("excludedThreadIds") or ())
    )


def _folders(params: Params) -> Sequence[str] | None:
    """One folder or a list of them."""
    if not params.has("cwd"):
        return None
    given = params.given("cwd")
    listed = (params.text("cwd"),) if isinstance(given, str) else params.texts("cwd") or ()
    return [_real(folder) for folder in listed]


def _kind(one: SessionSummary) -> str:
    if one.parent:
        return "subAgentThreadSpawn"
    return one.source if one.source in ("cli", "vscode", "exec", "appServer") else "unknown"


def _real(folder: str) -> str:
    try:
        return os.path.realpath(folder)
    except (OSError, ValueError):
        return folder


def _place(one: SessionSummary, key: str) -> tuple[str, str]:
    return (one.created if key == "created_at" else one.updated, one.id)


def _cursor(one: SessionSummary, key: str) -> str:
    return "|".join(_place(one, key))


def _told(desk: Desk, one: SessionSummary) -> dict[str, Any]:
    live = desk.threads.get(one.id)
    return told_stored(one, NOT_LOADED if live is None else desk.teller(live).status)

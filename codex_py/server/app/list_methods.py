"""`thread/list`: the stored threads that a client asks for, page by page."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import Any, Final

from codex_py.rollout.listing import SessionQuery, list_sessions
from codex_py.rollout.summary import SessionSummary
from codex_py.server.app.client_context import ClientContext, MethodResult
from codex_py.server.app.thread_payloads import NOT_LOADED, stored_thread_payload
from codex_py.server.messages import Params, RpcError

_SORT_KEYS: Final = ("created_at", "updated_at", "recency_at", "section_position")
_PAGE: Final = 25
_MAX_THREADS: Final = 1000
_AGENTS: Final = ("subAgent", "subAgentThreadSpawn")


async def list_threads(context: ClientContext, params: Params) -> MethodResult:
    """The newest first, unless the client wants it otherwise; those of agents only when it asks for them."""
    key = params.choice("sortKey", _SORT_KEYS) or "created_at"
    descending = params.choice("sortDirection", ("asc", "desc")) != "asc"
    found = [session for session in await asyncio.to_thread(_find_threads, context, params) if _matches(session, params)]
    found.sort(key=lambda session: _sort_key(session, key), reverse=descending)
    cursor = params.text_or_none("cursor")
    if cursor is not None:
        stamp, mark, last = cursor.partition("|")
        if not mark:
            raise RpcError(f"invalid cursor: `{cursor[:80]}`")
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
    source_types = params.texts("sourceKinds") or ()
    parent = params.text_or_none("parentThreadId") or ""
    query = SessionQuery(
        search=params.text_or_none("searchTerm") or "",
        archived=params.flag("archived"),
        agents=bool(parent) or any(source_type in _AGENTS for source_type in source_types),
        parent=parent,
    )
    return list_sessions(context.host.home, query)


def _matches(session: SessionSummary, params: Params) -> bool:
    directories = _directories(params)
    providers = params.texts("modelProviders")
    originators = params.texts("originators")
    source_types = params.texts("sourceKinds")
    return (
        (directories is None or _real(session.cwd) in directories)
        and (not providers or session.provider in providers)
        and (not originators or session.originator in originators)
        and (
            not source_types
            or _source_type(session) in source_types
            or (bool(session.parent) and "subAgent" in source_types)
        )
        and session.id not in (params.texts("excludedThreadIds") or ())
    )


def _directories(params: Params) -> Sequence[str] | None:
    """One directory or a list of them."""
    if not params.has("cwd"):
        return None
    value = params.raw("cwd")
    listed = (params.text("cwd"),) if isinstance(value, str) else params.texts("cwd") or ()
    return [_real(directory) for directory in listed]


def _source_type(session: SessionSummary) -> str:
    if session.parent:
        return "subAgentThreadSpawn"
    return session.source if session.source in ("cli", "vscode", "exec", "appServer") else "unknown"


def _real(directory: str) -> str:
    try:
        return os.path.realpath(directory)
    except (OSError, ValueError):
        return directory


def _sort_key(session: SessionSummary, key: str) -> tuple[str, str]:
    return (session.created if key == "created_at" else session.updated, session.id)


def _cursor_at(session: SessionSummary, key: str) -> str:
    return "|".join(_sort_key(session, key))


def _listed_payload(context: ClientContext, session: SessionSummary) -> dict[str, Any]:
    live = context.threads.get(session.id)
    return stored_thread_payload(session, NOT_LOADED if live is None else context.translator(live).status)

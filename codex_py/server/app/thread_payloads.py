"""Live and stored threads in the protocol's words."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from codex_py import __version__
from codex_py.rollout.summary import SessionSummary
from codex_py.server.threads import SESSION_SOURCE, LiveThread

_SOURCES: Final = frozenset({"cli", "vscode", "exec", "appServer"})
NOT_LOADED: Final = {"type": "notLoaded"}


def live_thread_payload(
    thread: LiveThread, status: dict[str, Any], summary: SessionSummary | None, preview: str
) -> dict[str, Any]:
    """The payload of a live thread; `summary` is read from its file, None while it has none."""
    settings = thread.session.settings
    now = int(time.time())
    stored = {} if summary is None else stored_thread_payload(summary, status)
    path = thread.session.rollout
    return {
        **_blank(thread.id),
        "createdAt": int(_begun(thread.id) or now),
        "updatedAt": now,
        "recencyAt": now,
        "originator": thread.opening.originator,
        "source": SESSION_SOURCE,
        "cliVersion": __version__,
        **stored,
        "preview": stored.get("preview") or preview,
        "ephemeral": thread.opening.ephemeral,
        "modelProvider": thread.loaded.config.model_provider,
        "model": settings.model.model,
        "reasoningEffort": settings.model.effort,
        "status": status,
        "path": None if path is None else str(path),
        "cwd": str(settings.cwd),
        "canAcceptDirectInput": True,
    }


def stored_thread_payload(summary: SessionSummary, status: dict[str, Any], turns: Sequence[Any] = ()) -> dict[str, Any]:
    """A stored thread."""
    updated = int(_seconds(summary.updated))
    git = {"sha": summary.commit or None, "branch": summary.branch or None, "originUrl": summary.repository or None}
    return {
        **_blank(summary.id),
        "forkedFromId": summary.forked_from or None,
        "parentThreadId": summary.parent or None,
        "preview": summary.first_prompt,
        "modelProvider": summary.provider,
        "model": summary.model or None,
        "reasoningEffort": summary.effort or None,
        "createdAt": int(_seconds(summary.created)),
        "updatedAt": updated,
        "recencyAt": updated,
        "status": status,
        "path": str(summary.path),
        "cwd": summary.cwd,
        "cliVersion": summary.version,
        "originator": summary.originator or None,
        "source": _source(summary),
        "agentNickname": summary.nickname or None,
        "agentRole": summary.role or None,
        "gitInfo": git if any(git.values()) else None,
        "name": summary.name or None,
        "turns": list(turns),
    }


def _blank(thread_id: str) -> dict[str, Any]:
    """The fields that every thread has, and those that this server leaves empty."""
    return {
        "id": thread_id,
        "environments": None,
        "extra": None,
        "sessionId": thread_id,
        "forkedFromId": None,
        "attachedToThreadId": None,
        "parentThreadId": None,
        "ephemeral": False,
        "section": None,
        "sectionEnteredAt": None,
        "projectId": None,
        "historyMode": "legacy",
        "canAcceptDirectInput": None,
        "threadSource": None,
        "agentNickname": None,
        "agentRole": None,
        "gitInfo": None,
        "name": None,
        "daybreakEnabled": None,
        "turns": [],
    }


def _source(summary: SessionSummary) -> Any:
    if summary.parent:
        spawned = {
            "parent_thread_id": summary.parent,
            "depth": 1,
            "agent_path": None,
            "agent_nickname": summary.nickname or None,
            "agent_role": summary.role or None,
        }
        return {"subAgent": {"thread_spawn": spawned}}
    return source_type(summary)


def source_type(summary: SessionSummary) -> str:
    """The type of program that started a session, which no agent did."""
    return summary.source if summary.source in _SOURCES else "unknown"


def _seconds(stamp: str) -> float:
    try:
        return datetime.fromisoformat(stamp).timestamp()
    except ValueError:
        return 0.0


def _begun(thread_id: str) -> float | None:
    """When a version 7 UUID was created."""
    try:
        return int(thread_id.replace("-", "")[:12], 16) / 1000
    except ValueError:
        return None

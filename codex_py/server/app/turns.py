"""Turns in the protocol's words."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

from codex_py.rollout.stored_turns import PastTurn
from codex_py.server.app.items import Item, numbered, past_item


def turn_payload(
    turn_id: str,
    status: str = "inProgress",
    *,
    items: Sequence[Item] | None = None,
    error: dict[str, Any] | None = None,
    began: float | None = None,
    ended: float | None = None,
) -> dict[str, Any]:
    """A turn; times are seconds since the epoch. `items`, where there are some, are a summary of it."""
    took = None if began is None or ended is None else max(0, round((ended - began) * 1000))
    return {
        "id": turn_id,
        "rootTurnId": turn_id,
        "items": list(items or ()),
        "itemsView": "notLoaded" if items is None else "summary",
        "status": status,
        "error": error,
        "startedAt": None if began is None else int(began),
        "completedAt": None if ended is None else int(ended),
        "durationMs": took,
    }


def past_turn(turn: PastTurn, *, running: str | None) -> dict[str, Any]:
    """A turn of a stored session with all its items; `running` is the id of the one that is under way.

    One that just stops in the file was killed, which is an interrupt too.
    """
    status = "inProgress" if turn.id == running else turn.end or "interrupted"
    number = count(1)
    entries = [past_item(past.id or numbered(turn.id, next(number)), past) for past in turn.items]
    items = [item for item in entries if item is not None]
    payload = turn_payload(
        turn.id,
        status,
        items=items,
        error=turn_error(turn.error) if turn.error else None,
        began=turn.began,
        ended=turn.ended,
    )
    return {**payload, "itemsView": "full"}


def turn_error(message: str) -> dict[str, Any]:
    return {"message": message, "codexErrorInfo": "other", "additionalDetails": None, "misalignment": None}

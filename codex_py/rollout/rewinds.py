"""Rewinding a conversation: a record is appended that says which records count from there on.

The file keeps all that was. Codex CLI knows the record, and drops as many turns of the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from codex_py.errors import UserError
from codex_py.rollout.format import rewound_payload
from codex_py.rollout.records import last_rewind, live_ranges, ranges_below
from codex_py.rollout.transcript import StoredTurn


class ConversationRewind(NamedTuple):
    """The `event_msg` to append. `message` is what the user said in the turn it goes back before, `turns` how many go.

    When it undoes a rewind, `turns` is 0.
    """

    payload: dict[str, Any]
    message: str
    turns: int


def plan_conversation(path: Path, turns: Sequence[StoredTurn], number: int) -> ConversationRewind:
    """Go back before a turn, which is one of `turns`, those of the session at `path`."""
    turn = turns[number - 1]
    count = len(turns) - number + 1
    live = ranges_below(live_ranges(path), turn.begins)
    return ConversationRewind(rewound_payload(count, live), turn.prompt, count)


def undo_conversation(path: Path) -> ConversationRewind:
    """Undo the last rewind of a conversation. Raise `UserError` when there was none."""
    ordinal = last_rewind(path)
    if ordinal is None:
        raise UserError("there is no rewind to undo in this conversation")
    live = ranges_below(live_ranges(path, ordinal), ordinal)
    return ConversationRewind(rewound_payload(0, live), "", 0)

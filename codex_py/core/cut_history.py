"""Making a long history short without a summary: outputs of tools go first, then turns, the oldest first.

For a model that writes no summary; the session goes on with what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from codex_py.context.compaction import is_summary, is_users_own
from codex_py.core.compact import is_of_host, paired, with_short_texts, without_oldest
from codex_py.protocol.items import ResponseItem
from codex_py.text.display import counted
from codex_py.text.tokens import counted_bytes


class CutHistory(NamedTuple):
    """A shorter conversation, without the host's own messages; `left_out` says what is missing, "" for nothing."""

    items: tuple[ResponseItem, ...]
    left_out: str


def cut_history(items: Sequence[ResponseItem], max_bytes: int) -> CutHistory:
    """The conversation in about `max_bytes`. The first and the latest message of the user stay, at most shortened.

    A summary of an earlier compaction stays as well.
    """
    conversation = [item for item in items if not is_of_host(item) or is_summary(item)]
    conversation, outputs = _without_outputs(conversation, max_bytes)
    before, *turns = _turns(conversation)
    dropped = 0
    while len(turns) > 2 and _weight([*before, *_joined(turns)]) > max_bytes:
        dropped += 1
        del turns[1]
    is_shortened = False
    for at in range(len(turns)):
        if _weight([*before, *_joined(turns)]) <= max_bytes:
            break
        # Of the first turn the user's message is enough; of the latest one as much is kept as there is room for.
        limit = 0 if at < len(turns) - 1 else max_bytes - _weight([*before, *_joined(turns[:at])])
        turns[at] = _newest_of(turns[at], limit)
        is_shortened = True
    left = paired([*before, *_joined(turns)])
    if _weight(left) > max_bytes:
        left, is_shortened = with_short_texts(left), True
    parts = [
        counted(outputs, "tool output") if outputs else "",
        counted(dropped, "turn") if dropped else "",
        "parts of the turns that are left" if is_shortened else "",
    ]
    return CutHistory(tuple(left), ", ".join(filter(None, parts)))


def _without_outputs(items: Sequence[ResponseItem], max_bytes: int) -> tuple[list[ResponseItem], int]:
    """The items with the oldest outputs replaced by a line, until the rest fits; and how many those are."""
    left, count, weight = list(items), 0, _weight(items)
    for at, item in enumerate(items):
        if weight <= max_bytes:
            break
        if not item.type.endswith("_call_output"):
            continue
        value = item.decode()
        value["output"] = "[left out to make room]"
        short = ResponseItem.from_wire(value)
        if len(short.encoded) < len(item.encoded):
            weight += counted_bytes(short.encoded) - counted_bytes(item.encoded)
            left[at] = short
            count += 1
    return left, count


def _turns(items: Sequence[ResponseItem]) -> list[list[ResponseItem]]:
    """The items before the first message of the user, then each message of the user with the items after it."""
    turns: list[list[ResponseItem]] = [[]]
    for item in items:
        if is_users_own(item):
            turns.append([])
        turns[-1].append(item)
    return turns


def _newest_of(turn: Sequence[ResponseItem], max_bytes: int) -> list[ResponseItem]:
    """The user's message and as many of the items at the end of its turn as there is room for."""
    message, *rest = turn
    limit = max_bytes - counted_bytes(message.encoded)
    while rest and _weight(rest) > limit:
        rest = without_oldest(rest, 0.25)
    return [message, *rest]


def _joined(turns: Sequence[Sequence[ResponseItem]]) -> list[ResponseItem]:
    return [item for turn in turns for item in turn]


def _weight(items: Sequence[ResponseItem]) -> int:
    return sum(counted_bytes(item.encoded) for item in items)

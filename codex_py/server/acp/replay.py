"""A stored session as updates: its stored turns, for a client that loads it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from codex_py.protocol import events
from codex_py.rollout.stored_turns import HostMessage, PastTurn, PastUserMessage
from codex_py.server.acp.content import Json
from codex_py.server.acp.session_updates import SessionUpdates

_USER_MESSAGE: Final = "user_message_chunk"
_PICTURE: Final = re.compile(r"data:(image/[a-z]+);base64,([A-Za-z0-9+/=]+)")


def replay_turns(turns: Sequence[PastTurn], updates: SessionUpdates) -> Iterator[Json]:
    """The updates for these turns, in their order; a call stands where it was made, with what came of it."""
    for turn in turns:
        for item in turn.items:
            match item.happened:
                case PastUserMessage() as message:
                    yield from _user_message_updates(message, updates)
                case HostMessage():
                    pass
                case event:
                    yield from _event_updates(event, updates)
        if turn.error:
            yield updates.note(f"The turn failed: {turn.error}")
        yield from updates.calls.end_all()


def _user_message_updates(message: PastUserMessage, updates: SessionUpdates) -> Iterator[Json]:
    for address in message.pictures:
        if picture := _PICTURE.fullmatch(address):
            content = {"type": "image", "mimeType": picture[1], "data": picture[2]}
            yield {"sessionUpdate": _USER_MESSAGE, "content": content}
    if message.text and (update := updates.chunks.complete(_USER_MESSAGE, message.text)):
        yield update


def _event_updates(event: events.Event, updates: SessionUpdates) -> Iterator[Json]:
    match event:
        case events.CommandFinished(call_id, command, cwd):
            yield from updates.translate(events.CommandStarted(call_id, command, cwd))
        case events.PatchFinished(call_id, changes):
            yield from updates.translate(events.PatchStarted(call_id, changes))
        case events.ContextCompacted(summary=summary):
            yield updates.note(f"The conversation so far was summed up.\n\n{summary}".strip())
            return
        case _:
            pass
    yield from updates.translate(event)

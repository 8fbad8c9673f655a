"""A stored session as updates: what was said and done before, for a client that loads it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from codex_py.core.past_turns import PastTurn, UserSaid
from codex_py.protocol import events
from codex_py.server.acp.content import Json
from codex_py.server.acp.narrator import Narrator

_SAID: Final = "user_message_chunk"
_PICTURE: Final = re.compile(r"data:(image/[a-z]+);base64,([A-Za-z0-9+/=]+)")


def retell(turns: Sequence[PastTurn], narrator: Narrator) -> Iterator[Json]:
    """The updates for these turns, in their order; a call stands where it was made, with what came of it."""
    for turn in turns:
        for item in turn.items:
            if isinstance(item.happened, UserSaid):
                yield from _said(item.happened, narrator)
            else:
                yield from _happened(item.happened, narrator)
        if turn.error:
            yield narrator.note(f"The turn failed: {turn.error}")
        yield from narrator.calls.end_all()


def _said(said: UserSaid, narrator: Narrator) -> Iterator[Json]:
    for address in said.pictures:
        if picture := _PICTURE.fullmatch(address):
            content = {"type": "image", "mimeType": picture[1], "data": picture[2]}
            yield {"sessionUpdate": _SAID, "content": content}
    if said.text and (told := narrator.speech.whole(_SAID, said.text)):
        yield told


def _happened(event: events.Event, narrator: Narrator) -> Iterator[Json]:
    match event:
        case events.CommandFinished(call_id, command, cwd):
            yield from narrator.tell(events.CommandStarted(call_id, command, cwd))
        case events.PatchFinished(call_id, changes):
            yield from narrator.tell(events.PatchStarted(call_id, changes))
        case events.ContextCompacted(summary=summary):
            yield narrator.note(f"The conversation so far was summed up.\n\n{summary}".strip())
            return
        case _:
            pass
    yield from narrator.tell(event)

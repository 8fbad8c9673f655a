"""What the model says and thinks, as the chunks a client is sent: every word once, and each message apart."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from codex_py.server.acp.content import Json, text_block

Voice: TypeAlias = Literal["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]

_APART: Final = "\n\n"


class Speech:
    """Clients put chunks of one kind together until something else comes: between two messages goes an empty line."""

    def __init__(self) -> None:
        self._count = 0
        self._said: dict[Voice, list[str]] = {}
        self._ended: Voice | None = None

    def chunk(self, voice: Voice, text: str) -> Json:
        """The next piece of a message that is coming."""
        said = self._said.get(voice)
        if said is None:
            said = self._begin(voice)
            text_sent = _APART + text if self._ended == voice else text
        else:
            text_sent = text
        self._ended = None
        said.append(text)
        return self._chunk(voice, text_sent)

    def whole(self, voice: Voice, text: str) -> Json | None:
        """A message has ended, and this is all of it: what of it was not told yet."""
        told = "".join(self._said.get(voice, ()))
        rest = text[len(told) :] if text.startswith(told) else ""
        more = self.chunk(voice, rest) if rest else None
        self.cut(voice)
        return more

    def cut(self, voice: Voice) -> None:
        """No more of a message comes; whatever comes next is another one."""
        if self._said.pop(voice, None) is not None:
            self._ended = voice

    def interrupt(self) -> None:
        """Something else is told now, which keeps messages apart by itself."""
        self._ended = None

    def _begin(self, voice: Voice) -> list[str]:
        self._count += 1
        return self._said.setdefault(voice, [])

    def _chunk(self, voice: Voice, text: str) -> Json:
        return {"sessionUpdate": voice, "messageId": f"message_{self._count}", "content": text_block(text)}

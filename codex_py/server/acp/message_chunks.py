"""The model's messages and reasoning as chunks for a client: each word once, messages separated."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from codex_py.server.acp.content import Json, text_block

ChunkType: TypeAlias = Literal["agent_message_chunk", "agent_thought_chunk", "user_message_chunk"]

_APART: Final = "\n\n"


class MessageChunks:
    """Clients put chunks of one kind together until something else comes: between two messages goes an empty line."""

    def __init__(self) -> None:
        self._count = 0
        self._sent: dict[ChunkType, list[str]] = {}
        self._ended: ChunkType | None = None

    def chunk(self, chunk_type: ChunkType, text: str) -> Json:
        """The next piece of a message that is coming."""
        sent = self._sent.get(chunk_type)
        if sent is None:
            sent = self._begin(chunk_type)
            text_sent = _APART + text if self._ended == chunk_type else text
        else:
            text_sent = text
        self._ended = None
        sent.append(text)
        return self._chunk(chunk_type, text_sent)

    def complete(self, chunk_type: ChunkType, text: str) -> Json | None:
        """A message has ended with this full text: the chunk for what was not sent yet."""
        sent = "".join(self._sent.get(chunk_type, ()))
        rest = text[len(sent) :] if text.startswith(sent) else ""
        more = self.chunk(chunk_type, rest) if rest else None
        self.cut(chunk_type)
        return more

    def cut(self, chunk_type: ChunkType) -> None:
        """No more of a message comes; whatever comes next is another one."""
        if self._sent.pop(chunk_type, None) is not None:
            self._ended = chunk_type

    def interrupt(self) -> None:
        """Another kind of update is sent now, which separates messages by itself."""
        self._ended = None

    def _begin(self, chunk_type: ChunkType) -> list[str]:
        self._count += 1
        return self._sent.setdefault(chunk_type, [])

    def _chunk(self, chunk_type: ChunkType, text: str) -> Json:
        return {"sessionUpdate": chunk_type, "messageId": f"message_{self._count}", "content": text_block(text)}

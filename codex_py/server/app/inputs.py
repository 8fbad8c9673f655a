"""What a client hands to a turn: read into our inputs, and sent as an item when a turn takes it."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.protocol.ops import ImageInput, ImageUrlInput, SkillInput, TextInput, UserInput
from codex_py.server.app import items
from codex_py.server.app.items import Item
from codex_py.server.messages import Params, RpcError

_INPUT_TYPES: Final = ("text", "image", "localImage", "skill", "mention", "audio", "localAudio")
_SKILL: Final = "skill://"
_SKILL_FILE: Final = "SKILL.md"
_MAX_INPUTS: Final = 1000


class TurnInputs(NamedTuple):
    """The inputs, and the content sent to the client when a turn takes them."""

    inputs: tuple[UserInput, ...]
    content: Sequence[dict[str, Any]]


def read_inputs(params: Params) -> TurnInputs:
    """The `input` of a turn. Raises `RpcError`."""
    items = params.nested_list("input")
    if items is None:
        raise params.missing("input")
    if len(items) > _MAX_INPUTS:
        raise RpcError(f"invalid request: `input` has more than {_MAX_INPUTS} parts")
    read = [_read(item) for item in items]
    return TurnInputs(tuple(value for value, _ in read), [content for _, content in read])


def is_message_text(content: dict[str, Any]) -> bool:
    """Whether a part of the content is a text of the user's message."""
    return content["type"] == "text" or (content["type"] == "mention" and not _means_skill(content["path"]))


def _means_skill(path: str) -> bool:
    return path.startswith(_SKILL) or ("://" not in path and Path(path).name == _SKILL_FILE)


def _read(item: Params) -> tuple[UserInput, dict[str, Any]]:
    match item.choice("type", _INPUT_TYPES):
        case "text":
            text = item.text("text")
            return TextInput(text), {"type": "text", "text": text, "text_elements": item.raw("text_elements") or []}
        case "image":
            url = item.text("url")
            return ImageUrlInput(url), {"type": "image", "url": url}
        case "localImage":
            path = item.text("path")
            return ImageInput(Path(path)), {"type": "localImage", "path": path}
        case "skill":
            name, path = item.text("name"), item.text("path")
            return SkillInput(name, Path(path.removeprefix(_SKILL))), {"type": "skill", "name": name, "path": path}
        case "mention":
            return _mention(item.text("name"), item.text("path"))
        case None:
            raise item.missing("type")
        case item_type:
            raise RpcError(f"inputs of the type `{item_type}` are not taken")


def _mention(name: str, path: str) -> tuple[UserInput, dict[str, Any]]:
    """A resource the user has picked: a skill, or something that a link in the message names as well."""
    content = {"type": "mention", "name": name, "path": path}
    if _means_skill(path):
        return SkillInput(name, Path(path.removeprefix(_SKILL))), content
    sign = "$" if "://" in path else "@"
    return TextInput(f"[{sign}{name}]({path})"), content


class _PendingMessage:
    """`has_arrived` when the session has it."""

    def __init__(self, content: Sequence[Item]) -> None:
        self.content: Final = content
        self.has_arrived = False


class PendingMessages:
    """In order. Content is sent with the texts from the session's events, which are redacted."""

    def __init__(self) -> None:
        self._waiting: list[_PendingMessage] = []

    @contextmanager
    def expecting(self, content: Sequence[Item]) -> Generator[None]:
        """The client sends this, and the session gets it meanwhile; if the session refuses it, it is dropped."""
        pending = _PendingMessage(content)
        self._waiting.append(pending)
        try:
            yield
        except BaseException:
            self._waiting = [message for message in self._waiting if message is not pending]
            raise
        pending.has_arrived = True

    def forget(self) -> None:
        """Drop messages that have arrived and were not taken up: they never will be."""
        self._waiting = [message for message in self._waiting if not message.has_arrived]

    def take(self, texts: list[str]) -> list[Item]:
        """The content of the first, with the texts that belong to it, which are taken; empty when nothing waits."""
        content: list[Item] = []
        for item in self._waiting.pop(0).content if self._waiting else ():
            text = texts.pop(0) if texts and is_message_text(item) else ""
            content.append(items.text_content(text) if item["type"] == "text" else item)
        return content

    def take_all(self, texts: list[str]) -> Iterator[list[Item]]:
        """What a turn begins with: all that has arrived, and of what is on its way that whose texts are there.

        What has arrived and has texts of which none is there was taken back on its way: it is dropped.
        """
        yield self.take(texts)
        while self._waiting and (texts or self._waiting[0].has_arrived):
            if texts or not any(map(is_message_text, self._waiting[0].content)):
                yield self.take(texts)
            else:
                self._waiting.pop(0)

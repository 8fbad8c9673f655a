"""What a client hands to a turn, read into our inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.protocol.input import ImageInput, ImageUrlInput, SkillInput, TextInput, UserInput
from codex_py.server.messages import RpcError
from codex_py.server.params import Params

_INPUT_TYPES: Final = ("text", "image", "localImage", "skill", "mention", "audio", "localAudio")
_SKILL: Final = "skill://"
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
    return content["type"] == "text" or (content["type"] == "mention" and not content["path"].startswith(_SKILL))


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
            return SkillInput(name, Path(path)), {"type": "skill", "name": name, "path": path}
        case "mention":
            return _mention(item.text("name"), item.text("path"))
        case None:
            raise item.missing("type")
        case item_type:
            raise RpcError(f"inputs of the type `{item_type}` are not taken")


def _mention(name: str, path: str) -> tuple[UserInput, dict[str, Any]]:
    """A resource the user has picked: a skill, or something that a link in the message names as well."""
    content = {"type": "mention", "name": name, "path": path}
    if path.startswith(_SKILL):
        return SkillInput(name, Path(path.removeprefix(_SKILL))), content
    sign = "$" if "://" in path else "@"
    return TextInput(f"[{sign}{name}]({path})"), content

"""What a client hands to a turn, read into our inputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.protocol.input import ImageInput, ImageUrlInput, SkillInput, TextInput, UserInput
from codex_py.server.messages import RpcError
from codex_py.server.params import Params

_KINDS: Final = ("text", "image", "localImage", "skill", "mention", "audio", "localAudio")
_SKILL: Final = "skill://"
_MOST_INPUTS: Final = 1000


class Given(NamedTuple):
    """The inputs, and what the client is told of them when a turn takes them up."""

    inputs: tuple[UserInput, ...]
    content: Sequence[dict[str, Any]]


def read_inputs(params: Params) -> Given:
    """The `input` of a turn. Raises `RpcError`."""
    parts = params.parts("input")
    if parts is None:
        raise params.missing("input")
    if len(parts) > _MOST_INPUTS:
        raise RpcError(f"invalid request: `input` has more than {_MOST_INPUTS} parts")
    read = [_read(part) for part in parts]
    return Given(tuple(given for given, _ in read), [content for _, content in read])


def is_said(content: dict[str, Any]) -> bool:
    """Whether a part of the content is a text of the user's message."""
    return content["type"] == "text" or (content["type"] == "mention" and not content["path"].startswith(_SKILL))


def _read(part: Params) -> tuple[UserInput, dict[str, Any]]:
    match part.one_of("type", _KINDS):
        case "text":
            text = part.text("text")
            return TextInput(text), {"type": "text", "text": text, "text_elements": part.given("text_elements") or []}
        case "image":
            url = part.text("url")
            return ImageUrlInput(url), {"type": "image", "url": url}
        case "localImage":
            path = part.text("path")
            return ImageInput(Path(path)), {"type": "localImage", "path": path}
        case "skill":
            name, path = part.text("name"), part.text("path")
            return SkillInput(name, Path(path)), {"type": "skill", "name": name, "path": path}
        case "mention":
            return _mention(part.text("name"), part.text("path"))
        case None:
            raise part.missing("type")
        case kind:
            raise RpcError(f"inputs of the type `{kind}` are not taken")


def _mention(name: str, path: str) -> tuple[UserInput, dict[str, Any]]:
    """A resource the user has picked: a skill, or something that a link in the message names as well."""
    content = {"type": "mention", "name": name, "path": path}
    if path.startswith(_SKILL):
        return SkillInput(name, Path(path.removeprefix(_SKILL))), content
    sign = "$" if "://" in path else "@"
    return TextInput(f"[{sign}{name}]({path})"), content

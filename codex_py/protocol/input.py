"""What a user hands to a turn."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from codex_py.protocol.value import Value


class TextInput(Value):
    text: str


class ImageInput(Value):
    """A picture on disk, read when the turn starts."""

    path: Path


class ImageUrlInput(Value):
    """A picture at an `https:` address that the provider fetches, or in a `data:` address."""

    url: str


class SkillInput(Value):
    """A skill picked in a front end: its name, and the path of its `SKILL.md`."""

    name: str
    path: Path


UserInput: TypeAlias = TextInput | ImageInput | ImageUrlInput | SkillInput

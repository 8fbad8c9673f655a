"""What a user hands to a turn."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class TextInput:
    text: str


@dataclass(frozen=True, slots=True)
class ImageInput:
    """A picture on disk, read when the turn starts."""

    path: Path


@dataclass(frozen=True, slots=True)
class SkillInput:
    """A skill picked in a front end: its name, and the path of its `SKILL.md`."""

    name: str
    path: Path


UserInput: TypeAlias = TextInput | ImageInput | SkillInput

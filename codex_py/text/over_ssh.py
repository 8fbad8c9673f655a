"""What the environment says about the way here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SIGNS: Final = ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT")


def is_over_ssh(env: Mapping[str, str]) -> bool:
    """Whether the user sits at another machine: its browser and its clipboard are not this one's."""
    return any(env.get(name) for name in _SIGNS)

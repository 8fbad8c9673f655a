"""Sequences for the terminal that tmux or GNU screen is shown on: both keep back what they do not know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

# GNU screen passes on so much at once.
_PIECE: Final = 700


def is_inside(env: Mapping[str, str]) -> bool:
    """Whether one of them stands between, here or, as far as is known, on the user's machine."""
    return bool(env.get("TMUX") or env.get("STY")) or env.get("TERM", "").startswith(("tmux", "screen"))


def passed_on(sequence: str, env: Mapping[str, str]) -> str:
    """The sequence so that one that runs here passes it on; tmux does only with `allow-passthrough`."""
    if env.get("TMUX"):
        return through_tmux(sequence)
    if env.get("STY"):
        pieces = (sequence[start : start + _PIECE] for start in range(0, len(sequence), _PIECE))
        return "".join(f"\x1bP{piece}\x1b\\" for piece in pieces)
    return sequence


def through_tmux(sequence: str) -> str:
    """The sequence as tmux passes it on."""
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"

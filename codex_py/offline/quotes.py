"""A prompt with its quoted texts taken out, so that rules match on words and are never fooled by what is quoted."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from codex_py.offline.pattern import Pattern

_OPEN, _CLOSE = "\ue000", "\ue001"
_LONGEST_PROMPT: Final = 65_536
_QUOTED: Final = Pattern(
    r"```[^\n`]*\n(?P<fence>.*?)```"
    r"|``(?P<double_tick>(?:[^`]|`(?!`))+)``"
    r"|`(?P<tick>[^`]+)`"
    r'|(?<!\w)"(?P<straight>[^"]*)"'
    r"|“(?P<curly>[^“”]*)”"
    r"|„(?P<low>[^„“”]*)[“”]"
    r"|«(?P<angle>[^«»]*)»"
    r"|(?<!\w)'(?P<single>(?:[^']|(?<=\w)'(?=\w))*)'(?!\w)"
    r"|‘(?P<curly_single>(?:[^‘’]|(?<=\w)’(?=\w))*)’(?!\w)",
    re.DOTALL,
)

# In a pattern: one quoted text.
QUOTED: Final = f"{_OPEN}\\d+{_CLOSE}"
_MARK: Final = Pattern(f"{_OPEN}(\\d+){_CLOSE}")


class Sketch(NamedTuple):
    """`text` has a mark in the place of each quoted text; `ticked` says which of them were in backticks or fences."""

    text: str
    quoted: tuple[str, ...]
    ticked: tuple[bool, ...]

    def word(self, found: str) -> str:
        """What a matched mark or bare word stands for."""
        mark = _MARK.search(found)
        return self.quoted[int(mark[1])] if mark else found.rstrip(".,;:!?")

    def marks(self, found: str) -> tuple[str, ...]:
        """All the quoted texts of a stretch, in order."""
        return tuple(self.quoted[int(mark)] for mark in _MARK.findall(found))

    def ticks(self, found: str) -> tuple[str, ...]:
        """The quoted texts of a stretch that were in backticks or in fences."""
        return tuple(self.quoted[int(mark)] for mark in _MARK.findall(found) if self.ticked[int(mark)])


def sketch(prompt: str) -> Sketch:
    """Take the quoted texts out of the first 64 KiB of a prompt; linear in its length."""
    text = prompt[:_LONGEST_PROMPT].replace(_OPEN, " ").replace(_CLOSE, " ")
    pieces: list[str] = []
    quoted: list[str] = []
    ticked: list[bool] = []
    end = 0
    for found in _QUOTED.finditer(text):
        kind = found.lastgroup or ""
        pieces += [text[end : found.start()], f"{_OPEN}{len(quoted)}{_CLOSE}"]
        inside = found[kind]
        quoted.append(inside.removesuffix("\n") if kind == "fence" else inside)
        ticked.append(kind in ("fence", "tick", "double_tick"))
        end = found.end()
    pieces.append(text[end:])
    # One space or line break at most: patterns with optional spaces stay linear.
    words = re.sub(r"[^\S\n]+", " ", "".join(pieces).replace("’", "'"))
    return Sketch(re.sub(r" ?\n[ \n]*", "\n", words), tuple(quoted), tuple(ticked))

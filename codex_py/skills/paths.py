"""The patterns in `paths` of a skill: which files it is for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

_WORD: Final = r"[^\s`'\"()<>,;]+"
_MAX_WORDS: Final = 2000
_MAX_ALTERNATIVES: Final = 64


def fits_paths(patterns: Sequence[str], text: str, files: Iterable[str], project: Path) -> bool:
    """Whether a message names a file of one of the patterns, or one of `files` fits; without patterns always.

    `**` stands for directories, `*` and `?` for a part of a name, `{a,b}` for either. A pattern without a slash is
    about the name of a file in any directory; any other is about its path in the project.
    """
    if not patterns:
        return True
    names = {word.rstrip(".:!?") for word in re.findall(_WORD, text)[:_MAX_WORDS]}
    paths = [path.split("/") for name in {*names, *files} if (path := _in_project(name, project))]
    wanted = [_segments(each) for pattern in patterns for each in expand_braces(pattern)]
    return any(_fits(segments, path) for path in paths for segments in wanted)


def expand_braces(pattern: str) -> list[str]:
    """The patterns that a pattern with `{a,b}` stands for, at most 64; a pattern without braces stands for itself."""
    waiting, done = [pattern], list[str]()
    while waiting and len(waiting) + len(done) <= _MAX_ALTERNATIVES:
        text = waiting.pop(0)
        if braces := re.search(r"\{([^{}]*,[^{}]*)\}", text):
            waiting += [text[: braces.start()] + part + text[braces.end() :] for part in braces[1].split(",")]
        else:
            done.append(text)
    return done


def _in_project(name: str, project: Path) -> str:
    return name.removeprefix(f"{project}/").removeprefix("./").lstrip("@")


def _segments(pattern: str) -> list[str]:
    """The names of a pattern; `**` beside other text is no more than `*`, and a bracket is a bracket."""
    pattern = pattern.removeprefix("./").lstrip("/")
    names = (pattern if "/" in pattern else f"**/{pattern}").split("/")
    found = [name if name == "**" else re.sub(r"\*+", "*", name).replace("[", "[[]") for name in names]
    # A pattern that ends with `**` means what is below a directory, and not the directory.
    return [*found, "*"] if found[-1] == "**" else found


def _fits(segments: Sequence[str], path: Sequence[str]) -> bool:
    """Match name by name, back only to the last `**`: patterns come from others, and a search could take for ever."""
    at = segment = 0
    last, begins = -1, 0
    while at < len(path):
        if segment < len(segments) and segments[segment] == "**":
            segment += 1
            last, begins = segment, at
        elif segment < len(segments) and fnmatchcase(path[at], segments[segment]):
            segment += 1
            at += 1
        elif last >= 0:
            begins += 1
            segment, at = last, begins
        else:
            return False
    return all(left == "**" for left in segments[segment:])

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
    wanted = [_segments(each) for pattern in patterns for each in _alternatives(pattern)]
    return any(_fits(segments, path) for path in paths for segments in wanted)


def _in_project(name: str, project: Path) -> str:
    return name.removeprefix(f"{project}/").removeprefix("./").lstrip("@")


def _alternatives(pattern: str) -> list[str]:
    done: list[str] = []
    waiting = [pattern]
    while waiting and len(done) + len(waiting) <= _MAX_ALTERNATIVES:
        each = waiting.pop()
        found = re.search(r"\{([^{}]*)\}", each)
        if found is None:
            done.append(each)
        else:
            waiting += [each[: found.start()] + part + each[found.end() :] for part in found[1].split(",")]
    return done


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

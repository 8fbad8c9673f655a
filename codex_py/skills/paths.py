"""The patterns in `paths` of a skill: which files it is for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
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
    paths = {_in_project(name, project) for name in (*names, *files)}
    whole = "|".join(_expression(each) for pattern in patterns for each in _alternatives(pattern))
    return any(re.fullmatch(whole, path) for path in paths if path)


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


def _expression(pattern: str) -> str:
    pattern = pattern.removeprefix("./").lstrip("/")
    pattern = re.sub(r"\*{3,}", "**", pattern)
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern if "/" in pattern else f"**/{pattern}")
    meaning = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return "".join(meaning.get(part, re.escape(part)) for part in parts)

"""Which files there are: asked from git, or from `find` where git knows nothing, and counted."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Generator
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from codex_py.offline.result import Result
from codex_py.offline.script import Request, look, look_at_all, require

_SKIPPED: Final = (
    ".git",
    "node_modules",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
)
_PRUNE: Final = " -o ".join(f"-name {name}" for name in _SKIPPED)
FIND_FILES: Final = rf"find . \( {_PRUNE} \) -prune -o \( -type f -o -type l \) -print 2>/dev/null"
_GIT_FILES: Final = "git -c core.quotePath=false ls-files"
# Git warns of folders it may not enter, on lines that look like names.
_NEW_FILES: Final = f"{_GIT_FILES} --others --exclude-standard 2>/dev/null"
# What the rest of a tour wants to know by name; asked for separately when the whole list is too long to show.
_NOTABLE: Final = (
    r"^[^/]*$|(^|/)(tests?|specs?|__tests__)/|(^|/)test_[^/]*$|[._](test|spec)s?\.[a-z]+$"
    r"|(^|/)(__main__|main|cli|app|manage|index|server)\.[a-z]+$"
)


class Listing(NamedTuple):
    """The files below a folder. `paths` holds all of them, or only the notable ones when `complete` is false."""

    root: str | None
    total: int
    untracked: int
    tracked: bool
    suffixes: Counter[str]
    tops: Counter[str]
    paths: tuple[str, ...]
    complete: bool = True


class Place(NamedTuple):
    """Where commands run: the top of the repository, and the way from there to the current folder (`a/b/`)."""

    top: str | None
    prefix: str


def find_place() -> Generator[tuple[Request, ...], tuple[Result, ...], Place]:
    """Ask git where we are; no repository gives `Place(None, "")`."""
    answer = yield from look("git rev-parse --show-toplevel --show-prefix")
    lines = answer.text.split("\n")
    return (
        Place(lines[0].strip(), (lines[1] if len(lines) > 1 else "").strip())
        if answer.ok and lines[0]
        else Place(None, "")
    )


def list_files(place: Place, root: str | None) -> Generator[tuple[Request, ...], tuple[Result, ...], Listing]:
    """List the files below `root` (None is the current folder): tracked ones if there are any, else all."""
    listed, new = Result(1, ""), Result(1, "")
    if place.top is not None:
        listed, new = yield from look_at_all([_GIT_FILES, _NEW_FILES], root)
        if listed.ok and listed.text.strip():
            return (yield from _tallied(listed, _GIT_FILES, root, tracked=True, untracked=len(new.lines)))
        if new.ok and new.text.strip():
            return (yield from _tallied(new, _NEW_FILES, root, tracked=False, untracked=len(new.lines)))
    found = require((yield from look(FIND_FILES, root)), "find")
    return (yield from _tallied(found, FIND_FILES, root, tracked=False, untracked=0))


def _tallied(
    shown: Result, command: str, root: str | None, *, tracked: bool, untracked: int
) -> Generator[tuple[Request, ...], tuple[Result, ...], Listing]:
    if not shown.cut:
        paths = tuple(line.removeprefix("./") for line in shown.lines)
        suffixes = Counter(suffix_of(path) for path in paths)
        tops = Counter(path.split("/", 1)[0] for path in paths if "/" in path)
        return Listing(root, len(paths), untracked, tracked, suffixes, tops, paths)
    total, suffixes, tops, notable = yield from look_at_all(
        [
            f"{command} | wc -l",
            f"{command} | sed -e 's#.*/##' -e 's#^\\.*##' -e '/\\./!s#.*#-#' -e 's#.*\\.##' | sort | uniq -c | "
            f"sort -rn | head -n 200",
            f"{command} | sed 's#^\\./##' | grep / | cut -d/ -f1 | sort | uniq -c | sort -rn | head -n 100",
            f"{command} | sed 's#^\\./##' | grep -E {shlex.quote(_NOTABLE)} | head -n 600",
        ],
        root,
    )
    number = int(total.text.strip()) if total.text.strip().isdigit() else 0
    by_suffix = Counter({("" if name == "-" else f".{name.lower()}"): size for size, name in _counted(suffixes)})
    by_top = Counter({name: size for size, name in _counted(tops)})
    return Listing(root, number, untracked, tracked, by_suffix, by_top, tuple(notable.lines), complete=False)


def _counted(result: Result) -> list[tuple[int, str]]:
    return [(int(found[1]), found[2]) for line in result.lines if (found := re.match(r"\s*(\d{1,9}) (.*)", line))]


def suffix_of(path: str) -> str:
    """`.py`, in lower case; '' for a name without one."""
    return PurePosixPath(path).suffix.lower()

"""Which paths commands must not read: the user's patterns, looked up on disk once for a session's folder."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from codex_py.paths import real_path
from codex_py.sandbox.policy import leads_to

# How far a pattern with wildcards is looked up below its fixed part; breadth first.
_SCANNED_ENTRIES: Final = 20_000
_MOST_MATCHES: Final = 256
_WILDCARDS: Final = frozenset("*?[")


def find_unreadable(patterns: Sequence[str], cwd: Path, env: Mapping[str, str]) -> tuple[Path, ...]:
    """The real paths the patterns stand for, without those below another one of them.

    `~` is the user's home, relative patterns start at `cwd`. `*` and `?` match within a name, `**` any folders between.
    A path that is not there counts when its pattern has no wildcard and a file can have its name: it may come later.
    """
    found: set[Path] = set()
    for pattern in patterns:
        absolute = os.path.normpath(cwd / _expanded(pattern, env))
        if not _WILDCARDS.isdisjoint(absolute) and not os.path.lexists(absolute):
            found.update(_matches(absolute))
        else:
            found.update(leads_to(Path(absolute)))
    return without_nested(found)


def without_nested(found: Collection[Path]) -> tuple[Path, ...]:
    """The paths, sorted, without those below another one of them."""
    return tuple(sorted(path for path in found if not any(parent in found for parent in path.parents)))


def is_readable(path: Path, unreadable: Sequence[Path]) -> bool:
    """Whether the absolute `path`, its links followed, is none of the `unreadable` and below none of them."""
    real = Path(real_path(path))
    return not any(real.is_relative_to(one) for one in unreadable)


def _expanded(pattern: str, env: Mapping[str, str]) -> str:
    if pattern == "~" or pattern.startswith("~/"):
        return (env.get("HOME") or str(Path.home())) + pattern[1:]
    return pattern


def _matches(pattern: str) -> Iterator[Path]:
    parts = pattern.split("/")
    fixed = next(index for index, part in enumerate(parts) if not _WILDCARDS.isdisjoint(part))
    wanted = _compiled(parts[fixed:])
    top = "/".join(parts[:fixed]) or "/"
    deep = "**" in parts or len(parts) - fixed > 1
    count = 0
    for path in _below(real_path(top), deep=deep):
        if wanted.fullmatch(path):
            yield Path(real_path(f"{real_path(top)}/{path}"))
            count += 1
            if count == _MOST_MATCHES:
                return


def _below(top: str, *, deep: bool) -> Iterator[str]:
    """Names of everything below `top`, relative to it; links are not followed."""
    folders = deque([""])
    seen = 0
    while folders:
        folder = folders.popleft()
        try:
            with os.scandir(f"{top}/{folder}") as listing:
                for entry in listing:
                    seen += 1
                    if seen > _SCANNED_ENTRIES:
                        return
                    yield folder + entry.name
                    if deep and entry.is_dir(follow_symlinks=False):
                        folders.append(f"{folder}{entry.name}/")
        except OSError:
            continue


def _compiled(parts: Sequence[str]) -> re.Pattern[str]:
    text = ""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            text += ".*" if last else "(?:[^/]+/)*"
        else:
            text += _name_expression(part) + ("" if last else "/")
    return re.compile(text, re.DOTALL)


def _name_expression(part: str) -> str:
    """One name's pattern as a regular expression; a `[` that is not closed is itself."""
    text, rest = "", part
    while rest:
        head, rest = rest[0], rest[1:]
        closing = rest.find("]", 1)
        if head == "*":
            text += "[^/]*"
            rest = rest.lstrip("*")
        elif head == "?":
            text += "[^/]"
        elif head == "[" and closing > 0:
            body = re.sub(r"([\\&~|\[])", r"\\\1", rest[:closing])
            text += f"[^{body[1:]}]" if body[0] in "!^" else f"[{body}]"
            rest = rest[closing + 1 :]
        else:
            text += re.escape(head)
    return text

"""Short text for people: ages and durations, terminal cells, the ends of long outputs, the script of a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from unicodedata import category, east_asian_width

from codex_py.text.sanitize import sanitize

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def describe_age(stamp: str, *, now: float) -> str:
    """The age of a time stamp: `now`, `5m ago`, `3h ago`, `2d ago`, and the date for what is older than a month.

    `now` is in seconds since the epoch. A stamp from the future is `now`; a text that is no stamp stays as it is.
    """
    try:
        then = datetime.fromisoformat(stamp).timestamp()
    except (ValueError, OverflowError):
        return stamp
    seconds = now - then
    if seconds < _MINUTE:
        return "now"
    if seconds < _HOUR:
        return f"{int(seconds // _MINUTE)}m ago"
    if seconds < _DAY:
        return f"{int(seconds // _HOUR)}h ago"
    if seconds < 31 * _DAY:
        return f"{int(seconds // _DAY)}d ago"
    return stamp[:10]


def describe_seconds(seconds: float) -> str:
    """A duration a person reads at a glance: `35ms`, `2.4s`, `3m 05s`."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m {rest:02d}s"


_JOINER: Final = "\u200d"
_AS_PICTURE: Final = "\ufe0f"


def cell_width(text: str) -> int:
    """The cells of a text without control characters."""
    return len(text) if text.isascii() else sum(_widths(text))


def cut_to_cells(text: str, width: int) -> str:
    """`text`, or as much of its beginning as fits with a `…` behind it; nothing when there is no cell."""
    if cell_width(text) <= width:
        return text
    length, width_left = 0, width - 1
    for size in _widths(text):
        width_left -= size
        if width_left < 0:
            break
        length += 1
    return text[:length] + "…" if width > 0 else ""


def _widths(text: str) -> list[int]:
    """The cells each character adds: a character that joins the one before, or follows a joiner, adds none."""
    widths: list[int] = []
    before = ""
    for char in text:
        if char == _AS_PICTURE and widths:
            widths.append(max(0, 2 - widths[-1]) if widths[-1] else 0)
        elif before == _JOINER or category(char) in ("Mn", "Me", "Cf"):
            widths.append(0)
        else:
            widths.append(2 if east_asian_width(char) in "WF" else 1)
        before = char
    return widths


def ends_of(output: str, max_lines: int = 24) -> list[str]:
    """The lines to show of an output: a long one by its ends, for an error is at the end and what ran at the start."""
    if not output.strip():
        return []
    text = output.replace("\r\n", "\n").rstrip("\n")
    count = text.count("\n") + 1
    # Never folded for one line: that would take its place.
    if count <= max_lines + 1:
        return sanitize(output).rstrip("\n").split("\n")
    # Of a flood only what is shown is looked at.
    half = max_lines // 2
    first, last = text.split("\n", half)[:half], text.rsplit("\n", half)[-half:]
    return [*map(sanitize, first), f"… {count - 2 * half} more lines …", *map(sanitize, last)]


def first_words(text: str, max_length: int) -> str:
    """A text on one line, cut with a `…` to `max_length` characters."""
    line = " ".join(text[: 4 * max_length].split())
    return line if len(line) <= max_length else f"{line[: max_length - 1]}…"


_LONG: Final = 100_000
_USUAL_SHELL: Final = r"/(?:usr/(?:local/)?)?bin/(?:bash|sh|zsh|dash|fish) -l?c "


def script_and_shell(command: str) -> tuple[str, str]:
    """The script of a usual shell, and that shell with its option; otherwise the command line unchanged, and ""."""
    if re.match(_USUAL_SHELL, command) and len(command) < _LONG:
        try:
            words = shlex.split(command)
        except ValueError:
            return command, ""
        if len(words) == 3:
            return words[2], shlex.join(words[:2])
    return command, ""


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 file`, `1,200 files`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def first_names(names: Sequence[str], limit: int) -> str:
    """The first names, and how many others there are: `a, b and 3 more`."""
    more = f" and {len(names) - limit:,} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def describe_changes(changed: int, deleted: int) -> str:
    """What a turn did to the files: `12 files changed, 2 deleted`."""
    parts = [f"{counted(changed, 'file')} changed"] if changed else []
    if deleted:
        parts.append(f"{f'{deleted:,}' if changed else counted(deleted, 'file')} deleted")
    return ", ".join(parts)

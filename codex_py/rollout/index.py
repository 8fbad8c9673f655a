"""The sessions of a `CODEX_HOME` with what a list shows of each.

Read from the files and kept in a cache by path, size and mtime. The cache is never the only place of anything: it may
be damaged, removed, or written by several processes at once.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from codex_py.protocol.encoding import as_object
from codex_py.rollout.files import session_names
from codex_py.rollout.summary import SessionSummary, read_summary
from codex_py.text.checked_file import load_checked, save_checked

_FORMAT: Final = b"codex-py sessions 4"
_MAX_BYTES: Final = 256 * 1024 * 1024
_FIELDS: Final = len(SessionSummary._fields) - 2
_DAMAGE: Final = (ValueError, TypeError, LookupError, RecursionError)

_Entry = list[Any]


def read_index(home: Path, *, archived: bool = False) -> list[SessionSummary]:
    """Every session that is not archived, or every one that is, in no particular order and without names.

    Files that hold no session are left out.
    """
    cache = home / "cache" / f"sessions{'-archived' if archived else ''}.json"
    known = _load(cache)
    entries: dict[str, _Entry] = {}
    found: list[SessionSummary] = []
    for name in session_names(home, archived=archived):
        entry = _current(home, name, known.get(name))
        if entry is None:
            continue
        entries[name] = entry
        if entry[2] is not None:
            found.append(SessionSummary(home / name, *entry[2]))
    if entries != known:
        save_checked(cache, _FORMAT, json.dumps(entries, separators=(",", ":")).encode(), max_bytes=_MAX_BYTES)
    return found


def _current(home: Path, name: str, known: _Entry | None) -> _Entry | None:
    """What the cache knows of a file when it has not changed since, else what is in it; None when it is gone."""
    try:
        status = os.lstat(f"{home}/{name}")
    except OSError:
        return None
    if known is not None and known[:2] == [status.st_size, status.st_mtime_ns]:
        return known
    summary = read_summary(home / name)
    return [status.st_size, status.st_mtime_ns, None if summary is None else list(summary[1 : 1 + _FIELDS])]


def _load(cache: Path) -> dict[str, _Entry]:
    body = load_checked(cache, _FORMAT, max_bytes=_MAX_BYTES)
    try:
        entries = as_object(json.loads(body or b"{}"))
        return entries if all(map(_is_entry, entries.values())) else {}
    except _DAMAGE:
        return {}


def _is_entry(entry: Any) -> bool:
    return len(entry) == 3 and (entry[2] is None or len(entry[2]) == _FIELDS)

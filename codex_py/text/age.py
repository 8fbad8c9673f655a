"""How long ago something was, and how long it took, in few letters."""

from __future__ import annotations

from datetime import datetime

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

"""Hooks as a person looks at them."""

from __future__ import annotations

from codex_py.hooks.schema import Hook
from codex_py.protocol.value import Value


class ListedHook(Value):
    """One hook: when it runs, what, and where that is written.

    `runs` says whether it does, `asks` that it needs the user's yes for that, and `changed` that they gave it when it,
    or a file it names, was another one. `outside` says that no sandbox holds it.
    """

    event: str
    matcher: str
    command: str
    source: str
    where: str
    seconds: float
    runs: bool
    asks: bool
    changed: bool = False
    fail_closed: bool = False
    outside: bool = False


def listed_hook(hook: Hook, *, runs: bool, changed: bool = False, outside: bool = False) -> ListedHook:
    """What there is to see of a hook."""
    return ListedHook(
        event=hook.event,
        matcher=hook.narrowed,
        command=hook.written,
        source=hook.origin.source,
        where=hook.origin.where,
        seconds=hook.timeout,
        runs=runs,
        asks=hook.origin.layer == "project",
        changed=changed,
        fail_closed=hook.fail_closed,
        outside=outside or hook.origin.layer != "project",
    )

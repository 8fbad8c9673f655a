"""What a user can do where the sandbox is missing or incomplete."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_PAGE: Final = "docs/guides/containers.md"
# What the kernel answers where a limit, a security module or a container forbids user namespaces.
_FORBIDDEN: Final = ("operation not permitted", "permission denied", "no space left", "no permissions to creat")


def missing_sandbox(failures: Sequence[str], *, partial: bool) -> str:
    """Why no command runs, and the next steps. `failures` are those of the backends that do not work here,
    or what is incomplete of one that does.

    `partial` says that Landlock works, so that a command would be restricted in part.
    """
    if _forbids_namespaces(failures):
        why = "this machine forbids user namespaces, which it needs" + ("" if partial else ", and has no Landlock")
    else:
        why = "; ".join(failures)
    state = "incomplete" if partial else "missing"
    return f"the sandbox is {state} and no command runs: {why}; {next_steps(failures, partial=partial)}"


def next_steps(failures: Sequence[str], *, partial: bool) -> str:
    """What to do about it, as in `missing_sandbox`."""
    allow = f"allow user namespaces (see {_PAGE})" if _forbids_namespaces(failures) else f"see {_PAGE}"
    accept = ", accept the incomplete sandbox with `-c sandbox.allow_partial=true`," if partial else ""
    return f"{allow}{accept} or use `-s danger-full-access` in a throw-away container"


def _forbids_namespaces(failures: Sequence[str]) -> bool:
    return any(words in failure.lower() for failure in failures for words in _FORBIDDEN)

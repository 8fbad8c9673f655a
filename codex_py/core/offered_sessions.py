"""The stored sessions a person chooses from."""

from __future__ import annotations

from pathlib import Path

from codex_py.rollout.listing import SessionQuery, list_sessions
from codex_py.rollout.summary import SessionSummary

__all__ = ["SessionSummary", "offered_sessions"]


def offered_sessions(home: Path, *, cwd: Path | None, search: str = "") -> list[SessionSummary]:
    """The sessions to choose from, the one written to last first: those of `cwd` (None: of any folder) in whose name,
    first prompt, folder, branch or id every word of `search` stands.
    """
    return list_sessions(home, SessionQuery(cwd, search))

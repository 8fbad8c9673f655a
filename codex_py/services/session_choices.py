"""The stored sessions that a user chooses from: found, sorted, archived."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from codex_py.errors import UserError
from codex_py.protocol.encoding import as_list, as_object, decode_json
from codex_py.rollout.archive import archive_session, delete_session, unarchive_session
from codex_py.rollout.find import find_exactly
from codex_py.rollout.listing import SessionQuery, checked_name, list_sessions, read_names, save_name
from codex_py.rollout.summary import SessionSummary, read_summary
from codex_py.rollout.transcript import read_turns

__all__ = [
    "SessionQuery",
    "SessionSummary",
    "archive_session",
    "delete_session",
    "find_exactly",
    "list_sessions",
    "name_session",
    "name_trouble",
    "offered_sessions",
    "shown_messages",
    "summary_of",
    "turns_of",
    "unarchive_session",
]


def offered_sessions(home: Path, *, cwd: Path | None, search: str = "") -> list[SessionSummary]:
    """The sessions to choose from, the one written to last first: those of `cwd` (None: of any directory) in whose
    name, first prompt, directory, branch or id every word of `search` stands.
    """
    return list_sessions(home, SessionQuery(cwd, search))


def summary_of(home: Path, path: Path) -> SessionSummary:
    """What a list shows of the session in this file. Raise `UserError` when nothing in it can be read."""
    summary = read_summary(path)
    if summary is None:
        raise UserError(f"cannot read session `{path}`: no record in it is whole")
    return summary._replace(name=read_names(home).get(summary.id, ""))


def name_trouble(name: str) -> str:
    """Why a session cannot have this name; empty when it can."""
    try:
        checked_name(name)
    except UserError as error:
        return str(error)
    return ""


def name_session(home: Path, thread_id: str, name: str) -> str:
    """Name a session; gives back the name as it is kept. Raise `UserError` for one that cannot be."""
    stored_name = checked_name(name)
    save_name(home, thread_id, stored_name)
    return stored_name


_SHORTENED: Final = b'"text_elements":[{'
_MAX_PLACEHOLDER: Final = 500


def shown_messages(path: Path) -> dict[str, str]:
    """The messages of a session that were shown shorter than they are, such as with a paste as a chip: how, by their
    text. A file that cannot be read has none.
    """
    try:
        with path.open("rb") as file:
            payloads = [as_object(as_object(decode_json(line)).get("payload")) for line in file if _SHORTENED in line]
    except (OSError, ValueError):
        return {}
    return {text: _shown(text, payload) for payload in payloads if isinstance(text := payload.get("message"), str)}


def _shown(text: str, payload: Mapping[str, Any]) -> str:
    raw, pieces, last = text.encode(errors="surrogatepass"), list[bytes](), 0
    for element in map(as_object, as_list(payload.get("text_elements"))):
        span, placeholder = as_object(element.get("byte_range")), element.get("placeholder")
        start, end = span.get("start"), span.get("end")
        if not (isinstance(start, int) and isinstance(end, int) and last <= start <= end <= len(raw) and placeholder):
            return text
        pieces += [raw[last:start], str(placeholder)[:_MAX_PLACEHOLDER].encode(errors="replace")]
        last = end
    return b"".join([*pieces, raw[last:]]).decode(errors="replace")


def turns_of(path: Path) -> list[tuple[int, str, str]]:
    """The turns of a session: number, time, and the beginning of the message."""
    return [(turn.number, turn.timestamp[:16], " ".join(turn.prompt.split())[:100]) for turn in read_turns(path)]

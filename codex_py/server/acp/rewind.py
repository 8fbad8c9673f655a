"""`/undo` and `/rewind` of clients: which turn is gone back before, and the answer in words."""

from __future__ import annotations

from typing import Final

from codex_py.errors import UserError
from codex_py.server.acp.content import Json
from codex_py.server.messages import Params
from codex_py.server.threads import RollbackOutcome, RollbackRequest
from codex_py.text.sanitize import sanitize_line

# The method of our own, which says what would happen with `dryRun`.
REWIND_METHOD: Final = "_codex-py/rewind"
_LAST: Final = "last"
_SHOWN: Final = 40

REWIND_COMMANDS: Final[tuple[Json, ...]] = (
    {"name": "undo", "description": "bring back files and conversation before the last turn"},
    {
        "name": "rewind",
        "description": "go back before a turn, or undo the last rewind",
        "input": {"hint": "TURN | latest [files | conversation | both]"},
    },
)


def read_rewind(params: Params) -> RollbackRequest:
    """The request of a client."""
    return RollbackRequest(
        params.text_or_none("to") or _LAST,
        files=params.flag("files", default=True),
        conversation=params.flag("conversation", default=True),
        copies_conflicts=params.flag("copyConflicts"),
        dry_run=params.flag("dryRun"),
    )


def called_rewind(prompt: str) -> RollbackRequest | None:
    """The request of a prompt that is `/undo` or `/rewind …`; None for any other prompt. Raises `UserError`."""
    name, *words = prompt.split() or [""]
    if name == "/undo" and not words:
        return RollbackRequest(_LAST, files=True)
    if name != "/rewind":
        return None
    part = words[1] if len(words) == 2 else "both"
    if not 1 <= len(words) <= 2 or part not in ("files", "conversation", "both"):
        raise UserError("`/rewind` needs the number of a turn or `latest`, and then `files`, `conversation` or `both`")
    return RollbackRequest(words[0], files=part != "conversation", conversation=part != "files")


def rewind_payload(done: RollbackOutcome) -> Json:
    """The answer to the method."""
    return {"files": dict(done.files), "message": done.message, "notices": list(done.notices)}


def describe_rewind(done: RollbackOutcome) -> str:
    """The answer to the command, as Markdown."""
    more = len(done.lines) - _SHOWN
    lines = done.lines if more <= 0 else (*done.lines[: _SHOWN - 1], f"and {more} more", done.lines[-1])
    message = (f"the message was: {done.message}",) if done.message else ()
    return "\n".join(f"- {sanitize_line(line)}" for line in (*lines, *done.notices, *message))

"""What the model reads of a command: a header that says how it stands, and its output cut to size."""

from __future__ import annotations

import os
from typing import Final

from codex_py.process.output import Captured
from codex_py.text.tokens import estimate_tokens
from codex_py.text.truncate import BYTES_PER_TOKEN, count_lines, truncate_middle

# A whole reply, header included, may go over the model's cap for one output by a fifth.
_MARGIN: Final = 1.2
_ATTEMPTS: Final = 4


def compose_reply(captured: Captured, *, standing: str, seconds: float, max_tokens: int, cap: int) -> str:
    """The text of a reply. `standing` is the line that tells exit code or session ID.

    It is cut to `max_tokens` or to `cap`, the model's limit, whichever is less; the whole reply stays within
    1.2 times the cap.
    """
    text = captured.text()
    size = captured.total if captured.omitted else len(text.encode("utf-8", "replace"))
    count = estimate_tokens(size)
    header = (
        f"Chunk ID: {os.urandom(3).hex()}\n"
        f"Wall time: {seconds:.4f} seconds\n"
        f"{standing}\n"
        f"Original token count: {count}\n"
        "Output:\n"
    )
    lines = (
        f"... {captured.omitted} bytes omitted ..." if captured.omitted else f"Total output lines: {count_lines(text)}"
    )
    warning = f"Warning: truncated output (original token count: {count})\n{lines}\n\n"
    limit = max(0, min(max_tokens, cap))
    allowed = int(cap * BYTES_PER_TOKEN * _MARGIN)
    reply = ""
    for _ in range(_ATTEMPTS):
        cut = truncate_middle(text, limit, token_count=count)
        reply = header + (cut if cut is text else warning + cut)
        excess = len(reply.encode("utf-8", "replace")) - allowed
        if excess <= 0 or not limit:
            break
        limit = max(0, min(limit, estimate_tokens(size)) - estimate_tokens(excess))
    return reply


def standing_of(exit_code: int | None, session_id: int) -> str:
    """The line that says how a command stands."""
    if exit_code is None:
        return f"Process running with session ID {session_id}"
    return f"Process exited with code {exit_code}"

"""What a fork takes over from its parent: a copy of the records, so that the fork stands without the parent's file.

Codex CLI forks sessions of this layout the same way, and reads such a fork.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from codex_py.rollout.lineage import history_lines, lower
from codex_py.rollout.lines import decode_record, ordinal_of, read_head


def inherited_lines(path: Path, *, before: int) -> Iterator[bytes]:
    """The lines of a session whose ordinal is below `before`, headers left out, each with its newline.

    Lines that hold no whole record are left out. Raise `UserError` for a file that cannot be read.
    """
    following = 0
    for line, bound in history_lines(path):
        head = read_head(line)
        if head is not None and line.endswith(b"}\n"):
            record_type, ordinal = head["type"].decode(), ordinal_of(head, following)
        else:
            record = decode_record(line, following)
            if record is None:
                continue
            record_type, ordinal = record.record_type, record.ordinal
        following = ordinal + 1
        if record_type != "session_meta" and ordinal < lower(before, bound):
            yield line if line.endswith(b"\n") else line + b"\n"

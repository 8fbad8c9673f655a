"""Writes a stored session as the document that is asked for, into a file or elsewhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from codex_py.errors import UsageError, UserError
from codex_py.paths import draft_of, open_private
from codex_py.replace_file import replace_with
from codex_py.rollout.summary import SessionSummary
from codex_py.services.session_cleaning import TextCleaner
from codex_py.services.session_export import ExportChoice, ExportFormat, begin_of, export_json
from codex_py.services.session_html import export_html
from codex_py.services.session_markdown import export_markdown
from codex_py.text.files import os_reason
from codex_py.text.sanitize import sanitize_line

_ENDINGS: Final = {".md": "md", ".markdown": "md", ".html": "html", ".htm": "html", ".json": "json", ".jsonl": "jsonl"}


def write_document(
    session: SessionSummary, choice: ExportChoice, cleaner: TextCleaner, write: Callable[[bytes], object]
) -> None:
    """Write a session in the format that is chosen. Raises `UserError`, for a missing turn before it writes."""
    begin_of(session.path, choice.since)
    match choice.format:
        case "md":
            export_markdown(session, choice, cleaner, write)
        case "html":
            export_html(session, choice, cleaner, write)
        case "json" | "jsonl":
            export_json(session.path, choice, cleaner, write)


def document_format(name: str, output: Path | None) -> ExportFormat:
    """The format of this name; without one that of the file's ending, else Markdown. Raises `UsageError`."""
    wanted = name.lower() or (_ENDINGS.get(output.suffix.lower(), "md") if output is not None else "md")
    match wanted:
        case "md" | "html" | "json" | "jsonl":
            return wanted
        case _:
            raise UsageError(f"`--format` is one of md, html, json and jsonl, not `{sanitize_line(name)[:40]}`")


@contextmanager
def document_file(output: Path) -> Generator[Callable[[bytes], object], None, None]:
    """Yield a function that writes to a file. Only the user can read it, and it appears whole or not at all.

    Raises `UserError` when it cannot be written.
    """
    if output.is_dir():
        raise UserError(f"cannot write `{output}`: it is a directory")
    try:
        draft = draft_of(output, os.urandom(8).hex())
        try:
            with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW), "wb") as file:
                yield file.write
            replace_with(draft, output)
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise UserError(f"cannot write `{output}`: {os_reason(error)}", status=1) from error

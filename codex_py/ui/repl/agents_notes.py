"""`#text`: a line for AGENTS.md, written after the user has seen where."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Final

from codex_py.errors import UserError
from codex_py.text.files import os_reason
from codex_py.ui.repl.panels.forms import GUTTER, Option, Sheet, TextLine
from codex_py.ui.repl.slash_command import CommandContext

NOTE: Final = "#"
_FILE: Final = "AGENTS.md"
_SEND: Final = "send"


def note_in(text: str) -> str:
    """The line behind the `#` that a message begins with; empty where it is none, as in Markdown of several lines."""
    text = text.strip()
    return text.lstrip(NOTE).strip() if text.startswith(NOTE) and "\n" not in text else ""


async def add_note(context: CommandContext, note: str) -> bool:
    """Ask where the line goes and add it; False when it is to be sent as a message."""
    chosen = await context.asker.choose(note_sheet(context, note))
    if chosen == _SEND:
        return False
    if isinstance(chosen, Path):
        await asyncio.to_thread(append_line, chosen, f"- {note}")
        context.output.note(f"added to {context.show_path(chosen)}; the model has it with your next message")
    return True


def note_sheet(context: CommandContext, note: str) -> Sheet[Path | str | None]:
    """Where the line can go; Enter adds it to the project's file."""
    project, own = _project_file(context), context.launch.home / _FILE

    def describe(path: Path) -> str:
        return f"{context.show_path(path)}, {'at its end' if path.exists() else 'a new file'}"

    return Sheet[Path | str | None](
        title="Add this line to AGENTS.md?",
        subject=(TextLine(f"- {note}", "strong", GUTTER),),
        options=(
            Option("p", "Yes, for this project", project, describe(project)),
            Option("u", "Yes, for all your projects", own, describe(own)),
            Option("m", "No, send it as a message", _SEND),
            Option("n", "No", None),
        ),
        refusal=None,
    )


def append_line(path: Path, line: str) -> None:
    """Add a line at the end of a file, which is made where there is none. Raises `UserError`."""
    # Whoever may write in the project could put a pipe there, which opens when somebody reads it.
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        with os.fdopen(os.open(path, flags, 0o644), "rb+", buffering=0) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise UserError(f"cannot write `{path}`: it is not a regular file")
            last = os.pread(file.fileno(), 1, max(0, status.st_size - 1))
            file.write((b"" if last in (b"", b"\n") else b"\n") + line.encode() + b"\n")
    except OSError as error:
        raise UserError(f"cannot write `{path}`: {os_reason(error)}") from error


def _project_file(context: CommandContext) -> Path:
    """The nearest file from the working directory up to the root of the project, else the one to make there."""
    root = context.launch.loaded.project_root or context.cwd
    directories = [directory for directory in (context.cwd, *context.cwd.parents) if directory.is_relative_to(root)]
    files = [directory / _FILE for directory in directories]
    return next((file for file in files if file.is_file()), root / _FILE)

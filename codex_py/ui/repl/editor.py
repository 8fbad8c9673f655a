"""The user's editor: for a file, and for the message that is being typed."""

from __future__ import annotations

import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from codex_py.programs import ProgramFinder
from codex_py.ui.repl.drafts import draft_file

RunProgram: TypeAlias = Callable[[Sequence[str]], Awaitable[int]]

_USUAL: Final = ("sensible-editor", "nano", "vi")
_NOT_STARTED: Final = 127
_MAX_BYTES: Final = 4 * 1024 * 1024


async def edit_file(path: Path, run: RunProgram, programs: ProgramFinder, env: Mapping[str, str]) -> bool:
    """Open a file in the editor and wait for its end; False when there is none that can be started.

    Raises `UserError` for an editor of the user's that commands of the model may write.
    """
    for command in _editors(programs, env):
        if await run([*command, str(path)]) != _NOT_STARTED:
            return True
    return False


async def edit_text(
    text: str, run: RunProgram, programs: ProgramFinder, env: Mapping[str, str], *, home: Path
) -> str | None:
    """Let the user edit a text; None when no editor could be started, or what it left cannot be read.

    `home` is CODEX_HOME. Raises `UserError` as `edit_file` does, and when there can be no draft.
    """
    with draft_file(home, text, ".md") as path:
        return _read(path) if await edit_file(path, run, programs, env) else None


def _read(path: Path) -> str | None:
    try:
        with path.open("rb") as edited:
            return edited.read(_MAX_BYTES).decode(errors="replace").rstrip("\n")
    except OSError:
        return None


def _editors(programs: ProgramFinder, env: Mapping[str, str]) -> list[list[str]]:
    # Many editors are scripts, which look for others themselves.
    start = ["/usr/bin/env", f"PATH={programs.trusted_path()}"]
    name, wanted = ("VISUAL", env["VISUAL"]) if env.get("VISUAL") else ("EDITOR", env.get("EDITOR", ""))
    if wanted:
        try:
            words = shlex.split(wanted) or [wanted]
        except ValueError:
            words = [wanted]
        return [[*start, programs.find_chosen(words[0], name), *words[1:]]]
    return [[*start, found] for editor in _USUAL if (found := programs.find(editor)) is not None]

"""What tool calls are called."""

from __future__ import annotations

from typing import Final

from codex_py.protocol.events import FileChange
from codex_py.server.acp.tool_calls import ToolKind
from codex_py.text.shell_line import script_and_shell

_MAX_NAMED: Final = 3


def command_title(command: str) -> str:
    """What a person calls a command: its script, as clients draw code."""
    script = script_and_shell(command)[0].strip()
    first, _, rest = script.partition("\n")
    shown = f"{first} …" if rest else first
    return f"`{shown}`" if shown and "`" not in shown else shown or "Run a command"


def patch_title(changes: tuple[FileChange, ...]) -> str:
    """What a patch does, in a few words."""
    if not changes:
        return "Edit files"
    verb = {"delete": "Delete", "move": "Move"}.get(tool_kind_of_patch(changes), "Edit")
    names = ", ".join((change.move_path or change.path).name for change in changes[:_MAX_NAMED])
    more = f" and {len(changes) - _MAX_NAMED} more" if len(changes) > _MAX_NAMED else ""
    return f"{verb} {names}{more}"


def tool_kind_of_patch(changes: tuple[FileChange, ...]) -> ToolKind:
    """What kind of change a patch is as a whole."""
    if all(change.kind == "delete" for change in changes):
        return "delete"
    return "move" if all(change.move_path and not change.diff for change in changes) else "edit"

"""The tool calls sent to a client: each has a title and a unique id, and is started once and ended once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias

from codex_py.protocol.events import FileChange
from codex_py.server.acp.content import Json, text_content
from codex_py.text.display import first_names, first_words, script_and_shell
from codex_py.text.sanitize import sanitize

ToolKind: TypeAlias = Literal[
    "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other"
]
Ending: TypeAlias = Literal["completed", "failed"]

_MAX_TITLE_LENGTH: Final = 400


def titled(text: str) -> str:
    """A sanitized title on one line."""
    return first_words(sanitize(text[: 4 * _MAX_TITLE_LENGTH]), _MAX_TITLE_LENGTH)


class ToolCalls:
    """Calls by the model's ids. The model may use an id twice, so clients get ids made here."""

    def __init__(self) -> None:
        self._count = 0
        self._open: dict[str, list[str]] = {}
        # Announced by a question, and not begun yet.
        self._pending: set[str] = set()
        # Calls that outlast their turns, by the model's id.
        self._outlasting: dict[str, str] = {}

    def ask(self, call_id: str, title: str, kind: ToolKind, **more: Any) -> tuple[str, Json | None]:
        """Announce a call that the user is asked about: its id, and its first update if none was sent yet."""
        if opened := self._open.get(call_id):
            return opened[0], None
        wire = self._new(call_id)
        self._pending.add(wire)
        return wire, _call(wire, title, kind, {"status": "pending", **more})

    def begin(self, call_id: str, title: str, kind: ToolKind, **more: Any) -> Json:
        """Start a call."""
        pending = next((wire for wire in self._open.get(call_id, ()) if wire in self._pending), None)
        if pending is None:
            return _call(self._new(call_id), title, kind, {"status": "in_progress", **more})
        self._pending.discard(pending)
        return _update(pending, title=titled(title), kind=kind, status="in_progress", **more)

    def change(self, call_id: str, **more: Any) -> Json | None:
        """Update a running call; None for a call that is not running."""
        opened = self._open.get(call_id)
        wire = opened[0] if opened else self._outlasting.get(call_id)
        return None if wire is None else _update(wire, **more)

    def end(self, call_id: str, ending: Ending, **more: Any) -> Json | None:
        """End a call; None for an unknown one."""
        opened = self._open.get(call_id)
        wire = opened.pop(0) if opened else self._outlasting.pop(call_id, None)
        if not opened:
            self._open.pop(call_id, None)
        if wire is None:
            return None
        self._pending.discard(wire)
        return _update(wire, status=ending, **more)

    def complete(self, title: str, kind: ToolKind, ending: Ending, **more: Any) -> Json:
        """A call that is sent only once, after its end."""
        self._count += 1
        return _call(f"call_{self._count}", title, kind, {"status": ending, **more})

    def outlast(self, call_id: str) -> None:
        """Let a call outlast its turn, until `end`."""
        for wire in self._open.pop(call_id, ()):
            self._outlasting[call_id] = wire

    def end_all(self) -> Iterator[Json]:
        """End all open calls as stopped, because their turn is over."""
        for wire in [wire for opened in self._open.values() for wire in opened]:
            yield _update(wire, status="failed", content=[text_content("stopped")])
        self._open.clear()
        self._pending.clear()

    def _new(self, call_id: str) -> str:
        self._count += 1
        wire = f"call_{self._count}"
        self._open.setdefault(call_id, []).append(wire)
        return wire


def _call(wire: str, title: str, kind: ToolKind, more: Json) -> Json:
    return {"sessionUpdate": "tool_call", "toolCallId": wire, "title": titled(title), "kind": kind, **more}


def _update(wire: str, **more: Any) -> Json:
    return {"sessionUpdate": "tool_call_update", "toolCallId": wire, **more}


_MAX_NAMED: Final = 3


def command_title(command: str) -> str:
    """A command's script as Markdown code, without the shell that runs it."""
    script = script_and_shell(command)[0].strip()
    first, _, rest = script.partition("\n")
    shown = f"{first} …" if rest else first
    return f"`{shown}`" if shown and "`" not in shown else shown or "Run a command"


def patch_title(changes: tuple[FileChange, ...]) -> str:
    """A short title for a patch."""
    if not changes:
        return "Edit files"
    verb = {"delete": "Delete", "move": "Move"}.get(tool_kind_of_patch(changes), "Edit")
    return f"{verb} {first_names([(change.move_path or change.path).name for change in changes], _MAX_NAMED)}"


def tool_kind_of_patch(changes: tuple[FileChange, ...]) -> ToolKind:
    """The protocol's kind of tool call for a patch."""
    if all(change.kind == "delete" for change in changes):
        return "delete"
    return "move" if all(change.move_path and not change.diff for change in changes) else "edit"

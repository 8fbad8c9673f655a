"""A call of a tool without a form of its own, such as one of an MCP server: a line, and its output when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from codex_py.protocol.encoding import encode_json
from codex_py.protocol.events import McpCallFinished, McpCallProgress, McpCallStarted, ToolCallFinished
from codex_py.render.command import legible, output_block, wheel
from codex_py.render.entry import OneLine, ScrollbackEntry, line_of
from codex_py.render.status import format_running_time
from codex_py.text.age import describe_seconds
from codex_py.text.excerpt import ends_of

_EXPANDED_LINES: Final = 400
_NAME_SHOWN: Final = 200
_ARGUMENTS_SHOWN: Final = 2000
_STANDINGS: Final = {"completed": ("✓", "good"), "failed": ("✗", "bad"), "declined": ("⊘", "warn")}


def render_mcp_call(event: McpCallFinished, *, expanded: bool) -> ScrollbackEntry:
    """A call that is over. One that failed says why, in its line or below."""
    glyph, style = _STANDINGS[event.status]
    took = describe_seconds(event.seconds) if event.status != "declined" else ""
    notes = [event.status if event.status != "completed" else "", took, "" if expanded else event.error or ""]
    line = _line(glyph, event.tool, _written(event.arguments), server=event.server, style=style)
    return _render_call(line, notes, (event.error or event.output) if expanded else "")


def render_running_mcp_call(
    event: McpCallStarted, *, seconds: float, frame: int = 0, progress: McpCallProgress | None = None
) -> ScrollbackEntry:
    """A call that is under way, with the progress that its server reports."""
    notes = [format_running_time(seconds) if seconds >= 1 else ""]
    if progress is not None:
        of = f"{progress.done / progress.total:.0%}" if progress.total else f"{progress.done:g}"
        notes += [of, line_of(progress.message[:_NAME_SHOWN]).plain]
    line = _line(wheel(frame), event.tool, _written(event.arguments), server=event.server, style="accent")
    return ScrollbackEntry(OneLine(line, Text("".join(f" · {note}" for note in notes if note), "dim")), spacing="dense")


def render_tool_call(event: ToolCallFinished, *, expanded: bool, server: str = "") -> ScrollbackEntry:
    """A call that is over of which nothing else is known; `seconds` below zero are not known either."""
    glyph, style = _STANDINGS["completed" if event.ok else "failed"]
    took = describe_seconds(event.seconds) if event.seconds >= 0 else ""
    notes = [] if event.ok else ["failed"]
    notes += [took, "" if expanded or event.ok else event.output]
    line = _line(glyph, event.tool, event.arguments, server=server, style=style)
    return _render_call(line, notes, event.output if expanded else "")


def _render_call(line: Text, notes: Sequence[str], output: str) -> ScrollbackEntry:
    note = Text.assemble(*((f" · {line_of(note[:_NAME_SHOWN]).plain}", "dim") for note in notes if note))
    shown = ends_of(legible(output), _EXPANDED_LINES)
    return ScrollbackEntry(
        OneLine(line, note), *([output_block(shown)] if shown else []), spacing="apart" if shown else "dense"
    )


def _line(glyph: str, name: str, arguments: str, *, server: str, style: str) -> Text:
    title = line_of(f"{server}.{name}"[:_NAME_SHOWN], "skill") if server else line_of(name[:_NAME_SHOWN], "command")
    shown = line_of(arguments[:_ARGUMENTS_SHOWN], "dim")
    return Text.assemble((f"{glyph} ", style), title, *([" ", shown] if shown.plain not in ("", "{}") else []))


def _written(arguments: Mapping[str, Any]) -> str:
    return encode_json(arguments).decode() if arguments else ""

"""A tool call as one line: how it stands, what it is, what came of it; its output when that is asked for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from codex_py.protocol.events import CommandFinished, CommandInput
from codex_py.render.command_title import command_title
from codex_py.render.entry import Margin, OneLine, ScrollbackEntry, line_of, words
from codex_py.render.status import format_running_time
from codex_py.text.age import describe_seconds
from codex_py.text.excerpt import ends_of
from codex_py.text.sanitize import sanitize
from codex_py.text.truncate import count_lines

_WHEEL: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_EXPANDED_LINES: Final = 400
_FAILURE_LINES: Final = 4
_WIDEST_OUTPUT: Final = 2000
_COLOR: Final = re.compile(r"\x1b\[[0-9;:]*[mK]")
_WRITTEN_OVER: Final = re.compile(r"^[^\n]*\r(?!\n|\Z)", re.MULTILINE)


def render_command(event: CommandFinished, *, expanded: bool) -> ScrollbackEntry:
    """A command that has ended, or that goes on in the background."""
    glyph, style, standing = _standing(event)
    lines = count_lines(event.output.strip())
    notes = [standing]
    # A declined command has not run; its output is what the model was sent.
    if event.status != "declined" and event.seconds:
        notes.append(describe_seconds(event.seconds))
    if lines and event.status in ("completed", "failed"):
        notes.append(f"{lines} line{'' if lines == 1 else 's'}")
    line = call_line(glyph, event.command, _joined(notes), style=style, by_user=event.by_user)
    # What the user ran is there to be read.
    if not expanded and not event.by_user:
        return ScrollbackEntry(line, *_complaint(event), spacing="dense")
    return ScrollbackEntry(*_expanded(line, event, max_lines=_EXPANDED_LINES if expanded else 24))


def render_running_command(
    command: str, *, seconds: float, frame: int = 0, tail: str = "", tail_lines: int = 5, by_user: bool = False
) -> ScrollbackEntry:
    """A command that runs, with the last lines it printed; `frame` turns its wheel."""
    note = format_running_time(seconds) if seconds >= 1 else ""
    line = call_line(wheel(frame), command, note, style="accent", by_user=by_user)
    shown = output_tail(tail, tail_lines)
    return ScrollbackEntry(line, *([output_block(shown)] if shown else []), spacing="dense")


def render_input(event: CommandInput) -> ScrollbackEntry | None:
    """What the model typed into a command; None when it only looked at it."""
    if not event.text:
        return None
    typed = event.text.rstrip("\n") or "⏎"
    return ScrollbackEntry(
        call_line("»", command_title(event.command), f"typed {typed[:200]!r}", style="accent"), spacing="dense"
    )


def call_line(glyph: str, command: str, note: str, *, style: str, by_user: bool = False) -> OneLine:
    """The line of a call: the note stays when the command has to be cut."""
    title = command_title(command)
    first, _, rest = title.partition("\n")
    line = Text.assemble((f"{glyph} ", style), ("! " if by_user else "$ ", "dim"), line_of(first[:4000], "command"))
    line.append(" …" if rest.strip() else "", "dim")
    return OneLine(line, Text.assemble((" · ", "dim"), line_of(note, "dim")) if note else None)


def output_tail(output: str, max_lines: int) -> list[str]:
    """The last lines of an output, harmless and without colours; looks at no more of it than they need."""
    end = legible(output[-max_lines * 400 :]).rstrip()
    return sanitize(end).split("\n")[-max_lines:] if end and max_lines > 0 else []


def wheel(frame: int) -> str:
    """The sign of something that runs, which turns with each frame."""
    return _WHEEL[frame % len(_WHEEL)]


def legible(output: str) -> str:
    """An output without its colours, and of what was written over and over again only the last."""
    plain = _COLOR.sub("", output)
    return _WRITTEN_OVER.sub("", plain) if "\r" in plain else plain


def _standing(event: CommandFinished) -> tuple[str, str, str]:
    match event.status, event.exit_code:
        case "in_progress", _:
            return "◌", "accent", "still running"
        case "declined", _:
            return "⊘", "warn", "declined"
        case _, 0:
            return "✓", "good", ""
        case _, None:
            return "✗", "bad", "stopped"
        case _, code:
            return "✗", "bad", f"exit {code}"


def _complaint(event: CommandFinished) -> list[RenderableType]:
    """The ends of what a command printed that failed: there it mostly says why."""
    if event.status != "failed" or not event.exit_code:
        return []
    shown = [line for line in ends_of(legible(event.output), _FAILURE_LINES) if line.strip()]
    return [OneLine(Text.assemble(("  │ ", "markdown.rule"), line_of(line, "output"))) for line in shown]


def _expanded(line: OneLine, event: CommandFinished, *, max_lines: int) -> list[RenderableType]:
    title = command_title(event.command)
    renderables: list[RenderableType] = [line]
    if "\n" in title:
        renderables.append(Margin(words(title.expandtabs(4), "command"), "  ", "  "))
    shown = ends_of(legible(event.output), max_lines)
    return [*renderables, output_block(shown) if shown else Margin(Text("no output", "dim"), "  ", "  ")]


def output_block(lines: Sequence[str]) -> Margin:
    """Lines of an output that are safe to draw, behind a rule."""
    cut = [line if len(line) <= _WIDEST_OUTPUT else f"{line[:_WIDEST_OUTPUT]}…" for line in lines]
    return Margin(Text("\n".join(cut).expandtabs(8), "output"), "  │ ", "  │ ", style="markdown.rule")


def _joined(notes: Sequence[str]) -> str:
    return " · ".join(note for note in notes if note)

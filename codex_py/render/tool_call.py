"""Draws tool calls as lines: status, command or tool, result; with the output if expanded."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pygments.lexer import Lexer
from rich.console import RenderableType
from rich.text import Text

from codex_py.protocol.encoding import encode_json
from codex_py.protocol.events import (
    CommandFinished,
    CommandInput,
    McpCallFinished,
    McpCallProgress,
    McpCallStarted,
    ToolCallFinished,
)
from codex_py.render.code import CodeBlock, highlight, lexer_for, lexer_for_file
from codex_py.render.entry import Margin, OneLine, ScrollbackEntry, line_of, with_links, words
from codex_py.render.status import command_title, format_running_time
from codex_py.text.display import counted, describe_seconds, ends_of
from codex_py.text.sanitize import sanitize, sanitize_line
from codex_py.text.tokens import count_lines

_WHEEL: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_EXPANDED_LINES: Final = 400
_FAILURE_LINES: Final = 4
_WIDEST_OUTPUT: Final = 2000
# Precedes the user's message in the output of a declined call.
_WITH_MESSAGE: Final = "by the user, who says: "
_COLOR: Final = re.compile(r"\x1b\[[0-9;:]*[mK]")
_WRITTEN_OVER: Final = re.compile(r"^[^\n]*\r(?!\n|\Z)", re.MULTILINE)


def render_command(event: CommandFinished, *, expanded: bool) -> ScrollbackEntry:
    """A command that has ended, or continues in the background."""
    glyph, style, standing = _standing(event)
    lines = count_lines(event.output.strip())
    notes = [standing]
    # A declined command has not run; its output is what the model was sent.
    if event.status != "declined" and event.seconds:
        notes.append(describe_seconds(event.seconds))
    if lines and event.status in ("completed", "failed"):
        notes.append(counted(lines, "line"))
    line = call_line(glyph, event.command, _joined(notes), style=style, by_user=event.by_user)
    # The user wants to read the output of their own commands.
    if not expanded and not event.by_user:
        return ScrollbackEntry(line, *here_document(event.command), *_complaint(event), spacing="dense")
    return ScrollbackEntry(*_expanded(line, event, max_lines=_EXPANDED_LINES if expanded else 24))


def render_running_command(
    command: str, *, seconds: float, frame: int = 0, tail: str = "", tail_lines: int = 5, by_user: bool = False
) -> ScrollbackEntry:
    """A running command with the last lines of its output; `frame` is that of its spinner."""
    note = format_running_time(seconds) if seconds >= 1 else ""
    line = call_line(wheel(frame), command, note, style="accent", by_user=by_user)
    shown = output_tail(tail, tail_lines)
    block = [output_block(shown)] if shown else []
    return ScrollbackEntry(line, *here_document(command), *block, spacing="dense")


def render_background(command: str) -> ScrollbackEntry:
    """A command that continues in the background."""
    line = call_line("◌", command, "runs in the background", style="accent")
    return ScrollbackEntry(line, *here_document(command), spacing="dense")


def render_input(event: CommandInput) -> ScrollbackEntry | None:
    """Text that the model typed into a command; None when it only read its output."""
    if not event.text:
        return None
    typed = event.text.rstrip("\n") or "⏎"
    return ScrollbackEntry(
        call_line("»", command_title(event.command), f"typed {typed[:200]!r}", style="accent"), spacing="dense"
    )


def call_line(glyph: str, command: str, note: str, *, style: str, by_user: bool = False) -> OneLine:
    """The line of a call; a long command is cut before the note."""
    title = command_title(command)
    first, _, rest = title.partition("\n")
    line = Text.assemble((f"{glyph} ", style), ("! " if by_user else "$ ", "dim"), line_of(first[:4000], "command"))
    line.append(" …" if rest.strip() else "", "dim")
    return OneLine(line, Text.assemble((" · ", "dim"), line_of(note, "dim")) if note else None)


_HERE: Final = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_HERE_LINES: Final = 6
_TARGET: Final = re.compile(r">{1,2}\s*(['\"]?)([^\s'\"|;&<>]+)\1|\btee\s+(?:-a\s+)?([^\s'\"|;&<>]+)")
_INTERPRETER: Final = re.compile(r"(?:^|[\s/;&|])(python|node|ruby|perl|bash|sh|zsh|php|sqlite3|psql)[\d.]*(?=\s|$)")
_LANGUAGES: Final = {"node": "javascript", "sqlite3": "sql", "psql": "sql"}


def here_document(command: str) -> list[RenderableType]:
    """The first lines of a command's here-document, highlighted in their language."""
    first, _, rest = command_title(command).partition("\n")
    opened = _HERE.search(first)
    if opened is None:
        return []
    body: list[str] = []
    for line in rest[:_WIDEST_OUTPUT].split("\n"):
        if line.strip() == opened[2]:
            break
        body.append(line)
    if not body:
        return []
    # A line more takes no more room than a note on how many lines there are.
    count = len(body) if len(body) <= _HERE_LINES + 1 else _HERE_LINES
    left = count_lines(rest.partition(f"\n{opened[2]}")[0]) - count
    block: list[RenderableType] = [Margin(CodeBlock(highlight("\n".join(body[:count]), _lexer_of(first))))]
    return [*block, Margin(Text(f"… {left} more lines", "dim"))] if left > 0 else block


def _lexer_of(line: str) -> Lexer | None:
    """The lexer for the file that is written, else for the program that reads the text."""
    target = _TARGET.search(line)
    if target is not None and (lexer := lexer_for_file(target[2] or target[3])):
        return lexer
    program = _INTERPRETER.search(line)
    return lexer_for(_LANGUAGES.get(program[1], program[1])) if program else None


def output_tail(output: str, max_lines: int) -> list[str]:
    """The last lines of an output, sanitized and without colours; reads no more of it than needed."""
    end = legible(output[-max_lines * 400 :]).rstrip()
    return sanitize(end).split("\n")[-max_lines:] if end and max_lines > 0 else []


def wheel(frame: int) -> str:
    """The spinner of something that runs, which turns with each frame."""
    return _WHEEL[frame % len(_WHEEL)]


def legible(output: str) -> str:
    """An output without colours, and with only the last version of lines that were overwritten."""
    plain = _COLOR.sub("", output)
    return _WRITTEN_OVER.sub("", plain) if "\r" in plain else plain


def _standing(event: CommandFinished) -> tuple[str, str, str]:
    if event.stopped_by_user:
        return "■", "warn", "stopped by you"
    match event.status, event.exit_code:
        case "completed", 0 if event.in_background:
            return "✓", "good", "exited 0"
        case "failed", int(code) if event.in_background and code:
            return "✗", "bad", f"failed, exit {code}"
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
    """The first and last lines of a failed command's output, which mostly say why it failed."""
    if event.status == "declined":
        return refusal_words(event.output)
    if event.status != "failed" or not event.exit_code:
        return []
    shown = [line for line in ends_of(legible(event.output), _FAILURE_LINES) if line.strip()]
    # Clipped, but with its indentation: that is part of what went wrong.
    lines = (with_links(Text(sanitize_line(line.rstrip().expandtabs(4)), "output")) for line in shown)
    return [OneLine(Text.assemble(("  │ ", "markdown.rule"), line)) for line in lines]


def refusal_words(output: str) -> list[RenderableType]:
    """The message that the user sent when declining, if any."""
    message = output.partition(_WITH_MESSAGE)[2].strip()
    return [Margin(words(message[:_WIDEST_OUTPUT], "none"), "  ↳ ", "    ", style="dim")] if message else []


def _expanded(line: OneLine, event: CommandFinished, *, max_lines: int) -> list[RenderableType]:
    title = command_title(event.command)
    renderables: list[RenderableType] = [line]
    if "\n" in title:
        renderables.append(Margin(words(title.expandtabs(4), "command"), "  ", "  "))
    shown = ends_of(legible(event.output), max_lines)
    return [*renderables, output_block(shown) if shown else Margin(Text("no output", "dim"), "  ", "  ")]


def output_block(lines: Sequence[str]) -> Margin:
    """Sanitized lines of an output, behind a vertical line."""
    cut = [line if len(line) <= _WIDEST_OUTPUT else f"{line[:_WIDEST_OUTPUT]}…" for line in lines]
    return Margin(with_links(Text("\n".join(cut).expandtabs(8), "output")), "  │ ", "  │ ", style="markdown.rule")


def _joined(notes: Sequence[str]) -> str:
    return " · ".join(note for note in notes if note)


_NAME_SHOWN: Final = 200
_ARGUMENTS_SHOWN: Final = 2000
_STANDINGS: Final = {"completed": ("✓", "good"), "failed": ("✗", "bad"), "declined": ("⊘", "warn")}


def render_mcp_call(event: McpCallFinished, *, expanded: bool) -> ScrollbackEntry:
    """A finished call of an MCP tool; a failed one says why, in its line or below."""
    glyph, style = _STANDINGS[event.status]
    took = describe_seconds(event.seconds) if event.status != "declined" else ""
    notes = [event.status if event.status != "completed" else "", took, "" if expanded else event.error or ""]
    line = _tool_call_line(glyph, event.tool, _written(event.arguments), server=event.server, style=style)
    return _render_call(line, notes, (event.error or event.output) if expanded else "")


def render_running_mcp_call(
    event: McpCallStarted, *, seconds: float, frame: int = 0, progress: McpCallProgress | None = None
) -> ScrollbackEntry:
    """A running call, with the progress that its server reports."""
    notes = [format_running_time(seconds) if seconds >= 1 else ""]
    if progress is not None:
        of = f"{progress.done / progress.total:.0%}" if progress.total else f"{progress.done:g}"
        notes += [of, line_of(progress.message[:_NAME_SHOWN]).plain]
    line = _tool_call_line(wheel(frame), event.tool, _written(event.arguments), server=event.server, style="accent")
    return ScrollbackEntry(OneLine(line, Text("".join(f" · {note}" for note in notes if note), "dim")), spacing="dense")


def render_tool_call(event: ToolCallFinished, *, expanded: bool, server: str = "") -> ScrollbackEntry:
    """A finished call of any other tool; negative `seconds` are unknown."""
    glyph, style = _STANDINGS["completed" if event.ok else "failed"]
    took = describe_seconds(event.seconds) if event.seconds >= 0 else ""
    notes = [] if event.ok else ["failed"]
    notes += [took, "" if expanded or event.ok else event.output]
    line = _tool_call_line(glyph, event.tool, event.arguments, server=server, style=style)
    return _render_call(line, notes, event.output if expanded else "")


def _render_call(line: Text, notes: Sequence[str], output: str) -> ScrollbackEntry:
    note = Text.assemble(*((f" · {line_of(note[:_NAME_SHOWN]).plain}", "dim") for note in notes if note))
    shown = ends_of(legible(output), _EXPANDED_LINES)
    return ScrollbackEntry(
        OneLine(line, note), *([output_block(shown)] if shown else []), spacing="apart" if shown else "dense"
    )


def _tool_call_line(glyph: str, name: str, arguments: str, *, server: str, style: str) -> Text:
    title = line_of(f"{server}.{name}"[:_NAME_SHOWN], "skill") if server else line_of(name[:_NAME_SHOWN], "command")
    shown = line_of(arguments[:_ARGUMENTS_SHOWN], "dim")
    return Text.assemble((f"{glyph} ", style), title, *([" ", shown] if shown.plain not in ("", "{}") else []))


def _written(arguments: Mapping[str, Any]) -> str:
    return encode_json(arguments).decode() if arguments else ""

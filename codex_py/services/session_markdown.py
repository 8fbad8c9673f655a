"""An exported session as Markdown, as it reads in a pull request: what was said as text, calls of tools folded."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from codex_py.rollout.summary import SessionSummary
from codex_py.services.session_cleaning import TextCleaner
from codex_py.services.session_export import ExportChoice, ExportedPart, export_head, exported_turns
from codex_py.text.sanitize import sanitize, sanitize_line


def export_markdown(
    session: SessionSummary, choice: ExportChoice, cleaner: TextCleaner, write: Callable[[bytes], object]
) -> None:
    """Write a session as Markdown. Raises `UserError` for one that cannot be read."""
    for line in _lines(session, choice, cleaner):
        write(line.encode("utf-8", "replace"))


def _lines(session: SessionSummary, choice: ExportChoice, cleaner: TextCleaner) -> Iterator[str]:
    head = export_head(session, choice, cleaner)
    yield f"# {_plain(head.title)}\n\n"
    yield "".join(f"- {name}: {_plain(value)}\n" for name, value in head.facts)
    for turn in exported_turns(session, choice, cleaner):
        yield f"\n## Turn {turn.number} · {_plain(turn.time)}\n" if turn.number else "\n## Before the first turn\n"
        for part in turn.parts:
            yield "\n" + _part(part)


def _part(part: ExportedPart) -> str:
    body = sanitize(part.body).rstrip("\n")
    match part.type:
        case "user":
            return "".join(f"> {line}".rstrip() + "\n" for line in body.split("\n"))
        case "assistant":
            return f"{body}\n"
        case "error":
            return f"**Failed:** {_plain(body)}\n"
        case "note":
            return f"*{_plain(part.title)}*\n" + (f"\n{body}\n" if body else "")
        case "thinking" | "command" | "patch" | "tool":
            summary = f"<summary>{_code(part.title)}</summary>"
            fenced = _fenced(body, "diff" if part.type == "patch" else "") if body else ""
            return f"<details>{summary}\n\n{fenced}\n</details>\n"


def _plain(text: str) -> str:
    """A line in which nothing is Markdown or HTML."""
    return re.sub(r"([\\`*_\[\]<>#|])", r"\\\1", sanitize_line(text))


def _code(text: str) -> str:
    escaped = sanitize_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"<code>{escaped}</code>"


def _fenced(text: str, language: str) -> str:
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{text}\n{fence}\n"

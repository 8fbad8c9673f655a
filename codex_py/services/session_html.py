"""An exported session as one HTML page: nothing is loaded from elsewhere, nothing runs; light, dark, and on a phone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape
from typing import Final

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import find_lexer_class_by_name

from codex_py.rollout.summary import SessionSummary
from codex_py.services.session_cleaning import TextCleaner
from codex_py.services.session_export import ExportChoice, ExportedPart, export_head, exported_turns
from codex_py.text.sanitize import sanitize

_STYLE: Final = """
:root{color-scheme:light dark;--fg:#1f2328;--bg:#fff;--dim:#656d76;--soft:#f6f8fa;--line:#d0d7de;--me:#ddf4ff;
--add:#dafbe1;--del:#ffebe9;--bad:#cf222e}
@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--dim:#8b949e;--soft:#161b22;--line:#30363d;
--me:#0c2d4d;--add:#12361f;--del:#3d1417;--bad:#ff7b72}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1rem;max-width:56rem;color:var(--fg);background:var(--bg);
font:16px/1.55 system-ui,sans-serif;overflow-wrap:anywhere}
h1{font-size:1.4rem}
h2{font-size:1rem;margin:2rem 0 .5rem;color:var(--dim);border-top:1px solid var(--line);padding-top:1rem}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.1rem .8rem;color:var(--dim);font-size:.9rem}dd{margin:0}
pre,code{font:13px/1.45 ui-monospace,monospace}
pre{margin:.4rem 0;padding:.6rem;background:var(--soft);border-radius:6px;overflow-x:auto;white-space:pre-wrap}
.user{background:var(--me);border-radius:10px;padding:.6rem .9rem;margin:.8rem 0;white-space:pre-wrap}
details{margin:.4rem 0;border:1px solid var(--line);border-radius:6px;padding:.3rem .6rem}
summary{cursor:pointer;white-space:nowrap;overflow:hidden;text-overflow:ellipsis}
.bad summary,.error{color:var(--bad)}.note{color:var(--dim);font-size:.9rem}
.gi{background:var(--add)}.gd{background:var(--del)}.gu{color:var(--dim)}
table{border-collapse:collapse;display:block;overflow-x:auto}td,th{border:1px solid var(--line);padding:.2rem .5rem}
@media(max-width:34rem){body{padding:.6rem;font-size:15px}}
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_MAX_MARKDOWN: Final = 100_000
_NEEDS_MARKDOWN: Final = re.compile(r"[*_`#\[\]|>~\\]|^\s*(?:[-+]|\d+[.)])\s|^ {4}|\n *(?:-{3}|={3})", re.M)


def export_html(
    session: SessionSummary, choice: ExportChoice, cleaner: TextCleaner, write: Callable[[bytes], object]
) -> None:
    """Write a session as a page. Raises `UserError` for one that cannot be read."""
    for piece in _pieces(session, choice, cleaner):
        write(piece.encode("utf-8", "replace"))


def _pieces(session: SessionSummary, choice: ExportChoice, cleaner: TextCleaner) -> Iterator[str]:
    head, draw = export_head(session, choice, cleaner), _markdown()
    title = escape(sanitize(head.title))
    yield (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{title}</title><style>{_STYLE}</style></head><body>\n<h1>{title}</h1>\n<dl>"
    )
    yield "".join(f"<dt>{escape(name)}</dt><dd>{escape(sanitize(value))}</dd>" for name, value in head.facts)
    yield "</dl>\n"
    skills: dict[str, None] = {}
    for turn in exported_turns(session, choice, cleaner):
        name = f"Turn {turn.number}" if turn.number else "Before the first turn"
        for part in turn.parts:
            if part.type == "note" and part.title.startswith("skill: "):
                skills[part.title.removeprefix("skill: ")] = None
        parts = "".join(_part(part, draw) for part in turn.parts)
        yield f'<h2 id="turn-{turn.number}">{name} · {escape(turn.time)}</h2>\n{parts}'
    if skills:
        yield f'<h2>Skills</h2>\n<p class="note">{escape(sanitize(", ".join(skills)))}</p>\n'
    yield "</body></html>\n"


def _part(part: ExportedPart, draw: Callable[[str], str]) -> str:
    body = sanitize(part.body).rstrip("\n")
    match part.type:
        case "user":
            return f'<div class="user">{escape(body)}</div>\n'
        case "assistant":
            return f"<div>{draw(body)}</div>\n"
        case "error":
            return f'<p class="error">Failed: {escape(body)}</p>\n'
        case "note":
            shown = f"{draw(body)}\n" if body else ""
            return f'<div class="note">{escape(sanitize(part.title))}{shown}</div>\n'
        case "thinking" | "command" | "patch" | "tool":
            inner = _diff(body) if part.type == "patch" else escape(body)
            sign = "" if part.ok else ' class="bad"'
            summary = f"<summary><code>{escape(sanitize(part.title))}</code></summary>"
            return f"<details{sign}>{summary}{f'<pre>{inner}</pre>' if body else ''}</details>\n"


def _diff(text: str) -> str:
    return highlight(text, find_lexer_class_by_name("diff")(stripnl=False), HtmlFormatter(nowrap=True))


def _markdown() -> Callable[[str], str]:
    # HTML of the model's is shown as text; pictures would be loaded from elsewhere.
    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")

    def draw(text: str) -> str:
        if len(text) > _MAX_MARKDOWN:
            return f"<pre>{escape(text)}</pre>"
        if not _NEEDS_MARKDOWN.search(text):
            return "".join(f"<p>{escape(paragraph)}</p>" for paragraph in text.split("\n\n"))
        return str(parser.render(text))

    return draw

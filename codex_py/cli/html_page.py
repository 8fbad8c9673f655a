"""One self-contained HTML page with tables and bars: no script, nothing from elsewhere; light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.cli.console import print_note
from codex_py.services.session_document import document_file
from codex_py.text.sanitize import sanitize_line

_STYLE: Final = """
:root{color-scheme:light dark;--fg:#1f2328;--bg:#fff;--dim:#656d76;--line:#d0d7de;--c0:#0969da;--c1:#8250df;
--c2:#1a7f37;--c3:#bf8700;--c4:#57606a}
@media(prefers-color-scheme:dark){:root{--fg:#e6edf3;--bg:#0d1117;--dim:#8b949e;--line:#30363d;--c0:#58a6ff;
--c1:#bc8cff;--c2:#3fb950;--c3:#d29922;--c4:#8b949e}}
body{margin:0 auto;padding:1rem;max-width:72rem;color:var(--fg);background:var(--bg);font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.3rem}p{color:var(--dim)}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid var(--line);
overflow-wrap:anywhere}
th{color:var(--dim);font-weight:600}
svg{display:block}
.b0{fill:var(--c0)}.b1{fill:var(--c1)}.b2{fill:var(--c2)}.b3{fill:var(--c3)}.b4{fill:var(--c4)}
"""
_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'"
_WIDTH: Final = 120
_COLOURS: Final = 5


class Bar(NamedTuple):
    """A bar of labelled values, as long as `most` allows for."""

    values: tuple[tuple[str, float], ...]
    most: float
    text: str


def render_page(title: str, notes: Sequence[str], head: Sequence[str], rows: Sequence[Sequence[str | Bar]]) -> str:
    """A page with a table; every text is escaped."""
    cells = "".join(f"<th>{_text(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_text(title)}</title><style>{_STYLE}</style></head><body>\n<h1>{_text(title)}</h1>\n"
        f"{''.join(f'<p>{_text(note)}</p>' for note in notes)}\n"
        f"<table><thead><tr>{cells}</tr></thead><tbody>\n{body}</tbody></table>\n</body></html>\n"
    )


def write_page(path: Path, page: str) -> None:
    """Write a page to a file, in place of a link or a pipe with that name, and say so. Raises `UserError`."""
    with document_file(path) as write:
        write(page.encode("utf-8", "replace"))
    print_note(f"wrote `{path}`")


def _cell(cell: str | Bar) -> str:
    return _text(cell) if isinstance(cell, str) else _bar(cell)


def _bar(bar: Bar) -> str:
    at, pieces = 0.0, ""
    for number, (label, value) in enumerate(bar.values):
        width = _WIDTH * value / bar.most if bar.most > 0 else 0.0
        colour = f"b{number % _COLOURS}"
        tip = f"<title>{_text(f'{label}: {value:g}')}</title>"
        pieces += f'<rect class="{colour}" x="{at:.1f}" y="2" width="{width:.1f}" height="12">{tip}</rect>'
        at += width
    drawing = f'<svg role="img" aria-label="{_text(bar.text)}" width="{_WIDTH}" height="16">{pieces}</svg>'
    return f"{_text(bar.text)}{drawing}"


def _text(text: str) -> str:
    return escape(sanitize_line(text))

"""One self-contained HTML page with a table and bars: no script, nothing from elsewhere; light and dark."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.cli.console import print_note
from codex_py.services.session_document import document_file
from codex_py.text.sanitize import sanitize_line

_HEAD: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width,initial-scale=1"><style>
:root{color-scheme:light dark}
body{margin:0 auto;padding:1rem;max-width:72rem;font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.3rem}
table{border-collapse:collapse;width:100%}
th,td{text-align:left;vertical-align:top;padding:.35rem .6rem;border-bottom:1px solid #8886;overflow-wrap:anywhere}
meter{display:block;width:8rem}
</style>"""


class Bar(NamedTuple):
    """A text with a bar below it."""

    text: str
    share: float
    """How much of the bar is full, from 0 to 1."""


def render_page(title: str, notes: Sequence[str], head: Sequence[str], rows: Sequence[Sequence[str | Bar]]) -> str:
    """A page with a table; every text is escaped."""
    cells = "".join(f"<th>{_text(cell)}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{_cell(cell)}</td>' for cell in row)}</tr>\n" for row in rows)
    return (
        f"{_HEAD}<title>{_text(title)}</title></head><body>\n<h1>{_text(title)}</h1>\n"
        f"{''.join(f'<p>{_text(note)}</p>' for note in notes)}\n"
        f"<table><thead><tr>{cells}</tr></thead><tbody>\n{body}</tbody></table>\n</body></html>\n"
    )


def write_page(path: Path, page: str) -> None:
    """Write a page to a file, in place of a link or a pipe with that name, and say so. Raises `UserError`."""
    with document_file(path) as write:
        write(page.encode("utf-8", "replace"))
    print_note(f"wrote `{path}`")


def _cell(cell: str | Bar) -> str:
    if isinstance(cell, str):
        return _text(cell)
    return f'{_text(cell.text)}<meter value="{cell.share:.3f}"></meter>'


def _text(text: str) -> str:
    return escape(sanitize_line(text))

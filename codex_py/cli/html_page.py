"""Writes a table as one HTML page that loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Final

from codex_py.cli.console import print_note
from codex_py.services.session_document import document_file
from codex_py.text.sanitize import sanitize

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"><style>
:root{{color-scheme:light dark}} body{{margin:auto;padding:1rem;max-width:72rem;font:15px/1.5 system-ui,sans-serif}}
table{{border-collapse:collapse}} th,td{{text-align:left;vertical-align:top;padding:.35em;overflow-wrap:anywhere}}
td{{border-top:1px solid #8886;white-space:pre-line}} meter{{display:block;width:8rem}}
</style></head><body><h1>{title}</h1>
{notes}<table><tr>{head}</tr>
{rows}</table>
"""


def write_page(
    path: Path,
    title: str,
    notes: Iterable[str],
    head: Iterable[str],
    rows: Iterable[Iterable[str]],
    bars: Sequence[dict[int, float]],
) -> None:
    """Write a table to a file, and say so. Raises `UserError` when the file cannot be written.

    `bars` has for each row which columns get a bar, with its length from 0 to 1.
    """
    lines: list[str] = []
    for row, shares in zip(rows, bars, strict=True):
        meters = {column: f'<meter value="{share:.3f}"></meter>' for column, share in shares.items()}
        cells = (f"<td>{_text(text)}{meters.get(column, '')}</td>" for column, text in enumerate(row))
        lines.append(f"<tr>{''.join(cells)}</tr>\n")
    page = _PAGE.format(
        title=_text(title),
        notes="".join(f"<p>{_text(note)}</p>\n" for note in notes),
        head="".join(f"<th>{_text(name)}</th>" for name in head),
        rows="".join(lines),
    )
    with document_file(path) as write:
        write(page.encode("utf-8", "replace"))
    print_note(f"wrote `{path}`")


def _text(text: str) -> str:
    return escape(sanitize(text))

"""Addresses and paths with a line as links, for terminals that open them (OSC 8)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from rich.style import Style
from rich.text import Span, Text

from codex_py.render.theme import Theme

# A path has its line behind it, and perhaps a column: `src/app.py:12:3`.
_LINKED: Final = re.compile(
    r"(?P<url>https?://[!-;=?-~]{3,2000})|(?<![\w.~/:@+-])(?P<path>[\w./@+-]{1,400}):(?P<line>\d{1,7})(?::\d{1,5})?\b"
)
_PATH: Final = "path:"
# What a click would start in place of showing it: commands may write such files.
_STARTED: Final = (
    *(".desktop", ".command", ".tool", ".terminal", ".app", ".workflow", ".scpt", ".applescript", ".pkg", ".dmg"),
    *(".exe", ".com", ".bat", ".cmd", ".ps1", ".vbs", ".wsf", ".hta", ".msi", ".reg", ".jar", ".appimage", ".run"),
    *(".html", ".htm", ".xhtml", ".svg", ".mht", ".url", ".webloc", ".lnk", ".inetloc", ".fileloc", ".pyw", ".ipynb"),
)
_CLOSING: Final = ".,;:!?'\"`*_]"


def link_spans(plain: str) -> Iterator[Span]:
    """The links in a text. A path is resolved when it is drawn, by `resolve_link`."""
    for found in _LINKED.finditer(plain):
        text = _without_closing(found[0])
        target = text if found["url"] else f"{_PATH}{found['line']}:{found['path']}"
        yield Span(found.start(), found.start() + len(text), Style(link=target))


def _without_closing(link: str) -> str:
    """The link without what ends the sentence or the brackets round it; `Foo_(bar)` keeps its own."""
    text = link.rstrip(_CLOSING)
    while text.endswith(")") and text.count(")") > text.count("("):
        text = text[:-1].rstrip(_CLOSING)
    return text


def with_links(text: Text) -> Text:
    """The text with its links."""
    text.spans[:0] = link_spans(text.plain)
    return text


def resolve_link(link: str, theme: Theme) -> str | None:
    """Where a link leads; None for what only looks like a path: relative ones count where there is such a file.

    Without an editor of the user's, None for what the system may start when it is opened.
    """
    if not link.startswith(_PATH):
        return link
    line, _, path = link.removeprefix(_PATH).partition(":")
    if not path.startswith("/"):
        path = os.path.normpath(os.path.join(theme.link_root, path))  # noqa: PTH118 - drawn often
        if not theme.link_root or not os.path.isfile(path):  # noqa: PTH113
            return None
    if theme.opener:
        return f"{theme.opener}://file{quote(path)}:{line}"
    return None if path.lower().endswith(_STARTED) or os.access(path, os.X_OK) else f"file://{quote(path)}"

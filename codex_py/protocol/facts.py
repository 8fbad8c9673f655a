"""Facts for a person to look at."""

from __future__ import annotations

from typing import NamedTuple


class FactSection(NamedTuple):
    """A part of a page: a heading, and rows of a name and what is said of it."""

    heading: str
    rows: tuple[tuple[str, str], ...]

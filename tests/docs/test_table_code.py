"""Code in tables of the documentation shows as it is to be typed."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_a_pipe_in_a_table_shows_without_a_backslash() -> None:
    """The site shows the backslash, and it would be typed; `<code>a &#124; b</code>` shows as meant."""
    found = [
        f"{page.relative_to(DOCS)}: {code}"
        for page in sorted(DOCS.rglob("*.md"))
        for line in page.read_text("utf-8").splitlines()
        if line.startswith("|")
        for code in re.findall(r"`[^`]*\\\|[^`]*`", line)
    ]
    assert found == []

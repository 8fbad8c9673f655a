"""The page on troubleshooting: a message is found there by its text, so the text must be that of the program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
# Printed by servers and by the commands that the model runs.
OTHERS: Final = {"404 page not found", "Read-only file system", "Permission denied", "Operation not permitted"}


def test_every_heading_is_a_message_of_the_program() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text()
    sources = [path.read_text() for path in (ROOT / "codex_py").rglob("*.py")]
    # A message may be written in several lines.
    written = re.sub(r'"\s*\n\s*f?"', "", "\n".join(sources))
    headings = re.findall(r"^### .*$", page, re.MULTILINE)
    quoted = [part for heading in headings for text in re.findall(r"`([^`]+)`", heading) for part in text.split("…")]
    parts = {part.strip(" ,;()") for part in quoted} - OTHERS - {""}

    assert len(parts) > 50
    assert [part for part in sorted(parts) if part not in written] == []

"""Files of the root that the site includes: a link in them would start at another directory there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


def test_a_file_that_the_site_includes_links_to_no_other_file() -> None:
    pages = (page.read_text() for page in (ROOT / "docs").glob("*.md"))
    included = {name for page in pages for name in re.findall(r'^--8<-- "([^"]+)"$', page, re.MULTILINE)}
    links = {name: re.findall(r"\]\((?!https?://|#)[^)]+\)", (ROOT / name).read_text()) for name in included}

    assert links == {"CHANGELOG.md": [], "CONTRIBUTING.md": []}

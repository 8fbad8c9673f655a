"""Which files the `paths` of a skill are for."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.skills.paths import fits_paths


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "src/deep/a.py", True),
        ("*.py", "a.pyc", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/deep/a.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "src/very/deep/a.py", True),
        ("src/**", "src/very/deep/a.py", True),
        ("src/**", "src", False),
        ("**/test/**/*.md", "a/test/b/c.md", True),
        ("**/a/**/b/c", "a/x/a/b/b/c", True),
        ("**/a/**/b/c", "a/x/b", False),
        ("./src/a?.{py,pyi}", "src/ab.pyi", True),
        ("app/[id]/page.tsx", "app/[id]/page.tsx", True),
        ("app/[id]/page.tsx", "app/i/page.tsx", False),
        ("A.py", "a.py", False),
    ],
)
def test_patterns_fit_paths_by_names(pattern: str, path: str, fits: bool) -> None:
    assert fits_paths([pattern], f"look at `{path}`, please", [], Path("/project")) is fits
    assert fits_paths([pattern], "look", [f"/project/{path}"], Path("/project")) is fits


@pytest.mark.parametrize("pattern", ["**/" * 24 + "x", "*a" * 24 + "b", "**a" * 24 + "/b", "{*a*a,**/**}" * 12 + "b"])
def test_no_pattern_takes_for_ever(pattern: str) -> None:
    assert not fits_paths([pattern], f"{'a/' * 60}y {'a' * 120}", [], Path("/project"))

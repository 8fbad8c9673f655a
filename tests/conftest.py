"""Fixtures for tests that work in a place of their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.home import Place, make_place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A home, a CODEX_HOME without config, a git repository with one commit, a clean environment."""
    return make_place(tmp_path)

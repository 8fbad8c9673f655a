"""Fixtures for tests that work in a place of their own."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.support.home import Place, make_place


def pytest_configure() -> None:
    """Start from the same state whatever the shell is like.

    A shell starts its background jobs with SIGINT ignored, and so would be everything started from here. With an open
    umask all files of a test could be written by others, and would be refused.
    """
    os.umask(0o022)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A home, a CODEX_HOME without config, a git repository with one commit, a clean environment."""
    return make_place(tmp_path)

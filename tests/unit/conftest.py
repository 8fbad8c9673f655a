"""What several unit tests work with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.config_builders import Machine, make_machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return make_machine(tmp_path)

"""Rewinds are exact, by byte and mode, whatever a history did: `scripts/drill histories` runs 2,000 longer ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.histories import Setting, run_history
from tests.support.home import Place


@pytest.mark.parametrize("block", range(4))
def test_a_rewind_is_exact_in_any_directory(tmp_path: Path, place: Place, block: int) -> None:
    for seed in range(block * 12, block * 12 + 12):
        assert run_history(tmp_path / str(seed), seed, place.env, setting=Setting.PLAIN, turns=1 + seed % 4) == [], seed


@pytest.mark.parametrize("seed", range(4))
def test_a_rewind_is_exact_in_a_git_working_tree(tmp_path: Path, place: Place, seed: int) -> None:
    setting = (Setting.GIT, Setting.NESTED)[seed % 2]
    assert run_history(tmp_path / "history", seed, place.env, setting=setting, turns=2 + seed % 3) == []


def test_a_rewind_is_exact_up_to_the_limits(tmp_path: Path, place: Place) -> None:
    for seed in range(10):
        assert run_history(tmp_path / str(seed), seed, place.env, setting=Setting.CAPPED, turns=3) == [], seed

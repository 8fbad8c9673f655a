"""The script whose figures stand in the documentation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.home import Place

SCRIPT = Path(__file__).parents[2] / "scripts" / "measure_skills"


def test_no_way_of_bringing_a_skill_breaks_the_prefix(place: Place) -> None:
    done = subprocess.run([sys.executable, SCRIPT], env=place.env, capture_output=True, text=True, check=True)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if "`" in line]
    told = [line for line in done.stdout.splitlines() if line.startswith("| ") and "%" in line]
    assert [row[0] for row in rows] == ["`$fix-tests` in the message"] * (len(told) // 5)
    assert len(told) % 5 == 0
    assert "prefix broken" not in done.stdout

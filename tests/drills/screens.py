"""Random sequences of resizes, keys, dialogs and streams: each screen is compared with a fresh drawing."""

from __future__ import annotations

import tempfile
from pathlib import Path

from tests.drills.report import Report
from tests.support.random_screens import play


def screens_drill(root: Path, *, rounds: int, seed: int) -> Report:
    """Plays the seeds from `seed` on."""
    report = Report(rounds)
    for number in range(seed, seed + rounds):
        with tempfile.TemporaryDirectory(dir=root) as directory:
            try:
                play(number, Path(directory))
            except AssertionError as error:
                report.problems.append(str(error))
    return report

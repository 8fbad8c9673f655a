"""Random histories of 1 to 30 turns, each rewound: a rewind is exact, whatever the turns did."""

from __future__ import annotations

import random
import tempfile
import traceback
from pathlib import Path
from typing import Final

from tests.drills.report import Report
from tests.support.histories import Setting, run_history
from tests.support.home import clean_env

# Half of the directories that are not git working trees hold more than is covered.
_SETTINGS: Final = (Setting.GIT, *(Setting.PLAIN, Setting.CAPPED) * 3, Setting.NESTED)


def histories_drill(root: Path, *, rounds: int, seed: int) -> Report:
    """Runs the seeds from `seed` on; each is a history in a setting of its own."""
    report = Report(rounds)
    for number in range(seed, seed + rounds):
        setting, turns = _SETTINGS[number % len(_SETTINGS)], random.Random(number).randint(1, 30)
        with tempfile.TemporaryDirectory(dir=root, ignore_cleanup_errors=True) as directory:
            top = Path(directory)
            try:
                faults = run_history(top / "w", number, clean_env(top, top), setting=setting, turns=turns)
            except Exception:  # whatever it is, the other histories are run too
                faults = [traceback.format_exc()]
        report.counts[setting.name.lower()] += 1
        if faults:
            report.problems.append(f"seed {number}: {faults}")
    return report

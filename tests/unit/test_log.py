"""The report of a bug, where even that cannot be written."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_REPORT = """
import resource, sys
from pathlib import Path
from codex_py.log import write_crash_report
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), -1))
print(write_crash_report(Path(sys.argv[1]), ValueError("broken")))
"""


def _report(directory: Path, most_bytes: int) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", _REPORT, str(directory), str(most_bytes)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        check=False,
    )
    assert ended.stderr == b""
    return ended.stdout.decode().strip()


def test_a_report_that_cannot_be_written_is_none(tmp_path: Path) -> None:
    assert _report(tmp_path / "log", 0) == "None"
    assert _report(tmp_path / "log", 10_000) == str(tmp_path / "log" / "codex-py.log")
    assert "ValueError: broken" in (tmp_path / "log" / "codex-py.log").read_text()

"""A program that is killed while it installs or updates a skill leaves the old or the new one, whole."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import threading
from pathlib import Path

from tests.support.home import Place
from tests.support.process import COMMAND, Running
from tests.support.skill_sources import git, lock_of, repository, skill_files, skills, write_files

# At so many random moments of each, an install and an update are killed.
KILLS = int(os.environ.get("KILLS", "10"))
NAMES = [f"references/{number}.md" for number in range(20)]


def run_and_kill(place: Place, seconds: float, *arguments: str) -> None:
    with Running([COMMAND, "skills", *arguments, "--yes"], env=place.env, cwd=place.repo) as running:
        timer = threading.Timer(seconds, lambda: running.send_signal(signal.SIGKILL))
        timer.start()
        running.wait()
        timer.cancel()


def version(number: int) -> dict[str, str]:
    """A skill in which every file names its version."""
    return skill_files(body=f"version {number}") | dict.fromkeys(NAMES, f"version {number}\n" * 500)


def usable_version(place: Place) -> str | None:
    """The version of the skill that a session would use, which is the same in each of its files."""
    listed = json.loads(skills(place, "list", "--json").out)
    assert listed["not_loaded"] == []
    if not listed["skills"]:
        return None
    [skill] = listed["skills"]
    file = Path(skill["path"])
    versions = {(file.parent / name).read_text().splitlines()[0] for name in NAMES}
    assert versions == {file.read_text().splitlines()[-1]}
    return versions.pop()


def test_a_kill_at_any_moment_leaves_a_usable_state(place: Place, tmp_path: Path) -> None:
    place.configure("[skills.bundled]\nenabled = false\n")
    moments = random.Random(19)
    root = place.codex_home / "skills"
    address = repository(place, tmp_path / "source", version(0))
    assert skills(place, "install", address, "--yes").status == 0
    seen = "version 0"
    for number in range(1, KILLS + 1):
        write_files(tmp_path / "source/skills/spell", version(number))
        git(place, tmp_path / "source", "commit", "-qam", "a change")
        run_and_kill(place, moments.uniform(0.05, 0.7), "update")
        found = usable_version(place)
        assert found in (seen, f"version {number}")
        seen = found
    assert skills(place, "update", "--yes").status == 0
    assert usable_version(place) == f"version {KILLS}"
    for _ in range(KILLS):
        shutil.rmtree(root, ignore_errors=True)
        run_and_kill(place, moments.uniform(0.05, 0.7), "install", address)
        assert usable_version(place) in (None, f"version {KILLS}")
    assert skills(place, "install", address, "--yes").status == 0
    assert list(lock_of(root)) == ["spell"]
    assert sorted(path.name for path in root.iterdir() if path.name != ".system") == ["skills.lock", "spell"]

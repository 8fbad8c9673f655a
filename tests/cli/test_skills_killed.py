"""A program that is killed while it installs or updates a skill leaves the old or the new one, whole."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

from tests.support.home import Place
from tests.support.skill_sources import held, lock_of, repository, save, skill_files, skills, usable, write_files

OLD, NEW = "Read it twice.", "Read it once."


def run_and_kill(place: Place, seconds: float, *arguments: str) -> None:
    argv = [sys.executable, "-m", "codex_py.cli.main", "skills", *arguments, "--yes"]
    with subprocess.Popen(argv, cwd=place.repo, env=place.env, stdout=-3, stderr=-3, start_new_session=True) as process:
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        process.wait()
        timer.cancel()


def test_a_kill_at_any_moment_leaves_a_usable_state(place: Place, tmp_path: Path) -> None:
    place.configure("[skills.bundled]\nenabled = false\n")
    moments = random.Random(19)
    root = place.codex_home / "skills"
    files = {f"references/{number}.md": "word\n" * 2000 for number in range(60)}
    address = repository(place, tmp_path / "source", skill_files(body=OLD) | files)
    assert skills(place, "install", address, "--yes").status == 0
    write_files(tmp_path / "source/skills/spell", skill_files(body=NEW) | {name: "new\n" for name in files})
    save(place, tmp_path / "source")
    for _ in range(int(os.environ.get("KILLS", "3"))):
        run_and_kill(place, moments.uniform(0.3, 1.2), "update")
        [text] = usable(place).values()
        words = {(root / "spell" / name).read_text()[:3] for name in files}
        assert (OLD in text, words) in ((True, {"wor"}), (False, {"new"}))
        assert held(place) == []
    assert skills(place, "update", "--yes").status == 0
    assert NEW in usable(place)["spell"]
    for _ in range(int(os.environ.get("KILLS", "3"))):
        skills(place, "remove", "spell")
        run_and_kill(place, moments.uniform(0.3, 1.2), "install", address)
        found = usable(place)
        assert not found or NEW in found["spell"]
        assert held(place) == []
    assert skills(place, "install", address, "--yes").status == 0
    assert list(lock_of(root)) == ["spell"]
    assert sorted(path.name for path in root.iterdir() if path.name != ".system") == ["skills.lock", "spell"]

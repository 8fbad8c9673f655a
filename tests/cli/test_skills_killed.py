"""A program that is killed while it installs or updates a skill leaves the old or the new one, whole."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.support.home import Place
from tests.support.skill_sources import records_of, skill_files, user_root, write_files

# Before so many of the changes of files, spread over all of them, an install and an update are killed.
KILLS = int(os.environ.get("KILLS", "10"))
NAMES = [f"references/{number}.md" for number in range(4)]
PROGRAM = Path(__file__).parents[1] / "support/killed_writes.py"


class Play(Protocol):
    def __call__(self, *arguments: str | Path, kill: int = 0) -> tuple[int, str, int]:
        """Run `codex-py skills`; the status, what it printed, and the number of its changes."""
        ...


@contextmanager
def forks(place: Place) -> Generator[Play, None, None]:
    argv = [sys.executable, str(PROGRAM), str(place.codex_home)]
    env = {**place.env, "PYTHONPATH": str(Path(__file__).parents[2])}
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, env=env, cwd=place.repo, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        answers, commands = program.stdout, program.stdin

        def play(*arguments: str | Path, kill: int = 0) -> tuple[int, str, int]:
            commands.write(json.dumps([["skills", *map(str, arguments)], kill]).encode() + b"\n")
            commands.flush()
            status, out, count = json.loads(answers.readline())
            assert status in ((0,) if not kill else (0, -9))
            return status, out, count

        yield play
        commands.close()


def version(number: int) -> dict[str, str]:
    """A skill in which every file names its version."""
    return skill_files(body=f"version {number}") | dict.fromkeys(NAMES, f"version {number}\n" * 500)


def usable_version(play: Play) -> str | None:
    """The version of the skill that a session would use, which is the same in each of its files."""
    listed = json.loads(play("list", "--json")[1])
    assert listed["not_loaded"] == []
    if not listed["skills"]:
        return None
    [skill] = listed["skills"]
    file = Path(skill["path"])
    versions = {(file.parent / name).read_text().splitlines()[0] for name in NAMES}
    assert versions == {file.read_text().splitlines()[-1]}
    return versions.pop()


def moments(count: int) -> list[int]:
    """Numbers of changes, spread from the first to the last."""
    return sorted({1 + (count - 1) * number // max(KILLS - 1, 1) for number in range(KILLS)})


def test_a_kill_at_any_moment_leaves_a_usable_state(place: Place, tmp_path: Path) -> None:
    place.configure("[skills.bundled]\nenabled = false\n")
    root, source = user_root(place), write_files(tmp_path / "spell", version(0))
    with forks(place) as play:
        _, _, count = play("install", source, "--yes")
        assert count > 20
        for moment in moments(count):
            shutil.rmtree(root, ignore_errors=True)
            status, _, _ = play("install", source, "--yes", kill=moment)
            assert usable_version(play) in ((None, "version 0") if status else ("version 0",))
        assert play("install", source, "--yes")[0] == 0
        write_files(source, version(1))
        _, _, count = play("update", "--yes")
        assert count > 20
        seen = usable_version(play)
        assert seen == "version 1"
        killed = 0
        for number, moment in enumerate(moments(count), 2):
            write_files(source, version(number))
            status, _, _ = play("update", "--yes", kill=moment)
            killed += status != 0
            found = usable_version(play)
            assert found in ((seen, f"version {number}") if status else (f"version {number}",))
            seen = found
        assert killed > KILLS // 2
        write_files(source, version(99))
        assert play("update", "--yes")[0] == 0
        assert usable_version(play) == "version 99"
    assert list(records_of(place, root)) == ["spell"]
    assert [path.name for path in root.iterdir()] == ["spell"]
    assert [path.name for path in root.parent.iterdir() if path != root] == [".skill-lock.json"]
    assert len(list((place.codex_home / "skill-records").iterdir())) == 1
    for directory in ("skill-sources", "skill-trees"):
        assert [path.name for path in (place.codex_home / "cache" / directory).glob(".*")] == []

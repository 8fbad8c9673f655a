"""Random histories of a workspace, and whether a rewind brings back exactly what was on record."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import stat
import subprocess
from collections.abc import Mapping
from pathlib import Path

from codex_py.checkpoints.rewind import (
    FileRewind,
    RewindTarget,
    find_latest,
    find_target,
    open_workspace,
    plan_files,
    rewind_files,
)
from codex_py.checkpoints.session import TurnCheckpoints
from codex_py.checkpoints.store import CheckpointStore, store_of
from codex_py.config.sections import CheckpointsConfig
from codex_py.core.turn_context import ModelSettings, TurnSettings
from codex_py.protocol.policy import WorkspaceWrite

Tree = dict[str, tuple[int, bytes]]
_NAMES = ("a", "b.txt", "c d", "e\nf", "-x", "ü", ".hidden")
_DIRECTORIES = ("", "", "src/", "src/deep/", "src/deep/er/", "with space/")
_MODES = (0o644, 0o600, 0o755, 0o640, 0o444, 0o711)
_THREAD = "0198c0de-0000-7000-8000-000000000001"


def tree_of(top: Path) -> Tree:
    """Every file and link below a directory outside of `.git`, with its mode and content."""
    found: Tree = {}
    for directory, _, _ in os.walk(top):
        for path in Path(directory).iterdir():
            inside = path.relative_to(top)
            if ".git" in inside.parts or (path.is_dir() and not path.is_symlink()):
                continue
            status = path.lstat()
            content = str(path.readlink()).encode() if stat.S_ISLNK(status.st_mode) else path.read_bytes()
            found[str(inside)] = (status.st_mode, content)
    return found


class History:
    """A workspace in which turns, and the user between them, do things at random."""

    def __init__(self, top: Path, seed: int, env: Mapping[str, str], *, in_git: bool) -> None:
        self.top = top
        self.repo = top / "repo"
        self.home = top / "home"
        self.env = env
        self.random = random.Random(seed)
        self.in_git = in_git
        self.turns: list[str] = []
        self.states: list[Tree] = []
        self._settings = TurnSettings(
            self.repo, ModelSettings("m", "", None, None, None, None, True, None, 1000), WorkspaceWrite(), "never"
        )
        self.repo.mkdir(parents=True)
        self.home.mkdir()
        if in_git:
            self.git("init", "-q")
        for _ in range(6):
            self.change()
        if in_git:
            (self.repo / ".gitignore").write_text("*.ignored\n")
            self.git("add", "-A")
            self.git("commit", "-qm", "first")
        self.checkpoints = TurnCheckpoints(self.home, _THREAD, env, CheckpointsConfig(), warn=self._fail)

    @property
    def store(self) -> CheckpointStore:
        return CheckpointStore(store_of(self.home, _THREAD))

    def git(self, *arguments: str) -> None:
        argv = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0", *arguments]
        subprocess.run(argv, cwd=self.repo, env=dict(self.env), check=False, capture_output=True)

    async def turn(self) -> None:
        """The user may do something first; then the turn does."""
        if self.random.random() < 0.4:
            self.change()
        turn = self._settings.turn(_THREAD, f"turn-{len(self.turns)}")
        self.turns.append(turn.turn_id)
        self.states.append(tree_of(self.repo))
        await self.checkpoints.begin(turn)
        await self.checkpoints.note_writes(())
        for _ in range(self.random.randint(0, 4)):
            self.change()
        if self.in_git and self.random.random() < 0.5:
            commands = (("add", "-A"), ("commit", "-qam", "x"), ("reset", "-q", "--hard"), ("clean", "-fdq"))
            self.git(*self.random.choice((*commands, ("checkout", "-q", "--", "."), ("stash", "-q"))))
        await self.checkpoints.end()

    def change(self) -> None:
        """One change of the files, of any sort."""
        chance = self.random
        path = self.repo / (chance.choice(_DIRECTORIES) + chance.choice(_NAMES))
        present = [self.repo / name for name in sorted(tree_of(self.repo))]
        match chance.randint(0, 7):
            case 0 | 1 | 2:
                self._write(path)
            case 3 if present:
                chance.choice(present).unlink()
            case 4 if present:
                victim = chance.choice(present)
                if not victim.is_symlink():
                    victim.chmod(chance.choice(_MODES))
            case 5 if present:
                source = chance.choice(present)
                if not path.is_dir() and self._makes_room(path):
                    source.rename(path)
            case 6:
                if self._makes_room(path) and not path.is_dir():
                    path.unlink(missing_ok=True)
                    path.symlink_to(chance.choice(("nowhere", "a", "/etc/hostname")))
            case 7:
                directory = self.repo / "src"
                if chance.random() < 0.3 and directory.is_dir():
                    shutil.rmtree(directory)
            case _:
                pass

    def _write(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        if self._makes_room(path):
            path.unlink(missing_ok=True)
            path.write_bytes(self.random.randbytes(self.random.choice((0, 1, 20, 5000))))
            path.chmod(self.random.choice(_MODES))

    def _makes_room(self, path: Path) -> bool:
        for parent in reversed(path.parents):
            if parent.is_relative_to(self.repo) and (parent.is_symlink() or parent.is_file()):
                parent.unlink()
        path.parent.mkdir(parents=True, exist_ok=True)
        return True

    def rewind(self, target: RewindTarget | None) -> FileRewind:
        """Go back to a target, as the command line does."""
        if target is None:
            raise AssertionError("every turn of a history has a checkpoint")
        workspace = open_workspace(self.store, target, home=self.home, env=self.env, cwd=self.repo)
        return rewind_files(workspace, plan_files(workspace, target))

    def check(self) -> list[str]:
        """Rewind to random turns and back; what was not exact, in words."""
        faults: list[str] = []
        for _ in range(3):
            number = self.random.randrange(len(self.turns))
            before = tree_of(self.repo)
            self.rewind(find_target(self.store, self.turns[number:]))
            if (now := tree_of(self.repo)) != self.states[number]:
                faults.append(f"turn {number + 1}: {_difference(self.states[number], now)}")
            if self.random.random() < 0.5:
                last = find_latest(self.store)
                self.rewind(last and last.files)
                if (now := tree_of(self.repo)) != before:
                    faults.append(f"undone rewind to {number + 1}: {_difference(before, now)}")
        return faults + self.store.verify()

    def _fail(self, message: str) -> None:
        raise AssertionError(message)


def _difference(wanted: Tree, found: Tree) -> list[str]:
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def run_history(top: Path, seed: int, env: Mapping[str, str], *, in_git: bool, turns: int) -> list[str]:
    """What a rewind did not bring back exactly in the history of this seed."""
    history = History(top, seed, env, in_git=in_git)

    async def work() -> None:
        for _ in range(turns):
            await history.turn()

    asyncio.run(work())
    return history.check()

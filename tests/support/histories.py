"""Random histories of a workspace, and whether a rewind brings back exactly what was on record."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import stat
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

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
_NAMES = ("a", "b.txt", "c d", "e\nf", "-x", "ü", ".hidden", "y.ignored")
_DIRECTORIES = ("", "", "src/", "src/deep/", "src/deep/er/", "with space/")
_MODES = (0o644, 0o600, 0o755, 0o640, 0o444, 0o711)
_COMMANDS = (
    *(("add", "-A"), ("commit", "-qam", "x"), ("reset", "-q", "--hard"), ("clean", "-fdq"), ("stash", "-q")),
    *(("checkout", "-q", "--", "."), ("stash", "pop", "-q"), ("rm", "-qrf", "--cached", "."), ("add", "-u")),
    *(("checkout", "-qfB", "other"), ("reset", "-q", "--hard", "HEAD~1"), ("mv", "-k", "src", "with space/moved")),
)
_THREAD = "0198c0de-0000-7000-8000-000000000001"


class Setting(Enum):
    """Where a history takes place. In `NESTED` there are a submodule and another repository within."""

    PLAIN = auto()
    CAPPED = auto()
    GIT = auto()
    NESTED = auto()

    @property
    def in_git(self) -> bool:
        return self in (Setting.GIT, Setting.NESTED)


class State(NamedTuple):
    """The files at a moment, and the names of the files and directories that no checkpoint covers."""

    tree: Tree
    uncovered: frozenset[str]


def tree_of(top: Path) -> Tree:
    """Every file and link below a directory outside of `.git`, with its mode and content."""
    found: Tree = {}
    for name in files_of(top):
        path = top / name
        status = path.lstat()
        content = str(path.readlink()).encode() if stat.S_ISLNK(status.st_mode) else path.read_bytes()
        found[name] = (status.st_mode, content)
    return found


def files_of(top: Path) -> list[str]:
    """The names of every file and link below a directory outside of `.git`."""
    found: list[str] = []
    for directory, inner, names in os.walk(top):
        links = [name for name in inner if Path(directory, name).is_symlink()]
        inner[:] = [name for name in inner if name != ".git"]
        inside = directory[len(str(top)) + 1 :]
        found += [f"{inside}/{name}" if inside else name for name in (*names, *links) if name != ".git"]
    return found


class History:
    """A workspace in which turns, and the user between them, do things at random."""

    def __init__(self, top: Path, seed: int, env: Mapping[str, str], *, setting: Setting) -> None:
        self.top = top
        self.repo = top / "repo"
        self.home = top / "home"
        self.env = env
        self.random = random.Random(seed)
        self.setting = setting
        self.turns: list[str] = []
        self.states: list[State] = []
        self._settings = TurnSettings(
            self.repo, ModelSettings("m", "", None, None, None, None, True, None, 1000), WorkspaceWrite(), "never"
        )
        self.repo.mkdir(parents=True)
        self.home.mkdir()
        if setting.in_git:
            self.git("init", "-q")
        for _ in range(6):
            self.change()
        if setting is Setting.NESTED:
            self._add_repositories()
        if setting.in_git:
            (self.repo / ".gitignore").write_text("*.ignored\nout/\n")
            self.git("add", "-A")
            self.git("commit", "-qm", "first")
        caps = CheckpointsConfig(max_files=40, max_file_mib=1) if setting is Setting.CAPPED else CheckpointsConfig()
        self.checkpoints = TurnCheckpoints(self.home, _THREAD, env, caps, warn=self._warn)

    @property
    def store(self) -> CheckpointStore:
        return CheckpointStore(store_of(self.home, _THREAD))

    def git(self, *arguments: str, cwd: Path | None = None) -> None:
        run_git(cwd or self.repo, self.env, *arguments)

    def state(self) -> State:
        """What is there now, and which of it no checkpoint covers."""
        tree = tree_of(self.repo)
        if self.setting is Setting.CAPPED:
            large = {name for name, (_, content) in tree.items() if len(content) > 1 << 20}
            return State(tree, frozenset(large))
        return State(tree, ignored_files(self.repo, self.env) if self.setting.in_git else frozenset())

    async def turn(self) -> None:
        """The user may do something first; then the turn does."""
        if self.random.random() < 0.4:
            self.change()
        turn = self._settings.turn(_THREAD, f"turn-{len(self.turns)}")
        self.turns.append(turn.turn_id)
        self.states.append(self.state())
        await self.checkpoints.begin(turn)
        await self.checkpoints.note_writes(())
        for _ in range(self.random.randint(0, 4)):
            self.change()
        if self.setting.in_git and self.random.random() < 0.5:
            inner = [self.repo / name for name in ("module", "own") if (self.repo / name / ".git").exists()]
            self.git(*self.random.choice(_COMMANDS), cwd=self.random.choice((self.repo, *inner)))
        await self.checkpoints.end()

    def change(self) -> None:
        """One change of the files, of any sort."""
        chance = self.random
        path = self.repo / (chance.choice(self._directories()) + chance.choice(_NAMES))
        present = [self.repo / name for name in sorted(map(str, files_of(self.repo)))]
        match chance.randint(0, 10):
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
                    with suppress(OSError):
                        source.rename(path)
            case 6:
                if self._makes_room(path) and not path.is_dir():
                    path.unlink(missing_ok=True)
                    path.symlink_to(chance.choice(("nowhere", "a", "/etc/hostname")))
            case 7:
                directory = self.repo / "src"
                if chance.random() < 0.3 and directory.is_dir() and not directory.is_symlink():
                    shutil.rmtree(directory)
            case 8:
                self._swap_directory(self.repo / chance.choice(("src", "src/deep", "with space")))
            case 9 if self.setting.in_git:
                rules = chance.sample(("*.ignored", "out/", "src/", "b.txt", "ü", "with space/"), chance.randint(1, 3))
                if self._makes_room(self.repo / ".gitignore") and not (self.repo / ".gitignore").is_dir():
                    (self.repo / ".gitignore").unlink(missing_ok=True)
                    (self.repo / ".gitignore").write_text("\n".join(rules) + "\n")
            case _:
                pass

    def _directories(self) -> tuple[str, ...]:
        if self.setting is Setting.NESTED:
            return (*_DIRECTORIES, "module/", "own/", "own/deep/", "out/")
        return (*_DIRECTORIES, "out/") if self.setting.in_git else _DIRECTORIES

    def _swap_directory(self, directory: Path) -> None:
        """Another name for a directory, a link in its place, or the other way round."""
        other = directory.with_name(self.random.choice(("moved", "elsewhere")))
        if other.is_symlink() or other.is_file():
            other.unlink()
        if directory.is_symlink():
            directory.unlink()
            self._write(directory / "a")
        elif directory.is_dir() and not other.exists():
            directory.rename(other)
            if self.random.random() < 0.5:
                directory.symlink_to(other.name)

    def _add_repositories(self) -> None:
        """A submodule and a repository that is none, each with files of its own."""
        source = self.top / "source"
        for place in (source, self.repo / "own"):
            if place.is_symlink() or place.is_file():
                place.unlink()
            place.mkdir(exist_ok=True)
            self.git("init", "-q", cwd=place)
            for name, size in (("a", 30), ("b.txt", 3000)):
                # What is there may be a link to a file elsewhere.
                (place / name).unlink(missing_ok=True)
                (place / name).write_bytes(self.random.randbytes(size))
            self.git("add", "-A", cwd=place)
            self.git("commit", "-qm", "first", cwd=place)
        self.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), "module")

    def _write(self, path: Path) -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        if self._makes_room(path):
            path.unlink(missing_ok=True)
            path.write_bytes(self.random.randbytes(self.random.choice(self._sizes)))
            path.chmod(self.random.choice(_MODES))

    @property
    def _sizes(self) -> tuple[int, ...]:
        return (0, 1, 20, 5000, 1_100_000) if self.setting is Setting.CAPPED else (0, 1, 20, 5000)

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
            before = self.state()
            self.rewind(find_target(self.store, self.turns[number:]))
            if wrong := differing(self.states[number], before, tree_of(self.repo), is_open=self._is_partial(number)):
                faults.append(f"turn {number + 1}: {wrong}")
            if self.random.random() < 0.5:
                last = find_latest(self.store)
                self.rewind(last and last.files)
                if (now := tree_of(self.repo)) != before.tree:
                    faults.append(f"undone rewind to {number + 1}: {_difference(before.tree, now)}")
        faults += self._check_edits()
        return faults + self.store.verify()

    def _check_edits(self) -> list[str]:
        """What the user does after the last turn stays as it is."""
        before = tree_of(self.repo)
        for _ in range(2):
            self.change()
        edited = tree_of(self.repo)
        mine = set(_difference(before, edited))
        done = self.rewind(find_target(self.store, self.turns[self.random.randrange(len(self.turns)) :]))
        conflicts = {f"{root}/{os.fsdecode(path)}" for root, path in done.plan.paths("conflict")}
        now = tree_of(self.repo)
        lost = [name for name in sorted(mine & edited.keys()) if now.get(name) != edited[name]]
        unnamed = [name for name in lost if f"{self.repo}/{name}" not in conflicts]
        return [f"edits of the user are lost: {lost}, not named: {unnamed}"] if lost else []

    def _is_partial(self, number: int) -> bool:
        """Whether more files were there than are listed."""
        return self.setting is Setting.CAPPED and len(self.states[number].tree) >= 40

    def _warn(self, message: str) -> None:
        if self.setting is not Setting.CAPPED:
            raise AssertionError(message)


def differing(wanted: State, before: State, now: Tree, *, is_open: bool = False) -> list[str]:
    """Which files are not as they were; those that no checkpoint covered must be as they were before the rewind."""
    wrong: list[str] = []
    for name in sorted(wanted.tree.keys() | now.keys() | before.tree.keys()):
        was, current, found = wanted.tree.get(name), before.tree.get(name), now.get(name)
        # An ignored file in the way of another one stays.
        in_the_way = any(below(name, other) or below(other, name) for other in before.uncovered)
        may_stay = is_open or in_the_way or any(below(name, other) for other in wanted.uncovered)
        if found != was and not (may_stay and found == current):
            wrong.append(name)
    return wrong


def below(name: str, other: str) -> bool:
    return name == other or name.startswith(f"{other.rstrip('/')}/")


def ignored_files(top: Path, env: Mapping[str, str]) -> frozenset[str]:
    """The files and whole directories that git ignores, in each of the repositories."""
    found: set[str] = set()
    for repository in sorted({path.parent for path in top.rglob(".git")}):
        command = ("ls-files", "-oi", "--exclude-standard", "-z")
        listed = run_git(repository, env, *command) + run_git(repository, env, *command, "--directory")
        inside = repository.relative_to(top)
        found |= {str(inside / os.fsdecode(name)) for name in listed.split(b"\0") if name}
    return frozenset(found)


def run_git(cwd: Path, env: Mapping[str, str], *arguments: str) -> bytes:
    argv = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0", *arguments]
    return subprocess.run(argv, cwd=cwd, env=dict(env), check=False, capture_output=True).stdout


def _difference(wanted: Tree, found: Tree) -> list[str]:
    return sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))


def run_history(top: Path, seed: int, env: Mapping[str, str], *, setting: Setting, turns: int) -> list[str]:
    """What a rewind did not bring back exactly in the history of this seed."""
    history = History(top, seed, env, setting=setting)

    async def work() -> None:
        for _ in range(turns):
            await history.turn()

    asyncio.run(work())
    return history.check()

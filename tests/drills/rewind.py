"""A checkpoint or a rewind that is stopped at any of its steps: killed, or with a disk that is full from there on.

Each step runs in a process of its own, which an audit hook ends or refuses at the N-th operation on files. Afterwards
each file is as before or as after, the store verifies, and both going on and going back are exact.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import resource
import shutil
import signal
import sys
import traceback
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

from codex_py.checkpoints.rewind import find_latest, find_target, open_workspace, plan_files, rewind_files
from codex_py.checkpoints.session import TurnCheckpoints
from codex_py.checkpoints.store import CheckpointStore, store_of
from codex_py.config.sections import CheckpointsConfig
from codex_py.core.turn_context import ModelSettings, TurnSettings
from codex_py.errors import UserError
from codex_py.protocol.policy import WorkspaceWrite
from tests.drills.report import Report
from tests.support.histories import Tree, tree_of

_THREAD = "0198c0de-0000-7000-8000-000000000002"
_WRITES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.truncate", "os.chmod"}
_MOST_POINTS = 2000
_BUG = 70


class Fault(Enum):
    """What happens at the operation that is chosen; the small limit is on the size of a file."""

    KILLED = "killed"
    FULL = "with a full disk"
    LIMITED = "with a limit on the size of files"


def rewind_drill(root: Path, *, rounds: int, seed: int) -> Report:
    """Stop a checkpoint, a rewind and the pruning of a store at about so many points in all, evenly chosen."""
    report, scene = Report(), _Scene(root)
    steps: tuple[Callable[[], None], ...] = (scene.checkpoint, scene.rewind, scene.undo, scene.prune)
    points = [
        (step, fault, number)
        for step in steps
        for fault in (Fault.KILLED, Fault.FULL)
        for number in range(scene.count(step))
    ]
    points += [(step, Fault.LIMITED, size) for step in steps for size in range(0, 1200, 60)]
    random.Random(seed).shuffle(points)
    for step, fault, number in points[:rounds]:
        report.rounds += 1
        report.counts[f"{step.__name__} {fault.value}"] += 1
        problems = scene.stop(step, fault, number)
        report.problems += [f"{step.__name__} {fault.value} at {number}: {problem}" for problem in problems]
    return report


class _Scene:
    """Two turns that did all sorts of things, and their store, put back as they were for every point."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.repo, self.home = root / "now/repo", root / "now/home"
        self._env = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        settings = ModelSettings("m", "", None, None, None, None, True, None, 1000)
        self._settings = TurnSettings(self.repo, settings, WorkspaceWrite(), "never")
        self.repo.mkdir(parents=True)
        self.home.mkdir()
        for name in ("a.txt", "b.txt", "src/c.txt", "src/deep/d.txt", "e"):
            path = self.repo / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{name} at first\n" * 40)
        (self.repo / "b.txt").chmod(0o750)
        (self.repo / "link").symlink_to("a.txt")
        self.first = tree_of(self.repo)
        asyncio.run(self._turn("before", lambda: None))
        asyncio.run(self._turn("first", self._work))
        self.done = tree_of(self.repo)
        shutil.copytree(root / "now", root / "done", symlinks=True)
        self.rewind()
        assert tree_of(self.repo) == self.first
        shutil.copytree(root / "now", root / "rewound", symlinks=True)

    def _work(self) -> None:
        (self.repo / "a.txt").write_text("changed\n")
        (self.repo / "b.txt").chmod(0o600)
        shutil.rmtree(self.repo / "src")
        (self.repo / "src").symlink_to("nowhere")
        (self.repo / "e").unlink()
        (self.repo / "e").mkdir()
        (self.repo / "e/new.txt").write_text("new\n")
        (self.repo / "link").unlink()

    async def _turn(self, name: str, work: Callable[[], None]) -> None:
        checkpoints = TurnCheckpoints(self.home, _THREAD, self._env, CheckpointsConfig(), warn=lambda _: None)
        await checkpoints.begin(self._settings.turn(_THREAD, name))
        await checkpoints.note_writes([self.repo / "a.txt"])
        work()
        await checkpoints.end()

    @property
    def store(self) -> CheckpointStore:
        return CheckpointStore(store_of(self.home, _THREAD))

    def checkpoint(self) -> None:
        """Another turn, in which nothing changes but what is put on record."""
        (self.repo / "more.txt").write_text("more\n")
        asyncio.run(self._turn("second", lambda: None))

    def rewind(self) -> None:
        self._go_to(find_target(self.store, ["first"]))

    def undo(self) -> None:
        last = find_latest(self.store)
        self._go_to(last and last.files)

    def prune(self) -> None:
        """The session is allowed no more than a kilobyte."""
        self.store.drop_oldest(1024)

    def _go_to(self, target: Any) -> None:
        workspace = open_workspace(self.store, target, home=self.home, env=self._env, cwd=self.repo)
        rewind_files(workspace, plan_files(workspace, target))

    def restore(self, step: Callable[[], None]) -> tuple[Tree, Tree]:
        """Put all back to where a step begins; the files before and after it."""
        shutil.rmtree(self._root / "now")
        is_undo = step == self.undo
        shutil.copytree(self._root / ("rewound" if is_undo else "done"), self._root / "now", symlinks=True)
        if is_undo:
            return self.first, self.done
        return (self.done, self.first) if step == self.rewind else (self.done, self.done)

    def count(self, step: Callable[[], None]) -> int:
        """How many operations on files a step consists of."""
        self.restore(step)
        reader, writer = os.pipe()

        def report(number: int) -> None:
            os.write(writer, b".")

        _in_child(step, report)
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            return len(pipe.read())

    def stop(self, step: Callable[[], None], fault: Fault, number: int) -> list[str]:
        """What is wrong after a step was stopped at an operation."""
        before, after = self.restore(step)

        def act(at: int) -> None:
            if fault is Fault.KILLED and at == number:
                os.kill(os.getpid(), signal.SIGKILL)
            if fault is Fault.FULL and at >= number:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        is_clean = _in_child(step, act, number if fault is Fault.LIMITED else None)
        return [*([] if is_clean else ["it failed with a traceback"]), *self._look(before, after, step)]

    def _look(self, before: Tree, after: Tree, step: Callable[[], None]) -> list[str]:
        now = tree_of(self.repo)
        names = {name for name in now if not Path(name).name.startswith(".codex-py-rewind-")} - {"more.txt"}
        allowed = [(name, tree[name]) for tree in (before, after) for name in tree]
        problems = [f"`{name}` is neither as before nor as after" for name in names if (name, now[name]) not in allowed]
        lost = before.keys() & after.keys() - names
        problems += [f"`{name}` is gone" for name in lost]
        problems += self.store.verify()
        if step != self.prune:
            # To go on is exact, and so is to go back.
            others = {"more.txt": now["more.txt"]} if "more.txt" in now else {}
            self.rewind()
            problems += _compare("the rewind after it", self.first, tree_of(self.repo), others)
            self.undo()
            problems += _compare("undoing that", now, tree_of(self.repo), {})
        return [*problems, *self.store.verify()]


def _compare(what: str, wanted: Tree, found: Tree, others: Tree) -> list[str]:
    wanted = {name: state for name, state in wanted.items() if not Path(name).name.startswith(".codex-py-rewind-")}
    names = {name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name)}
    # What the user has made since is a conflict, or was not there for the checkpoint.
    return [f"{what} differs in {sorted(names - others.keys())}"] if names - others.keys() else []


def _in_child(step: Callable[[], None], act: Callable[[int], None], limit: int | None = None) -> bool:
    """Run a step in a process of its own; `act` is called before each of its operations on files.

    False where it failed with what no user should see.
    """
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != _BUG
    try:
        if limit is not None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        numbers = iter(range(_MOST_POINTS))

        def audit(event: str, arguments: tuple[Any, ...]) -> None:
            if event in _WRITES or (event == "open" and arguments[2] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR)):
                act(next(numbers))

        sys.addaudithook(audit)
        step()
    except (UserError, OSError):
        pass
    except BaseException as error:
        traceback.print_exception(error)
        os._exit(_BUG)
    os._exit(0)

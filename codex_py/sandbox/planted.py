"""Repositories that commands make: those in a place that nothing can hold are moved away, others are looked at.

Where an empty `.git` in the place of a missing one would disturb other programs, a command can make one. It is moved
away within a twentieth of a second, before an editor or a prompt asks git about the directory, and the command is
stopped: it would win in the end if it could try again and again. In other directories with files of the repository
around them, too many to be watched, one is moved away before the next command and at the end of a turn.
"""

from __future__ import annotations

import os
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from codex_py.paths import is_lasting, opened_directory
from codex_py.sandbox.git_directories import all_git_directories, find_targets
from codex_py.sandbox.git_settings import find_program_setting, find_unfinished_program, has_tracked_files
from codex_py.sandbox.policy import WritableRoot
from codex_py.sandbox.protected_names import COARSE_NS

_SECONDS: Final = 0.05
_MAX_RUNS: Final = 10_000
_MAX_SHOWN: Final = 200


class PlantedPaths:
    """Watches missing paths while commands run, from a thread that ends with the last of them."""

    def __init__(self) -> None:
        self._watched: dict[object, tuple[frozenset[Path], Callable[[], bool]]] = {}
        self._ended = threading.Condition()
        self._lines: list[str] = []

    def watch(self, paths: Iterable[Path], stop: Callable[[], bool]) -> Callable[[], None]:
        """Move away whatever comes to be there and `stop` the command, until what is given back is called.

        What is there already stays.
        """
        missing = frozenset(path for path in paths if not os.path.lexists(path))
        if not missing:
            return lambda: None
        command = object()
        with self._ended:
            is_first = not self._watched
            self._watched[command] = missing, stop
        if is_first:
            threading.Thread(target=self._look, daemon=True).start()
        return partial(self._end, command)

    def take_lines(self) -> list[str]:
        """For the user: what has been moved since this was last called."""
        with self._ended:
            lines, self._lines = self._lines, []
        return lines

    def _end(self, command: object) -> None:
        with self._ended:
            self._move(self._watched[command][0])
            del self._watched[command]
            self._ended.notify()

    def _look(self) -> None:
        with self._ended:
            while self._watched:
                self._move(frozenset[Path]().union(*(paths for paths, _ in self._watched.values())))
                self._ended.wait(_SECONDS)

    def _move(self, paths: Collection[Path]) -> None:
        for path in paths:
            if not is_lasting(path):
                continue
            stopped = [stop() for watched, stop in self._watched.values() if path in watched]
            line = _move_away(path)
            self._lines.append(f"{line}, and the command was stopped" if any(stopped) else line)


class RunTimes:
    """When commands ran, which tells what they made from what the user made between them."""

    def __init__(self) -> None:
        self._spans: deque[list[int]] = deque(maxlen=_MAX_RUNS)

    def begin(self) -> Callable[[], None]:
        """A command begins; call what is given back when it has ended."""
        span = [time.time_ns() - COARSE_NS, sys.maxsize]
        self._spans.append(span)

        def end() -> None:
            span[1] = time.time_ns()

        return end

    def cover(self, path: Path) -> bool:
        """Whether a path, links not followed, was last changed while a command ran."""
        try:
            changed = os.lstat(path).st_ctime_ns
        except OSError:
            return False
        return any(start <= changed <= end for start, end in self._spans)


def judge_repositories(paths: Iterable[Path], times: RunTimes) -> list[str]:
    """Lines for the user about new repositories, by their git directories or `config` files.

    Those that a command made among files of the repository around them are moved away; of the others, those by which
    git would run something are named.
    """
    lines: list[str] = []
    seen: set[Path] = set()
    for path in paths:
        if path.name == ".git" and times.cover(path) and _is_among_tracked_files(path.parent):
            lines.append(_move_away(path))
            continue
        git = path.parent if path.name == "config" else path
        directories = [target for target in find_targets(git) or [git] if target not in seen]
        seen.update(directories)
        reason = next(
            filter(None, (find_program_setting(target) or _find_hook(target) for target in directories)), None
        )
        if reason:
            lines.append(f"a command made the repository `{git}`, and git in there may run a program: {reason}")
    return lines


def repositories_among(found: Iterable[Path], roots: Iterable[WritableRoot]) -> set[Path]:
    """The `.git` and the `config` files of repositories, also of those in git directories that can be written."""
    inner = all_git_directories(root.path for root in roots)
    return {*(path for path in found if path.name in (".git", "config")), *(git / "config" for git in inner)}


def name_unfinished(found: Iterable[Path], roots: Iterable[WritableRoot], times: RunTimes) -> list[str]:
    """Lines for the user about a rebase, or the like, that a command left and that would run a program."""
    lines: list[str] = []
    for git in dict.fromkeys(all_git_directories([*found, *(root.path for root in roots)])):
        cause = find_unfinished_program(git)
        if cause and times.cover(cause[0]):
            lines.append(
                f"a command left an unfinished rebase in `{git}` that runs `{cause[1][:_MAX_SHOWN]}` when it goes on: "
                f"look at `{cause[0]}` before `git rebase --continue`"
            )
    return lines


def _move_away(path: Path) -> str:
    """Give what git would believe another name; a line for the user."""
    aside = f"{path.name}.moved-{os.urandom(3).hex()}"
    try:
        with opened_directory(path.parent) as directory:
            os.rename(path.name, aside, src_dir_fd=directory, dst_dir_fd=directory)
    except OSError as error:
        outcome = f"could not be moved away ({error.strerror}): do not use git there"
    else:
        outcome = f"is now `{aside}`"
    return f"a command made `{path}`, by which git takes settings from there; it {outcome}"


def _is_among_tracked_files(directory: Path) -> bool:
    for top in directory.parents:
        git = top / ".git"
        if is_lasting(git):
            own = [*find_targets(git), git][0]
            return has_tracked_files(own, os.fsencode(directory.relative_to(top)))
    return False


def _find_hook(git: Path) -> str | None:
    try:
        with os.scandir(git / "hooks") as hooks:
            names = sorted(hook.name for hook in hooks if not hook.name.endswith(".sample") and _is_executable(hook))
    except OSError:
        return None
    return f"the hook `{names[0]}`" if names else None


def _is_executable(entry: os.DirEntry[str]) -> bool:
    try:
        return bool(entry.stat().st_mode & stat.S_IXUSR)
    except OSError:
        return False

"""Repositories that commands make: those in a place that nothing can hold are moved away, others are looked at.

Where an empty `.git` in the place of a missing one would disturb other programs, a command can make one. It is moved
away within a twentieth of a second, before an editor or a prompt asks git about the directory, and the command is
stopped: it would win in the end if it could try again and again.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import Path
from typing import Final

from codex_py.paths import is_placeholder
from codex_py.sandbox.git_settings import find_program_setting
from codex_py.sandbox.policy import find_targets

_SECONDS: Final = 0.05


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
            if not os.path.lexists(path) or is_placeholder(path):
                continue
            stopped = [stop() for watched, stop in self._watched.values() if path in watched]
            aside = path.with_name(f"{path.name}.moved-{os.urandom(3).hex()}")
            try:
                path.rename(aside)
            except OSError as error:
                outcome = f"could not be moved away ({error.strerror}): do not use git there"
            else:
                outcome = f"is now `{aside.name}`"
            if any(stopped):
                outcome += ", and the command was stopped"
            self._lines.append(f"a command made `{path}`, by which git takes settings from there; it {outcome}")


def describe_repositories(paths: Iterable[Path]) -> list[str]:
    """Lines for the user about repositories that commands have made, by their git directories or `config` files: those
    by which git would run something."""
    lines: list[str] = []
    seen: set[Path] = set()
    for path in paths:
        git = path.parent if path.name == "config" else path
        directories = [target for target in find_targets(git) or [git] if target not in seen]
        seen.update(directories)
        reason = next(
            filter(None, (find_program_setting(target) or _find_hook(target) for target in directories)), None
        )
        if reason:
            lines.append(f"a command made the repository `{git}`, and git in there may run a program: {reason}")
    return lines


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

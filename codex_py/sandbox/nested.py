"""Protected paths in directories below, through a session: what was there is followed, what commands made is named."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.sandbox.git_directories import RUN_BY_GIT, all_git_directories, find_targets
from codex_py.sandbox.git_runs import GitLocation, GitRuns
from codex_py.sandbox.git_settings import find_unfinished_program, has_tracked_files
from codex_py.sandbox.pins import Pins
from codex_py.sandbox.planted import PlantedPaths
from codex_py.sandbox.policy import WritableRoot
from codex_py.sandbox.protected_names import MAX_DIRECTORIES, NestedNames
from codex_py.sandbox.run_times import RunTimes

# Of a temporary directory, which others use too, so many directories are looked into, as far down as this.
_TEMPORARY_DIRECTORIES: Final = 2_000
_TEMPORARY_DEPTH: Final = 2
_MAX_SHOWN: Final = 200
# So many are named in a line.
_NAMED: Final = 5
_GIT: Final = frozenset((".git", *RUN_BY_GIT))


class NestedPaths:
    """The paths below the `worked_in` of some roots. Repositories that commands make in directories with tracked files
    are left to `planted`; without it everything that comes is protected."""

    def __init__(
        self,
        roots: Sequence[WritableRoot],
        worked_in: Iterable[Path],
        env: Mapping[str, str],
        planted: PlantedPaths | None,
        times: RunTimes,
    ) -> None:
        inside = [root for root in roots if root.path in set(worked_in)]
        self._nested = [NestedNames(root.path, root.names) for root in inside]
        self._temporary = [root.path for root in roots if root not in inside]
        self._tops = [root.path for root in roots]
        tops = [root.path / name for root in roots if root not in inside for name in (".git", "HEAD", *RUN_BY_GIT)]
        watched = {location.path for root in roots for location in root.locations}
        protected = dict.fromkeys(path for root in roots for path in root.protected if path.name not in _GIT)
        self._missing = [path for path in protected if path not in watched and not os.path.lexists(path)]
        self._open = [path for path in tops if path not in watched and not os.path.lexists(path)]
        self._env = env
        self._planted = planted
        self._times = times
        self._pins = Pins(path for root in roots for path in root.protected)
        self._is_first = True
        self._repositories: dict[Path, None] = {}
        self._settings: dict[Path, None] = {}
        self._named: set[Path] = set()
        self._found: set[Path] = set()
        self._ended = 0
        self._lock = threading.RLock()

    def look(self) -> None:
        """Look for new paths."""
        with self._lock:
            found = {path for nested in self._nested for path in nested.find()}
            found.update(filter(os.path.lexists, self._missing))
            found.update(git / "config" for git in all_git_directories(self._tops))
            self._found = found
            self._repositories = {path: None for path in self._repositories if path in found}
            if self._is_first or self._planted is None:
                self._is_first = False
                self._pins.add(found)
                return
            for path in sorted(found.difference(self._repositories)):
                if not self._planted.holds(path) and not self._pins.holds(path):
                    self._take_in(path, self._planted)

    def _take_in(self, path: Path, planted: PlantedPaths) -> None:
        is_commands = self._times.cover(path)
        if path.name not in _GIT:
            self._pins.add([path])
            if is_commands:
                self._settings[path] = None
        elif not is_commands and self._causes(path):
            self._pins.add([path])
        elif path.name == ".git" and is_commands and _is_among_tracked_files(path.parent):
            planted.take_over(path)
        else:
            self._repositories[path] = None

    def free(self) -> set[Path]:
        """Repositories that came during the session and must not be mounted."""
        return {*self._open, *self._repositories, *(self._planted.free() if self._planted else ())}

    def pinned(self) -> list[Path]:
        """Where the protected paths are now."""
        return self._pins.paths()

    def unsearched(self) -> list[str]:
        """For the user: what has not been looked through because there is too much."""
        return [
            f"`{nested.top}` has more than {MAX_DIRECTORIES:,} directories: commands can change repositories and "
            "settings of other programs that are nested deeper than these; work in a directory below it (`-C`)"
            for nested in self._nested
            if nested.is_partial
        ]

    def end_lines(self) -> list[str]:
        """For the user, at the end of a turn: what commands have made that git or other programs would use, once."""
        self.look()
        with self._lock:
            if self._ended == self._times.count:
                return []
            self._ended = self._times.count
            return self._end_lines()

    def _end_lines(self) -> list[str]:
        tops = [nested.top for nested in self._nested]
        temporary = [
            path
            for top in self._temporary
            for path in _repositories_in(top)
            if self._times.cover(path) and not any(top in path.parents for top in tops)
        ]
        found: list[str] = []
        for path in dict.fromkeys([*self._repositories, *temporary]):
            location = path if path.name == ".git" else path.parent
            is_watched = self._planted is not None and self._planted.holds(path)
            if location not in self._named and not is_watched and (causes := self._causes(path)):
                self._named.add(location)
                found.append(f"`{location}` ({causes[0]})")
        lines = [f"git may run a program in repositories that commands made: {_listed(found)}"] if found else []
        settings = [f"`{file}`" for path in self._settings for file in _files_of(path)]
        self._settings.clear()
        if settings:
            lines.append(f"commands made settings that other programs use: {_listed(settings)}; look at them first")
        return lines + self._unfinished()

    def _unfinished(self) -> list[str]:
        """Lines about a rebase, or the like, that a command left and that would run a program."""
        lines: list[str] = []
        for git in dict.fromkeys(all_git_directories([*self._found, *self._tops])):
            cause = find_unfinished_program(git)
            if cause and self._times.cover(cause[0]):
                lines.append(
                    f"a command left an unfinished rebase in `{git}` that runs `{cause[1][:_MAX_SHOWN]}` when it goes "
                    f"on: look at `{cause[0]}` before `git rebase --continue`"
                )
        return lines

    def _causes(self, path: Path) -> list[str]:
        location = (
            GitLocation(path, "repository") if path.name == ".git" else GitLocation(path.with_name("HEAD"), "bare")
        )
        causes = GitRuns(self._env, self._tops).find(location)
        return [cause.text for cause in causes]


def _repositories_in(top: Path) -> Iterator[Path]:
    """The `.git` of repositories in a temporary directory, and the `HEAD` of those without a working tree."""
    directories = deque([(top, 0)])
    seen = 0
    while directories and seen < _TEMPORARY_DIRECTORIES:
        directory, depth = directories.popleft()
        seen += 1
        with suppress(OSError), os.scandir(directory) as listing:
            entries = {entry.name: entry for entry in listing}
            if ".git" in entries:
                yield directory / ".git"
            elif {"HEAD", "config"} <= entries.keys():
                yield directory / "HEAD"
            if depth < _TEMPORARY_DEPTH:
                inner = (entry for entry in entries.values() if entry.is_dir(follow_symlinks=False))
                directories.extend((Path(entry), depth + 1) for entry in inner)


def _listed(found: Sequence[str]) -> str:
    more = f" and {len(found) - _NAMED} more" if len(found) > _NAMED else ""
    return ", ".join(found[:_NAMED]) + more


def _files_of(path: Path) -> list[Path]:
    """The files of a directory of settings; the directory itself where it has none of its own."""
    if path.is_symlink() or not path.is_dir():
        return [path]
    found = [Path(directory, name) for directory, _, names in os.walk(path) for name in sorted(names)]
    return found or [path]


def _is_among_tracked_files(directory: Path) -> bool:
    for top in directory.parents:
        git = top / ".git"
        if os.path.lexists(git):
            own = [*find_targets(git), git][0]
            return has_tracked_files(own, os.fsencode(directory.relative_to(top)))
    return False

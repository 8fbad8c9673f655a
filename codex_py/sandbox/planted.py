"""Watches the places where the user's own git looks, and takes away what a command makes git run there.

A mount on a missing path leaves a trace in the working tree, and a repository that came during the session must stay
usable. So such a place is looked at after each change and when a command ends. A repository that runs nothing stays,
with a copy of its settings and hooks; a change by which git would run something is undone from that. A repository that
was there before a command began is the user's, and protected by mounts from then on.
"""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from codex_py.sandbox.git_directories import RUN_BY_GIT
from codex_py.sandbox.git_runs import Cause, GitLocation, GitRuns, executables, git_directories, tree_hooks
from codex_py.sandbox.git_settings import own_configs, read_bounded
from codex_py.sandbox.inotify import Watched, shared_watcher
from codex_py.sandbox.moved import Move, MovedPaths, finish
from codex_py.sandbox.pins import Pins
from codex_py.sandbox.run_times import RunTimes


class _Known:
    """The knowledge about a place that exists."""

    def __init__(self, *, is_users: bool = False) -> None:
        self.is_users = is_users
        """It is protected by mounts, and not judged."""
        self.existed = False
        """It is a repository without a working tree that was there before any command."""
        self.maker: object = None
        """The command that had begun last when it came, until that has ended."""
        self.identity: tuple[int, int] | None = None
        self.copy: dict[Path, tuple[bytes, int]] = {}
        """Settings, hooks and pointers with their modes, as they were when the last command ended."""
        self.usual: frozenset[tuple[Path, str]] = frozenset()
        """Causes that were there before any command."""
        self.mounted: frozenset[Path] = frozenset()
        """Files of a repository that existed, which mounts protect: who changes them is the user."""


class PlantedPaths:
    """The places of one session, for any thread. Paths that are taken away go to `directory`, or stay beside their
    place."""

    def __init__(self, env: Mapping[str, str], times: RunTimes, directory: Path | None) -> None:
        self._env = env
        self._times = times
        self._moved = MovedPaths(directory)
        self._tops: set[Path] = set()
        self._protected: tuple[Path, ...] = ()
        self._known: dict[GitLocation, _Known] = {}
        self._users = Pins(())
        self._missing: set[GitLocation] = set()
        self._commands: dict[object, tuple[frozenset[GitLocation], Callable[[], bool]]] = {}
        self._waiting: list[tuple[Move | str, str, str]] = []
        self._lines: list[str] = []
        self._mentions: dict[str, bool] = {}
        self._lock = threading.RLock()
        self._finishing = threading.Lock()

    def settle(self, locations: Iterable[GitLocation], tops: Iterable[Path], protected: Iterable[Path]) -> None:
        """Before a command: what has come while none ran is the user's. `tops` are the writable directories."""
        with self._lock:
            self._tops.update(tops)
            self._protected = tuple(protected)
            watched = self._watched()
            for location in dict.fromkeys([*locations, *self._known]):
                if location not in watched:
                    self._settle(location)

    def _settle(self, location: GitLocation) -> None:
        known = self._known.get(location)
        if not os.path.lexists(location.path):
            self._forget(location)
        elif known is None and location not in self._missing:
            # Of a repository without a working tree, mounts protect what exists.
            if location.type == "bare":
                known = _Known()
                known.existed = True
                self._accept_all(location, known)
            else:
                self._leave(location)
        elif known is None or not known.is_users:
            known = known or _Known()
            if not self._causes(location, known):
                known.copy = dict(self._parts(location))
                self._accept(location, known)
            elif location.type == "bare":
                self._accept_all(location, known)
            else:
                self._leave(location)

    def _leave(self, location: GitLocation) -> None:
        self._known[location] = _Known(is_users=True)
        self._users.add([location.path])

    def free(self) -> set[Path]:
        """Paths that came during the session and must not be mounted."""
        with self._lock:
            came = self._came()
            bare = [location.path.parent for location in came if location.type == "bare"]
            return {*(location.path for location in came), *(git / name for git in bare for name in RUN_BY_GIT)}

    def _watched(self) -> frozenset[GitLocation]:
        return frozenset[GitLocation]().union(*(locations for locations, _ in self._commands.values()))

    def _came(self) -> list[GitLocation]:
        return [location for location, known in self._known.items() if not known.is_users and not known.existed]

    def take_over(self, path: Path) -> None:
        """Judge a `.git` that a command has made; one that runs nothing is watched from the next command on."""
        location = GitLocation(path, "repository")
        with self._lock:
            if location not in self._known:
                self._judge(location)
        self.finish()

    def holds(self, path: Path) -> bool:
        """Whether a path is one of the places that are watched or were settled."""
        with self._lock:
            return any(location.path == path for location in (*self._known, *self._missing))

    def watch(self, locations: Iterable[GitLocation], stop: Callable[[], bool]) -> Callable[[], None]:
        """Until what is given back is called, take away what makes git run something and `stop` the command."""
        self._moved.sweep()
        command = object()
        with self._lock:
            watched = frozenset([*locations, *self._came()])
            self._commands[command] = watched, stop
        end_looks = shared_watcher().watch([partial(self._look, location) for location in watched], self.finish)

        def end() -> None:
            end_looks()
            with self._lock:
                for location in watched.union(self._came()):
                    self._look(location)
                del self._commands[command]
                for location, known in self._known.items():
                    if known.maker is command:
                        known.maker = None
                    if not known.is_users and not self._causes(location, known):
                        known.copy = dict(self._parts(location))
            self.finish()

        return end

    def take_lines(self) -> list[str]:
        """For the user: what has been taken away since this was last called."""
        # A command that has just ended is watched for a moment longer.
        with self._lock:
            if self._commands:
                for location in self._watched().union(self._came()):
                    self._look(location)
        self.finish()
        with self._lock:
            lines, self._lines = self._lines, []
        return lines

    def take_mentions(self) -> list[str]:
        """For the user, at the end of a turn: hooks in a working tree that came, each once."""
        with self._lock:
            new = [line for line, is_shown in self._mentions.items() if not is_shown]
            self._mentions |= dict.fromkeys(new, True)
        return new

    def finish(self) -> None:
        """Move what was taken away to where it stays."""
        with self._finishing:
            with self._lock:
                waiting, self._waiting = self._waiting, []
            lines = [
                f"{before}; it {move if isinstance(move, str) else f'is now `{finish(move)}`'}{after}"
                for move, before, after in waiting
            ]
            with self._lock:
                self._lines += lines

    def _look(self, location: GitLocation) -> Watched:
        with self._lock:
            if not os.path.lexists(location.path):
                self._forget(location)
            elif self._users.holds(location.path):
                # The user may have moved it away for a moment.
                self._leave(location)
            elif not ((known := self._known.get(location)) and known.is_users):
                self._judge(location)
                return self._what_to_watch(location)
            return Watched(self._leading(location.path), [str(location.path)] if location in self._missing else [])

    def _forget(self, location: GitLocation) -> None:
        self._known.pop(location, None)
        self._missing.add(location)

    def _judge(self, location: GitLocation) -> None:
        """Take away what makes git run something, or remember the place as it is."""
        known = self._known.get(location) or _Known()
        if known.identity is None or (location.type == "repository" and known.identity != _identity(location.path)):
            known = _Known()
            known.maker = next(reversed(self._commands), None)
        is_new = known.maker is not None or known.identity is None
        causes = self._causes(location, known)
        if not causes:
            self._accept(location, known)
            return
        culprits: dict[Path, str] = {}
        for cause in causes:
            culprits.setdefault(self._culprit(location, known, cause, is_new=is_new), cause.text)
        for culprit, text in culprits.items():
            self._take_away(location, culprit, text, None if is_new else known.copy.get(culprit))
        if not os.path.lexists(location.path):
            self._forget(location)

    def _culprit(self, location: GitLocation, known: _Known, cause: Cause, *, is_new: bool) -> Path:
        """The path that has to go: a repository as a whole while it is new, then only a file that has changed.

        A link on the way to it goes instead: its target may be the user's.
        """
        culprit = location.path
        if location.type == "hooks" or (location.type != "settings" and not is_new):
            changed = [path for path in (*cause.pointers, cause.file) if _content(path) != known.copy.get(path)]
            culprit = (changed or [cause.file])[0]
            if not any(top in culprit.parents for top in self._tops):
                culprit = location.path
        leading = [path for path in culprit.parents if any(top in path.parents for top in self._tops)]
        return next((path for path in reversed(leading) if path.is_symlink()), culprit)

    def _take_away(self, location: GitLocation, path: Path, text: str, copy: tuple[bytes, int] | None) -> None:
        try:
            move = self._moved.put_aside(path)
        except FileNotFoundError:
            return
        except OSError as error:
            move = f"could not be moved away ({error.strerror}): do not use git there"
        stopped = [stop() for locations, stop in self._commands.values() if location in locations]
        after = ", and the command was stopped" if any(stopped) else ""
        if copy is not None and isinstance(move, Move) and _put_back(path, copy):
            after = f", what was there before is back{after}"
        self._waiting.append((move, f"a command made `{path}`, by which git would run something: {text}", after))

    def _accept(self, location: GitLocation, known: _Known) -> None:
        known.identity = _identity(location.path)
        self._known[location] = known

    def _accept_all(self, location: GitLocation, known: _Known) -> None:
        known.usual |= {(cause.file, cause.text) for cause in self._causes(location, known)}
        known.copy = dict(self._parts(location))
        known.mounted |= known.copy.keys()
        self._accept(location, known)

    def _causes(self, location: GitLocation, known: _Known) -> list[Cause]:
        causes = GitRuns(self._env, self._tops).find(location, self._held(location))
        if location.type == "repository":
            causes += self._hooks_in_tree(location)
        new = [cause for cause in causes if cause.file not in known.mounted]
        return [cause for cause in new if (cause.file, cause.text) not in known.usual]

    def _held(self, location: GitLocation) -> list[Path]:
        """The paths that mounts protect."""
        free = self.free()
        return [
            path for path in self._protected if path != location.path and path not in free and os.path.lexists(path)
        ]

    def _hooks_in_tree(self, location: GitLocation) -> Iterator[Cause]:
        for config, directory in tree_hooks(location):
            name = directory.relative_to(location.path.parent)
            text = f"its `{config.name}` sets `core.hooksPath` to `{name}`"
            if made := [hook for hook in executables(directory) if self._times.cover(hook)]:
                yield Cause(config, f"{text}, and a command made `{made[0].name}` there")
            else:
                line = f"`{config}`, which came during the session, sets `core.hooksPath`: git runs hooks of `{name}`"
                self._mentions.setdefault(line, False)

    def _parts(self, location: GitLocation) -> Iterator[tuple[Path, tuple[bytes, int]]]:
        for path in _files(location):
            if (content := _content(path)) is not None:
                yield path, content

    def _leading(self, path: Path) -> list[str]:
        """The directories that lead to a path."""
        leading: list[str] = []
        for directory in path.parents:
            leading.append(str(directory))
            if directory in self._tops:
                return leading
        return []

    def _what_to_watch(self, location: GitLocation) -> Watched:
        names, content = self._leading(location.path), [location.path]
        if location.type in ("repository", "bare"):
            for git, pointers in git_directories(location):
                names += [str(git), *self._leading(git)]
                content += [*pointers, *(git / name for name in RUN_BY_GIT)]
            content += [directory for _, directory in tree_hooks(location)]
        return Watched(names, [str(path) for path in content])


def _files(location: GitLocation) -> list[Path]:
    """The files that decide what git runs in a place."""
    if location.type == "settings":
        return [location.path]
    if location.type == "hooks":
        return executables(location.path)
    return [
        path
        for git, pointers in git_directories(location)
        for path in (*pointers, *own_configs(git), git / "commondir", *executables(git / "hooks"))
    ]


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = os.lstat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _content(path: Path) -> tuple[bytes, int] | None:
    """The content and the mode of a file; None without one."""
    try:
        mode = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        return None
    return (read_bounded(path), stat.S_IMODE(mode)) if stat.S_ISREG(mode) else None


def _put_back(path: Path, copy: tuple[bytes, int]) -> bool:
    content, mode = copy
    with suppress(OSError):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
            os.fchmod(file.fileno(), mode)
        return True
    return False

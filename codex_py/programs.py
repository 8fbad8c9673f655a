"""Finding the programs that we start for ourselves, outside the sandbox, and whether the user sits at this machine.

A `PATH` may name directories of a project (an activated virtual environment): what lies there comes from a repository
or from a command of the model, and must not run for us.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from codex_py.errors import UserError
from codex_py.paths import is_file, is_there, places_on_the_way, real_path


class ProgramFinder:
    """Looks through `path`, a `PATH`, and takes no program that is in an `untrusted` directory or leads through one.

    Those are real paths; `/` tells no programs apart, and does not count.
    """

    def __init__(self, path: str, untrusted: tuple[str, ...] = ()) -> None:
        self.path: Final = path
        self.untrusted: Final = untrusted

    def find(self, name: str) -> str | None:
        """The full path of the first program of this name that may run; None when there is none."""
        return next(self.find_all(name), None)

    def find_all(self, name: str) -> Iterator[str]:
        """The full paths of all programs of this name that may run, in the order of the `PATH`."""
        return (found for found in self._candidates(name) if not self.is_untrusted(found))

    def find_untrusted(self, name: str) -> str | None:
        """The program the name leads to, if that is one that may not run for us."""
        first = next(self._candidates(name), None)
        return first if first is not None and self.is_untrusted(first) else None

    def find_chosen(self, name: str, setting: str) -> str:
        """What to start for a program the user has named in a setting; a path stands for itself.

        Raises `UserError` when the only program of this name may not run.
        """
        if "/" in name:
            return name
        found = self.find(name)
        if found is None and (passed_over := self.find_untrusted(name)) is not None:
            raise UserError(
                f"`{name}` of {setting} is not started: it is `{passed_over}`, which commands of the model may write",
                hint="install it elsewhere, or give its full path",
            )
        return found or name

    def trusted_path(self) -> str:
        """The `PATH` without the directories that programs are not taken from.

        Never empty: that would be the current directory to a shell.
        """
        trusted = [directory for directory in _directories(self.path) if not self.is_untrusted(directory)]
        return os.pathsep.join(trusted or ["/usr/bin", "/bin"])

    def is_untrusted(self, program: str) -> bool:
        """Whether a program or a directory, or a link on the way to it, lies in an untrusted directory."""
        return any(self._holds(path) for path in places_on_the_way(program))

    def _candidates(self, name: str) -> Iterator[str]:
        for directory in dict.fromkeys(_directories(self.path)):
            candidate = f"{directory}/{name}"
            if os.access(candidate, os.X_OK) and is_file(Path(candidate)):
                yield candidate

    def _holds(self, real: str) -> bool:
        return any(real == directory or real.startswith(f"{directory}/") for directory in self.untrusted)


def bundled_ripgrep() -> str | None:
    """The full path of the `rg` that was installed with this program."""
    program = Path(sys.executable).with_name("rg")
    return str(program) if os.access(program, os.X_OK) else None


class ProbeResults:
    """What is known of programs that were tried out, shared by threads: each is tried out once.

    Which programs may run at all is not known here; whoever asks has decided that.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._failures: dict[str, str | None] = {}

    def failure(self, program: str, probe: Callable[[], str | None]) -> str | None:
        """Why a program does not work, None when it does. Waits while another thread tries one out."""
        with self._lock:
            if program not in self._failures:
                self._failures[program] = probe()
            return self._failures[program]


def program_finder(env: Mapping[str, str], cwd: Path, writable: Iterable[Path] = ()) -> ProgramFinder:
    """A finder of programs for a session in `cwd` whose commands may write below `writable`.

    The directory, its project and the temporary directories are never trusted.
    """
    chosen = env.get("TMPDIR", "")
    temporary = [Path("/tmp"), *([Path(chosen)] if chosen.startswith("/") else [])]
    directories = [cwd, project_directory(cwd), *temporary, *(cwd / directory for directory in writable)]
    real = (real_path(directory) for directory in directories)
    # A session in `/` could trust nothing at all.
    return ProgramFinder(env.get("PATH", ""), tuple(dict.fromkeys(directory for directory in real if directory != "/")))


def project_directory(directory: Path) -> Path:
    """The real path of the repository that holds the directory, or of the directory itself."""
    real = Path(real_path(directory))
    return next(
        (
            directory
            for directory in (real, *real.parents)
            if is_file(directory / ".git") or is_there(directory / ".git" / "HEAD")
        ),
        real,
    )


def _directories(path: str) -> list[str]:
    """The directories of a `PATH`; a relative one would mean something else in every directory."""
    return [directory for directory in path.split(os.pathsep) if directory.startswith("/")]


_SIGNS: Final = ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT")


def is_over_ssh(env: Mapping[str, str]) -> bool:
    """Whether the user sits at another machine: its browser and its clipboard are not this one's."""
    return any(env.get(name) for name in _SIGNS)

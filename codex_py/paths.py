"""The paths of all files that codex-py keeps."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from codex_py.errors import ConfigError, UserError

# Below CODEX_HOME: `<marketplace>/<name>/<version>`.
PLUGIN_CACHE: Final = Path("plugins", "cache")
_MAX_LINKS: Final = 40
# Without O_PATH (macOS) a directory that may be entered but not listed cannot be walked through.
_WALK: Final = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)


def codex_home(env: Mapping[str, str]) -> Path:
    """`CODEX_HOME`, or `~/.codex`; absolute, not necessarily there yet.

    A `CODEX_HOME` that is set must exist as a directory: a typo must not scatter sessions and keys. A link that leads
    nowhere is an error in any case: what it leads to may be a disk that is not mounted.
    """
    chosen = env.get("CODEX_HOME")
    if not chosen:
        home = user_home(env) / ".codex"
        _check_link(home)
        return home
    home = Path(os.path.expanduser(chosen)).absolute()  # noqa: PTH111 - without a home `~` stays as it is
    _check_link(home)
    if not is_directory(home):
        raise ConfigError(f"CODEX_HOME is not a directory: `{home}`", hint="create it, or unset CODEX_HOME")
    return home


def _check_link(home: Path) -> None:
    if os.path.islink(home) and not os.path.exists(home):  # noqa: PTH114, PTH110
        target = real_path(home)
        hint = f"create `{target}`, or remove the link"
        raise ConfigError(f"cannot use `{home}`: it is a link to `{target}`, which does not exist", hint=hint)


def user_home(env: Mapping[str, str]) -> Path:
    """The user's home, by `HOME` or as the system knows it. Raises `UserError` where neither says."""
    try:
        return Path(env.get("HOME") or Path.home())
    except RuntimeError as error:
        raise UserError("the home directory is not known", hint="set HOME or CODEX_HOME") from error


def real_path(path: str | os.PathLike[str]) -> str:
    """`os.path.realpath`; a link that may not be followed (`/proc/1/root` is one) stands for itself.

    Raises `ValueError` for a NUL, as that does.
    """
    try:
        return os.path.realpath(path)
    except OSError:
        *_, real = places_on_the_way(os.path.join(os.getcwd(), path))  # noqa: PTH109, PTH118
        return real


def places_on_the_way(path: str) -> Iterator[str]:
    """Where the links lie that an absolute path leads through, in their order, and at last its real path.

    A link that may not be followed stands for itself, as does one too many.
    """
    real, left, links = "", path.split("/")[::-1], 0
    while left:
        name = left.pop()
        if name == "..":
            real = real.rpartition("/")[0]
        elif name not in ("", "."):
            here = f"{real}/{name}"
            try:
                target = os.readlink(here) if links < _MAX_LINKS else ""  # noqa: PTH115
            except OSError:
                target = ""
            if target:
                yield here
                links += 1
                left += target.split("/")[::-1]
                here = "" if target.startswith("/") else real
            real = here
    yield real or "/"


def is_there(path: Path) -> bool:
    """Whether something is found there; unlike with `Path.exists`, no name and no locked directory raises an error."""
    return os.path.exists(path)  # noqa: PTH110


def is_file(path: Path) -> bool:
    """Whether a regular file is found there; raises nothing, as `is_there`."""
    return os.path.isfile(path)  # noqa: PTH113


def is_directory(path: Path) -> bool:
    """Whether a directory is found there; raises nothing, as `is_there`."""
    return os.path.isdir(path)  # noqa: PTH112


def draft_of(path: Path, token: str) -> Path:
    """Where the next version of a file is written before it replaces the file.

    For files with secrets the sandbox also hides every name that begins with `draft_prefix`.
    """
    return path.with_name(draft_prefix(path.name) + token)


def draft_prefix(name: str) -> str:
    """The prefix of the names of all drafts of a file with this name."""
    dot = name.rfind(".")
    return f".{name[:dot] if 0 < dot < len(name) - 1 else name}-"


@contextmanager
def opened_directory(path: Path, made: list[Path] | None = None) -> Generator[int, None, None]:
    """A descriptor of a directory, reached without following links; only good for `dir_fd`.

    With `made`, missing directories are created and added to it. Raise `OSError` when a part is a link or no directory.
    """
    directory = os.open("/", _WALK)
    try:
        for depth, part in enumerate(path.parts[1:], 2):
            inner = _open_part(directory, part, None if made is None else (made, path, depth))
            os.close(directory)
            directory = inner
        yield directory
    finally:
        os.close(directory)


def _open_part(directory: int, part: str, making: tuple[list[Path], Path, int] | None) -> int:
    try:
        return os.open(part, _WALK, dir_fd=directory)
    except FileNotFoundError:
        if making is None:
            raise
    made, path, depth = making
    os.mkdir(part, dir_fd=directory)
    made.append(Path(*path.parts[:depth]))
    return os.open(part, _WALK, dir_fd=directory)


def make_private_dir(path: Path) -> None:
    """Create a directory and its parents that only the user can enter (0700)."""
    missing: list[Path] = []
    while not path.exists():
        missing.append(path)
        path = path.parent
    for directory in reversed(missing):
        directory.mkdir(mode=0o700, exist_ok=True)


def open_private(path: str | Path, flags: int) -> int:
    """Open or create a file that only the user can read (0600); give back its descriptor."""
    return os.open(path, flags | os.O_CLOEXEC, 0o600)


def sync_directory(directory: Path) -> None:
    """Return when the names in a directory are on the disk."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def lock(descriptor: int) -> bool:
    """Take the lock of a file or directory until the descriptor is closed; False when another process has it.

    True as well on a file system without locks, where nobody can have it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def short_path(path: Path, home: str) -> str:
    """A path with `~` for the user's home."""
    text = str(path)
    if home and (text == home or text.startswith(home.rstrip(os.sep) + os.sep)):
        return "~" + text[len(home.rstrip(os.sep)) :]
    return text

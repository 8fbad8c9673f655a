"""Which paths commands must not read: the user's patterns, looked up on disk once for a session's directory.

`ReadRules` is what readers of our own ask: it looks nothing up, so no limit applies to it.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.errors import ToolError
from codex_py.paths import real_path
from codex_py.sandbox.denials import expand_home
from codex_py.sandbox.git_settings import leads_to
from codex_py.sandbox.protected_names import is_young

# How far a pattern with wildcards is looked up below its fixed part, and how many paths a sandbox can hide.
_MAX_ENTRIES: Final = 500_000
_MAX_MATCHES: Final = 2_000
_WILDCARDS: Final = frozenset("*?[")


class CannotDeny(ToolError):
    """A pattern of `sandbox.deny_read` that cannot be held, so that no command may run."""


class ReadRules:
    """Whether a path may be read for the model. Looks at the disk only to follow links; build it once, ask often.

    `patterns` are those of `sandbox.deny_read`, default denials included; relative ones start at `cwd`. `secrets` are
    plain paths; a name that starts with `*` stands for every name with the same ending.
    """

    def __init__(
        self, patterns: Sequence[str], cwd: Path, env: Mapping[str, str], *, secrets: Iterable[Path] = ()
    ) -> None:
        paths = find_real_paths(cwd / secret for secret in secrets)
        plain = {path for path in paths if not path.name.startswith("*")}
        self._endings = [(path.parent, path.name[1:]) for path in paths if path.name.startswith("*")]
        self._patterns: list[tuple[str, re.Pattern[str]]] = []
        for pattern in patterns:
            absolute = _absolute(pattern, cwd, env)
            if _has_wildcards(absolute):
                top, names = _split(absolute)
                self._patterns.append((real_path(top), _expression(names)))
            if not _has_wildcards(absolute) or os.path.lexists(absolute):
                plain.update(leads_to(Path(absolute)))
        self._denied = {str(path).rstrip("/") for path in plain}

    def allows(self, path: Path) -> bool:
        """Whether neither the absolute `path` nor where it leads is denied; `path` need not exist."""
        named = Path(real_path(path.parent), path.name)
        # Thousands of files behind links are asked about, and few are links themselves.
        return self._allows(named) and (
            not os.path.islink(named) or self._allows(Path(real_path(named)))  # noqa: PTH114 - raises nothing
        )

    def _allows(self, path: Path) -> bool:
        text = str(path)
        # Thousands of paths are asked about, and a `Path` for each comparison takes longer than all else.
        if not self._denied.isdisjoint(accumulate(text.split("/"), "{}/{}".format)):
            return False
        if any(path.parent == directory and path.name.endswith(ending) for directory, ending in self._endings):
            return False
        return not any(
            text.startswith(f"{top.rstrip('/')}/") and pattern.search(text[len(top.rstrip("/")) + 1 :])
            for top, pattern in self._patterns
        )


class _Listing(NamedTuple):
    """`state` is a directory's inode and change time, the latter 0 when it is too young to be relied on."""

    state: tuple[int, int]
    names: tuple[str, ...]
    directories: tuple[str, ...]


class Listings:
    """The names in directories; one is listed again only when its change time, which no command can set, is another."""

    def __init__(self) -> None:
        self._known: dict[str, _Listing] = {}

    def read(self, directory: str) -> _Listing:
        """Raises `OSError`."""
        status = os.lstat(directory)
        state = (status.st_ino, status.st_ctime_ns)
        known = self._known.get(directory)
        if known is not None and known.state == state:
            return known
        young = is_young(status.st_ctime_ns)
        with os.scandir(directory) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, _MAX_ENTRIES + 1)]
        names = tuple(name for name, _ in found)
        directories = tuple(name for name, is_directory in found if is_directory)
        known = self._known[directory] = _Listing((0, 0) if young else state, names, directories)
        return known


def has_wildcards(patterns: Sequence[str]) -> bool:
    """Whether paths that appear later may match one of the patterns."""
    return any(map(_has_wildcards, patterns))


def find_unreadable(
    patterns: Sequence[str], cwd: Path, env: Mapping[str, str], listings: Listings | None = None
) -> tuple[Path, ...]:
    """The real paths the patterns stand for, without those below another one of them.

    `~` is the user's home, relative patterns start at `cwd`. `*` and `?` match within a name, `**` any directories
    between. A path that is not there counts when its pattern has no wildcard and a file can have its name: it may come
    later. Raises `CannotDeny` when there is more to find than can be looked through or hidden. With the same
    `listings`, a second search is cheaper.
    """
    listings = listings or Listings()
    found: set[Path] = set()
    for pattern in patterns:
        absolute = _absolute(pattern, cwd, env)
        if _has_wildcards(absolute) and not os.path.lexists(absolute):
            found.update(_matches(absolute, pattern, listings))
        else:
            found.update(leads_to(Path(absolute)))
    return without_nested(found)


def without_nested(found: Collection[Path]) -> tuple[Path, ...]:
    """The paths, sorted, without those below another one of them."""
    # Every session looks at some forty paths twice, and a `Path` for each directory above takes longer than all else.
    texts = {str(path): path for path in found}
    return tuple(sorted(path for text, path in texts.items() if texts.keys().isdisjoint(_directories_above(text))))


def _directories_above(path: str) -> Iterator[str]:
    """The directories above an absolute path, the root first."""
    if path != "/":
        yield "/"
    yield from islice(accumulate(path.split("/")[:-1], "{}/{}".format), 1, None)


def is_readable(path: Path, unreadable: Sequence[Path]) -> bool:
    """Whether the absolute `path`, its links followed, is none of the `unreadable` and below none of them."""
    real = Path(real_path(path))
    return not any(real.is_relative_to(secret) for secret in unreadable)


def _absolute(pattern: str, cwd: Path, env: Mapping[str, str]) -> str:
    return os.path.normpath(cwd / expand_home(pattern, env))


def _has_wildcards(text: str) -> bool:
    return not _WILDCARDS.isdisjoint(text)


def _split(pattern: str) -> tuple[str, list[str]]:
    """The directory where a pattern's wildcards start, and the names from there on."""
    names = pattern.split("/")
    fixed = next(index for index, part in enumerate(names) if _has_wildcards(part))
    return "/".join(names[:fixed]) or "/", names[fixed:]


def _matches(absolute: str, pattern: str, listings: Listings) -> Iterator[Path]:
    """The real paths that match, without those below another match; links are not followed on the way."""
    top, names = _split(absolute)
    expression, real = _expression(names), real_path(top)
    directories = deque([""])
    seen = count = 0
    while directories:
        directory = directories.popleft()
        try:
            listing = listings.read(f"{real}/{directory}")
        except OSError:
            continue
        seen += len(listing.names)
        if seen > _MAX_ENTRIES:
            raise _cannot_deny(pattern, f"has to be looked for among more than {_MAX_ENTRIES:,} files")
        found = {name for name in listing.names if expression.search(directory + name)}
        count += len(found)
        if count > _MAX_MATCHES:
            raise _cannot_deny(pattern, f"matches more than {_MAX_MATCHES:,} paths")
        yield from (Path(real_path(f"{real}/{directory}{name}")) for name in found)
        if len(names) > 1:
            directories.extend(f"{directory}{name}/" for name in listing.directories if name not in found)


def _cannot_deny(pattern: str, reason: str) -> CannotDeny:
    return CannotDeny(
        f"no command is run: `{pattern}` in `sandbox.deny_read` {reason}, and some would stay readable; "
        "name the directories that hold them instead"
    )


def _expression(names: Sequence[str]) -> re.Pattern[str]:
    """Matches paths below the fixed part of a pattern that git would ignore with that pattern; search in the path."""
    # Most sessions have no pattern with wildcards.
    from pathspec.patterns.gitignore.basic import GitIgnoreBasicPattern

    # A last `*` alone would match nothing below a directory.
    names = [*names[:-1], "?*" if names[-1] == "*" else names[-1]]
    text = "/".join(("", *names)).replace("\\", r"\\")
    try:
        return re.compile(str(GitIgnoreBasicPattern.pattern_to_regex(text)[0]), re.DOTALL)
    except re.error:  # A range such as `[z-a]`.
        literal = text.replace("[", r"\[")
        return re.compile(str(GitIgnoreBasicPattern.pattern_to_regex(literal)[0]), re.DOTALL)


def find_real_paths(secrets: Iterable[Path]) -> list[Path]:
    """The real paths of files that may be missing: their own, and the targets of links.

    A name that starts with `*` stands for all that end alike.
    """
    paths: dict[Path, None] = {}
    parents: dict[Path, str] = {}
    for secret in secrets:
        parent = secret.parent
        if parent not in parents:
            parents[parent] = os.path.realpath(parent)
        own = f"{parents[parent]}/{secret.name}"
        paths[Path(own)] = None
        if os.path.islink(own):  # noqa: PTH114
            paths[Path(os.path.realpath(own))] = None
    return list(paths)

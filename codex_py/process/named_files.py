"""Finds and hashes the files that a command line names: consent to run it is valid while they do not change.

Names are matched generously. Files that these files load are not found.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from codex_py.paths import is_directory, is_file, places_on_the_way
from codex_py.text.files import FileHead, FileRefused, read_trusted

MAX_SCRIPT: Final = 16 * 1024 * 1024
_MAX_FILES: Final = 256
_MAX_NAME_LENGTH: Final = 4096
_SYSTEM: Final = ("/usr/", "/bin/", "/sbin/", "/lib", "/opt/", "/nix/", "/snap/", "/dev/", "/proc/", "/sys/")
_WORD: Final = re.compile(r"[^\s'\"`;&|()<>=]+")
_PROJECT: Final = re.compile(r"\$\{?(?:CLAUDE_PROJECT_DIR|CODEX_PROJECT_DIR|CLAUDE_SKILL_DIR|CODEX_SKILL_DIR|PWD)\b\}?")
# What a shell puts in: before a name it is mostly a directory, that of the project or one in it.
_PUT_IN: Final = re.compile(r"\$\{[^{}]*\}|\$\([^()]*\)|`[^`]*`|\$\w+")
_MAX_INSIDE: Final = 4
_MAX_DIRECTORIES: Final = 4
_MODULE: Final = re.compile(r"-m\s+([\w.]+)")
_PACKAGE: Final = ("package.json",)
_MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
# What programs run although no word names it.
_UNNAMED: Final[Mapping[str, Sequence[str]]] = {
    **dict.fromkeys(("make", "gmake"), _MAKEFILES),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "bun"), _PACKAGE),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "rake": ("Rakefile",),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini",),
    "invoke": ("tasks.py",),
    "gradle": ("build.gradle", "build.gradle.kts"),
    "ant": ("build.xml",),
}


def named_files(command: Sequence[str], roots: Sequence[Path], cwd: Path) -> dict[Path, bytes]:
    """The files that the words of a command name, each with a hash of what is in it.

    `roots` are the real directories names may start at, beside `cwd`, where the command would run. Files of the system
    outside of them, which only an administrator changes, are left out. A file that cannot be read counts as its
    name.
    """
    return {path: _content(path) for path in _files(command, roots, cwd)}


def named_contents(words: Sequence[str], root: Path, cwd: Path) -> bytes:
    """The paths and hashes of the files inside a project that a command line names; empty when it names none.

    `root` is the project's real directory, `cwd` where the command would run.
    """
    inside = (path for path in _files(words, (root,), cwd) if path.is_relative_to(root))
    return b"".join(b"\0" + os.fsencode(path) + b"\0" + _content(path) for path in inside)


def named_links(command: Sequence[str], roots: Sequence[Path], cwd: Path) -> Iterator[tuple[Path, Path]]:
    """Where the links lie that the words of a command lead through, each with the real path it is on the way to."""
    words = [word for argument in command for word in _words(argument)]
    for directory in dict.fromkeys((*roots, Path(os.path.realpath(cwd)))):
        for word in words:
            path = str(directory / _PROJECT.sub(lambda _, directory=str(directory): directory, word))
            if os.path.lexists(path):
                *links, real = places_on_the_way(path)
                yield from ((Path(link), Path(real)) for link in links)


def _files(command: Sequence[str], roots: Sequence[Path], cwd: Path) -> list[Path]:
    """The regular files that the words of a command name, from a root, from where it runs, or from a directory below a
    root that it names too: `cd scripts && ./format.sh`.
    """
    words = [word for argument in command for word in _words(argument)]
    starts = dict.fromkeys((*roots, cwd))
    named = [_named(word, directory) for word in words for directory in starts]
    inside = (path for path in dict.fromkeys(named) if _is_below(path, roots) and path not in starts)
    for directory in [path for path in inside if is_directory(path)][:_MAX_DIRECTORIES]:
        named += [_named(word, directory) for word in words]
    files = (path for path in named if _is_below(path, roots) or not str(path).startswith(_SYSTEM))
    return [path for path in dict.fromkeys(files) if is_file(path)][:_MAX_FILES]


def _is_below(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)


def _named(word: str, directory: Path) -> Path:
    return Path(os.path.realpath(directory / _PROJECT.sub(lambda _: str(directory), word)))


def _words(text: str) -> Iterator[str]:
    """What could be a name in a command: its words as a shell has them, and what stands between signs of a shell.

    What a shell puts in, as in `"$(git rev-parse --show-toplevel)"/format.sh`, is read as a directory to begin at.
    """
    found = [*_WORD.findall(text), *_WORD.findall(text.replace('"', "").replace("'", ""))]
    with suppress(ValueError):
        found += shlex.split(text)
    plain = text.replace('"', "").replace("'", "")
    for _ in range(_MAX_INSIDE):
        plain = _PUT_IN.sub(".", plain)
    found += [part for word in _WORD.findall(plain) for part in (word, *word.split(":"))]
    for module in _MODULE.findall(text):
        found += [f"{module.replace('.', '/')}{end}" for end in (".py", "/__main__.py")]
    found += [name for word in tuple(found) for name in _UNNAMED.get(word.rpartition("/")[2], ())]
    yield from (word for word in dict.fromkeys(found) if "\0" not in word and len(word) < _MAX_NAME_LENGTH)


def _content(path: Path) -> bytes:
    try:
        head = read_trusted(path, MAX_SCRIPT)
    except FileRefused:
        return b"?"
    return b"?" if head is None else hash_of(head)


def hash_of(head: FileHead) -> bytes:
    """The value of `named_files` for a file with this content."""
    return hashlib.sha256(head.raw).digest() + str(head.size).encode()

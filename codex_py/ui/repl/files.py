"""`@`: the files of the working directory, as git and ripgrep see them, found by a few letters of their path."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final

from codex_py.ui.repl.fuzzy import best, letters_in_order
from codex_py.ui.repl.menu import MOST_OFFERS, Offer, Word

_WORD: Final = re.compile(r'(?:^|(?<=[\s(\["\']))@([^\s"\']*)$')
_MOST_BYTES: Final = 32 * 1024 * 1024
_MOST_SECONDS: Final = 10.0
_STALE_SECONDS: Final = 5.0
# So many are weighed against each other; of more, the shortest paths come first anyway.
_MOST_CANDIDATES: Final = 1500
_LONGEST_QUERY: Final = 100


class FileIndex:
    """The paths below a folder, in one text so that searching it is one call.

    `paths` are as shown; a search of 100,000 takes some 20 ms.
    """

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._paths = sorted(paths, key=lambda path: (path.count("/"), len(path)))
        self._text = "\n".join(map(_low, self._paths))
        self._starts = [0, *accumulate(len(path) + 1 for path in self._paths)][: len(self._paths)]

    def __len__(self) -> int:
        return len(self._paths)

    def find(self, query: str, limit: int) -> list[str]:
        """The paths that fit best."""
        query = query.lower()[:_LONGEST_QUERY]
        if not query:
            return best(query, self._paths[:_MOST_CANDIDATES], key=_texts, limit=limit)
        found = list(self._lines_with(query))
        if len(found) < limit:
            found = list(dict.fromkeys([*found, *self._lines_like(query)]))
        return best(query, found, key=_texts, limit=limit)

    def _lines_with(self, part: str) -> Iterator[str]:
        """The first paths that have this in them."""
        at = self._text.find(part)
        for _ in range(_MOST_CANDIDATES):
            if at < 0:
                return
            end = self._text.find("\n", at)
            yield self._path_at(at)
            at = self._text.find(part, end) if end >= 0 else -1

    def _lines_like(self, query: str) -> Iterator[str]:
        for count, match in enumerate(letters_in_order(query).finditer(self._text)):
            if count >= _MOST_CANDIDATES:
                return
            yield self._path_at(match.start())

    def _path_at(self, position: int) -> str:
        return self._paths[bisect_right(self._starts, position) - 1]


class FileSource:
    """Offers files; the list is read in the background, when the first `@` is typed and when it has become old.

    `changed` is called when there is more to offer than before.
    """

    title = "files"

    def __init__(self, cwd: Callable[[], Path], changed: Callable[[], None]) -> None:
        self._cwd = cwd
        self._changed = changed
        self._index = FileIndex()
        self._of: Path | None = None
        self._read_at = 0.0
        self._reading: asyncio.Task[None] | None = None

    def word_at(self, before: str) -> Word | None:
        found = _WORD.search(before)
        return Word(found.start(), found[1]) if found else None

    def offers(self, query: str) -> Sequence[Offer]:
        self._refresh()
        if not len(self._index):
            return []
        return [
            Offer(path, "", str(self._cwd() / path), f"{_quoted(path)} ")
            for path in self._index.find(query, MOST_OFFERS)
        ]

    def _refresh(self) -> None:
        cwd = self._cwd()
        is_old = self._of != cwd or time.monotonic() - self._read_at > _STALE_SECONDS
        if is_old and (self._reading is None or self._reading.done()):
            self._reading = asyncio.get_running_loop().create_task(self._read(cwd))

    async def _read(self, cwd: Path) -> None:
        self._index = await asyncio.to_thread(lambda: FileIndex(with_folders(list_files(cwd))))
        self._of, self._read_at = cwd, time.monotonic()
        self._changed()


def list_files(cwd: Path) -> list[str]:
    """The files below a folder that git does not ignore, relative to it; as many as can be read in ten seconds."""
    ripgrep = shutil.which("rg") or shutil.which("rg", path=str(Path(sys.executable).parent))
    if ripgrep is None:
        return list(_walk(cwd))
    command = [ripgrep, "--files", "--hidden", "--no-messages", "--null", "--glob", "!.git", "--glob", "!.jj"]
    with subprocess.Popen(
        command, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as running:
        assert running.stdout is not None
        raw = bytearray()
        until = time.monotonic() + _MOST_SECONDS
        while len(raw) < _MOST_BYTES and time.monotonic() < until:
            if not (more := os.read(running.stdout.fileno(), 1 << 18)):
                break
            raw += more
        running.kill()
    return [os.fsdecode(name).removeprefix("./") for name in bytes(raw).split(b"\0")[:-1] if b"\n" not in name]


def with_folders(files: Sequence[str]) -> list[str]:
    """The files, and the folders they are in."""
    folders: set[str] = set()
    for file in files:
        folder = file.rpartition("/")[0]
        while folder and folder + "/" not in folders:
            folders.add(folder + "/")
            folder = folder.rpartition("/")[0]
    return [*files, *folders]


def _walk(cwd: Path) -> Iterator[str]:
    until = time.monotonic() + _MOST_SECONDS
    for folder, folders, names in os.walk(cwd):
        folders[:] = [name for name in folders if not name.startswith(".") and name != "node_modules"]
        relative = os.path.relpath(folder, cwd)
        yield from (name if relative == "." else f"{relative}/{name}" for name in names if "\n" not in name)
        if time.monotonic() > until:
            return


def _low(path: str) -> str:
    """The path in lower case, where that is as long: places in it are to be those of the path."""
    low = path.lower()
    return low if len(low) == len(path) else path


def _texts(path: str) -> tuple[str, ...]:
    # The name counts for more than the folders.
    return (path.rstrip("/").rpartition("/")[2], path)


def _quoted(path: str) -> str:
    return f'"{path}"' if any(char.isspace() for char in path) else path

"""`@`: the files of the working directory, as git and ripgrep see them, found by a few letters of their path."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, islice
from pathlib import Path
from typing import Final

from codex_py.programs import ProgramFinder, bundled_ripgrep
from codex_py.ui.repl.chips import PictureChip
from codex_py.ui.repl.desktop import is_picture
from codex_py.ui.repl.menu import MAX_OFFERS, MenuOffer, MenuWord, best, letters_in_order

_WORD: Final = re.compile(r'(?:^|(?<=[\s(\["\']))@([^\s"\']*)$')
_MAX_BYTES: Final = 32 * 1024 * 1024
_MAX_SECONDS: Final = 10.0
_AFTER_SECONDS: Final = 0.5
_STALE_SECONDS: Final = 1.0
# A list that takes long to read is read less often.
_STALE_TIMES: Final = 20.0
# So many are weighed against each other; of more, the shortest paths come first anyway.
_MAX_CANDIDATES: Final = 1500
# Letters that only stand in their order, far apart, say little: so many are enough.
_MAX_SCATTERED: Final = 300
_MAX_QUERY_LENGTH: Final = 100
# Lines that are searched in one go for letters in order.
_AT_ONCE: Final = 10_000


class FileIndex:
    """The paths below a directory. `paths` are as shown; a search of 100,000 takes some 30 ms at most."""

    def __init__(self, paths: Sequence[str] = ()) -> None:
        self._paths = _in_order(paths)
        low = [_low(path) for path in self._paths]
        self._lines = _Lines(low)
        self._names = _Lines([_name(path) for path in low])

    def __len__(self) -> int:
        return len(self._paths)

    def find(self, query: str, limit: int) -> list[str]:
        """The paths that fit best: by the beginning of their name, by their name, by the path, by letters in order."""
        query = query.lower()[:_MAX_QUERY_LENGTH]
        if not query:
            return self._paths[:limit]
        found = dict.fromkeys(islice(self._candidates(query), _MAX_CANDIDATES))
        if len(found) < limit and len(query) > 1:
            scattered = self._lines.like(query)
            found.update(dict.fromkeys(scattered))
            if len(scattered) == _MAX_SCATTERED:
                # There is more, and what has the letters in its name counts for more.
                found.update(dict.fromkeys(self._names.like(query)))
        return best(query, [self._paths[number] for number in found], key=_texts, limit=limit)

    def _candidates(self, query: str) -> Iterator[int]:
        for lines in (self._names, self._lines):
            if query not in lines:
                continue
            yield from lines.having(f"\n{query}\n")
            yield from lines.having(f"\n{query}")
            yield from lines.having(query)


class _Lines:
    """Texts of one line each in one text, so that searching all of them is one call."""

    def __init__(self, lines: Sequence[str]) -> None:
        raw = [_encoded(line) for line in lines]
        self._text = b"\n".join([b"", *raw, b""])
        self._starts = [*accumulate((len(line) + 1 for line in raw), initial=1)]
        # Where all that fits is known, a query with more letters need look nowhere else.
        self._narrowed: tuple[str, Sequence[int]] = ("", ())

    def __contains__(self, part: str) -> bool:
        return _encoded(part) in self._text

    def having(self, part: str) -> Iterator[int]:
        """The numbers of the first lines with this in them; a line end before or behind it counts as a part of them."""
        wanted = _encoded(part)
        at = self._text.find(wanted)
        for _ in range(_MAX_CANDIDATES):
            if at < 0:
                return
            number = bisect_right(self._starts, at + 1) - 1
            yield number
            at = self._text.find(wanted, self._starts[number + 1] - 1)

    def like(self, query: str) -> Sequence[int]:
        """The numbers of the first lines that have these letters in this order."""
        letters = _encoded(query)
        pattern = letters_in_order(letters)
        earlier, among = self._narrowed
        if earlier and query.startswith(earlier):
            return [number for number in among if pattern.match(self._text, self._starts[number] - 1)]
        found = list(islice(self._matching(letters, pattern), _MAX_SCATTERED))
        if len(found) < _MAX_SCATTERED:
            self._narrowed = query, found
        return found

    def _matching(self, letters: bytes, pattern: re.Pattern[bytes]) -> Iterator[int]:
        """The same one after the other, found in what is left without all other letters where that is little."""
        others = bytes(set(range(256)) - {*letters, *b"\n"})
        is_little = True
        for first in range(0, len(self._starts) - 1, _AT_ONCE):
            end = min(first + _AT_ONCE, len(self._starts) - 1)
            block = self._text[self._starts[first] - 1 : self._starts[end] - 1]
            left = block.translate(None, others) if is_little else block
            is_little = len(left) < len(block) // 3
            number, at = first, 0
            for match in pattern.finditer(left):
                number += left.count(b"\n", at, match.start())
                at = match.start()
                yield number


class FileSource:
    """Offers files; the list is read in the background, when the first `@` is typed and when it has become old.

    `changed` is called when there is more to offer than before.
    """

    def __init__(
        self, cwd: Callable[[], Path], programs: Callable[[], ProgramFinder], changed: Callable[[], None]
    ) -> None:
        self._cwd = cwd
        self._programs = programs
        self._changed = changed
        self._index = FileIndex()
        self._of: Path | None = None
        self._old_at = 0.0
        self._reading: asyncio.Task[None] | None = None
        self._reads_again = False
        self.total = 0

    @property
    def empty(self) -> str:
        """The text shown when no file matches; empty until the files are known."""
        return "no file matches" if self._of else ""

    def opened(self) -> None:
        """The menu opens: the files are read again."""
        self._old_at = 0.0

    @property
    def title(self) -> str:
        return "files" if self._of else "reading which files there are…"

    async def prepare(self) -> None:
        """Read the list before it is wanted, when the session has begun."""
        await asyncio.sleep(_AFTER_SECONDS)
        self._refresh()

    def word_at(self, before: str) -> MenuWord | None:
        found = _WORD.search(before)
        return MenuWord(found.start(), found[1], is_whole=not self._of) if found else None

    def offers(self, query: str) -> Sequence[MenuOffer]:
        self._refresh()
        if not len(self._index):
            return []
        found = self._index.find(query, MAX_OFFERS)
        self.total = len(found) if query else len(self._index)
        return [_offer(path, self._cwd()) for path in found]

    def _refresh(self) -> None:
        cwd = self._cwd()
        if self._of == cwd and time.monotonic() <= self._old_at:
            return
        if self._reading is not None and not self._reading.done():
            # What has come since that began may be missing from it.
            self._reads_again |= self._old_at == 0.0 and self._of is not None
        else:
            self._reading = asyncio.get_running_loop().create_task(self._read(cwd))

    async def _read(self, cwd: Path) -> None:
        began = time.monotonic()
        cancelled, programs = threading.Event(), self._programs()
        try:
            self._index = await asyncio.to_thread(
                lambda: FileIndex(with_directories(list_files(cwd, programs, cancelled)))
            )
        finally:
            # Whoever quits does not wait for the rest of a long list.
            cancelled.set()
        now = time.monotonic()
        self._of, self._old_at = cwd, now + max(_STALE_SECONDS, _STALE_TIMES * (now - began))
        if self._reads_again:
            self._reads_again, self._old_at = False, 0.0
        self._changed()


def _offer(path: str, cwd: Path) -> MenuOffer:
    """A picture is attached, of anything else the path is written."""
    whole = cwd / path
    chip = PictureChip(whole) if is_picture(path) else None
    return MenuOffer(path, "is attached" if chip else "", str(whole), f"{_quoted(path)} ", chip)


def list_files(cwd: Path, programs: ProgramFinder, cancelled: threading.Event) -> list[str]:
    """The files below a directory that git does not ignore, relative to it; as many as can be read in ten seconds, or
    until it is cancelled.
    """
    # The user's, before the one that was installed with this program.
    own = bundled_ripgrep()
    ripgrep = programs.find("rg") or (own if own and not programs.is_untrusted(own) else None)
    if ripgrep is None:
        return list(_walk(cwd, cancelled))
    command = [ripgrep, "--files", "--hidden", "--no-messages", "--null", "--glob", "!.git", "--glob", "!.jj"]
    # It may be a script that looks for the real one.
    env = {**os.environ, "PATH": programs.trusted_path()}
    with subprocess.Popen(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as running:
        assert running.stdout is not None
        raw = bytearray()
        until = time.monotonic() + _MAX_SECONDS
        while len(raw) < _MAX_BYTES and time.monotonic() < until and not cancelled.is_set():
            if not (more := os.read(running.stdout.fileno(), 1 << 18)):
                break
            raw += more
        running.kill()
    return [os.fsdecode(name).removeprefix("./") for name in bytes(raw).split(b"\0")[:-1] if b"\n" not in name]


def with_directories(files: Sequence[str]) -> list[str]:
    """The files, and the directories they are in."""
    directories: set[str] = set()
    for file in files:
        directory = file.rpartition("/")[0]
        while directory and directory + "/" not in directories:
            directories.add(directory + "/")
            directory = directory.rpartition("/")[0]
    return [*files, *directories]


def _walk(cwd: Path, cancelled: threading.Event) -> Iterator[str]:
    until = time.monotonic() + _MAX_SECONDS
    for directory, directories, names in os.walk(cwd):
        directories[:] = [name for name in directories if not name.startswith(".") and name != "node_modules"]
        relative = os.path.relpath(directory, cwd)
        yield from (name if relative == "." else f"{relative}/{name}" for name in names if "\n" not in name)
        if time.monotonic() > until or cancelled.is_set():
            return


def _in_order(paths: Sequence[str]) -> list[str]:
    """By their depth, their length, their letters. In parts, because nothing else runs while a list is sorted."""
    alike: dict[tuple[int, int], list[str]] = {}
    for path in paths:
        alike.setdefault((path.count("/"), len(path)), []).append(path)
    return [path for _, group in sorted(alike.items()) for path in sorted(group)]


def _encoded(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _low(path: str) -> str:
    """The path in lower case, where that is as long: positions in it must be those of the path."""
    low = path.lower()
    return low if len(low) == len(path) else path


def _name(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _texts(path: str) -> tuple[str, ...]:
    # The name counts for more than the directories.
    return (_name(path), path)


def _quoted(path: str) -> str:
    return f'"{path}"' if any(char.isspace() for char in path) else path

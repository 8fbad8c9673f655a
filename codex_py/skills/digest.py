"""The digest of the search index: which skill has which word, in a file that is read in a millisecond without SQLite.

The first request of a session waits for it, so it holds stems with what each is worth for a skill, and nothing else. A
skill that is new, or says something else of itself than when it was indexed, is read on the spot by what it says.
"""

from __future__ import annotations

import math
import os
import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterable
from contextlib import closing, suppress
from functools import cached_property
from pathlib import Path
from typing import Final

from codex_py.paths import draft_of, make_private_dir, open_private
from codex_py.skills.model import Skill
from codex_py.skills.ranking import Postings
from codex_py.skills.stems import StemTable
from codex_py.skills.term_weights import SkillTerms, describe, described_crc
from codex_py.skills.words import Words, lines_with

DIGEST_FILE: Final = "search.digest"
# Changes with what is in the file, and with the stems and stop words that it was made with.
_MAGIC: Final = "codex-py skill digest 7"
_SECTIONS: Final = 3
_MAX_HEADER: Final = 200
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ENTRY_BYTES: Final = 4
_CHUNK_BYTES: Final = 256 * 1024


class DigestFile:
    """An open digest: the paths of skills with their checksums, terms, and postings."""

    def __init__(self, path: Path) -> None:
        """Open it. Raises `OSError`, or `ValueError` for a file that is not ours or not whole."""
        self._descriptor = os.open(path, _READ)
        try:
            head, _, _ = os.pread(self._descriptor, _MAX_HEADER, 0).partition(b"\n")
            name, crc, *sizes = head.decode("ascii").split("\t")
            self._crc, self._sizes = int(crc), tuple(map(int, sizes))
            self._begin = len(head) + 1
            whole = os.fstat(self._descriptor).st_size == self._begin + sum(self._sizes)
            if name != _MAGIC or len(self._sizes) != _SECTIONS or not whole:
                raise ValueError("not a whole digest of this version")
            lines = [line.split(" ", 2) for line in self._section(0).decode("utf-8").split("\n")[:-1]]
            # The checksum and the stamp of each skill by its path.
            self.skills = {path: (crc, stamp) for crc, stamp, path in lines}
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def is_intact(self) -> bool:
        """Whether the content is what was written. Reads all of it, so not on the way to a first request."""
        crc, at = 0, self._begin
        while part := os.pread(self._descriptor, _CHUNK_BYTES, at):
            crc, at = zlib.crc32(part, crc), at + len(part)
        return crc == self._crc

    def postings(self, stem: str) -> list[int]:
        """For each skill that has a stem its number times 256, and the weight."""
        line = next(lines_with(self._terms, f"{stem} ".encode("utf-8", "replace")), None)
        if line is None:
            return []
        try:
            offset, count = map(int, line.split(b" "))
            raw = os.pread(self._descriptor, count * _ENTRY_BYTES, self._start(2) + offset)
            entries = memoryview(raw).cast("I").tolist()
        except (ValueError, TypeError, OSError):
            return []
        return entries if entries and max(entries) >> 8 < len(self.skills) else []

    @cached_property
    def _terms(self) -> bytes:
        return self._section(1)

    def _start(self, number: int) -> int:
        return self._begin + sum(self._sizes[:number])

    def _section(self, number: int) -> bytes:
        return os.pread(self._descriptor, self._sizes[number], self._start(number))


class Digest:
    """The words of some skills, from a file as far as it has them. Each skill has a number as long as this lasts."""

    def __init__(self, path: Path) -> None:
        self._file: DigestFile | None = None
        with suppress(OSError, ValueError):
            self._file = DigestFile(path)
        stored = self._file.skills if self._file else {}
        self._stored = stored
        self._numbers = {path: number for number, path in enumerate(stored)}
        # How many skills there are, with those of the file.
        self.total = len(stored)
        self._read: dict[str, list[int]] = {}
        self._known: dict[str, Postings] = {}

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    @cached_property
    def words(self) -> Words:
        """The words that stand for others."""
        return Words()

    @cached_property
    def _stems(self) -> StemTable:
        return StemTable(self.words.stop_words(()))

    def add(self, skills: Iterable[Skill]) -> dict[int, Skill]:
        """The skills by their numbers; the words of those that the file lacks are read here."""
        found: dict[int, Skill] = {}
        for skill in skills:
            path = str(skill.canonical_path)
            if path in self._stored and self._stored[path][0] == str(described_crc(skill)):
                found[self._numbers[path]] = skill
                continue
            found[self.total] = skill
            for stem, weight in describe(skill, self._stems).items():
                self._read.setdefault(stem, []).append(self.total << 8 | weight)
            self.total += 1
        return found

    def is_current(self, skills: Iterable[Skill]) -> bool:
        """Whether the file is whole and has all these skills as they are now."""
        paths = [str(skill.canonical_path) for skill in skills]
        has_all = all(path in self._stored and self._stored[path][1] == stamp_of(path) for path in paths)
        return not self._read and has_all and (self._file is None or self._file.is_intact())

    def knows(self, stem: str) -> bool:
        """Whether a skill has the stem."""
        return bool(self.find(stem).entries)

    def find(self, stem: str) -> Postings:
        """The skills that have a stem."""
        known = self._known.get(stem)
        if known is None:
            entries = self._file.postings(stem) if self._file else []
            entries += self._read.get(stem, ())
            rarity = math.log(1 + (self.total - len(entries) + 0.5) / (len(entries) + 0.5))
            known = self._known[stem] = Postings(rarity, entries)
        return known


def stamp_of(path: str) -> str:
    """A stamp that changes when the file does; "" if it cannot be read."""
    try:
        status = os.stat(path)  # noqa: PTH116 - thousands of these
    except OSError:
        return ""
    return f"{status.st_size}-{status.st_mtime_ns}"


def is_digest_of(path: Path, skills: Iterable[tuple[str, int, str]]) -> bool:
    """Whether a file is a whole digest of these skills: the path, checksum and stamp of each."""
    try:
        file = DigestFile(path)
    except (OSError, ValueError):
        return False
    with closing(file):
        expected = {path: (str(crc), stamp) for path, crc, stamp in skills if _can_hold(path)}
        return file.skills == expected and file.is_intact()


def write_digest(path: Path, skills: Iterable[SkillTerms]) -> None:
    """Put a digest of these skills in the place of the one before. Raises `OSError`."""
    lines: list[str] = []
    # Arrays: as lists of numbers these would be most of the memory that a session needs.
    found: defaultdict[str, array[int]] = defaultdict(lambda: array("I"))
    for skill in skills:
        if not _can_hold(skill.path):
            continue
        number = len(lines) << 8
        lines.append(f"{skill.crc} {skill.stamp} {skill.path}\n")
        for entries, weight in zip(map(found.__getitem__, skill.terms.split(" ")), skill.weights, strict=False):
            entries.append(number | weight)
    terms: list[bytes] = []
    offset = 0
    for stem, entries in found.items():
        terms.append(f"{stem} {offset} {len(entries)}\n".encode())
        offset += len(entries) * _ENTRY_BYTES
    terms.sort()
    sections = ("".join(lines).encode(), b"".join(terms))
    content = (*sections, *found.values())
    crc = 0
    for part in content:
        crc = zlib.crc32(part, crc)
    head = "\t".join([_MAGIC, str(crc), *(str(len(section)) for section in sections), str(offset)])
    _replace(path, (head.encode(), b"\n", *content))


def _can_hold(path: str) -> bool:
    return "\n" not in path and path.isprintable()


def _replace(path: Path, content: Iterable[bytes | array[int]]) -> None:
    make_private_dir(path.parent)
    draft = draft_of(path, str(os.getpid()))
    try:
        with os.fdopen(open_private(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW), "wb") as out:
            out.writelines(content)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise

"""The search index of skills and their references: SQLite FTS5 in a file of the user's own, shared by processes.

It keeps the words of a text, not the text: passages are read from their files. Skills are kept as weighted words, from
which the digest is written; passages as chunks in FTS5. A changed file is added again under a new number, and its old
rows are ignored until a rebuild removes them. A damaged index is rebuilt.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.errors import CodexError
from codex_py.paths import lock, make_private_dir, open_private
from codex_py.skills.chunks import Heading, TextChunk, cut_chunks, headings_of
from codex_py.skills.digest import DIGEST_FILE, is_digest_of, write_digest
from codex_py.skills.documents import find_files, read_text
from codex_py.skills.model import Skill
from codex_py.skills.stems import BREAK, StemTable, count_stems
from codex_py.skills.term_weights import SkillTerms, described_by, described_crc, weigh
from codex_py.skills.words import Words

INDEX_FILE: Final = "search.sqlite"
_FORMAT: Final = 9
# No passage of a text that somebody wrote to be read has this few words of its own.
_MIN_REPEATED: Final = 20
_MIN_REPEATS: Final = 6
_MAX_HEADING_CHARS: Final = 4000
_MAX_FILE_CHARS: Final = 4000
# What FTS5 gathers in memory before it writes.
_HASH_BYTES: Final = 6 * 1024 * 1024
# How many parts it writes before it merges them: fewer cost more when the index is filled.
_MAX_SEGMENTS: Final = 16
_MAX_DEAD: Final = 20_000
_MAX_BYTES: Final = 1024 * 1024 * 1024
_BATCH_SECONDS: Final = 0.3
_BUSY_SECONDS: Final = 0.25
_POLL_SECONDS: Final = 0.02

# FTS5 needs the places of words to score a text that it does not keep: with `detail=column` every score is 0.
_SCHEMA: Final = f"""
CREATE TABLE skill(
    id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT UNIQUE, stamp TEXT, crc INTEGER, terms TEXT, weights BLOB,
    has_references INTEGER
);
CREATE TABLE chunk(id INTEGER PRIMARY KEY, skill INTEGER, file TEXT, start INTEGER, "end" INTEGER);
CREATE TABLE state(dead INTEGER, has_digest INTEGER);
INSERT INTO state VALUES(0, 0);
CREATE VIRTUAL TABLE chunk_text
    USING fts5(heading, text, content='', tokenize='ascii');
CREATE INDEX chunk_skill ON chunk(skill);
INSERT INTO chunk_text(chunk_text, rank) VALUES('hashsize', {_HASH_BYTES});
INSERT INTO chunk_text(chunk_text, rank) VALUES('automerge', {_MAX_SEGMENTS});
PRAGMA user_version = {_FORMAT};
"""


class ChunkScore(NamedTuple):
    """How well a chunk fits: BM25. `file` is absolute."""

    skill: int
    file: str
    start: int
    end: int
    score: float


class IndexUnavailable(CodexError):
    """This Python has no FTS5, or the file cannot be used."""


class SkillSearchIndex:
    """One connection to the index; not shared between threads."""

    def __init__(self, path: Path) -> None:
        """Open the index, or make an empty one. Raises `IndexUnavailable`."""
        self._path = path
        self._stems = StemTable(Words().stop_words(()))
        self._has_digest = False
        self._last_chunk = 0
        try:
            try:
                self._database = self._open()
            except (sqlite3.Error, OSError) as error:
                if _is_in_use(error):
                    raise
                self._remove()
                self._database = self._open()
        except (sqlite3.Error, OSError) as error:
            raise IndexUnavailable(str(error)) from error

    def close(self) -> None:
        """Close the connection."""
        self._database.close()

    def __enter__(self) -> SkillSearchIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def numbers_of(self, paths: Iterable[str]) -> dict[int, str]:
        """The skills at these paths by their numbers, of those that are indexed."""
        wanted = frozenset(paths)
        return {number: path for number, path in self._rows("SELECT id, path FROM skill") if path in wanted}

    def chunks_for(self, terms: Sequence[str], limit: int, *, skills: Collection[int]) -> list[ChunkScore]:
        """The chunks of some skills that have one of the terms, the best first: at most `limit`, mostly that many."""
        if not terms:
            return []
        best = self._best_chunks(terms, limit, "")
        found = [chunk for chunk in best if chunk.skill in skills]
        if len(best) < limit or len(found) > limit // 2:
            return found
        # To ask for each chunk whose it is costs half as much again.
        among = f" AND (SELECT skill FROM chunk WHERE id = chunk_text.rowid) IN ({_listed(skills)})"
        return self._best_chunks(terms, limit, among)

    def _best_chunks(self, terms: Sequence[str], limit: int, condition: str) -> list[ChunkScore]:
        """The best chunks, with those that are no longer there, whose skill is 0."""
        rows = self._rows(
            'SELECT coalesce(c.skill, 0), c.file, c.start, c."end", f.score FROM'
            " (SELECT rowid AS number, -bm25(chunk_text, 2.0, 1.0) AS score FROM chunk_text"
            f" WHERE chunk_text MATCH ?{condition} ORDER BY score DESC LIMIT ?) f"
            " LEFT JOIN chunk c ON c.id = f.number ORDER BY f.score DESC, c.file, c.start",
            (_match(terms), limit),
        )
        return [ChunkScore(*row) for row in rows]

    def count_chunks(self, skills: Iterable[int]) -> int:
        """How many chunks some skills have."""
        return self._rows(f"SELECT count(*) FROM chunk WHERE skill IN ({_listed(skills)})")[0][0]

    def by_rarity(self, terms: Sequence[str]) -> list[tuple[str, int]]:
        """The terms and how many chunks have each, the rarest first."""
        found = "SELECT count(*) FROM chunk_text WHERE chunk_text MATCH ?"
        counts = [(self._rows(found, (f'"{term}"',))[0][0], term) for term in terms]
        return [(term, count) for count, term in sorted(counts)]

    def update(
        self,
        skills: Sequence[Skill],
        *,
        may_read: Callable[[Path], bool] = bool,
        should_stop: Callable[[], bool] = bool,
        wait: float = 0.0,
    ) -> bool:
        """Add what is new or changed of these skills, in short transactions; False when it was stopped before the end.

        The digest comes first, because suggestions are made from it. While another process does the same,
        this one waits up to `wait` seconds, and then leaves the work to it. Raises `IndexUnavailable`.
        """
        try:
            descriptor = open_private(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise IndexUnavailable(str(error)) from error
        try:
            until = time.monotonic() + wait
            while not (is_ours := lock(descriptor)) and time.monotonic() < until:
                time.sleep(_POLL_SECONDS)
            return is_ours and self._update(skills, may_read, should_stop)
        finally:
            os.close(descriptor)

    def _update(
        self, skills: Sequence[Skill], may_read: Callable[[Path], bool], should_stop: Callable[[], bool]
    ) -> bool:
        run = self._database.execute
        with self._errors():
            self._drop_waste()
            self._drop_gone({str(skill.canonical_path) for skill in skills})
            # While the lock is held nobody else changes these.
            self._has_digest = bool(run("SELECT has_digest FROM state").fetchone()[0])
            self._last_chunk = run("SELECT max(rowid) FROM chunk_text").fetchone()[0] or 0
            known = {path: (stamp, crc) for path, stamp, crc in run("SELECT path, stamp, crc FROM skill")}
            is_whole = self._add_all(skills, should_stop, lambda skill: self._add(skill, known, may_read))
            # Beside the words of the digest these would be most of the memory.
            self._stems.clear()
            digest = self._path.with_name(DIGEST_FILE)
            if not self._has_digest or not is_digest_of(digest, _described(run("SELECT path, crc, stamp FROM skill"))):
                rows = _described(run("SELECT path, crc, stamp, terms, weights FROM skill ORDER BY path"))
                write_digest(digest, (SkillTerms(*row) for row in rows))
                run("UPDATE state SET has_digest = 1")
                self._has_digest = True
            if not is_whole:
                return False
            lacking = {path: number for number, path in run("SELECT id, path FROM skill WHERE NOT has_references")}
            rest = [skill for skill in skills if str(skill.canonical_path) in lacking]

            def add_references(skill: Skill) -> None:
                self._add_references(skill, lacking[str(skill.canonical_path)], may_read)

            return self._add_all(rest, should_stop, add_references)

    def _add_all(self, skills: Sequence[Skill], should_stop: Callable[[], bool], add: Callable[[Skill], None]) -> bool:
        """Add skill by skill, in short transactions; False when it was stopped."""
        run = self._database.execute
        began = time.monotonic()
        run("BEGIN IMMEDIATE")
        for skill in skills:
            if should_stop():
                run("COMMIT")
                return False
            add(skill)
            if time.monotonic() - began > _BATCH_SECONDS:
                run("COMMIT")
                run("BEGIN IMMEDIATE")
                began = time.monotonic()
        run("COMMIT")
        return True

    def _add(self, skill: Skill, known: dict[str, tuple[str, int]], may_read: Callable[[Path], bool]) -> None:
        files, path, crc = find_files(skill, may_read), str(skill.canonical_path), described_crc(skill)
        if known.get(path) == (files.stamp, crc):
            return
        if path in known:
            self._drop(path)
        body = read_text(skill, path)
        headings = headings_of(body)
        chunks, words = self._stems_of_chunks(skill.name, body, headings)
        count = self._stems.count
        described = {name: count(text) for name, text in described_by(skill).items()}
        # They stand in the front matter too, and would count twice.
        own = count_stems(words)
        for counts in described.values():
            own -= counts
        terms = weigh(
            {
                **described,
                "headings": count(" ".join([heading.title for heading in headings])[:_MAX_HEADING_CHARS]),
                "files": count(" ".join((*files.references, *files.others))[:_MAX_FILE_CHARS]),
                "body": own,
            }
        )
        number = self._database.execute(
            "INSERT INTO skill(path, stamp, crc, terms, weights, has_references) VALUES(?,?,?,?,?,?)",
            (path, files.stamp, crc, " ".join(terms), bytes(terms.values()), not files.references),
        ).lastrowid
        self._add_chunks(number or 0, path, chunks)
        if self._has_digest:
            self._database.execute("UPDATE state SET has_digest = 0")
            self._has_digest = False

    def _add_references(self, skill: Skill, number: int, may_read: Callable[[Path], bool]) -> None:
        for name in find_files(skill, may_read).references:
            file = f"{skill.directory}/{name}"
            text = read_text(skill, file)
            self._add_chunks(number, file, self._stems_of_chunks(name, text, headings_of(text))[0])
        self._database.execute("UPDATE skill SET has_references = 1 WHERE id = ?", (number,))

    def _stems_of_chunks(self, title: str, text: str, headings: Sequence[Heading]) -> tuple[list[TextChunk], list[str]]:
        """The chunks of a text, with stems in the place of their words; and what its words were looked up as."""
        chunks = [*cut_chunks(text, headings)]
        above = self._stems.look_up([f"{title} {chunk.heading}" for chunk in chunks])
        words = self._stems.look_up([chunk.text for chunk in chunks])
        stems = zip(chunks, " ".join(above).split(BREAK), " ".join(words).split(BREAK), strict=False)
        found = (TextChunk(chunk.start, chunk.end, *both) for chunk, *both in stems)
        return [chunk for chunk in found if not _repeats_itself(chunk.text)], words

    def _add_chunks(self, skill: int, file: str, chunks: Sequence[TextChunk]) -> None:
        run = self._database
        rows = [*enumerate(chunks, self._last_chunk + 1)]
        self._last_chunk += len(rows)
        run.executemany(
            "INSERT INTO chunk_text(rowid, heading, text) VALUES(?,?,?)",
            [(number, chunk.heading, chunk.text) for number, chunk in rows],
        )
        run.executemany(
            "INSERT INTO chunk VALUES(?,?,?,?,?)",
            [(number, skill, file, chunk.start, chunk.end) for number, chunk in rows],
        )

    def _drop(self, path: str) -> None:
        run = self._database.execute
        if old := run("SELECT id FROM skill WHERE path = ?", (path,)).fetchone():
            gone = run("DELETE FROM chunk WHERE skill = ?", old).rowcount
            run("DELETE FROM skill WHERE id = ?", old)
            run("UPDATE state SET dead = dead + ?, has_digest = 0", (gone + 1,))

    def _drop_gone(self, present: set[str]) -> None:
        """Forget skills whose files are no longer there; those of other projects stay."""
        gone = [
            path
            for (path,) in self._database.execute("SELECT path FROM skill").fetchall()
            if path not in present and not os.path.exists(path)  # noqa: PTH110 - thousands of these
        ]
        if gone:
            self._database.execute("BEGIN IMMEDIATE")
            for path in gone:
                self._drop(path)
            self._database.execute("COMMIT")

    @contextmanager
    def _errors(self) -> Generator[None]:
        """Errors of SQLite as `IndexUnavailable`; a damaged file is removed."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            with suppress(sqlite3.Error):
                self._database.rollback()
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                self._remove()
            raise IndexUnavailable(str(error)) from error

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        with self._errors():
            return self._database.execute(statement, values).fetchall()

    def _drop_waste(self) -> None:
        """Begin again when too much of the index is no longer looked at, or it has grown too large."""
        dead = self._database.execute("SELECT dead FROM state").fetchone()[0]
        if dead > _MAX_DEAD or self._path.stat().st_size > _MAX_BYTES:
            self._database.executescript(
                f"BEGIN; DROP TABLE chunk_text; DROP TABLE state; DROP TABLE skill; DROP TABLE chunk; {_SCHEMA} COMMIT;"
            )

    def _open(self) -> sqlite3.Connection:
        make_private_dir(self._path.parent)
        # SQLite gives the files beside it the mode of this one.
        os.close(open_private(self._path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW))
        database = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = OFF")
            version = database.execute("PRAGMA user_version").fetchone()[0]
            if version != _FORMAT:
                if version or database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    raise sqlite3.DatabaseError("another version")
                database.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
            database.execute("SELECT count(*) FROM (SELECT 1 FROM skill LIMIT 1)").fetchone()
        except BaseException:
            database.close()
            raise
        return database

    def _remove(self) -> None:
        for suffix in ("", "-wal", "-shm"):
            with suppress(OSError):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _is_in_use(error: Exception) -> bool:
    """Whether another process holds the index, which is no damage."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def _repeats_itself(stems: str) -> bool:
    """Whether a text is the same few words over and over, which would make it the best passage for each of them."""
    most = stems.count(" ") + 1
    # Nearly always the first words are enough to tell; words without meaning have left a space more.
    if most < _MIN_REPEATED or len(set(stems[: 2 * most].split())) * _MIN_REPEATS >= most:
        return False
    words = stems.split()
    return len(words) >= _MIN_REPEATED and len(set(words)) * _MIN_REPEATS < len(words)


def _described(rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
    """Rows of skills that begin with path, checksum and stamp, with the stamp of the `SKILL.md` alone."""
    return ((path, crc, stamp.partition("\n")[0], *rest) for path, crc, stamp, *rest in rows)


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(str(int(number)) for number in numbers)


def _match(terms: Sequence[str]) -> str:
    """Terms have letters and digits only, so that nothing in them can change the query."""
    return " OR ".join(f'"{term}"' for term in terms)

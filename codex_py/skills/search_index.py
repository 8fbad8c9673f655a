"""The search index of skills and their references: SQLite FTS5 in one file of a `CODEX_HOME`, shared by processes.

A file that is locked, damaged or cannot be written is replaced by the same index in memory. The tables keep words and
not texts: passages are read from their files. FTS5 cannot delete rows of such tables, so the rows of changed skills are
ignored, and the file is begun again when they outnumber the others.
"""

from __future__ import annotations

import math
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, Final, NamedTuple, TypeVar

from codex_py.errors import CodexError
from codex_py.paths import make_private_dir, open_private
from codex_py.skills.model import Skill
from codex_py.skills.references import file_stamp, find_references, read_text
from codex_py.skills.search_text import query_terms, sections_of, with_pairs, without_front_matter
from codex_py.text.sanitize import sanitize

INDEX_FILE: Final = "skills.sqlite"
# Those of earlier versions.
_OLD_FILES: Final = ("search.sqlite", "search.sqlite-wal", "search.sqlite-shm", "search.lock", "search.digest")
_FORMAT: Final = 1
# How long another process is waited for that locks the file and gets nothing done.
_BUSY_SECONDS: Final = 5.0
# So many skills are indexed in one transaction.
_BATCH: Final = 256
_MAX_DEAD: Final = 5000
_MAX_RANKED: Final = 100
_MAX_SECTIONS: Final = 400
_MAX_TEXT: Final = 2000

# What a word is worth in the name, the description, the headings and the body.
_WEIGHTS: Final = "4.0, 4.0, 1.0, 0.5"

_FTS5: Final = "USING fts5(name, description, headings, body, content='', tokenize='porter unicode61')"
_SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS skill(id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT UNIQUE, stamp TEXT);
CREATE TABLE IF NOT EXISTS section(
    id INTEGER PRIMARY KEY AUTOINCREMENT, skill INTEGER, file TEXT, start INTEGER, "end" INTEGER
);
CREATE INDEX IF NOT EXISTS section_of_skill ON section(skill);
CREATE VIRTUAL TABLE IF NOT EXISTS document {_FTS5};
CREATE VIRTUAL TABLE IF NOT EXISTS passage {_FTS5};
PRAGMA user_version = {_FORMAT};
COMMIT;
"""
_DEAD: Final = "SELECT coalesce(max(id), 0) - count(*), count(*) FROM section"

_T = TypeVar("_T")


class FoundSkill(NamedTuple):
    """A skill that fits a query, and its best passage: lines of a file, counted from 1."""

    skill: Skill
    path: str
    start_line: int
    end_line: int
    score: float

    def text(self) -> str:
        """The lines as they are now, at most 2,000 characters."""
        lines = read_text(self.skill, self.path).split("\n")[self.start_line - 1 : self.end_line]
        return sanitize("\n".join(lines))[:_MAX_TEXT]


class SearchUnavailable(CodexError):
    """This Python has no FTS5."""


class SearchIndex:
    """The index in a directory. It may be used in several threads, one after another."""

    def __init__(self, directory: Path, may_read: Callable[[Path], bool] = bool) -> None:
        self._file = directory / INDEX_FILE
        self._may_read = may_read
        self._lock = Lock()
        self._database: sqlite3.Connection | None = None
        self._in_memory = False
        self._indexed: Sequence[Skill] | None = None

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            self._close()

    def rank(
        self, skills: Sequence[Skill], text: str, *, uses: Mapping[str, int], is_new: bool = True
    ) -> list[FoundSkill]:
        """The skills that fit a text, the best first; `uses` are counts by path.

        Nothing if they share only words without meaning with the text. What has changed on disk is indexed before,
        unless it `is_new` no more and the skills are those of the last call. Raises `SearchUnavailable`.
        """

        def work(database: sqlite3.Connection) -> list[FoundSkill]:
            if is_new or self._indexed != skills:
                _update(database, skills, self._may_read)
                self._indexed = skills
            return _rank(database, skills, query_terms(text), uses)

        return self._run(work)

    def passages(self, skill: Skill, text: str, limit: int) -> list[FoundSkill]:
        """The passages of one skill that fit a text, the best first. Raises `SearchUnavailable`."""

        def work(database: sqlite3.Connection) -> list[FoundSkill]:
            _update(database, [skill], self._may_read)
            return _passages(database, skill, query_terms(text), limit)

        return self._run(work)

    def _run(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        with self._lock:
            if not self._in_memory:
                try:
                    return work(self._open())
                except (sqlite3.Error, OSError) as error:
                    self._close()
                    # Locks, permissions and disks are `OperationalError`; of any other the content is at fault.
                    if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                        _remove(self._file)
                    self._in_memory = True
            try:
                return work(self._open())
            except sqlite3.Error as error:
                raise SearchUnavailable(f"skills cannot be searched: {error}") from error

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = _connect(":memory:") if self._in_memory else _open_file(self._file)
        return self._database

    def _close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = self._indexed = None


def _open_file(file: Path) -> sqlite3.Connection:
    """The index in a file, which is begun again when it is of another version or mostly unused."""
    make_private_dir(file.parent)
    # In a home that is read-only a file that is there is read all the same.
    with suppress(OSError):
        for name in _OLD_FILES:
            file.with_name(name).unlink(missing_ok=True)
        # SQLite gives its journal the mode of this file.
        os.close(open_private(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW))
    database = _connect(str(file))
    dead, left = database.execute(_DEAD).fetchone()
    if dead > left + _MAX_DEAD:
        database.close()
        _remove(file)
        os.close(open_private(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW))
        database = _connect(str(file))
    return database


def _connect(name: str) -> sqlite3.Connection:
    database = sqlite3.connect(name, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        # An index that a loss of power damages is built again.
        database.execute("PRAGMA synchronous = OFF")
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, _FORMAT):
            raise sqlite3.DatabaseError("another version")
        if version == 0:
            database.executescript(_SCHEMA)
    except BaseException:
        database.close()
        raise
    return database


def _remove(file: Path) -> None:
    for suffix in ("-journal", ""):
        with suppress(OSError):
            file.with_name(file.name + suffix).unlink(missing_ok=True)


class _Row(NamedTuple):
    """A skill to be indexed. `stamp` changes when one of its files does; `references` are their paths."""

    skill: Skill
    stamp: str
    references: tuple[str, ...]


def _row(skill: Skill, may_read: Callable[[Path], bool]) -> _Row:
    references = find_references(skill, may_read)
    files = [f"{reference.name} {reference.stamp}" for reference in references]
    stamp = "\n".join([f"{skill.name}: {skill.description}", file_stamp(str(skill.canonical_path)), *files])
    return _Row(skill, stamp, tuple(f"{skill.directory}/{reference.name}" for reference in references))


def _update(database: sqlite3.Connection, skills: Sequence[Skill], may_read: Callable[[Path], bool]) -> None:
    """Renew the rows of skills whose files have another name, size or time than when they were indexed.

    Each transaction is short, so that processes that do the same at once share the work. A lock is waited for as long
    as the others get on with it.
    """
    rows = {str(skill.canonical_path): _row(skill, may_read) for skill in skills}
    for path in _changes(database, rows)[0]:
        if not may_read(rows[path].skill.canonical_path):
            del rows[path]
    while any(changes := _changes(database, rows)):
        try:
            database.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            if _changes(database, rows) == changes:
                raise
            continue
        try:
            stale, gone = _changes(database, rows)
            for path in (*stale[:_BATCH], *gone):
                database.execute("DELETE FROM section WHERE skill = (SELECT id FROM skill WHERE path = ?)", (path,))
                database.execute("DELETE FROM skill WHERE path = ?", (path,))
            for path in stale[:_BATCH]:
                _add(database, rows[path])
            database.execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            raise


def _changes(database: sqlite3.Connection, rows: Mapping[str, _Row]) -> tuple[list[str], list[str]]:
    """The paths of skills to be indexed, and of those whose file is no longer there; other projects' stay."""
    known = dict(database.execute("SELECT path, stamp FROM skill"))
    stale = [path for path, row in rows.items() if known.get(path) != row.stamp]
    return stale, [path for path in known if path not in rows and not os.path.exists(path)]  # noqa: PTH110


def _add(database: sqlite3.Connection, row: _Row) -> None:
    skill = row.skill
    path = str(skill.canonical_path)
    number = database.execute("INSERT INTO skill(path, stamp) VALUES(?, ?)", (path, row.stamp)).lastrowid
    described = with_pairs(skill.name), with_pairs(skill.description)
    body = with_pairs(without_front_matter(read_text(skill, path)))
    sections = list(sections_of(body))
    _insert(database, "document", number, (*described, " ".join(section.headings for section in sections), body))
    for file, parts in ((path, sections), *((file, None) for file in row.references)):
        for part in sections_of(with_pairs(read_text(skill, file))) if parts is None else parts:
            at = database.execute(
                'INSERT INTO section(skill, file, start, "end") VALUES(?, ?, ?, ?)',
                (number, file, part.start, part.end),
            ).lastrowid
            _insert(database, "passage", at, (*described, part.headings, part.text))


def _insert(database: sqlite3.Connection, table: str, number: int | None, texts: tuple[str, str, str, str]) -> None:
    statement = f"INSERT INTO {table}(rowid, name, description, headings, body) VALUES(?, ?, ?, ?, ?)"
    database.execute(statement, (number, *texts))


def _rank(
    database: sqlite3.Connection, skills: Sequence[Skill], terms: Sequence[str], uses: Mapping[str, int]
) -> list[FoundSkill]:
    """Both lists of matches joined: a skill's score is the sum of 1 / (10 + rank), with more for its uses."""
    if not terms:
        return []
    query = _any_of(terms)
    by_path = {str(skill.canonical_path): skill for skill in skills}
    known = database.execute("SELECT id, path FROM skill")
    numbers = {number: by_path[path] for number, path in known if path in by_path}
    scores: dict[int, float] = {}
    documents = database.execute(
        f"SELECT rowid FROM document WHERE document MATCH ? ORDER BY bm25(document, {_WEIGHTS})", (query,)
    )
    _add_ranks(scores, (number for (number,) in documents if number in numbers))
    best: dict[int, tuple[Any, ...]] = {}
    for number, *lines in _matches(database, query, "", ()):
        if number in numbers:
            best.setdefault(number, tuple(lines))
    _add_ranks(scores, best)
    found = [
        FoundSkill(skill, file, start, end, round(score * _worth(uses.get(str(skill.canonical_path), 0)), 4))
        for number, score in scores.items()
        for skill in (numbers[number],)
        for file, start, end in (best.get(number, (str(skill.canonical_path), 1, 1)),)
    ]
    return sorted(found, key=lambda entry: (-entry.score, entry.skill.name, entry.path))


def _add_ranks(scores: dict[int, float], numbers: Iterable[int]) -> None:
    for rank, number in zip(range(1, _MAX_RANKED + 1), numbers, strict=False):
        scores[number] = scores.get(number, 0.0) + 1 / (10 + rank)


def _worth(uses: int) -> float:
    """More for a skill that was used: steps that grow, so that one use more rarely changes the order."""
    return 1 + 0.1 * int(math.log2(1 + min(uses, 100)))


def _passages(database: sqlite3.Connection, skill: Skill, terms: Sequence[str], limit: int) -> list[FoundSkill]:
    if not terms:
        return []
    query = f"{{headings body}} : ({_any_of(terms)})"
    path = str(skill.canonical_path)
    own = "AND rowid IN (SELECT id FROM section WHERE skill = (SELECT id FROM skill WHERE path = ?))"
    return [
        FoundSkill(skill, file, start, end, round(1 / (10 + rank), 4))
        for rank, (_, file, start, end) in enumerate(_matches(database, query, own, (path,))[:limit], 1)
    ]


def _matches(database: sqlite3.Connection, query: str, condition: str, values: Sequence[str]) -> list[tuple[Any, ...]]:
    """The best passages: skill, file, first and last line."""
    return database.execute(
        'SELECT s.skill, s.file, s.start, s."end" FROM'
        f" (SELECT rowid AS number, bm25(passage, {_WEIGHTS}) AS score FROM passage WHERE passage MATCH ? {condition}"
        f" ORDER BY score LIMIT {_MAX_SECTIONS}) JOIN section s ON s.id = number ORDER BY score",
        (query, *values),
    ).fetchall()


def _any_of(terms: Sequence[str]) -> str:
    """The query for any of some words of letters and digits, quoted so that nothing is an operator."""
    return " OR ".join(f'"{term}"' for term in terms)

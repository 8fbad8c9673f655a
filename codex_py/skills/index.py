"""The search index of skills and their references: SQLite FTS5 in a file of the user's own, shared by processes.

It keeps the words of a text, not the text: passages are read from their files. What changed is added again under a new
number and the old rows are no longer looked at, until a rebuild clears them away. A damaged file is built anew.
"""

from __future__ import annotations

import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.errors import CodexError
from codex_py.paths import lock, make_private_dir, open_private
from codex_py.skills.analysis import TextChunk, cut_chunks, headings_of, prepare
from codex_py.skills.documents import SkillFiles, find_files, read_text
from codex_py.skills.model import Skill

INDEX_FILE: Final = "search.sqlite"
# The fields of a skill, in the order of the columns.
FIELDS: Final = ("name", "description", "short_description", "headings", "files", "body")
# What a skill says of itself.
NAMED_FIELDS: Final = ("name", "description", "short_description")
_FORMAT: Final = 1
_MAX_HEADING_CHARS: Final = 4000
_MAX_FILE_CHARS: Final = 4000
# What FTS5 gathers in memory before it writes.
_HASH_BYTES: Final = 6 * 1024 * 1024
_MAX_DEAD: Final = 20_000
_MAX_BYTES: Final = 1024 * 1024 * 1024
_BATCH_SECONDS: Final = 0.3
_BUSY_SECONDS: Final = 0.25
_POLL_SECONDS: Final = 0.02

_SCHEMA: Final = f"""
CREATE TABLE skill(
    id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT UNIQUE, stamp TEXT, described TEXT, has_references INTEGER
);
CREATE TABLE chunk(id INTEGER PRIMARY KEY, skill INTEGER, file TEXT, start INTEGER, "end" INTEGER);
CREATE TABLE dead(chunks INTEGER);
INSERT INTO dead VALUES(0);
CREATE VIRTUAL TABLE skill_text USING fts5({",".join(FIELDS)}, content='', tokenize='porter unicode61');
CREATE VIRTUAL TABLE chunk_text USING fts5(heading, text, content='', tokenize='porter unicode61');
CREATE INDEX chunk_skill ON chunk(skill);
INSERT INTO skill_text(skill_text, rank) VALUES('hashsize', {_HASH_BYTES});
INSERT INTO chunk_text(chunk_text, rank) VALUES('hashsize', {_HASH_BYTES});
PRAGMA user_version = {_FORMAT};
"""


class SkillScore(NamedTuple):
    """How well a skill fits: BM25 over all weighted fields, and over what the skill says of itself alone."""

    id: int
    score: float
    named: float


class ChunkScore(NamedTuple):
    """How well a chunk fits: BM25. `file` is absolute."""

    skill: int
    file: str
    start: int
    end: int
    score: float


class IndexUnavailable(CodexError):
    """This Python has no FTS5, or the file cannot be used."""


def has_fts5() -> bool:
    """Whether this build of SQLite can index text."""
    with closing(sqlite3.connect(":memory:")) as database:
        try:
            database.execute("CREATE VIRTUAL TABLE t USING fts5(a)")
        except sqlite3.OperationalError:
            return False
    return True


class SkillSearchIndex:
    """One connection to the index; not shared between threads. `path` None keeps it in memory."""

    def __init__(self, path: Path | None) -> None:
        """Open the index, or make an empty one. Raises `IndexUnavailable`."""
        self._path = path
        self._visible: frozenset[str] | None = None
        self._has_others = True
        try:
            self._database = self._open()
        except (sqlite3.Error, OSError):
            self._remove()
            try:
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

    def show(self, paths: Iterable[str]) -> dict[int, str]:
        """Only these skills are found from now on; their paths by their numbers, of those that are indexed."""
        wanted = frozenset(paths)
        run = self._rows
        if wanted != self._visible:
            run("CREATE TEMP TABLE IF NOT EXISTS visible(id INTEGER PRIMARY KEY)")
            run("DELETE FROM visible")
            self._visible = wanted
        rows = [(number, path) for number, path in run("SELECT id, path FROM skill") if path in wanted]
        run("INSERT OR IGNORE INTO visible SELECT value FROM json_each(?)", (json.dumps([row[0] for row in rows]),))
        self._has_others = len(rows) < run("SELECT count(*) FROM skill")[0][0]
        return dict(rows)

    def skills_for(self, terms: Sequence[str], weights: Mapping[str, float], limit: int) -> list[SkillScore]:
        """The visible skills whose fields have one of the terms, the best by the weighted fields first."""
        if not terms:
            return []
        every = ",".join(str(weights[field]) for field in FIELDS)
        named = ",".join(str(weights[field] if field in NAMED_FIELDS else 0.0) for field in FIELDS)
        rows = self._rows(
            f"SELECT rowid, -bm25(skill_text,{every}) AS score, -bm25(skill_text,{named}) FROM skill_text"
            " WHERE skill_text MATCH ? AND +rowid IN (SELECT id FROM visible) ORDER BY score DESC, rowid LIMIT ?",
            (_match(terms), limit),
        )
        return [SkillScore(*row) for row in rows]

    def chunks_for(self, terms: Sequence[str], limit: int, *, skill: int | None = None) -> list[ChunkScore]:
        """The visible chunks that have one of the terms, the best first; with `skill` those of one skill alone."""
        if not terms:
            return []
        among = (
            f" AND (SELECT skill FROM chunk WHERE id = chunk_text.rowid) = {int(skill)}" if skill is not None else ""
        )
        if skill is None and self._has_others:
            among = " AND (SELECT skill FROM chunk WHERE id = chunk_text.rowid) IN (SELECT id FROM visible)"
        rows = self._rows(
            'SELECT c.skill, c.file, c.start, c."end", f.score FROM'
            " (SELECT rowid AS number, -bm25(chunk_text, 2.0, 1.0) AS score FROM chunk_text"
            f" WHERE chunk_text MATCH ?{among} ORDER BY score DESC LIMIT ?) f"
            " CROSS JOIN chunk c ON c.id = f.number ORDER BY f.score DESC, c.file, c.start",
            (_match(terms), limit),
        )
        return [ChunkScore(*row) for row in rows]

    def by_rarity(self, terms: Sequence[str]) -> list[tuple[str, int]]:
        """The terms and how many chunks have each, the rarest first."""
        found = "SELECT count(*) FROM chunk_text WHERE chunk_text MATCH ?"
        counts = [(self._rows(found, (f'"{term}"',))[0][0], term) for term in terms]
        return [(term, count) for count, term in sorted(counts)]

    def named_words(self, numbers: Sequence[int], terms: Sequence[str]) -> dict[int, tuple[str, ...]]:
        """Those of some terms that the name or the descriptions of each of some skills have."""
        words: dict[int, tuple[str, ...]] = {}
        among = ",".join(str(int(number)) for number in numbers)
        found = f"SELECT rowid FROM skill_text WHERE skill_text MATCH ? AND rowid IN ({among})"
        named = " ".join(NAMED_FIELDS)
        for term in terms if numbers else ():
            for (number,) in self._rows(found, (f'{{{named}}} : "{term}"',)):
                words[number] = (*words.get(number, ()), term)
        return words

    def add_described(self, skills: Iterable[Skill]) -> None:
        """Add skills by what the catalogue knows of them, without looking at their files."""
        self._database.execute("BEGIN")
        for skill in skills:
            self._add(skill, "", SkillFiles("", (), ()), read=lambda _: "")
        self._database.execute("COMMIT")

    def update(
        self,
        skills: Sequence[Skill],
        *,
        may_read: Callable[[Path], bool] = bool,
        should_stop: Callable[[], bool] = bool,
        wait: float = 0.0,
    ) -> bool:
        """Add what is new or changed of these skills, in short transactions; False when it was stopped before the end.

        Another one that does the same at the moment is waited for so many seconds, and left to it. Raises
        `IndexUnavailable`.
        """
        if self._path is None:
            return self._update(skills, may_read, should_stop)
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
        try:
            self._drop_waste()
            known = {
                path: (stamp, described)
                for path, stamp, described in self._database.execute("SELECT path, stamp, described FROM skill")
            }
            began = time.monotonic()
            self._database.execute("BEGIN IMMEDIATE")
            for skill in skills:
                if should_stop():
                    self._database.execute("COMMIT")
                    return False
                files = find_files(skill, may_read)
                path = str(skill.canonical_path)
                if known.get(path) != (files.stamp, _described(skill)):
                    self._add(skill, files.stamp, files, read=lambda file, skill=skill: read_text(skill, file))
                if time.monotonic() - began > _BATCH_SECONDS:
                    self._database.execute("COMMIT")
                    self._database.execute("BEGIN IMMEDIATE")
                    began = time.monotonic()
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            with suppress(sqlite3.Error):
                self._database.rollback()
            if not isinstance(error, sqlite3.OperationalError):
                self._remove()
            raise IndexUnavailable(str(error)) from error
        return True

    def _add(self, skill: Skill, stamp: str, files: SkillFiles, *, read: Callable[[str], str]) -> None:
        run = self._database.execute
        path = str(skill.canonical_path)
        if old := run("SELECT id FROM skill WHERE path = ?", (path,)).fetchone():
            gone = run("DELETE FROM chunk WHERE skill = ?", old).rowcount
            run("DELETE FROM skill WHERE id = ?", old)
            run("UPDATE dead SET chunks = chunks + ?", (gone + 1,))
        body = prepare(read(path))
        headings = headings_of(body)
        row = (path, stamp, _described(skill), bool(files.references))
        number = run("INSERT INTO skill(path, stamp, described, has_references) VALUES(?,?,?,?)", row).lastrowid
        assert number is not None
        fields = (
            skill.name,
            skill.description,
            skill.short_description or (skill.interface and skill.interface.short_description) or "",
            " ".join([heading.title for heading in headings])[:_MAX_HEADING_CHARS],
            " ".join((*files.references, *files.others))[:_MAX_FILE_CHARS],
        )
        marks = ",".join("?" * (len(FIELDS) + 1))
        run(
            f"INSERT INTO skill_text(rowid,{','.join(FIELDS)}) VALUES({marks})",
            (number, *map(prepare, fields), body),
        )
        self._add_chunks(number, path, cut_chunks(body, headings), skill.name)
        for name in files.references:
            file = f"{skill.directory}/{name}"
            text = prepare(read(file))
            self._add_chunks(number, file, cut_chunks(text, headings_of(text)), name)

    def _add_chunks(self, number: int, file: str, chunks: Iterable[TextChunk], title: str) -> None:
        run = self._database.execute
        for chunk in chunks:
            rowid = run(
                "INSERT INTO chunk_text(heading, text) VALUES(?,?)",
                (f"{prepare(title)} {chunk.heading}", chunk.text),
            ).lastrowid
            run("INSERT INTO chunk VALUES(?,?,?,?,?)", (rowid, number, file, chunk.start, chunk.end))

    def _rows(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """All rows of a query. Raises `IndexUnavailable`, and a damaged file is removed."""
        try:
            return self._database.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            if not isinstance(error, sqlite3.OperationalError):
                self._remove()
            raise IndexUnavailable(str(error)) from error

    def _drop_waste(self) -> None:
        """Begin again when too much of the index is no longer looked at, or it has grown too large."""
        dead = self._database.execute("SELECT chunks FROM dead").fetchone()[0]
        is_large = self._path is not None and self._path.stat().st_size > _MAX_BYTES
        if dead > _MAX_DEAD or is_large:
            self._database.executescript(
                "BEGIN; DROP TABLE skill_text; DROP TABLE chunk_text; DROP TABLE dead;"
                f"DROP TABLE skill; DROP TABLE chunk; {_SCHEMA} COMMIT;"
            )

    def _open(self) -> sqlite3.Connection:
        if self._path is None:
            database = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
            database.executescript(_SCHEMA)
            return database
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
        if self._path is not None:
            for suffix in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)


def _described(skill: Skill) -> str:
    """What the catalogue says of a skill beyond its file: another mind may come from `agents/openai.yaml`."""
    short = skill.interface.short_description if skill.interface else None
    return "\0".join((skill.name, skill.description, skill.short_description or "", short or ""))


def _match(terms: Sequence[str]) -> str:
    """Terms have letters and digits only, so that nothing in them can change the query."""
    return " OR ".join(f'"{term}"' for term in terms)

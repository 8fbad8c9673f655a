"""Finding passages of the files of skills: of one skill in its files, of many in the search index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.skills.chunks import TextChunk, cut_chunks, headings_of, with_neighbours
from codex_py.skills.documents import find_files, read_text
from codex_py.skills.index import ChunkScore, SkillSearchIndex
from codex_py.skills.model import Skill
from codex_py.skills.passage_ranking import count_words, rank_passages
from codex_py.skills.query import search_terms
from codex_py.skills.stems import StemTable
from codex_py.skills.words import Words
from codex_py.text.sanitize import sanitize

# Of common words only so many count as the chunks they are in can be scored in time.
_ROWS: Final = 8_000
_MIN_TERMS: Final = 4
# A skill with more passages is searched in the index alone, as it takes too long to read them all.
_MAX_COUNTED: Final = 1000
# Sections of one skill are ranked by themselves, unless they are smaller than this; then their neighbours are added.
_SMALL_CHARS: Final = 300
_MAX_TEXT: Final = 2000


class FoundPassage(NamedTuple):
    """A passage of a file of a skill, by lines counted from 1; `text` is what they hold now."""

    skill: Skill
    path: Path
    start_line: int
    end_line: int
    score: float
    text: str


class PassageSearch:
    """Searches an open index among some skills."""

    def __init__(self, index: SkillSearchIndex, skills: Sequence[Skill]) -> None:
        self._index = index
        self._skills = {str(skill.canonical_path): skill for skill in skills}
        self._paths = index.numbers_of(self._skills)
        self._words = Words()

    def passages(self, text: str, limit: int, *, may_read: Callable[[Path], bool] = bool) -> list[FoundPassage]:
        """The passages that answer a question, the best first, read from their files now."""
        if len(self._paths) == 1 and self._index.count_chunks(self._paths) <= _MAX_COUNTED:
            (path,) = self._paths.values()
            return self._rank(self._skills[path], text, limit, may_read)
        by_rarity = self._index.by_rarity(search_terms(text, self._words))
        terms = [term for term, _ in by_rarity] if len(self._paths) == 1 else _rarest(by_rarity)
        found: list[FoundPassage] = []
        for chunk in self._index.chunks_for(terms, 4 * limit, skills=self._paths):
            if len(found) < limit and may_read(Path(chunk.file)):
                found += self._read(chunk)
        return found

    def _rank(self, skill: Skill, question: str, limit: int, may_read: Callable[[Path], bool]) -> list[FoundPassage]:
        """The passages of one skill, ranked by the words that its files have now."""
        instructions, stems = str(skill.canonical_path), StemTable()
        files = [f"{skill.directory}/{name}" for name in find_files(skill, may_read).references]
        chunks: dict[str, list[TextChunk]] = {}
        for file in [*([instructions] if may_read(skill.canonical_path) else []), *files]:
            text = read_text(skill, file)
            chunks[file] = [*cut_chunks(text, headings_of(text), _SMALL_CHARS)]
        places = [(file, at) for file, parts in chunks.items() for at in range(len(parts))]
        counted = [
            count_words(chunk.heading, chunk.text, stems, is_instructions=file == instructions)
            for file, parts in chunks.items()
            for chunk in parts
        ]
        found: list[FoundPassage] = []
        taken: dict[str, set[int]] = {file: set() for file in chunks}
        for position, score in rank_passages(question, counted, self._words):
            file, at = places[position]
            if at in taken[file]:
                continue
            window = with_neighbours(chunks[file], at, taken[file])
            taken[file].update(window)
            found.append(_found(skill, file, _joined([chunks[file][number] for number in window]), score))
            if len(found) == limit:
                break
        return found

    def _read(self, chunk: ChunkScore) -> list[FoundPassage]:
        skill = self._skills[self._paths[chunk.skill]]
        text = "\n".join(read_text(skill, chunk.file).split("\n")[chunk.start - 1 : chunk.end])
        if not text.strip():
            return []
        return [_found(skill, chunk.file, TextChunk(chunk.start, chunk.end, "", text), chunk.score)]


def _joined(parts: Sequence[TextChunk]) -> TextChunk:
    return TextChunk(parts[0].start, parts[-1].end, parts[0].heading, "".join([part.text for part in parts]))


def _found(skill: Skill, file: str, chunk: TextChunk, score: float) -> FoundPassage:
    return FoundPassage(skill, Path(file), chunk.start, chunk.end, round(score, 3), sanitize(chunk.text)[:_MAX_TEXT])


def _rarest(by_rarity: Sequence[tuple[str, int]]) -> list[str]:
    """The rarest terms that together have at most `_ROWS` rows, but at least `_MIN_TERMS` of them."""
    terms: list[str] = []
    left = _ROWS
    for term, count in by_rarity:
        left -= count
        if left < 0 and len(terms) >= _MIN_TERMS:
            break
        terms.append(term)
    return terms

"""Finding passages of the files of skills: the words of a question and the search index together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.skills.documents import read_text
from codex_py.skills.index import ChunkScore, SkillSearchIndex
from codex_py.skills.model import Skill
from codex_py.skills.query import search_terms
from codex_py.skills.words import Words
from codex_py.text.sanitize import sanitize

# Of common words only so many count as the chunks they are in can be scored in time.
_ROWS: Final = 20_000
_MIN_TERMS: Final = 4
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
        by_rarity = self._index.by_rarity(search_terms(text, self._words))
        terms = [term for term, _ in by_rarity] if len(self._paths) == 1 else _rarest(by_rarity)
        found: list[FoundPassage] = []
        for chunk in self._index.chunks_for(terms, 4 * limit, skills=self._paths):
            if len(found) < limit and may_read(Path(chunk.file)):
                found += self._read(chunk)
        return found

    def _read(self, chunk: ChunkScore) -> list[FoundPassage]:
        skill = self._skills[self._paths[chunk.skill]]
        lines = read_text(skill, chunk.file).split("\n")[chunk.start - 1 : chunk.end]
        text = sanitize("\n".join(lines))[:_MAX_TEXT]
        if not text.strip():
            return []
        return [FoundPassage(skill, Path(chunk.file), chunk.start, chunk.end, round(chunk.score, 3), text)]


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

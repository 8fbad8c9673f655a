"""Finding skills and passages of their files: the words of a query, the index, and the ranking together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.skills.analysis import Words, query_terms
from codex_py.skills.documents import read_text
from codex_py.skills.index import ChunkScore, SkillSearchIndex
from codex_py.skills.model import Skill
from codex_py.skills.ranking import FIELD_WEIGHTS, Candidate, FieldFit, Passage, Prior, RankedSkill, clear_winners, rank
from codex_py.text.sanitize import sanitize

MAX_SUGGESTED: Final = 8
_MAX_HITS: Final = 150
# For so many of the best the words are looked up.
_EXPLAINED: Final = 20
_MAX_CHUNKS: Final = 300
# Of common words only so many count as the chunks they are in can be scored in time.
_SKILL_ROWS: Final = 20_000
_MIN_SKILL_TERMS: Final = 4
_CHUNK_ROWS: Final = 4_000
_MIN_CHUNK_TERMS: Final = 2
_PASSAGES_OF_ONE: Final = 3
_MAX_TEXT: Final = 2000


class FoundPassage(NamedTuple):
    """A passage of a file of a skill, by lines counted from 1; `text` is what they hold now."""

    skill: Skill
    path: Path
    start_line: int
    end_line: int
    score: float
    text: str


class SkillSearch:
    """Searches an open index among some skills."""

    def __init__(self, index: SkillSearchIndex, skills: Sequence[Skill]) -> None:
        self._index = index
        self._skills = {str(skill.canonical_path): skill for skill in skills}
        self._paths = index.show(self._skills)
        self._words = Words()

    @property
    def total(self) -> int:
        """How many skills there are."""
        return len(self._skills)

    @property
    def indexed(self) -> int:
        """How many of the skills the index knows."""
        return len(self._paths)

    def rank(self, text: str, priors: Mapping[str, Prior]) -> list[RankedSkill]:
        """The skills that fit a text, the best first."""
        by_rarity = self._index.by_rarity(query_terms(text, self._words))
        terms = _rarest(by_rarity, _SKILL_ROWS, _MIN_SKILL_TERMS)
        specific = [term for term in terms if term not in self._words.everyday]
        passages: defaultdict[int, list[Passage]] = defaultdict(list)
        for chunk in self._index.chunks_for(_rarest(by_rarity, _CHUNK_ROWS, _MIN_CHUNK_TERMS), _MAX_CHUNKS):
            if chunk.skill in self._paths and len(of_one := passages[chunk.skill]) < _PASSAGES_OF_ONE:
                is_body = chunk.file == self._paths[chunk.skill]
                of_one.append(Passage(chunk.file, chunk.start, chunk.end, chunk.score, is_body))
        found = self._fits(terms)
        clear = found if specific == terms else self._fits(specific)
        words = self._index.named_words(list(found)[:_EXPLAINED], specific)
        numbers = found.keys() | passages.keys()
        return rank(
            [
                Candidate(
                    self._paths[number],
                    found.get(number, FieldFit()),
                    clear.get(number, FieldFit()),
                    words.get(number, ()),
                    passages.get(number, ()),
                )
                for number in sorted(numbers)
            ],
            priors,
        )

    def _fits(self, terms: Sequence[str]) -> dict[int, FieldFit]:
        return {
            hit.id: FieldFit(hit.score, hit.named) for hit in self._index.skills_for(terms, FIELD_WEIGHTS, _MAX_HITS)
        }

    def suggest(
        self, text: str, priors: Mapping[str, Prior], limit: int, *, may_suggest: Callable[[Skill], bool] = bool
    ) -> list[Skill]:
        """The skills that clearly fit a text and may be suggested, the best first; mostly none."""
        ranked = self.rank(text, priors)[: 4 * limit]
        allowed = [entry for entry in ranked if may_suggest(self._skills[entry.path])]
        return [self._skills[winner.path] for winner in clear_winners(allowed, len(self._skills), limit)]

    def skill_at(self, path: str) -> Skill:
        """The skill that a ranked path stands for."""
        return self._skills[path]

    def passages(
        self, text: str, limit: int, *, skill: Skill | None = None, may_read: Callable[[Path], bool] = bool
    ) -> list[FoundPassage]:
        """The passages that answer a question, the best first, of one skill or of all, read from their files now."""
        by_rarity = self._index.by_rarity(query_terms(text, self._words))
        terms = [term for term, _ in by_rarity] if skill else _rarest(by_rarity, _SKILL_ROWS, _MIN_SKILL_TERMS)
        number = None
        if skill is not None:
            numbers = {path: number for number, path in self._paths.items()}
            number = numbers.get(str(skill.canonical_path))
            if number is None:
                return []
        found: list[FoundPassage] = []
        for chunk in self._index.chunks_for(terms, 4 * limit, skill=number):
            if len(found) < limit and chunk.skill in self._paths and may_read(Path(chunk.file)):
                found += self._read(chunk)
        return found

    def _read(self, chunk: ChunkScore) -> list[FoundPassage]:
        skill = self._skills[self._paths[chunk.skill]]
        lines = read_text(skill, chunk.file).split("\n")[chunk.start - 1 : chunk.end]
        text = sanitize("\n".join(lines))[:_MAX_TEXT]
        if not text.strip():
            return []
        return [FoundPassage(skill, Path(chunk.file), chunk.start, chunk.end, round(chunk.score, 3), text)]


def _rarest(by_rarity: Sequence[tuple[str, int]], rows: int, least: int) -> list[str]:
    """The rarest terms, as many as have so many rows together, and at least so many."""
    terms: list[str] = []
    for term, count in by_rarity:
        rows -= count
        if rows < 0 and len(terms) >= least:
            break
        terms.append(term)
    return terms

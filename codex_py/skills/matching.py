"""Ranking the skills of one catalogue: the digest, the words of a query, and what is known beforehand together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.skills.budget import Preference
from codex_py.skills.digest import DIGEST_FILE, Digest
from codex_py.skills.model import Skill
from codex_py.skills.priors import SkillPast, SkillPriors
from codex_py.skills.query import QueryGroup, read_query
from codex_py.skills.ranking import RankedSkill, clear_winners, distance_from_code, match_skills, rank, reasons_for

MAX_SUGGESTED: Final = 8
# So many are looked at with what is known beforehand.
_MAX_MATCHES: Final = 150


class RankedMatch(NamedTuple):
    """A skill that fits a text, and why."""

    skill: Skill
    score: float
    evidence: float
    is_clear: bool
    reasons: tuple[str, ...]


class SkillMatcher:
    """Ranks some skills. `directory` holds the digest; `past` and `repository` are what priors are made from."""

    def __init__(
        self,
        directory: Path,
        skills: Sequence[Skill],
        past: dict[str, SkillPast] | None = None,
        repository: frozenset[str] = frozenset(),
    ) -> None:
        self._digest = Digest(directory / DIGEST_FILE)
        self._skills = self._digest.add(skills)
        self._priors = SkillPriors(self._skills, past or {}, repository, self._digest.find)

    def close(self) -> None:
        """Close the digest."""
        self._digest.close()

    def is_current(self) -> bool:
        """Whether the digest has all these skills as they are on disk now."""
        return self._digest.is_current(self._skills.values())

    def rank(self, text: str) -> list[RankedMatch]:
        """The skills that fit a text, the best first, with reasons."""
        groups = read_query(text, self._digest.words, self._digest.knows)
        matches = {match.number: match for match in match_skills(groups, self._digest.find, self._skills, _MAX_MATCHES)}
        ranked = rank(list(matches.values()), len(groups), self._priors.value)
        clear = {winner.number for winner in self._clear(text, groups, ranked, MAX_SUGGESTED)}
        return [
            RankedMatch(
                self._skills[entry.number],
                entry.score,
                entry.evidence,
                entry.number in clear,
                reasons_for(matches[entry.number], groups, self._digest.find, self._priors.explained(entry.number)),
            )
            for entry in ranked
        ]

    def search(self, text: str, limit: int, *, may_read: Callable[[Skill], bool] = bool) -> list[Skill]:
        """The skills that fit a text, the best first."""
        return self._best(text, limit, may_read, clear=False)

    def suggest(self, text: str, *, may_suggest: Callable[[Skill], bool] = bool) -> list[Skill]:
        """The skills that clearly fit a text and may be suggested, the best first; mostly none."""
        return self._best(text, MAX_SUGGESTED, may_suggest, clear=True)

    def prefer(self) -> Preference:
        """The order in which the skills keep their place in the list, and how many of them there is a reason for."""
        return self._priors.preference()

    def _best(self, text: str, limit: int, allows: Callable[[Skill], bool], *, clear: bool) -> list[Skill]:
        groups = read_query(text, self._digest.words, self._digest.knows)
        if not groups:
            return []
        matches = match_skills(groups, self._digest.find, self._skills, _MAX_MATCHES)
        ranked = rank(matches, len(groups), self._priors.value)[: 4 * limit]
        allowed = [entry for entry in ranked if allows(self._skills[entry.number])]
        chosen = self._clear(text, groups, allowed, limit) if clear else allowed[:limit]
        return [self._skills[entry.number] for entry in chosen]

    def _clear(
        self, text: str, groups: Sequence[QueryGroup], ranked: Sequence[RankedSkill], limit: int
    ) -> list[RankedSkill]:
        if not ranked:
            return []
        digest = self._digest
        # A skill for some files is here only when the message, or the session, is about these.
        is_for_files = any(self._skills[entry.number].options.paths for entry in ranked[:limit])
        logs = digest.words.in_change_logs
        distance = distance_from_code(text, groups, digest.find, digest.total, logs, counts_marks=not is_for_files)
        return clear_winners(ranked, len(self._skills), limit, distance)

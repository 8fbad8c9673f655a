"""Pointing the model to skills that its list does not show: suggestions for a message, searches, what is referred to.

Loaded only where skills were left out of the list or cut, or a skill has references.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from codex_py.errors import ToolError
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.events import SkillSuggested
from codex_py.protocol.items import ResponseItem
from codex_py.skills.budget import Preference
from codex_py.skills.finder import SkillFinder
from codex_py.skills.index import IndexUnavailable
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.skills.priors import SkillPast, make_priors, preference_of, read_past, repository_words
from codex_py.skills.ranking import Prior
from codex_py.skills.render import SkillShare
from codex_py.skills.roots import SkillRootsRequest
from codex_py.skills.search import MAX_SUGGESTED
from codex_py.skills.suggest import SUGGESTIONS, suggestion_item
from codex_py.skills.usage import record_suggestion
from codex_py.text.sanitize import sanitize_line

_MAX_ANSWER_BYTES: Final = 12_000
_MAX_DESCRIPTION: Final = 300
_MAX_PASSAGE: Final = 1_600
# Items of ours that show a skill to the model, by what their text begins with.
_SHOWING: Final = (f"<{SUGGESTIONS}>".encode(), b"<skill>\\n<name>", b"<skill-loaded name=")


class SkillGuide:
    """Knows the skills of one session. `fills` says that it brings the index up to date."""

    def __init__(
        self,
        roots: Callable[[], SkillRootsRequest],
        may_read: Callable[[Path], bool],
        *,
        suggests: bool,
        keeps_ledger: bool,
        fills: bool,
    ) -> None:
        self._roots = roots
        self._may_read = may_read
        self._suggests = suggests
        self._keeps_ledger = keeps_ledger
        self._fills = fills
        self._finder = SkillFinder(roots().home / "cache" / "skills", may_read)
        # The paths of those that were suggested in this session.
        self.suggested: set[Path] = set()
        self._past: dict[str, SkillPast] | None = None
        self._priors: tuple[SkillCatalog, dict[str, Prior]] | None = None

    @property
    def project(self) -> str:
        """What uses are counted by."""
        roots = self._roots()
        return str(roots.project_root or roots.cwd)

    def prefer(self, skills: Sequence[Skill]) -> Preference:
        """Which skills keep their place in the list: the same for the same skills, ledger and repository."""
        return preference_of(skills, self._make_priors(skills))

    def suggest(
        self,
        catalog: SkillCatalog,
        text: str,
        *,
        shares: Sequence[SkillShare],
        items: Iterable[ResponseItem],
        requested: Sequence[Skill],
    ) -> tuple[ResponseItem | None, list[SkillSuggested]]:
        """An item that points to skills that clearly fit a message and that the model has not in full; mostly none.

        `shares` are those of its list, `items` what it has been sent, `requested` the skills that the message names.
        """
        if not (self._suggests and text.strip()):
            return None, []
        skills = catalog.listed()
        full = [share.skill for share in shares if share.listed and share.shown == share.length]
        shown = ShownSkills(items, frozenset(skill.canonical_path for skill in (*full, *requested)))
        search = self._finder.open(skills)
        if search is None:
            return None, []
        if self._priors is None or self._priors[0] is not catalog:
            self._priors = (catalog, self._make_priors(skills))

        def may_suggest(skill: Skill) -> bool:
            return not shown.has(skill) and self._may_read(skill.canonical_path)

        try:
            fitting = search.suggest(text, self._priors[1], MAX_SUGGESTED, may_suggest=may_suggest)
        except IndexUnavailable as error:
            self._finder.forget(error)
            return None, []
        if not fitting:
            return None, []
        item, count = suggestion_item(fitting)
        events = [SkillSuggested(skill.name, skill.scope, skill.canonical_path) for skill in fitting[:count]]
        self.suggested.update(event.path for event in events)
        if self._keeps_ledger:
            for event in events:
                record_suggestion(self._roots().home, event, project=self.project)
        return item, events

    def search(self, catalog: SkillCatalog, query: str, skill: Skill | None, limit: int) -> str:
        """What the tool answers: skills, or passages of one of them. Raises `ToolError`."""
        try:
            if skill is None:
                return self._search_skills(catalog, query, limit)
            return self._search_passages(skill, query, limit)
        except IndexUnavailable as error:
            raise ToolError(f"skills cannot be searched: {error}") from error

    def start_filling(self, catalog: SkillCatalog) -> None:
        """Bring the index up to date beside the work of the session, once."""
        if self._fills:
            self._finder.start_filling(catalog.listed())

    def take_trouble(self) -> str | None:
        """Why there is no search, once."""
        trouble, self._finder.trouble = self._finder.trouble, None
        return trouble

    def close(self) -> None:
        """Close the index."""
        self._finder.close()

    def _make_priors(self, skills: Iterable[Skill]) -> dict[str, Prior]:
        # Read once: the list stays as it is while skills are used.
        if self._past is None:
            self._past = read_past(self._roots().home, self.project)
        return make_priors(skills, self._past, repository_words(self._roots().project_root))

    def _search_skills(self, catalog: SkillCatalog, query: str, limit: int) -> str:
        skills = catalog.listed()
        search = self._finder.open(skills)
        if search is None:
            raise ToolError(self.take_trouble() or "skills cannot be searched here")
        lines: list[str] = []
        for entry in search.rank(query, self._make_priors(skills)):
            skill = search.skill_at(entry.path)
            if self._may_read(skill.canonical_path):
                about = sanitize_line(skill.description)[:_MAX_DESCRIPTION]
                lines.append(f"- {sanitize_line(skill.name)}: {about} (file: {sanitize_line(str(skill.path))})")
            if len(lines) == limit:
                break
        return _within("\n".join(lines)) or "no skill fits: try other words, in English too"

    def _search_passages(self, skill: Skill, query: str, limit: int) -> str:
        search = self._finder.open((skill,))
        passages = search.passages(query, limit, skill=skill, may_read=self._may_read) if search else []
        if not passages:
            # The index may not have this skill yet.
            search = self._finder.open_filled((skill,))
            passages = search.passages(query, limit, skill=skill, may_read=self._may_read)
        parts = [
            f"{sanitize_line(str(passage.path))}:{passage.start_line}-{passage.end_line}\n"
            f"{passage.text[:_MAX_PASSAGE].rstrip()}"
            for passage in passages
        ]
        return (
            _within("\n\n".join(parts)) or f"nothing found in the skill `{sanitize_line(skill.name)}`: try other words"
        )


class ShownSkills:
    """Which skills the model has in full: in the list, in an item of ours, or by their files' names in either."""

    def __init__(self, items: Iterable[ResponseItem], in_list: frozenset[Path]) -> None:
        self._in_list = in_list
        self._texts = [item.encoded for item in items if any(mark in item.encoded for mark in _SHOWING)]

    def has(self, skill: Skill) -> bool:
        """Whether the model has the description of a skill, or its text."""
        if skill.canonical_path in self._in_list:
            return True
        paths = {encode_json(str(path))[1:-1] for path in (skill.path, skill.canonical_path)}
        return any(
            mark in text
            for text in self._texts
            for path in paths
            for mark in (b"(file: %s)" % path, b"<path>%s<" % path)
        )


def _within(text: str) -> str:
    encoded = text.encode()
    if len(encoded) <= _MAX_ANSWER_BYTES:
        return text
    return f"{encoded[:_MAX_ANSWER_BYTES].decode('utf-8', 'ignore')}\n[cut here]"

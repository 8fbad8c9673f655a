"""Points the model to skills that its list does not show in full: suggestions for a message, and the skill search.

Loaded only where descriptions were left out of the list or cut, and when the model searches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

from codex_py.context.markup import cut_to
from codex_py.errors import ToolError
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.events import SkillSuggested
from codex_py.protocol.items import ResponseItem, message
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.skills.references import one_line, shortened
from codex_py.skills.roots import SkillRootsRequest
from codex_py.skills.search_index import SearchIndex, SearchUnavailable
from codex_py.skills.usage import count_uses, record_suggestion
from codex_py.text.sanitize import sanitize_line

SUGGESTIONS: Final = "skill_suggestions"
MAX_SUGGESTED: Final = 8
_MAX_BYTES: Final = 1600
# Characters of each description, tried in this order.
_LENGTHS: Final = (160, 130, 100, 80, 60)
_FOUND: Final = (
    "Skills that may fit the user's next message, found by its words. Read the file of one that fits before you begin; "
    "ignore the others."
)
_BY_NAME: Final = "Skills that the user's next message names in words. Read the file of each before you begin."
_BOTH: Final = f"{_FOUND} The first are named in the message."
NAMED: Final = " [named by the user]"
_MAX_ANSWER_BYTES: Final = 12_000
_MAX_DESCRIPTION: Final = 300
_MAX_PASSAGE: Final = 1_600
# The text of an item with a skill in it begins so.
_LOADED: Final = (b"<skill>\\n<name>", b"<skill-loaded name=")


class SkillFinder:
    """Finds the skills of one session. Its methods wait for files, so call them in a thread."""

    def __init__(
        self, roots: Callable[[], SkillRootsRequest], may_read: Callable[[Path], bool], *, keeps_ledger: bool
    ) -> None:
        self._roots = roots
        self._may_read = may_read
        self._keeps_ledger = keeps_ledger
        self._index = SearchIndex(roots().home / "cache" / "skills", may_read)
        # The paths of those that were suggested in this session.
        self.suggested: set[Path] = set()
        # Those of them that the user named in words.
        self.named: set[Path] = set()

    @cached_property
    def _uses(self) -> Counter[str]:
        return count_uses(self._roots().home)

    @property
    def project(self) -> str:
        """The project that skill uses are counted for."""
        roots = self._roots()
        return str(roots.project_root or roots.cwd)

    def find(self, catalog: SkillCatalog, text: str, may_suggest: Callable[[Skill], bool]) -> list[Skill]:
        """The best skills for a message that may be suggested, at most eight. Raises `SearchUnavailable`."""
        found: list[Skill] = []
        for entry in self._index.rank(catalog.listed(), text, uses=self._uses, is_new=False):
            if self._may_read(entry.skill.canonical_path) and may_suggest(entry.skill):
                found.append(entry.skill)
                if len(found) == MAX_SUGGESTED:
                    break
        return found

    def suggest(self, skills: Sequence[Skill], named: Sequence[Skill]) -> tuple[ResponseItem, list[SkillSuggested]]:
        """The item that points to some skills, and an event for each; `named` are those the user named in words."""
        first = [skill for skill in dict.fromkeys(named) if self._may_read(skill.canonical_path)]
        marked = frozenset(str(skill.canonical_path) for skill in first)
        others = [skill for skill in skills if str(skill.canonical_path) not in marked]
        item, count = suggestion_item([*first, *others], marked)
        events = [
            SkillSuggested(skill.name, skill.scope, skill.canonical_path, str(skill.canonical_path) in marked)
            for skill in [*first, *others][:count]
        ]
        for event in events:
            # Once a session: the ledger is for uses, and a message may bring eight.
            if self._keeps_ledger and event.path not in self.suggested:
                record_suggestion(self._roots().home, event, project=self.project)
        self.suggested.update(event.path for event in events)
        self.named.update(event.path for event in events if event.named)
        return item, events

    def search(self, catalog: SkillCatalog, query: str, skill: Skill | None, limit: int) -> str:
        """What the tool answers: skills, or passages of one of them. Raises `ToolError`."""
        try:
            return self._passages(skill, query, limit) if skill else self._skills(catalog, query, limit)
        except SearchUnavailable as error:
            raise ToolError(str(error)) from error

    def find_loaded(self, skills: Iterable[Skill], items: Iterable[ResponseItem]) -> set[Path]:
        """Those of some skills whose text the items have."""
        texts = [item.encoded for item in items if any(mark in item.encoded for mark in _LOADED)]
        return {
            skill.canonical_path
            for skill in (skills if texts else ())
            for path in {skill.path, skill.canonical_path}
            if any(b"<path>%s<" % encode_json(str(path))[1:-1] in text for text in texts)
        }

    def close(self) -> None:
        """Close the index."""
        self._index.close()

    def _skills(self, catalog: SkillCatalog, query: str, limit: int) -> str:
        found = [entry.skill for entry in self._index.rank(catalog.listed(), query, uses=self._uses)]
        lines = [
            f"- {sanitize_line(skill.name)}: {sanitize_line(skill.description)[:_MAX_DESCRIPTION]}"
            f" (file: {sanitize_line(str(skill.path))})"
            for skill in [skill for skill in found if self._may_read(skill.canonical_path)][:limit]
        ]
        return cut_to("\n".join(lines), _MAX_ANSWER_BYTES) or "no skill fits: try other words, in English too"

    def _passages(self, skill: Skill, query: str, limit: int) -> str:
        parts = [
            f"{sanitize_line(found.path)}:{found.start_line}-{found.end_line}\n{found.text()[:_MAX_PASSAGE].rstrip()}"
            for found in self._index.passages(skill, query, limit)
            if self._may_read(Path(found.path))
        ]
        return (
            cut_to("\n\n".join(parts), _MAX_ANSWER_BYTES)
            or f"nothing found in the skill `{sanitize_line(skill.name)}`: try other words"
        )


def suggestion_item(skills: Sequence[Skill], named: frozenset[str] = frozenset()) -> tuple[ResponseItem, int]:
    """A developer message of at most 1,600 bytes with the first skills, at least one; and their number.

    `named` are the paths of the skills that the user named, which come first.
    """
    for count in range(min(len(skills), MAX_SUGGESTED), 0, -1):
        for length in _LENGTHS:
            text = _text(skills[:count], length, named)
            if len(text.encode("utf-8", "replace")) <= _MAX_BYTES:
                return message("developer", text), count
    return message("developer", _text(skills[:1], 0, named)), 1


def _text(skills: Sequence[Skill], length: int, named: frozenset[str]) -> str:
    is_named = [str(skill.canonical_path) in named for skill in skills]
    intro = _BY_NAME if all(is_named) else _BOTH if any(is_named) else _FOUND
    lines = [
        f"- {one_line(skill.name)}{NAMED if mark else ''}: {shortened(one_line(skill.description), length)}"
        f" (file: {one_line(str(skill.path))})"
        for skill, mark in zip(skills, is_named, strict=True)
    ]
    return "\n".join([f"<{SUGGESTIONS}>", intro, *lines, f"</{SUGGESTIONS}>"])

"""Pointing the model to skills that its list does not show: suggestions for a message, searches, what is referred to.

Loaded only where skills were left out of the list or cut, or a skill has references. On the way to the first request
only the digest is read; SQLite is loaded beside the answer, and only when something has changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from codex_py.errors import CodexError, ToolError
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.events import SkillSuggested
from codex_py.protocol.items import ResponseItem
from codex_py.skills.budget import Preference
from codex_py.skills.matching import MAX_SUGGESTED, SkillMatcher
from codex_py.skills.model import Skill, SkillCatalog
from codex_py.skills.priors import SkillPast, read_past, repository_words
from codex_py.skills.render import SkillShare
from codex_py.skills.roots import SkillRootsRequest
from codex_py.skills.suggest import SUGGESTIONS, suggestion_item
from codex_py.skills.usage import record_suggestion
from codex_py.text.sanitize import sanitize_line

# How long the end of a session waits for the index, and for its filling to stop.
_FIRST_SECONDS: Final = 1.5
_STOP_SECONDS: Final = 0.3
# How long the end of a turn waits to hear whether there is a search.
_OPEN_SECONDS: Final = 0.3
_MAX_ANSWER_BYTES: Final = 12_000
_MAX_DESCRIPTION: Final = 300
_MAX_PASSAGE: Final = 1_600
# Items of ours that show a skill to the model, by what their text begins with.
_LOADED: Final = (b"<skill>\\n<name>", b"<skill-loaded name=")
_SHOWING: Final = (f"<{SUGGESTIONS}>".encode(), *_LOADED)


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
        self._directory = roots().home / "cache" / "skills"
        # The paths of those that were suggested in this session.
        self.suggested: set[Path] = set()
        # Those of them that the user named in words.
        self.named: set[Path] = set()
        self._past: dict[str, SkillPast] | None = None
        self._matcher: tuple[tuple[Skill, ...], SkillMatcher] | None = None
        self._filler: threading.Thread | None = None
        self._filled: SkillCatalog | None = None
        self._has_filled = threading.Event()
        self._stops = threading.Event()
        # Whether the index can be used at all is known.
        self._opened = threading.Event()
        self._trouble: str | None = None

    @property
    def project(self) -> str:
        """The project that skill uses are counted for."""
        roots = self._roots()
        return str(roots.project_root or roots.cwd)

    def prefer(self, skills: Sequence[Skill]) -> Preference:
        """Which skills keep their place in the list: the same for the same skills, ledger and repository."""
        return self._matcher_for(tuple(skills)).prefer()

    def suggest(
        self,
        catalog: SkillCatalog,
        text: str,
        *,
        shares: Sequence[SkillShare],
        items: Iterable[ResponseItem],
        named: Sequence[Skill],
        may_suggest: Callable[[Skill], bool],
    ) -> tuple[ResponseItem | None, list[SkillSuggested]]:
        """An item that points to skills that clearly fit a message and that the model has not in full; mostly none.

        `shares` are those of its list, `items` what it has been sent. `named` are skills that the message names in
        words; they come first and are marked. `may_suggest` is asked about the others.
        """
        loaded = ShownSkills(items, frozenset(), _LOADED)
        fitting = [
            skill for skill in dict.fromkeys(named) if not loaded.has(skill) and self._may_read(skill.canonical_path)
        ]
        marked = frozenset(str(skill.canonical_path) for skill in fitting)
        if self._suggests and text.strip():
            full = frozenset(
                share.skill.canonical_path for share in shares if share.listed and share.shown == share.length
            )
            shown = ShownSkills(items, full, _SHOWING)

            def is_wanted(skill: Skill) -> bool:
                is_new = str(skill.canonical_path) not in marked and not shown.has(skill)
                return is_new and may_suggest(skill) and self._may_read(skill.canonical_path)

            fitting += self._matcher_for(catalog.listed()).suggest(text, may_suggest=is_wanted)
        if not fitting:
            return None, []
        item, count = suggestion_item(fitting[:MAX_SUGGESTED], marked)
        events = [
            SkillSuggested(skill.name, skill.scope, skill.canonical_path, str(skill.canonical_path) in marked)
            for skill in fitting[:count]
        ]
        self.suggested.update(event.path for event in events)
        self.named.update(event.path for event in events if event.named)
        if self._keeps_ledger:
            for event in events:
                record_suggestion(self._roots().home, event, project=self.project)
        return item, events

    def search(self, catalog: SkillCatalog, query: str, skill: Skill | None, limit: int) -> str:
        """What the tool answers: skills, or passages of one of them. Raises `ToolError`."""
        if skill is None:
            return self._search_skills(catalog, query, limit)
        try:
            return self._search_passages(skill, query, limit)
        except CodexError as error:
            raise ToolError(f"skills cannot be searched: {error}") from error

    def start_filling(self, catalog: SkillCatalog) -> None:
        """Bring the index up to date beside the work of the session, once for each catalogue."""
        if self._fills and catalog is not self._filled and not (self._filler and self._filler.is_alive()):
            self._filled = catalog
            self._opened.clear()
            self._filler = threading.Thread(
                target=self._fill, args=(catalog.listed(),), daemon=True, name="skill index"
            )
            self._filler.start()

    def take_trouble(self) -> str | None:
        """Why there is no search, once. Waits until the index is open, so call it in a thread."""
        if self._filler is not None:
            self._opened.wait(_OPEN_SECONDS)
        trouble, self._trouble = self._trouble, None
        return trouble

    def close(self) -> None:
        """Stop filling; the first index is waited for a little, so that short sessions get one too."""
        if self._filler is not None:
            self._filler.join(_FIRST_SECONDS)
            self._stops.set()
            self._filler.join(_STOP_SECONDS)
        if self._matcher is not None:
            self._matcher[1].close()
            self._matcher = None

    def _fill(self, skills: Sequence[Skill]) -> None:
        matcher = SkillMatcher(self._directory, skills)

        def should_stop() -> bool:
            self._opened.set()
            return self._stops.is_set()

        try:
            if matcher.is_current():
                return
            finder = _load_finder()
            finder.fill_index(self._directory, skills, self._may_read, should_stop=should_stop, waits=False)
            self._has_filled.set()
        except CodexError as error:
            self._trouble = f"skills cannot be searched: {error}"
        finally:
            self._opened.set()
            matcher.close()

    def _matcher_for(self, skills: tuple[Skill, ...]) -> SkillMatcher:
        """The matcher that ranks these skills; opened again when the skills change or the digest was rewritten."""
        is_known = self._matcher is not None and self._matcher[0] == skills
        if self._matcher is not None and is_known and not self._has_filled.is_set():
            return self._matcher[1]
        self._has_filled.clear()
        if self._matcher is not None:
            self._matcher[1].close()
        # Read once: the list stays as it is while skills are used.
        if self._past is None:
            self._past = read_past(self._roots().home, self.project)
        repository = repository_words(self._roots().project_root)
        self._matcher = (skills, SkillMatcher(self._directory, skills, self._past, repository))
        return self._matcher[1]

    def _search_skills(self, catalog: SkillCatalog, query: str, limit: int) -> str:
        def may_read(skill: Skill) -> bool:
            return self._may_read(skill.canonical_path)

        lines = [
            f"- {sanitize_line(skill.name)}: {sanitize_line(skill.description)[:_MAX_DESCRIPTION]}"
            f" (file: {sanitize_line(str(skill.path))})"
            for skill in self._matcher_for(catalog.listed()).search(query, limit, may_read=may_read)
        ]
        return _within("\n".join(lines)) or "no skill fits: try other words, in English too"

    def _search_passages(self, skill: Skill, query: str, limit: int) -> str:
        passages = _load_finder().find_passages(self._directory, (skill,), query, limit, may_read=self._may_read)
        parts = [
            f"{sanitize_line(str(passage.path))}:{passage.start_line}-{passage.end_line}\n"
            f"{passage.text[:_MAX_PASSAGE].rstrip()}"
            for passage in passages
        ]
        return (
            _within("\n\n".join(parts)) or f"nothing found in the skill `{sanitize_line(skill.name)}`: try other words"
        )


def _load_finder():
    """Import the module that needs SQLite."""
    from codex_py.skills import finder  # beside an answer, or when a tool is called

    return finder


class ShownSkills:
    """The skills that the model has in full: in the list, in an item of the host, or by file name in either."""

    def __init__(self, items: Iterable[ResponseItem], in_list: frozenset[Path], marks: Sequence[bytes]) -> None:
        self._in_list = in_list
        self._texts = [item.encoded for item in items if any(mark in item.encoded for mark in marks)]

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

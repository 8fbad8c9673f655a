"""The search index of a `CODEX_HOME`: opened for a catalogue, filled beside the work of a session.

Where the index does not know most of the skills yet, what the catalogue says of them is searched in memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from codex_py.skills.index import INDEX_FILE, IndexUnavailable, SkillSearchIndex
from codex_py.skills.model import Skill
from codex_py.skills.search import SkillSearch

# Below this part of the skills an index counts as not there yet.
_MOST: Final = 0.9
# So long the end of a session waits for the first index to be whole, and for a later one to stop.
_FIRST_SECONDS: Final = 1.5
_STOP_SECONDS: Final = 0.3
# So long a search that needs a whole index waits for whoever fills it.
_WAIT_SECONDS: Final = 10.0


class SkillFinder:
    """Searches the skills of one catalogue. Belongs to one thread, but for the one it fills the index in."""

    def __init__(self, directory: Path, may_read: Callable[[Path], bool] = bool) -> None:
        self._path = directory / INDEX_FILE
        self._may_read = may_read
        self._index: SkillSearchIndex | None = None
        self._filling: threading.Thread | None = None
        self._stop = threading.Event()
        self._is_new = False
        self.trouble: str | None = None

    def open(self, skills: Sequence[Skill]) -> SkillSearch | None:
        """A search among these skills as far as the index knows them; None where there is no FTS5."""
        try:
            if self._index is None:
                self._index = SkillSearchIndex(self._path)
            search = SkillSearch(self._index, skills)
            if search.indexed >= _MOST * len(skills):
                return search
            self._is_new = True
            quick = SkillSearchIndex(None)
            quick.add_described(skills)
            return SkillSearch(quick, skills)
        except IndexUnavailable as error:
            self.forget(error)
            return None

    def forget(self, error: IndexUnavailable) -> None:
        """Let go of an index that cannot be used; the next search opens it again."""
        if self._index is not None:
            self._index.close()
        self._index = None
        self.trouble = f"skills cannot be searched: {error}"

    def open_filled(self, skills: Sequence[Skill]) -> SkillSearch:
        """A search among these skills once the index has all that is on disk. Raises `IndexUnavailable`."""
        if self._index is None:
            self._index = SkillSearchIndex(self._path)
        self._index.update(skills, may_read=self._may_read, wait=_WAIT_SECONDS)
        return SkillSearch(self._index, skills)

    def start_filling(self, skills: Sequence[Skill]) -> None:
        """Bring the index up to date in a thread, once; what is done by the end of the session is kept."""
        if self._filling is None:
            self._filling = threading.Thread(target=self._fill, args=(tuple(skills),), daemon=True, name="skill index")
            self._filling.start()

    def close(self) -> None:
        """Stop filling; the first index is waited for a little, so that short sessions get one too."""
        if self._filling is not None:
            if self._is_new:
                self._filling.join(_FIRST_SECONDS)
            self._stop.set()
            self._filling.join(_STOP_SECONDS)
        if self._index is not None:
            self._index.close()
            self._index = None

    def _fill(self, skills: Sequence[Skill]) -> None:
        try:
            with SkillSearchIndex(self._path) as index:
                index.update(skills, may_read=self._may_read, should_stop=self._stop.is_set)
        except IndexUnavailable:
            # A search says so when there is one.
            return

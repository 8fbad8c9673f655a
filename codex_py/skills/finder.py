"""The search index of a `CODEX_HOME`: brought up to date, and searched for passages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from codex_py.skills.index import INDEX_FILE, SkillSearchIndex
from codex_py.skills.model import Skill
from codex_py.skills.search import FoundPassage, PassageSearch

# So long a search waits for another process that fills the index.
_WAIT_SECONDS: Final = 10.0


def find_passages(
    directory: Path,
    skills: Sequence[Skill],
    question: str,
    limit: int,
    *,
    may_read: Callable[[Path], bool] = bool,
) -> list[FoundPassage]:
    """The passages that answer a question, once the index has all that is on disk. Raises `IndexUnavailable`."""
    with SkillSearchIndex(directory / INDEX_FILE) as index:
        index.update(skills, may_read=may_read, wait=_WAIT_SECONDS)
        return PassageSearch(index, skills).passages(question, limit, may_read=may_read)


def fill_index(
    directory: Path,
    skills: Sequence[Skill],
    may_read: Callable[[Path], bool] = bool,
    *,
    should_stop: Callable[[], bool] = bool,
    waits: bool = True,
) -> None:
    """Bring the index and the digest up to date. Raises `IndexUnavailable`.

    With `waits` another process that does the same is waited for, else it is left to it.
    """
    with SkillSearchIndex(directory / INDEX_FILE) as index:
        wait = _WAIT_SECONDS if waits else 0.0
        index.update(skills, may_read=may_read, should_stop=should_stop, wait=wait)

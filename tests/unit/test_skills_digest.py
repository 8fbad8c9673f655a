"""The digest of the search index: what it costs to write one."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

from codex_py.skills.digest import DigestFile, write_digest
from codex_py.skills.term_weights import SkillTerms

SKILLS, STEMS = 200, 300


def peak_of(path: Path, skills: int) -> int:
    """The memory that writing a digest of so many skills takes at most, in bytes."""
    terms = " ".join(f"stem{number}" for number in range(STEMS))
    entries = [SkillTerms(f"/skills/{number}", number, "1-2", terms, bytes(STEMS)) for number in range(skills)]
    tracemalloc.start()
    write_digest(path, entries)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


def test_the_memory_to_write_a_digest_is_a_few_bytes_a_word(tmp_path: Path) -> None:
    path = tmp_path / "search.digest"
    # Four bytes are in the file. Numbers in lists would take 36.
    assert peak_of(path, SKILLS) - peak_of(path, 1) < 12 * SKILLS * STEMS
    write_digest(path, [SkillTerms("/a", 1, "1-2", "one two", b"\1\2"), SkillTerms("/b", 2, "3-4", "two", b"\3")])
    digest = DigestFile(path)
    assert list(digest.skills) == ["/a", "/b"]
    assert [digest.postings(stem) for stem in ("one", "two", "three")] == [[1], [2, 1 << 8 | 3], []]
    digest.close()

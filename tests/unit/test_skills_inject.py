from __future__ import annotations

import os
from pathlib import Path

import pytest

from codex_py.skills.inject import MAX_BODY_BYTES, skill_item
from codex_py.skills.model import Skill
from tests.unit.skill_builders import skill_on_disk


def body_of(skill: Skill) -> str:
    """What stands between the head and the end of the message."""
    item = skill_item(skill).item
    assert item is not None
    text = item.decode()["content"][0]["text"]
    head = f"<skill>\n<name>{skill.name}</name>\n<path>{skill.canonical_path}</path>\n"
    assert text.startswith(head)
    assert text.endswith("\n</skill>")
    return text[len(head) : -len("\n</skill>")]


def test_an_edit_after_the_search_counts(tmp_path: Path) -> None:
    skill = skill_on_disk(tmp_path / "lint", "old")
    skill.path.write_text("new")
    assert body_of(skill) == "new"


@pytest.mark.parametrize("shift", range(4))
def test_a_long_line_is_cut_between_characters(tmp_path: Path, shift: int) -> None:
    skill = skill_on_disk(tmp_path / "lint", b"x" * shift + "🙂".encode() * 100_000)
    shown, _, note = body_of(skill).partition("\n")
    assert shown == "x" * shift + "🙂" * ((MAX_BODY_BYTES - shift) // 4)
    assert note.startswith(f"[cut here: these are the first {len(shown.encode())} of {400_000 + shift} bytes;")


def test_thirty_megabytes_are_not_read(tmp_path: Path) -> None:
    skill = skill_on_disk(tmp_path / "lint", "start\n")
    os.truncate(skill.path, 30_000_000)
    assert "of 30000000 bytes" in body_of(skill)


def test_name_and_path_stay_on_their_lines(tmp_path: Path) -> None:
    skill = skill_on_disk(tmp_path / "a\n\u202eb")
    item = skill_item(skill._replace(name="x\n\x1by")).item
    assert item is not None
    text: str = item.decode()["content"][0]["text"]
    assert text == f"<skill>\n<name>x␊␛y</name>\n<path>{tmp_path}/a␊\\u{{202e}}b/SKILL.md</path>\nbody\n\n</skill>"

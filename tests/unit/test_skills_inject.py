from __future__ import annotations

import os
from pathlib import Path

import pytest

from codex_py.protocol.items import message
from codex_py.skills.inject import MAX_BODY_BYTES, Injected, render_loaded, skill_body, skill_item
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


def test_the_whole_file_is_given_as_it_is(tmp_path: Path) -> None:
    raw = "---\r\nname: lint\r\n---\r\n\r\n# Lint <&> <skill> </skills>\n\x07\0é\n\n"
    skill = skill_on_disk(tmp_path / "lint", raw)
    text = f"<skill>\n<name>lint</name>\n<path>{tmp_path / 'lint/SKILL.md'}</path>\n{raw}\n</skill>"
    assert skill_item(skill) == Injected(message("user", text))


@pytest.mark.parametrize("end", ["</skill>", "</SKILL>", "</ skill\n>", "</skill-loaded>"])
def test_a_body_cannot_end_its_message(tmp_path: Path, end: str) -> None:
    skill = skill_on_disk(tmp_path / "lint", f"a {end}\n<b>\r\n{end}")
    inert = end.replace("</", "<\\/")
    assert body_of(skill) == f"a {inert}\n<b>\r\n{inert}"
    loaded = render_loaded("lint", str(skill.path), skill_body(skill))
    assert loaded.endswith(f"a {inert}\n<b>\r\n{inert}\n</skill-loaded>")


def test_the_path_is_the_canonical_one(tmp_path: Path) -> None:
    real = skill_on_disk(tmp_path / "real")
    (tmp_path / "link").symlink_to("real")
    linked = real._replace(path=tmp_path / "link/SKILL.md")
    assert skill_item(linked) == skill_item(real)


def test_an_edit_after_the_search_counts(tmp_path: Path) -> None:
    skill = skill_on_disk(tmp_path / "lint", "old")
    skill.path.write_text("new")
    assert body_of(skill) == "new"


def test_a_body_of_256_kib_is_whole(tmp_path: Path) -> None:
    skill = skill_on_disk(tmp_path / "lint", b"x" * MAX_BODY_BYTES)
    assert body_of(skill) == "x" * MAX_BODY_BYTES


def test_a_longer_body_is_cut_behind_a_line_and_says_where_the_rest_is(tmp_path: Path) -> None:
    line = b"0123456789\n"
    skill = skill_on_disk(tmp_path / "my lint", line * 30_000)
    cut = MAX_BODY_BYTES // len(line) * len(line)
    rest = f"tail -c +{cut + 1} '{skill.path}'"
    note = f"[cut here: these are the first {cut} of 330000 bytes; the rest is in the file: `{rest}`]"
    assert body_of(skill) == (line * (cut // len(line))).decode() + f"\n{note}"


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


def refused(skill: Skill, reason: str) -> None:
    told = f"skill `{skill.name}` is left out: cannot read `{skill.canonical_path}`: {reason}"
    assert skill_item(skill) == Injected(None, told)


def test_a_file_that_is_gone_is_a_warning(tmp_path: Path) -> None:
    skill = skill_on_disk(tmp_path / "lint")
    skill.path.unlink()
    refused(skill, "no such file")


def test_what_is_no_utf8_is_a_warning(tmp_path: Path) -> None:
    refused(skill_on_disk(tmp_path / "lint", b"name\xff"), "not UTF-8 at byte 4")


def test_a_directory_or_a_fifo_in_its_place_is_a_warning(tmp_path: Path) -> None:
    skill = skill_on_disk(tmp_path / "lint")
    skill.path.unlink()
    os.mkfifo(skill.path)
    refused(skill, "not a regular file")
    skill.path.unlink()
    skill.path.mkdir()
    refused(skill, "not a regular file")


def test_a_repo_skill_is_read_inside_its_project_only(tmp_path: Path) -> None:
    project = tmp_path / "repo"
    skill = skill_on_disk(project / ".agents/skills/lint", "mine", inside=project)
    assert body_of(skill) == "mine"
    (tmp_path / "secret").write_text("secret")
    skill.path.unlink()
    skill.path.symlink_to(tmp_path / "secret")
    refused(skill, "a link that leads out of the project")


def test_name_and_path_stay_on_their_lines(tmp_path: Path) -> None:
    skill = skill_on_disk(tmp_path / "a\n\u202eb")
    item = skill_item(skill._replace(name="x\n\x1by")).item
    assert item is not None
    text: str = item.decode()["content"][0]["text"]
    assert text == f"<skill>\n<name>x␊␛y</name>\n<path>{tmp_path}/a␊\\u{{202e}}b/SKILL.md</path>\nbody\n\n</skill>"

"""The names of sessions, in a file that is shared with another program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_py.errors import UserError
from codex_py.protocol.encoding import uuid7
from codex_py.rollout.archive import archive_session
from codex_py.rollout.listing import checked_name, find_exactly, find_session, forget_name, read_names, save_name
from tests.unit.session_builders import session

FILE = "session_index.jsonl"


def test_the_last_naming_counts(tmp_path: Path) -> None:
    one, two = uuid7(), uuid7()
    for thread_id, name in ((one, "old"), (two, "ü"), (one, "new")):
        save_name(tmp_path, thread_id, name)

    assert read_names(tmp_path) == {one: "new", two: "ü"}
    lines = [json.loads(line) for line in (tmp_path / FILE).read_text().splitlines()]
    assert [list(line) for line in lines] == [["id", "thread_name", "updated_at"]] * 3
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


def test_damage_is_skipped_and_a_torn_line_closed(tmp_path: Path) -> None:
    thread_id = uuid7()
    (tmp_path / FILE).write_bytes(b'\xff\n{}\n[1]\n{"id":1,"thread_name":"x"}\n{"id":"a","thread_na')

    save_name(tmp_path, thread_id, "kept")

    assert read_names(tmp_path) == {thread_id: "kept"}


def test_forgetting_a_name_leaves_every_other_line(tmp_path: Path) -> None:
    one, two = uuid7(), uuid7()
    save_name(tmp_path, one, "a")
    with (tmp_path / FILE).open("a") as file:
        file.write("not ours\n")
    save_name(tmp_path, two, "b")

    forget_name(tmp_path, one)

    assert read_names(tmp_path) == {two: "b"}
    assert (tmp_path / FILE).read_text().startswith("not ours\n")


def test_no_file_means_no_names(tmp_path: Path) -> None:
    forget_name(tmp_path, uuid7())

    assert read_names(tmp_path) == {}
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "must not be empty"),
        (" \n ", "must not be empty"),
        ("x" * 121, "has at most 120 characters, this one 121"),
        ("a\x1b[31m", "must be printable"),
        ("01a2000f-b531-7671-885f-ac1df6cf019B", "must not look like an id"),
    ],
)
def test_a_name_that_would_be_trouble_is_refused(name: str, reason: str) -> None:
    with pytest.raises(UserError, match=reason):
        checked_name(name)


def test_a_name_is_one_line_without_spaces_around() -> None:
    assert checked_name("  login \n page ") == "login page"


def test_a_name_finds_the_newest_session_that_can_be_gone_on_with(tmp_path: Path) -> None:
    old = session(tmp_path, "a", stamp="2026-11-22T08:00:00.000Z")
    new = session(tmp_path, "b", stamp="2026-11-22T09:00:00.000Z")
    for path in (old, new):
        save_name(tmp_path, path.stem[-36:], "wörk")

    assert find_session(tmp_path, " wörk ") == new
    with pytest.raises(UserError, match="2 sessions are named `wörk`"):
        find_exactly(tmp_path, "wörk")
    archive_session(new)
    assert find_session(tmp_path, "wörk") == old
    archive_session(old)
    with pytest.raises(UserError, match="is archived"):
        find_session(tmp_path, "wörk")


def test_a_compressed_session_says_how_to_unpack_it(tmp_path: Path) -> None:
    path = session(tmp_path, "a")
    packed = path.with_name(f"{path.name}.zst")
    path.rename(packed)

    with pytest.raises(UserError, match="is compressed, which codex-py does not read") as raised:
        find_session(tmp_path, path.stem[-36:])

    assert raised.value.hint == f"`zstd -d --rm {packed}` unpacks it"

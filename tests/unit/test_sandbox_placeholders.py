"""Empty directories that stand for missing protected paths."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codex_py.paths import is_placeholder
from codex_py.sandbox.placeholders import Pins, PlaceholderList, Placeholders, hold_all


def test_a_placeholder_is_made_and_removed(tmp_path: Path) -> None:
    path = tmp_path / ".git"
    holder, held = hold_all([path])
    assert held == [path]
    assert is_placeholder(path)
    holder.release()
    assert not path.exists()


def test_the_last_of_several_holders_removes_it(tmp_path: Path) -> None:
    path = tmp_path / ".git"
    first, second = Placeholders(), Placeholders()
    assert first.hold(path)
    assert second.hold(path)
    first.release()
    assert path.is_dir()
    second.release()
    assert not path.exists()


def test_what_somebody_put_something_into_stays(tmp_path: Path) -> None:
    path = tmp_path / ".codex"
    holder, _ = hold_all([path])
    path.chmod(0o755)
    (path / "config.toml").write_text("")
    path.chmod(0o555)
    assert not is_placeholder(path)
    holder.release()
    assert (path / "config.toml").exists()


def test_one_that_a_killed_process_left_goes_with_the_next(tmp_path: Path) -> None:
    path = tmp_path / ".git"
    holder, _ = hold_all([path])
    left = path.stat()
    assert is_placeholder(path)
    successor, held = hold_all([path])
    assert held == [path]
    assert path.stat().st_ino == left.st_ino
    holder.release()
    successor.release()
    assert not path.exists()


def test_an_empty_directory_of_the_users_is_none_of_ours(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert not is_placeholder(tmp_path / ".git")
    (tmp_path / ".git" / "HEAD").write_text("")
    (tmp_path / ".git").chmod(0o555)
    assert not is_placeholder(tmp_path / ".git")
    assert not is_placeholder(tmp_path / "missing")


def test_nothing_is_held_where_nobody_can_make_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    holder, held = hold_all([tmp_path / "file" / ".git", tmp_path / "missing" / ".git", Path("/proc/.git")])
    assert held == []
    holder.release()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_held_does_not_stay(tmp_path: Path) -> None:
    before = os.umask(0o777)
    try:
        with pytest.raises(PermissionError):
            hold_all([tmp_path / ".git"])
    finally:
        os.umask(before)
    assert list(tmp_path.iterdir()) == []


def test_a_pinned_directory_is_found_again_after_a_move(tmp_path: Path) -> None:
    (tmp_path / "a" / ".git").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    pins = Pins([tmp_path / "a" / ".git", tmp_path / "b", tmp_path / "missing"])
    (tmp_path / "a").rename(tmp_path / "c")
    (tmp_path / "b").rmdir()
    assert pins.paths() == [tmp_path / "c" / ".git"]


def test_what_a_process_that_has_ended_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    names = ("left", "filled", "replaced", "held", "users")
    paths = [tmp_path / name for name in names]
    lists = tmp_path / "lists"
    ended = PlaceholderList(lists)
    ended.add(paths)
    hold_all(paths[:3])
    living = PlaceholderList(lists)
    [file] = lists.iterdir()
    listed = file.read_bytes()
    assert (file.stat().st_mode & 0o777, lists.stat().st_mode & 0o777) == (0o600, 0o700)
    living.sweep()
    assert paths[0].is_dir()  # its process lives
    paths[1].chmod(0o755)
    (paths[1] / "file").write_text("")
    paths[2].rmdir()
    paths[2].mkdir()
    paths[4].mkdir(mode=0o755)
    holder, _ = hold_all([paths[3]])
    paths[0].rmdir()
    del ended
    # As a killed process leaves it.
    paths[0].mkdir(mode=0o555)
    (lists / "killed").write_bytes(listed + os.fsencode(tmp_path / "cut"))
    (tmp_path / "cut").mkdir(mode=0o555)
    living.sweep()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut", "filled", "held", "lists", "replaced", "users"]
    assert list(lists.iterdir()) == []
    holder.release()

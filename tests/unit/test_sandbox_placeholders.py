"""Empty directories that stand for missing protected paths."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from codex_py.context.agents_md import find_project_root
from codex_py.core.session_file import has_repository
from codex_py.paths import is_placeholder
from codex_py.sandbox.placeholders import Pins, Placeholders


def test_placeholders_stay_until_the_last_user_leaves(tmp_path: Path) -> None:
    git, profile = tmp_path / ".git", tmp_path / ".bashrc"
    placeholders = Placeholders()
    end_session, end_command = placeholders.join(), placeholders.join()
    assert set(placeholders.hold([git], [profile])) == {git, profile}
    made = git.stat()
    end_command()
    end_command()
    assert is_placeholder(git) and is_placeholder(profile)
    end_next = placeholders.join()
    placeholders.hold([git], [profile])
    end_next()
    assert os.path.samestat(made, git.stat())
    end_session()
    assert list(tmp_path.iterdir()) == []


def test_the_last_of_several_sessions_removes_them(tmp_path: Path) -> None:
    path = tmp_path / ".git"
    first, second = Placeholders(), Placeholders()
    end_first, end_second = first.join(), second.join()
    first.hold([path])
    assert second.hold([path])
    end_first()
    assert path.is_dir()
    end_second()
    assert not path.exists()


def test_the_user_can_fill_one_and_it_stays(tmp_path: Path) -> None:
    path, profile = tmp_path / ".codex", tmp_path / ".bashrc"
    placeholders = Placeholders()
    end = placeholders.join()
    placeholders.hold([path], [profile])
    assert (path.stat().st_mode & 0o700, profile.stat().st_mode & 0o600) == (0o700, 0o600)
    (path / "config.toml").write_text("")
    profile.write_text("alias")
    assert not is_placeholder(path) and not is_placeholder(profile)
    end()
    assert (path / "config.toml").exists() and profile.exists()


def test_one_that_the_user_removes_is_made_again(tmp_path: Path) -> None:
    path = tmp_path / ".vscode"
    first, second = Placeholders(), Placeholders()
    end_first, end_second = first.join(), second.join()
    first.hold([path])
    second.hold([path])
    path.rmdir()
    first.hold([path])
    assert is_placeholder(path)
    second.hold([path])
    end_first()
    assert is_placeholder(path)
    end_second()
    assert not path.exists()


def test_one_that_a_killed_process_left_goes_with_the_next(tmp_path: Path) -> None:
    path = tmp_path / ".git"
    path.mkdir()
    path.chmod(0o1755)
    left = path.stat()
    placeholders = Placeholders()
    end = placeholders.join()
    assert placeholders.hold([path])
    assert path.stat().st_ino == left.st_ino
    end()
    assert not path.exists()


def test_an_empty_directory_of_the_users_is_none_of_ours(tmp_path: Path) -> None:
    for mode in (0o755, 0o555, 0o1777):
        (tmp_path / f"{mode}").mkdir()
        (tmp_path / f"{mode}").chmod(mode)
        assert not is_placeholder(tmp_path / f"{mode}")
    assert not is_placeholder(tmp_path / "missing")


def test_nothing_is_held_where_nobody_can_make_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    placeholders = Placeholders()
    end = placeholders.join()
    held = placeholders.hold([tmp_path / "file" / ".git", tmp_path / "missing" / ".git", Path("/proc/.git")])
    assert list(held) == []
    end()


@pytest.mark.parametrize("umask", [0o077, 0o777])
def test_whatever_the_umask_sessions_of_other_users_can_hold_it(tmp_path: Path, umask: int) -> None:
    placeholders = Placeholders()
    end = placeholders.join()
    before = os.umask(umask)
    try:
        placeholders.hold([tmp_path / ".git"], [tmp_path / ".bashrc"])
    finally:
        os.umask(before)
    assert [path.stat().st_mode & 0o7777 for path in sorted(tmp_path.iterdir())] == [0o1644, 0o1755]
    end()


def test_a_pinned_directory_is_found_again_after_a_move(tmp_path: Path) -> None:
    (tmp_path / "a" / ".git").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    pins = Pins([tmp_path / "a" / ".git", tmp_path / "b", tmp_path / "missing"])
    (tmp_path / "a").rename(tmp_path / "c")
    (tmp_path / "b").rmdir()
    assert pins.paths() == [tmp_path / "c" / ".git"]


def test_what_a_process_that_has_ended_left_is_removed_and_nothing_else(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("left", "filled", "replaced", "held", "living")]
    lists = tmp_path / "lists"
    living = Placeholders(lists)
    end_living = living.join()
    living.hold(paths[4:])
    [file] = lists.iterdir()
    assert (file.stat().st_mode & 0o777, lists.stat().st_mode & 0o777) == (0o600, 0o700)
    holder = Placeholders()
    end_holder = holder.join()
    holder.hold([paths[3]])
    # As a killed process leaves them.
    for path in (*paths[:2], tmp_path / "cut"):
        path.mkdir()
        path.chmod(0o1755)
    (paths[1] / "file").write_text("")
    paths[2].mkdir()
    listed = b"".join(os.fsencode(path) + b"\0" for path in paths) + os.fsencode(tmp_path / "cut")
    (lists / "killed").write_bytes(listed)
    other = Placeholders(lists)
    end_other = other.join()
    other.hold([tmp_path / "other"])
    found = sorted(path.name for path in tmp_path.iterdir())
    assert found == ["cut", "filled", "held", "lists", "living", "other", "replaced"]
    assert "killed" not in [path.name for path in lists.iterdir()]
    for end in (end_other, end_holder, end_living):
        end()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cut", "filled", "lists", "replaced"]
    assert list(lists.iterdir()) == []


def test_a_placeholder_that_comes_and_goes_is_never_taken_for_a_repository(tmp_path: Path) -> None:
    inside = tmp_path / "work"
    inside.mkdir()
    ended = threading.Event()

    def come_and_go() -> None:
        while not ended.is_set():
            placeholders = Placeholders()
            end = placeholders.join()
            placeholders.hold([tmp_path / ".git"])
            end()

    other = threading.Thread(target=come_and_go)
    other.start()
    found = {(find_project_root(inside, [".git"]), has_repository(tmp_path)) for _ in range(5000)}
    ended.set()
    other.join()
    assert (tmp_path, False) not in found and {mistaken for _, mistaken in found} == {False}

"""Archiving, bringing back and deleting sessions."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from codex_py.errors import UserError
from codex_py.protocol.items import message
from codex_py.rollout.archive import archive_session, delete_session, unarchive_session
from codex_py.rollout.files import ThreadLock
from codex_py.rollout.format import SubagentSource
from codex_py.rollout.listing import read_names, save_name
from codex_py.rollout.reader import load_session
from codex_py.rollout.recorder import RolloutRecorder
from tests.unit.rollout_builders import meta, no_warning, written
from tests.unit.session_builders import session, turn_lines


def test_an_archived_session_comes_back_where_it_was(tmp_path: Path) -> None:
    path = session(tmp_path, "a")
    content = path.read_bytes()

    archived = archive_session(path)
    assert archived == tmp_path / "archived_sessions" / path.name
    assert not path.exists()
    assert archived.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(UserError, match="is archived already"):
        archive_session(archived)

    assert unarchive_session(archived) == path
    assert path.read_bytes() == content
    with pytest.raises(UserError, match="is not archived"):
        unarchive_session(path)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    path = session(tmp_path, "a")
    archived = archive_session(path)
    path.write_text("another")

    with pytest.raises(UserError, match="is there already"):
        unarchive_session(archived)
    assert path.read_text() == "another"


def test_a_deleted_session_leaves_neither_file_nor_name(tmp_path: Path) -> None:
    path, other = session(tmp_path, "a"), session(tmp_path, "b")
    for one in (path, other):
        save_name(tmp_path, one.stem[-36:], "n")

    delete_session(path)

    assert not path.exists()
    assert read_names(tmp_path) == {other.stem[-36:]: "n"}


def test_the_sessions_of_agents_go_with_the_one_that_started_them(tmp_path: Path) -> None:
    path, other = session(tmp_path, "a"), session(tmp_path, "b")
    agent = session(tmp_path, "c", subagent=SubagentSource(path.stem[-36:], 1, "agent-1"))
    agents_agent = session(tmp_path, "d", subagent=SubagentSource(agent.stem[-36:], 2, "agent-2"))

    delete_session(path)

    assert [one.exists() for one in (path, agent, agents_agent, other)] == [False, False, False, True]


def test_a_session_that_a_fork_reads_its_beginning_from_is_kept(tmp_path: Path) -> None:
    parent = session(tmp_path, "a")
    header = meta(forked_from_id=parent.stem[-36:], forked_from_ordinal_exclusive=9)
    fork = written(tmp_path, turn_lines("b", "B", ordinal=10), header)

    with pytest.raises(UserError, match=f"forks of it .*`{fork.stem[-36:]}`"):
        delete_session(parent)

    delete_session(archive_session(fork))
    delete_session(parent)


def test_a_session_in_use_is_left_alone(tmp_path: Path) -> None:
    path = session(tmp_path, "a")
    recorder = RolloutRecorder.resume(load_session(path), warn=no_warning)
    for change in (archive_session, delete_session):
        with pytest.raises(UserError, match="already has an active writer"):
            change(path)
    recorder.close()

    archive_session(path)


def test_a_session_of_ours_is_locked_for_codex_cli_too(tmp_path: Path) -> None:
    path = session(tmp_path, "a")
    lock = tmp_path / "thread-writer-locks" / f"{path.stem[-36:]}.lock"
    recorder = RolloutRecorder.resume(load_session(path), warn=no_warning)

    with lock.open() as theirs, pytest.raises(BlockingIOError):
        fcntl.flock(theirs, fcntl.LOCK_EX | fcntl.LOCK_NB)
    recorder.close()

    assert not lock.exists()


def test_a_session_open_in_codex_cli_is_left_alone(tmp_path: Path) -> None:
    path = session(tmp_path, "a")
    theirs = ThreadLock(tmp_path, path.stem[-36:])
    with pytest.raises(UserError, match="already has an active writer"):
        delete_session(path)
    theirs.release()
    theirs.release()

    delete_session(path)


def test_a_directory_for_locks_that_cannot_be_made_keeps_nobody_from_working(tmp_path: Path) -> None:
    path = session(tmp_path, "a")
    (tmp_path / "thread-writer-locks").write_text("in the way")
    recorder = RolloutRecorder.resume(load_session(path), warn=no_warning)
    recorder.record("response_item", message("user", "more").encoded)
    recorder.close()

    assert load_session(path).items[-1] == message("user", "more")

"""The list of stored sessions: what is told of each, in which order, and that its cache is never needed."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol.encoding import uuid7
from codex_py.protocol.items import message
from codex_py.rollout.files import files_of_thread
from codex_py.rollout.listing import SessionQuery, list_sessions, matching, read_index
from codex_py.rollout.summary import SessionSummary, read_summary
from tests.unit.rollout_builders import append, meta, raw_line, written
from tests.unit.session_builders import session, turn_lines

CACHE = "cache/sessions.json"


def prompts(home: Path, query: SessionQuery | None = None) -> list[str]:
    return [one.first_prompt for one in list_sessions(home, query or SessionQuery())]


def test_a_session_of_codex_cli_tells_its_prompt_in_another_event(tmp_path: Path) -> None:
    item: dict[str, Any] = {
        "type": "UserMessage",
        "id": "x",
        "content": [{"type": "text", "text": "theirs", "text_elements": []}],
    }
    lines = [
        raw_line("response_item", message("user", "<environment_context>x</environment_context>").decode(), ordinal=1),
        raw_line("event_msg", {"type": "item_completed", "thread_id": "t", "turn_id": "u", "item": item}, ordinal=2),
    ]
    written(tmp_path, lines)

    assert prompts(tmp_path) == ["theirs"]


def test_without_an_event_the_first_message_of_the_user_counts(tmp_path: Path) -> None:
    texts = ["# AGENTS.md instructions for /work\n\nx", "<environment_context>", "the task", "more"]
    written(
        tmp_path,
        [raw_line("response_item", message("user", text).decode(), ordinal=1 + n) for n, text in enumerate(texts)],
    )

    assert prompts(tmp_path) == ["the task"]


def test_the_order_is_that_of_the_last_records(tmp_path: Path) -> None:
    oldest = session(tmp_path, "a", stamp="2025-11-22T08:00:00.500Z")
    session(tmp_path, "b", stamp="2025-11-22T08:00:01Z")
    session(tmp_path, "c", stamp="2025-11-22T08:00:01.001Z")
    assert prompts(tmp_path) == ["c", "b", "a"]

    append(oldest, message("user", "again"))
    os.utime(oldest, (1, 1))

    assert prompts(tmp_path) == ["a", "c", "b"]


def test_only_sessions_of_the_directory_are_listed_and_none_of_subagents(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    session(tmp_path, "here", cwd=str(tmp_path / "link"))
    session(tmp_path, "elsewhere", cwd="/other")
    session(tmp_path, "odd", cwd="/nul\0byte")
    session(tmp_path, "helper", cwd=str(tmp_path / "real"), source={"subagent": "review"})

    assert prompts(tmp_path, SessionQuery(tmp_path / "real")) == ["here"]
    assert sorted(prompts(tmp_path)) == ["elsewhere", "here", "odd"]


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("", ["login", "tests"]),
        ("LOGIN", ["login"]),
        ("fix test", ["tests"]),
        ("api fix", ["login", "tests"]),
        ("nightly", ["tests"]),
        ("straße", ["login"]),
        ("fix nothing", []),
    ],
)
def test_every_word_of_a_search_must_stand_somewhere(search: str, found: list[str]) -> None:
    empty = SessionSummary("/x", uuid7(), "/src/api", "", "", "", 0, "", "", "", "", "", "")
    login = empty._replace(first_prompt="Fix the login of STRASSE", branch="main")
    tests = empty._replace(first_prompt="fix the tests", name="nightly")

    assert ["login" if one is login else "tests" for one in matching([login, tests], search)] == found


def test_a_session_is_found_by_its_whole_id_in_active_and_archived_files(tmp_path: Path) -> None:
    first, other = "01a208ad-fe29-7181-a6a1-f3d31fc00dc4", "01a208ad-fe29-7181-a6a1-f3d31fc00dc5"
    names = [f"rollout-2026-11-2{n}T13-52-34-{one}" for n, one in enumerate((first, other, first))]
    for name in (f"sessions/2026/11/20/{names[0]}.jsonl", f"sessions/2026/11/21/{names[1]}.jsonl"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    (tmp_path / f"sessions/2026/11/21/{names[2]}.jsonl.zst").touch()
    (tmp_path / "archived_sessions").mkdir()
    (tmp_path / f"archived_sessions/{names[2]}.jsonl").touch()
    assert [path.name for path in files_of_thread(tmp_path, first)] == [f"{names[0]}.jsonl"]
    assert [path.name for path in files_of_thread(tmp_path, first, archived=True)] == [f"{names[2]}.jsonl"]
    assert list(files_of_thread(tmp_path, first[-12:])) == []


def test_what_did_not_change_is_taken_from_the_cache(tmp_path: Path) -> None:
    path = session(tmp_path, "before")
    assert prompts(tmp_path) == ["before"]
    status = path.stat()
    path.write_bytes(path.read_bytes().replace(b"before", b"behind"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))

    # Size and time are the same, so that nothing was read.
    assert prompts(tmp_path) == ["before"]
    assert (tmp_path / CACHE).stat().st_mode & 0o777 == 0o600
    os.utime(path, (1, 1))
    assert prompts(tmp_path) == ["behind"]


@pytest.mark.parametrize(
    "damage",
    [b"", b"garbage", b"\0" * 1000, b"codex-py sessions 1 00000000\n{}", b'{"a":1}', None],
    ids=["empty", "words", "zeros", "checksum", "header", "gone"],
)
def test_a_damaged_cache_does_not_matter(tmp_path: Path, damage: bytes | None) -> None:
    session(tmp_path, "a")
    prompts(tmp_path)
    cache = tmp_path / CACHE
    cache.unlink()
    if damage is not None:
        cache.write_bytes(damage)

    assert prompts(tmp_path) == ["a"]


def test_a_cache_that_cannot_be_written_does_not_matter(tmp_path: Path) -> None:
    session(tmp_path, "a")
    (tmp_path / "cache").write_text("in the way")

    assert prompts(tmp_path) == ["a"]


def test_files_without_a_session_are_passed_over_and_removed_ones_forgotten(tmp_path: Path) -> None:
    good, gone = session(tmp_path, "a"), session(tmp_path, "b")
    bad = good.with_name(good.name.replace(good.stem[-36:], uuid7()))
    bad.write_bytes(os.urandom(3000))
    assert sorted(prompts(tmp_path)) == ["a", "b"]

    gone.unlink()

    assert prompts(tmp_path) == ["a"]
    entries = json.loads((tmp_path / CACHE).read_bytes().split(b"\n", 1)[1])
    assert sorted(entries) == sorted(str(path.relative_to(tmp_path)) for path in (good, bad))


def test_several_may_read_the_index_at_once(tmp_path: Path) -> None:
    for number in range(20):
        session(tmp_path, f"p{number}")
    found: list[int] = []
    readers = [threading.Thread(target=lambda: found.append(len(read_index(tmp_path)))) for _ in range(4)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()

    assert found == [20] * 4
    assert len(read_index(tmp_path)) == 20
    assert [path.name for path in (tmp_path / "cache").iterdir()] == ["sessions.json"]


def test_a_long_turn_at_the_end_hides_neither_the_directory_nor_the_tokens(tmp_path: Path) -> None:
    lines = turn_lines("a", "b", ordinal=1, cwd="/moved")
    output = {"type": "function_call_output", "call_id": "c", "output": '"type":"turn_context" ' * 50_000}
    lines += [raw_line("response_item", output, ordinal=9 + number) for number in range(3)]
    path = written(tmp_path, lines, meta(cwd="/work"))
    summary = read_summary(path)

    assert summary is not None
    assert (summary.cwd, summary.tokens) == ("/moved", 110)

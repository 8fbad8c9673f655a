"""The turns of a stored session, what a fork takes over, and what a transcript tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.errors import UserError
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.items import ResponseItem, message
from codex_py.rollout import format as records
from codex_py.rollout.reader import load_session
from codex_py.rollout.recorder import Inherited, RolloutRecorder
from codex_py.rollout.records import inherited_lines
from codex_py.rollout.transcript import (
    TranscriptCompaction,
    TranscriptFailure,
    TranscriptItem,
    before_compaction,
    end_of_turn,
    live,
    read_transcript,
    read_turns,
)
from tests.support.rollout import read_rollout
from tests.unit.rollout_builders import conversation, meta, no_warning, raw_line, stored, written
from tests.unit.session_builders import session, turn_lines


def summarized(ordinal: int, *items: ResponseItem) -> bytes:
    payload = records.compacted_payload("", list(items), window=1)
    return records.encode_line(ordinal, "compacted", payload, timestamp="2026-11-21T22:02:11.207Z")


def texts(path: Path, before: int | None = None) -> list[str]:
    return [item.decode()["content"][0]["text"] for item in load_session(path, before=before).items]


def test_turns_are_counted_by_what_the_user_said(tmp_path: Path) -> None:
    path = session(tmp_path, "a", "b", "c")

    assert [(one.number, one.prompt, one.begins, one.ends) for one in read_turns(path)] == [
        (1, "a", 1, 9),
        (2, "b", 9, 17),
        (3, "c", 17, None),
    ]


def test_work_between_two_turns_belongs_to_neither(tmp_path: Path) -> None:
    between = raw_line("event_msg", records.task_started_payload("t", window=None), ordinal=9)
    lines = [*turn_lines("a", "A", ordinal=1), between, summarized(10, message("user", "sum"))]
    path = written(tmp_path, [*lines, *turn_lines("b", "B", ordinal=11)])

    assert [(one.prompt, one.begins, one.ends) for one in read_turns(path)] == [("a", 1, 9), ("b", 11, None)]
    assert texts(path, end_of_turn(path, 1)) == ["a", "A"]
    assert texts(path, end_of_turn(path, 2)) == ["sum", "b", "B"]


@pytest.mark.parametrize("number", [0, -1, 3])
def test_a_turn_that_is_not_there_is_reported(tmp_path: Path, number: int) -> None:
    path = session(tmp_path, "a", "b")

    with pytest.raises(UserError, match=f"no turn {number} in session `{path.stem[-36:]}`, which has 2 turns"):
        end_of_turn(path, number)


def test_a_fork_holds_a_copy_of_what_it_takes_over(tmp_path: Path) -> None:
    parent = session(tmp_path, "a", "b")
    before = load_session(parent, before=end_of_turn(parent, 1))
    header = meta(forked_from_id=parent.stem[-36:])
    inherited = Inherited(lambda: inherited_lines(parent, before=before.next_ordinal), before.next_ordinal)
    recorder = RolloutRecorder.create(tmp_path, header, warn=no_warning, inherited=inherited)
    assert not recorder.path.exists()

    recorder.record("response_item", message("user", "another way").encoded)
    recorder.close()

    parent.unlink()
    assert [record.ordinal for record in read_rollout(recorder.path)] == list(range(10))
    assert texts(recorder.path) == ["a", "did a", "another way"]
    assert load_session(recorder.path).meta.forked_from_id == parent.stem[-36:]
    assert [path.name for path in recorder.path.parent.iterdir()] == [recorder.path.name]


def test_a_fork_whose_parent_is_gone_before_its_first_record_goes_on_unsaved(tmp_path: Path) -> None:
    parent = session(tmp_path, "a")
    inherited = Inherited(lambda: inherited_lines(parent, before=100), 100)
    warnings: list[str] = []
    recorder = RolloutRecorder.create(
        tmp_path, meta(forked_from_id=parent.stem[-36:]), warn=warnings.append, inherited=inherited
    )
    parent.unlink()

    recorder.record("response_item", message("user", "first").encoded)
    recorder.record("response_item", message("user", "second").encoded)
    recorder.close()

    reason = f"cannot read session `{parent}`: no such file or directory"
    assert warnings == [f"not saved: cannot write `{recorder.path}`: {reason}"]
    assert list(recorder.path.parent.iterdir()) == []


def test_a_fork_of_a_fork_that_reads_its_parent_stands_alone(tmp_path: Path) -> None:
    parent = session(tmp_path, "a", "b")
    header = meta(forked_from_id=parent.stem[-36:], forked_from_ordinal_exclusive=9)
    child = written(tmp_path, turn_lines("c", "C", ordinal=10), header)

    lines = list(inherited_lines(child, before=load_session(child).next_ordinal))

    assert [one.prompt for one in read_turns(child)] == ["a", "c"]
    alone = written(tmp_path, lines)
    assert texts(alone) == texts(child) == ["a", "did a", "c", "C"]


def test_damage_is_not_taken_over(tmp_path: Path) -> None:
    path = session(tmp_path, "a")
    path.write_bytes(path.read_bytes() + b'garbage\n{"timestamp":"2026-')

    assert b"garbage" not in b"".join(inherited_lines(path, before=100))
    assert all(line.endswith(b"}\n") for line in inherited_lines(path, before=100))


@pytest.mark.parametrize("size", [0, 3 * 1024 * 1024])
def test_what_a_compaction_replaced_is_passed_over_and_the_rest_of_it_counts(tmp_path: Path, size: int) -> None:
    long = message("user", "x" * size + ',"type":"compacted","payload":{')
    context = raw_line("world_state", {"full": True, "state": {"model": "m"}}, ordinal=10)
    after = [summarized(11, message("user", "sum")), *turn_lines("b", "B", ordinal=12)]
    fake = raw_line("response_item", long.decode(), ordinal=9)
    path = written(tmp_path, [*turn_lines("a", "A", ordinal=1), fake, context, *after, fake.replace(b":9,", b":20,")])
    loaded = load_session(path)

    assert texts(path)[:3] == ["sum", "b", "B"]
    assert loaded.items[3] == long
    assert (loaded.world_state, loaded.window, loaded.next_ordinal, loaded.warnings) == ({"model": "m"}, 1, 21, ())


def test_a_compaction_that_is_not_whole_replaces_nothing(tmp_path: Path) -> None:
    torn = summarized(9, message("user", "sum"))[:-20] + b"\n"
    path = written(tmp_path, [*turn_lines("a", "A", ordinal=1), torn, *turn_lines("b", "B", ordinal=10)])

    assert texts(path) == ["a", "A", "b", "B"]


def test_the_story_tells_what_a_compaction_replaced_and_what_came_after(tmp_path: Path) -> None:
    first = turn_lines("a", "A", ordinal=1)
    failed = raw_line("event_msg", records.error_payload("server said no"), ordinal=18)
    path = written(tmp_path, [*first, summarized(9, message("user", "sum")), *turn_lines("b", "B", ordinal=10), failed])
    story = read_transcript(path)

    def result(parts: list[object]) -> list[object]:
        found: list[object] = []
        for part in parts:
            match part:
                case TranscriptItem(turn, _, value):
                    found.append((turn, value["content"][0]["text"]))
                case TranscriptCompaction(_, _, _, replaced, items):
                    found.append((replaced, [item.decode()["content"][0]["text"] for item in items]))
                case TranscriptFailure(turn, _, text):
                    found.append((turn, "failed", text))
                case _:
                    raise AssertionError(part)
        return found

    assert result(list(before_compaction(story))) == [(1, "a"), (1, "A")]
    assert result(list(live(story))) == [(2, ["sum"]), (2, "b"), (2, "B"), (2, "failed", "server said no")]


def test_a_story_without_a_compaction_is_live_as_a_whole(tmp_path: Path) -> None:
    story = read_transcript(stored(tmp_path, conversation(4)))

    assert before_compaction(story) == []
    assert [
        ResponseItem.from_wire(result.value) for result in live(story) if isinstance(result, TranscriptItem)
    ] == conversation(4)


def test_hostile_records_end_no_story(tmp_path: Path) -> None:
    payloads: list[object] = [{"type": 1}, {"type": "message", "content": 5}, {"type": "item_completed", "item": []}]
    lines = [
        records.encode_line(n + 1, kind, encode_json(payload), timestamp="2026-11-21T22:02:11.207Z")
        for n, (kind, payload) in enumerate(
            (k, p) for k in ("response_item", "event_msg", "compacted") for p in payloads
        )
    ]

    read_transcript(written(tmp_path, [*lines, b"[" * 10_000 + b"\n", b"\xff\n"]))

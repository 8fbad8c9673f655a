"""The lines of a session file are JSON: whichever way a program lays them out, every reader finds the same in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from codex_py.protocol.encoding import as_object, decode_json
from codex_py.protocol.items import ResponseItem, message
from codex_py.rollout import format as records
from codex_py.rollout.listing import SessionQuery, latest_session, list_sessions
from codex_py.rollout.reader import load_session
from codex_py.rollout.records import inherited_lines, read_head
from codex_py.rollout.stored_turns import past_turns
from codex_py.rollout.summary import read_summary
from codex_py.rollout.transcript import TranscriptItem, read_transcript, read_turns
from tests.unit.rollout_builders import STAMP, meta, raw_line, written
from tests.unit.session_builders import turn_lines

Layout: TypeAlias = Callable[[dict[str, Any]], str]


def _reversed(value: Any) -> Any:
    """The same object with the last key first, all the way down, but for items, whose order of keys is kept."""
    fields = as_object(value)
    if not fields:
        return value
    return {key: one if key == "replacement_history" else _reversed(one) for key, one in reversed(fields.items())}


def _padded(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=1).replace("\n", " ")


LAYOUTS: Final[dict[str, Layout]] = {
    "spaces": json.dumps,
    "padded": _padded,
    "last key first": lambda value: json.dumps(_reversed(value)),
    "last key first, compact": lambda value: json.dumps(_reversed(value), separators=(",", ":")),
    "sorted": lambda value: json.dumps(value, sort_keys=True),
    "more keys": lambda value: json.dumps({**value, "extra": {"type": "event_msg"}}, separators=(",", ":")),
    "indented payload": lambda value: json.dumps(value, separators=(",", ":")).replace('"payload":{', '"payload": { '),
}


def _whole_session(home: Path) -> Path:
    """A session with everything that a reader looks for, in our own layout."""
    context = {"turn_id": "t", "cwd": "/moved", "model": "gpt-5.2"}
    compaction = records.compacted_payload("sum", [message("user", "kept")], window=1, work_state={"plan": []})
    odd = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": '"type":"token_count"'}]}
    lines = [
        *turn_lines("first", "one", ordinal=1, cwd="/work", stamp=STAMP),
        records.encode_line(9, "compacted", compaction, timestamp=STAMP),
        raw_line("world_state", {"full": True, "state": {"model": "m"}}, ordinal=10, stamp=STAMP),
        raw_line("event_msg", records.error_payload("it failed"), ordinal=11, stamp=STAMP),
        *turn_lines("second", "two", ordinal=12, cwd="/work", stamp=STAMP, tokens=140),
        raw_line("turn_context", context, ordinal=20, stamp=STAMP),
        raw_line("early_input", message("user", "unheard").decode(), ordinal=21, stamp=STAMP),
        raw_line(
            "early_output", {"type": "function_call_output", "call_id": "c", "output": "x"}, ordinal=22, stamp=STAMP
        ),
        raw_line("response_item", odd, ordinal=23, stamp=STAMP),
    ]
    return written(home, lines, meta("01a20027-2345-79b2-bdc3-b28e73fdbaf0", cwd="/work"))


def _decoded(items: tuple[ResponseItem, ...]) -> list[dict[str, Any]]:
    return [item.decode() for item in items]


def _seen(path: Path, home: Path) -> dict[str, Any]:
    """What every reader makes of a session file."""
    stored = load_session(path)
    return {
        "items": _decoded(stored.items),
        "unheard": _decoded(stored.unheard),
        "late outputs": {call: item.decode() for call, item in stored.pending_outputs.items()},
        "loaded": stored.replace(items=(), unheard=(), pending_outputs={}, size=0),
        "earlier": _decoded(load_session(path, before=9).items),
        "summary": read_summary(path),
        "turns": read_turns(path),
        "story": [
            (one.turn, one.value if isinstance(one, TranscriptItem) else one.message) for one in read_transcript(path)
        ],
        "past turns": [(turn.id, turn.end, turn.error, len(turn.items)) for turn in past_turns(path)],
        "forked": [
            decode_json(line)["payload"]["type"] for line in inherited_lines(path, before=9) if b"message" in line
        ],
        "listed": list_sessions(home, SessionQuery(Path("/moved"))),
        "latest": latest_session(home, Path("/moved")),
    }


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_every_reader_finds_the_same_in_every_layout(tmp_path: Path, layout: Layout) -> None:
    path = _whole_session(tmp_path)
    expected = _seen(path, tmp_path)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(layout(line) + "\n" for line in lines))

    seen = _seen(path, tmp_path)

    assert expected["summary"] is not None
    assert (expected["summary"].first_prompt, expected["summary"].tokens) == ("first", 140)
    assert expected["loaded"].warnings == ()
    assert seen == expected


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_torn_line_in_any_layout_is_damage_and_nothing_else(tmp_path: Path, layout: Layout) -> None:
    path = _whole_session(tmp_path)
    lines = [layout(json.loads(line)) for line in path.read_text().splitlines()]
    # What stands before a compaction may be passed over unread.
    for place in range(10, len(lines)):
        torn = [*lines[:place], lines[place][: len(lines[place]) * 2 // 3], *lines[place + 1 :]]
        path.write_text("\n".join(torn) + "\n")

        stored = load_session(path)

        assert stored.warnings == (f"skipped 1 damaged line in `{path}`",), lines[place]
        assert read_summary(path) is not None


@pytest.mark.parametrize(
    ("stamp", "updated"),
    [
        ("2026-11-22T08:00:00Z", "2026-11-22T08:00:00Z"),
        ("2026-11-22T08:00:00.123456789Z", "2026-11-22T08:00:00.123456789Z"),
        ("2026-11-22T09:00:00+01:00", "2026-11-22T08:00:00.000Z"),
        ("2026-11-22T08:00:00", "2026-11-22T08:00:00.000Z"),
    ],
)
def test_a_time_stamp_in_another_form_keeps_its_session_in_the_list(tmp_path: Path, stamp: str, updated: str) -> None:
    path = _whole_session(tmp_path)
    lines = [{**json.loads(line), "timestamp": stamp} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    [listed] = list_sessions(tmp_path, SessionQuery())

    assert listed.updated == updated
    assert load_session(path).warnings == ()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{}",
        b"[1]",
        b'"text"',
        b"null",
        b'{"type":"event_msg","payload":{"type":"x"}}',
        b'{"timestamp":"yesterday","type":"event_msg","payload":{"type":"x"}}',
        b'{"timestamp":"2026-11-22T08:00:00Z","type":5,"payload":{}}',
        b'{"timestamp":"2026-11-22T08:00:00Z","type":"with space","payload":{}}',
        b'{"timestamp":"2026-11-22T08:00:00Z","type":"event_msg","payload":{"a":1e999}}',
        b'{"type":"event_msg"',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_what_is_no_record_has_no_head(line: bytes) -> None:
    assert read_head(line) is None

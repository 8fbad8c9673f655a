from __future__ import annotations

import random
from pathlib import Path

from codex_py.protocol.items import ResponseItem, message
from codex_py.rollout.reader import load_session
from tests.unit.rollout_builders import append, conversation, meta, raw_line, stored, written

NEXT = message("user", "and then?")


def last_lines(whole: bytes, count: int) -> int:
    """Where the last `count` lines begin."""
    return len(whole) - len(b"".join(whole.splitlines(keepends=True)[-count:]))


def test_a_file_cut_at_any_byte_keeps_every_whole_item_and_goes_on(tmp_path: Path) -> None:
    items = conversation(8)
    path = stored(tmp_path, items)
    whole = path.read_bytes()

    for length in range(last_lines(whole, 3), len(whole) + 1):
        path.write_bytes(whole[:length])
        # A line that lacks nothing but its newline is whole.
        left = [item for item in items if item.encoded + b"}" in whole[:length]]
        torn = b"\n" not in whole[length - 1 : length + 1]

        session = load_session(path)
        append(path, NEXT)
        after = load_session(path)

        assert session.items == tuple(left), length
        assert len(session.warnings) == torn, length
        assert session.next_ordinal == len(left) + 1
        assert after.items == (*left, NEXT), length
        assert path.read_bytes().startswith(whole[:length])


def test_a_cut_that_looks_like_an_end_is_not_taken_for_one(tmp_path: Path) -> None:
    item = ResponseItem.from_wire({"type": "custom", "a": {"b": {}}, "text": '{"c":{}}', "z": 1})
    line = raw_line("response_item", item.decode(), ordinal=1)
    cuts = [line[:end] for end in range(len(line) - 1) if line[:end].endswith(b"}}")]
    path = written(tmp_path, [cut + b"\n" for cut in cuts] + [raw_line("response_item", NEXT.decode(), ordinal=1)])

    session = load_session(path)

    assert len(cuts) == 2
    assert session.items == (NEXT,)
    assert session.warnings == (f"skipped 2 damaged lines in `{path}`",)


def test_junk_between_lines_costs_one_warning_and_no_item(tmp_path: Path) -> None:
    chance = random.Random(11)
    items = conversation(12)
    path = stored(tmp_path, items)
    whole = path.read_bytes().splitlines(keepends=True)

    for _ in range(150):
        lines = list(whole)
        for _ in range(chance.randint(1, 4)):
            torn = chance.choice(whole)
            junk = chance.choice(
                [
                    bytes(chance.randrange(256) for _ in range(60)).replace(b"\n", b""),
                    b"\0" * 200,
                    torn[: chance.randrange(1, len(torn) - 2)],
                    b'{"type":"response_item","payload":{"type":"message"}}',
                    b"[" * 5000,
                    b'{"timestamp":1,"type":"response_item"}',
                    b"null",
                ]
            )
            lines.insert(chance.randrange(1, len(lines) + 1), junk + b"\n")
        path.write_bytes(b"".join(lines))

        session = load_session(path)

        assert session.items == tuple(items)
        assert len(session.warnings) == 1
        assert session.next_ordinal == len(items) + 1


def test_flipped_bytes_never_reach_a_request(tmp_path: Path) -> None:
    chance = random.Random(12)
    items = conversation(12)
    path = stored(tmp_path, items)
    whole = path.read_bytes()
    header = whole.index(b"\n") + 1

    for _ in range(400):
        spoilt = bytearray(whole)
        for _ in range(chance.randint(1, 5)):
            spoilt[chance.randrange(header, len(whole))] = chance.randrange(256)
        path.write_bytes(spoilt)

        session = load_session(path)

        assert all(item.encoded.startswith(b'{"type":') and item.decode() for item in session.items)
        untouched = [item for item in items if b':"response_item","payload":' + item.encoded + b"}\n" in spoilt]
        assert len(set(untouched) & set(session.items)) >= len(untouched) - 5


def test_records_on_a_torn_line_are_found(tmp_path: Path) -> None:
    first, second = (raw_line("response_item", item.decode(), ordinal=1) for item in conversation(2))
    glued = first[:40] + first.rstrip() + second.rstrip() + b"\0\0\0" + first
    path = written(tmp_path, [glued])

    session = load_session(path)

    assert session.items == (conversation(2)[0], conversation(2)[0])
    assert session.warnings == (f"skipped 1 damaged line in `{path}`",)


def test_empty_lines_are_no_damage(tmp_path: Path) -> None:
    path = stored(tmp_path, conversation())
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n\n \n"))

    assert load_session(path).items == tuple(conversation())
    assert load_session(path).warnings == ()


def test_a_torn_count_gives_way_to_the_one_before(tmp_path: Path) -> None:
    counts = {"total_token_usage": {"input_tokens": 7}, "last_token_usage": {"input_tokens": 3}}
    good = raw_line("event_msg", {"type": "token_count", "info": counts}, ordinal=1)
    context = raw_line("turn_context", {"cwd": "/a", "nested": {"x": {}}}, ordinal=2)
    cut = context[: context.index(b"{}") + 2] + b"}\n"
    path = written(tmp_path, [good, good[:-5] + b"}}\n", context, cut, b"\n"], meta())

    session = load_session(path)

    assert (session.usage.input_tokens, session.last_usage.input_tokens) == (7, 3)
    assert session.turn_context == {"cwd": "/a", "nested": {"x": {}}}


def test_a_damaged_world_state_leaves_the_last_good_one(tmp_path: Path) -> None:
    lines = [
        raw_line("world_state", {"full": True, "state": {"a": 1, "b": {"c": 2}}}, ordinal=1),
        b'{"timestamp":"2026-11-21T22:02:11.207Z","ordinal":2,"type":"world_state","payload":{"full":false,"sta\n',
        raw_line("world_state", {"full": False, "state": {"b": {"d": 3}, "a": None}}, ordinal=3),
    ]

    assert load_session(written(tmp_path, lines)).world_state == {"b": {"c": 2, "d": 3}}

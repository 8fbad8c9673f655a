from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from codex_py.errors import UserError
from codex_py.protocol.encoding import encode_json, uuid7
from codex_py.protocol.items import ResponseItem, message
from codex_py.protocol.usage import TokenUsage
from codex_py.rollout import format as rollout_format
from codex_py.rollout.listing import damaged_sessions, find_session, latest_session
from codex_py.rollout.reader import load_session
from codex_py.rollout.replay import Replay
from tests.support.work import within
from tests.unit.rollout_builders import STAMP, append, conversation, meta, raw_line, stored, written

CODEX_CLI_ID = "01a20021-9784-7300-8a35-570e3b27962e"

# As Codex CLI 0.169 writes a turn; the texts are ours.
CODEX_CLI_SESSION = """\
{"timestamp":"2026-11-21T22:02:11.250Z","ordinal":0,"type":"session_meta","payload":{"account_scoped":true,"session_id":"01a20021-9784-7300-8a35-570e3b27962e","id":"01a20021-9784-7300-8a35-570e3b27962e","timestamp":"2026-11-21T22:02:11.207Z","cwd":"/repo","runtime_workspace_roots":["/repo"],"originator":"codex_exec","cli_version":"0.169.0","source":"exec","thread_source":"user","model_provider":"x","base_instructions":{"text":"Short text.","provenance":{"type":"model","model":"gpt-5.5"}},"history_mode":"paginated","context_window":{"window_id":"01a20021-9786-7a82-8433-0afab2c00ae8"},"git":{}}}
{"timestamp":"2026-11-21T22:02:11.251Z","ordinal":1,"type":"event_msg","payload":{"type":"task_started","turn_id":"t1","root_turn_id":"t1","started_at":1795298531,"model_context_window":258400,"collaboration_mode_kind":"default"}}
{"timestamp":"2026-11-21T22:02:11.252Z","ordinal":2,"type":"response_item","payload":{"type":"message","id":"msg_1","role":"developer","content":[{"type":"input_text","text":"rules"}],"internal_chat_message_metadata_passthrough":{"turn_id":"t1","create_time":1795298531.05,"content_item_kinds":["permissions.instructions"]}},"metadata":{"history_sequence":1,"sampled_through_sequence":0,"client_authored":false,"mcp_attribution":{"status":"none"}}}
{"timestamp":"2026-11-21T22:02:11.253Z","ordinal":3,"type":"world_state","payload":{"full":true,"state":{"agents_md":{},"environments":{"current_date":"2026-11-21","timezone":"Etc/UTC"},"model":"gpt-5.5"}}}
{"timestamp":"2026-11-21T22:02:11.254Z","ordinal":4,"type":"turn_context","payload":{"turn_id":"t1","cwd":"/repo","approval_policy":"never","permission_profile":{"type":"disabled"},"model":"gpt-5.5","summary":"none","sandbox_policy":{"type":"danger-full-access"}}}
{"timestamp":"2026-11-21T22:02:11.255Z","ordinal":5,"type":"response_item","payload":{"type":"function_call","id":"fc_0","name":"exec_command","arguments":"{\\"cmd\\": \\"ls\\"}","call_id":"c4","internal_chat_message_metadata_passthrough":{"turn_id":"t1"}},"metadata":{"history_sequence":4,"sampled_through_sequence":3,"client_authored":false,"user_input_order":1}}
{"timestamp":"2026-11-21T22:02:11.256Z","ordinal":6,"type":"token_usage_record","payload":{"thread_id":"x","turn_id":"t1","response_id":"r","usage":{"input_tokens":10,"cached_input_tokens":1,"cache_write_input_tokens":0,"output_tokens":5,"reasoning_output_tokens":2,"total_tokens":15},"turn_token_usage":{"input_tokens":10},"thread_token_usage":{"input_tokens":30,"cached_input_tokens":3,"output_tokens":15,"reasoning_output_tokens":6,"total_tokens":45}}}
{"timestamp":"2026-11-21T22:02:11.257Z","ordinal":7,"type":"response_item","payload":{"type":"function_call_output","id":"fco_1","call_id":"c4","output":"hi\\n"},"metadata":{"history_sequence":5,"sampled_through_sequence":3,"client_authored":false}}
{"timestamp":"2026-11-21T22:02:11.258Z","ordinal":8,"type":"event_msg","payload":{"type":"token_count","info":null,"rate_limits":null}}
{"timestamp":"2026-11-21T22:02:12.000Z","ordinal":9,"type":"world_state","payload":{"full":false,"state":{"agents_md":null,"environments":{"current_date":"2026-11-22"},"skills":{}}}}
{"timestamp":"2026-11-21T22:02:12.001Z","ordinal":10,"type":"event_msg","payload":{"type":"task_complete","turn_id":"t1","last_agent_message":null,"duration_ms":5}}
"""  # noqa: E501


def codex_cli_session(home: Path) -> Path:
    path = rollout_format.rollout_path(home, CODEX_CLI_ID, when=STAMP)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(CODEX_CLI_SESSION)
    return path


def test_items_come_back_byte_for_byte(tmp_path: Path) -> None:
    items = [*conversation(8), message("user", "a lone \ud800 surrogate"), message("user", "naïve ␛ 🙂 \x7f")]

    session = load_session(stored(tmp_path, items))

    assert session.items == tuple(items)
    assert session.next_ordinal == len(items) + 1
    assert session.warnings == ()
    assert session.ends_with_newline


def test_a_session_of_codex_cli_loads_whole(tmp_path: Path) -> None:
    session = load_session(codex_cli_session(tmp_path))

    assert [item.encoded for item in session.items] == [
        b'{"type":"message","id":"msg_1","role":"developer","content":[{"type":"input_text","text":"rules"}]}',
        b'{"type":"function_call","id":"fc_0","name":"exec_command",'
        b'"arguments":"{\\"cmd\\": \\"ls\\"}","call_id":"c4"}',
        b'{"type":"function_call_output","id":"fco_1","call_id":"c4","output":"hi\\n"}',
    ]
    assert session.usage == TokenUsage(30, 3, 15, 6, 45)
    assert session.last_usage == TokenUsage(10, 1, 5, 2, 15)
    assert session.turn_context is not None
    assert session.turn_context["permission_profile"] == {"type": "disabled"}
    assert session.world_state == {
        "environments": {"current_date": "2026-11-22", "timezone": "Etc/UTC"},
        "model": "gpt-5.5",
        "skills": {},
    }
    assert (session.meta.id, session.meta.base_instructions) == (CODEX_CLI_ID, "Short text.")
    assert (session.next_ordinal, session.window, session.warnings) == (11, 0, ())


def test_files_from_before_ordinals_and_with_other_layouts_load(tmp_path: Path) -> None:
    header = meta()
    item = {"role": "user", "type": "message", "content": [{"type": "input_text", "text": "hi"}]}
    lines = [
        {"timestamp": STAMP, "type": "session_meta", "payload": header.to_payload()},
        {"timestamp": STAMP, "type": "event_msg", "payload": {"type": "user_message", "message": "hi"}},
        {"timestamp": STAMP, "type": "response_item", "payload": {"type": "ghost_snapshot", "ghost_commit": {}}},
        {"payload": item, "type": "response_item", "timestamp": STAMP},
        {"type": "event_msg", "timestamp": STAMP, "payload": {"type": "agent_message", "message": "ho"}},
    ]
    path = rollout_format.rollout_path(tmp_path, header.id, when=STAMP)
    path.parent.mkdir(parents=True)
    path.write_text("".join(json.dumps(line) + "\r\n" for line in lines))

    session = load_session(path)

    assert session.items == (message("user", "hi"),)
    assert (session.next_ordinal, session.warnings) == (5, ())


def test_a_session_that_says_all_since_its_compaction_is_read_from_there(tmp_path: Path) -> None:
    path = stored(tmp_path, conversation(8))
    kept = [message("user", "näïve ␛ 🙂"), ResponseItem(b'{"type":"odd","number":1.50,"text":"\\u00e9 \\ud800"}')]
    compacted = rollout_format.compacted_payload('say "so"', kept, window=3, work_state={"plan": []})
    since = [
        (b"compacted", compacted),
        (b"world_state", b'{"full":true,"state":{"model":"m"}}'),
        (b"turn_context", b'{"turn_id":"t","cwd":"/repo"}'),
        (b"event_msg", b'{"type":"token_count","info":{"total_token_usage":{"input_tokens":7,"total_tokens":9}}}'),
        (b"response_item", message("user", "on").encoded),
    ]
    # Where everything is read, this costs a warning.
    damage = b"what a fault left here\n"
    content = path.read_bytes() + damage
    for ordinal, (kind, payload) in enumerate(since, 20):
        content += b'{"timestamp":"%s","ordinal":%d,"type":"%s","payload":%s}\n' % (
            STAMP.encode(),
            ordinal,
            kind,
            payload,
        )
    path.write_bytes(content)

    session = load_session(path)

    assert session.items == (*kept, message("user", "on"))
    assert (session.window, session.next_ordinal, session.size) == (3, 25, len(content))
    assert session.usage == TokenUsage(input_tokens=7, total_tokens=9)
    assert (session.world_state, session.work_state) == ({"model": "m"}, {"plan": []})
    assert session.turn_context == {"turn_id": "t", "cwd": "/repo"}
    assert (session.warnings, session.covered) == ((), 2)


@pytest.mark.parametrize("missing", [b"world_state", b"turn_context", b"token_count", b"work_state", b"window_number"])
def test_what_was_not_said_again_since_a_compaction_is_found_before_it(tmp_path: Path, missing: bytes) -> None:
    result = b"".join(
        b'{"timestamp":"%s","ordinal":%d,"type":"%s","payload":%s}\n' % (STAMP.encode(), ordinal, kind, payload)
        for ordinal, (kind, payload) in enumerate(
            [
                (b"world_state", b'{"full":true,"state":{"model":"m"}}'),
                (b"turn_context", b'{"turn_id":"t","cwd":"/repo"}'),
                (b"event_msg", b'{"type":"token_count","info":{"total_token_usage":{"total_tokens":9}}}'),
            ],
            1,
        )
    )
    first = rollout_format.compacted_payload("", [message("user", "a")], window=1, work_state={"plan": ["b"]})
    again = rollout_format.compacted_payload("", [message("user", "b")], window=2, work_state={"plan": ["b"]})
    if missing == b"work_state":
        again = again.replace(b',"work_state":{"plan":["b"]}', b"")
    if missing == b"window_number":
        again = again.replace(b',"window_number":2', b"")
    path = stored(tmp_path, conversation(4))
    line = b'{"timestamp":"%s","ordinal":%d,"type":"compacted","payload":%s}\n'
    content = path.read_bytes() + result + line % (STAMP.encode(), 30, first) + line % (STAMP.encode(), 31, again)
    content += b"".join(one for one in result.splitlines(keepends=True) if missing not in one)
    path.write_bytes(content)

    session = load_session(path)

    assert session.items == (message("user", "b"),)
    assert session.window == 2
    assert session.usage == TokenUsage(total_tokens=9)
    assert (session.world_state, session.work_state) == ({"model": "m"}, {"plan": ["b"]})
    assert session.turn_context == {"turn_id": "t", "cwd": "/repo"}


def test_an_old_compaction_without_a_history_keeps_what_the_user_said(tmp_path: Path) -> None:
    before = [raw_line("response_item", item.decode(), ordinal=n) for n, item in enumerate(conversation(4), 1)]
    lines = [*before, raw_line("compacted", {"message": "the summary"}, ordinal=5)]

    session = load_session(written(tmp_path, lines))

    assert session.items == (message("user", "q 0"), message("user", "the summary"))
    assert session.window == 1


@pytest.mark.parametrize(("archived", "ordinals"), [(False, 3), (True, 3), (False, 0), (False, 100)])
def test_a_fork_reads_its_parent_up_to_the_fork(tmp_path: Path, archived: bool, ordinals: int) -> None:
    items = conversation(8)
    parent = stored(tmp_path, items)
    parent_id = load_session(parent).meta.id
    if archived:
        (tmp_path / "archived_sessions").mkdir()
        parent.rename(tmp_path / "archived_sessions" / parent.name)
    header = meta(forked_from_id=parent_id, forked_from_ordinal_exclusive=ordinals)

    child = stored(tmp_path, [message("user", "own way")], header)

    assert load_session(child).items == (*items[: max(0, ordinals - 1)], message("user", "own way"))
    assert load_session(child).next_ordinal == ordinals + 2
    assert load_session(child).warnings == ()


def test_a_fork_of_a_fork_reads_all_its_ancestors(tmp_path: Path) -> None:
    items = conversation(8)
    eldest = meta()
    stored(tmp_path, items, eldest)
    middle = meta(forked_from_id=eldest.id, forked_from_ordinal_exclusive=5)
    stored(tmp_path, [message("user", "m1"), message("user", "m2")], middle)
    youngest = meta(forked_from_id=middle.id, forked_from_ordinal_exclusive=7)

    session = load_session(stored(tmp_path, [message("user", "y")], youngest))

    assert session.items == (*items[:4], message("user", "m1"), message("user", "y"))


def test_a_fork_without_its_parent_is_refused_and_a_circle_ends(tmp_path: Path) -> None:
    lost = meta(forked_from_id=uuid7(), forked_from_ordinal_exclusive=3)
    circle = uuid7()

    with pytest.raises(UserError, match=f"continues session `{lost.forked_from_id}`, which is not there"):
        load_session(written(tmp_path, [], lost))
    with pytest.raises(UserError, match=f"continues session `{circle}`"):
        load_session(written(tmp_path, [], meta(circle, forked_from_id=circle, forked_from_ordinal_exclusive=3)))


def test_a_session_is_found_by_its_id(tmp_path: Path) -> None:
    path = stored(tmp_path, conversation())
    thread_id = load_session(path).meta.id

    assert find_session(tmp_path, thread_id) == path
    assert find_session(tmp_path, f" {thread_id.upper()} ") == path


def test_an_unknown_id_is_named(tmp_path: Path) -> None:
    thread_id = uuid7()

    with pytest.raises(UserError, match=f"no session with id `{thread_id}`"):
        find_session(tmp_path, thread_id)


def test_an_archived_session_says_how_to_get_it_back(tmp_path: Path) -> None:
    path = stored(tmp_path, conversation())
    thread_id = load_session(path).meta.id
    (tmp_path / "archived_sessions").mkdir()
    path.rename(tmp_path / "archived_sessions" / path.name)

    with pytest.raises(UserError, match=f"session `{thread_id}` is archived") as raised:
        find_session(tmp_path, thread_id)

    assert raised.value.hint == f"`codex-py unarchive {thread_id}` brings it back"


def test_the_latest_session_is_the_one_written_to_last_whatever_its_file_says(tmp_path: Path) -> None:
    def session(stamp: str, cwd: str = "/work", **fields: Any) -> Path:
        return written(
            tmp_path, [raw_line("event_msg", {"type": "x"}, ordinal=1, stamp=stamp)], meta(cwd=cwd, **fields)
        )

    newest = session("2026-11-21T23:00:02.000Z")
    session("2026-11-21T23:00:01.000Z")
    elsewhere = session("2026-11-21T23:00:09.000Z", cwd="/other")
    session("2026-11-21T23:00:10.000Z", source={"subagent": "review"})
    os.utime(newest, (1, 1))

    assert latest_session(tmp_path, Path("/work")) == newest
    assert latest_session(tmp_path, None) == elsewhere
    with pytest.raises(UserError, match="no session to resume in `/nowhere`"):
        latest_session(tmp_path, Path("/nowhere"))


def test_the_latest_session_follows_where_a_session_last_worked(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        [
            raw_line("turn_context", {"cwd": "/work"}, ordinal=1),
            raw_line("turn_context", {"cwd": "/moved"}, ordinal=2),
            raw_line("response_item", message("user", '{"type":"turn_context"}' * 9).decode(), ordinal=3),
        ],
    )

    assert latest_session(tmp_path, Path("/moved")) == path
    with pytest.raises(UserError):
        latest_session(tmp_path, Path("/work"))


def test_a_linked_working_directory_counts_as_its_target(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    path = stored(tmp_path, conversation(), meta(cwd=str(tmp_path / "link")))

    assert latest_session(tmp_path, tmp_path / "real") == path


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "it is empty"),
        (b"\0" * 5000, "its first line is damaged"),
        (os.urandom(5000), "its first line is damaged"),
        (b'{"timestamp":"2026', "its first line is damaged"),
        (b"[" * 100_000, "its first line is damaged"),
        (b"{}\n", "its first line is no session header"),
        (b"[1]\n", "its first line is no session header"),
        (raw_line("response_item", {"type": "message"}), "its first line is no session header"),
        (raw_line("session_meta", {"id": "../x"}), "its first line is no session header"),
    ],
    ids=["empty", "zeros", "noise", "torn", "nested", "object", "array", "item", "path-as-id"],
)
def test_a_file_without_a_header_is_named_and_no_older_one_is_taken_for_it(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    good = stored(tmp_path, conversation())
    bad = good.with_name(good.name.replace(good.stem[-36:], uuid7()))
    newest = raw_line("event_msg", {"type": "x"}, stamp="2099-01-01T00:00:00.000Z")
    bad.write_bytes(content + newest if content else b"")

    with pytest.raises(UserError) as raised:
        load_session(bad)

    assert str(raised.value) == f"cannot read session `{bad}`: {reason}"
    if not content:
        assert latest_session(tmp_path, None) == good
        return
    with pytest.raises(UserError) as raised:
        latest_session(tmp_path, None)
    assert str(raised.value) == f"cannot resume the latest session, `{bad}`: its first line is damaged"
    assert raised.value.hint == f"`codex-py resume {load_session(good).meta.id}` opens the one before it"


def test_a_damaged_session_that_is_older_or_elsewhere_stands_in_nobodys_way(tmp_path: Path) -> None:
    good = stored(tmp_path, conversation())
    other = good.with_name(good.name.replace(good.stem[-36:], uuid7()))
    other.write_bytes(b"x\n" + raw_line("event_msg", {"type": "x"}, stamp="2001-01-01T00:00:00.000Z"))
    assert latest_session(tmp_path, None) == good
    settings = raw_line("turn_context", {"cwd": "/elsewhere"}, stamp="2099-01-01T00:00:00.000Z")
    other.write_bytes(b"x\n" + settings)
    assert latest_session(tmp_path, Path(load_session(good).meta.cwd)) == good
    assert [found.path for found in damaged_sessions(tmp_path, Path("/elsewhere"))] == [other]


def test_links_fifos_and_devices_are_refused_at_once(tmp_path: Path) -> None:
    good = stored(tmp_path, conversation())
    outside = tmp_path / "secret.jsonl"
    outside.write_bytes(good.read_bytes())
    link, fifo = (good.with_name(good.name.replace(good.stem[-36:], uuid7())) for _ in range(2))
    link.symlink_to(outside)
    os.mkfifo(fifo)

    for path in (link, fifo, Path("/dev/zero"), tmp_path):
        with pytest.raises(UserError, match="not a regular file"):
            load_session(path)
    with pytest.raises(UserError, match="not a regular file"):
        load_session(find_session(tmp_path, link.stem[-36:]))
    assert latest_session(tmp_path, None) == good


def test_directories_that_are_links_are_not_entered(tmp_path: Path) -> None:
    path = stored(tmp_path / "elsewhere", conversation())
    (tmp_path / "home/sessions").mkdir(parents=True)
    (tmp_path / "home/sessions/2026").symlink_to(path.parents[2])

    with pytest.raises(UserError, match="no session with id"):
        find_session(tmp_path / "home", path.stem[-36:])


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_other_peoples_files_are_refused(tmp_path: Path) -> None:
    path = stored(tmp_path, conversation())
    os.chown(path, 12345, -1)

    with pytest.raises(UserError, match="not a file of yours"):
        load_session(path)


def test_two_thousand_turns_load_in_one_pass(tmp_path: Path) -> None:
    text = "    return self.value  # a line of code, né\n" * 40
    items = [item for n in range(2000) for item in (message("user", f"{n}"), message("developer", text))]
    lines = [raw_line("response_item", item.decode(), ordinal=n, stamp=STAMP) for n, item in enumerate(items, 1)]
    path = written(tmp_path, lines)

    session = within(300 * len(items), lambda: load_session(path))

    assert session.items == tuple(items)


HEAD = raw_line("response_item", {}, ordinal=3)[:-3]
MEGABYTE = 1 << 20


HOSTILE = [
    HEAD * (MEGABYTE // len(HEAD)),
    (HEAD + b'{"type":"x"') * (MEGABYTE // 100),
    HEAD + b"[" * MEGABYTE,
    HEAD + b'{"a":' * (MEGABYTE // 5),
    HEAD + b'{"type":"x","n":' + b"9" * MEGABYTE + b"}}",
    HEAD + b'"' * MEGABYTE,
    HEAD + b'{"type":"' + b"\\" * MEGABYTE,
    b'{"timestamp":"' * (MEGABYTE // 14),
    b"\0" * MEGABYTE,
    b"\xff" * MEGABYTE,
]


def test_a_line_of_many_compactions_is_read_once(tmp_path: Path) -> None:
    mark = raw_line("compacted", {}, ordinal=3)[:-3]
    path = stored(tmp_path, conversation())
    with path.open("ab") as file:
        file.write(mark * (10 * MEGABYTE // len(mark)) + b"\n")

    assert load_session(path).warnings == (f"skipped 1 damaged line in `{path}`",)


@pytest.mark.parametrize("line", HOSTILE)
def test_a_hostile_megabyte_is_read_in_linear_time(line: bytes) -> None:
    replay = Replay()

    within(5 * len(line), lambda: replay.feed(line + b"\n"))

    assert (replay.items, replay.damaged) == ([], 1)


@pytest.mark.parametrize(
    "payload",
    [
        b'{"type":7}',
        b'{"role":"user"}',
        b'["type"]',
        b'{"type":"a","n":NaN}',
        b'{"n":1e999,"type":"a"}',
        b'{"type":"a","t":"\x01"}',
        b'{"type":"a","t":"\xff"}',
        b'{"type":"a"}}{',
        b'{"type":"a"},"more":',
    ],
)
def test_what_is_no_item_is_skipped(payload: bytes) -> None:
    replay = Replay()

    replay.feed(rollout_format.encode_line(1, "response_item", payload, timestamp=STAMP))

    assert (replay.items, replay.damaged) == ([], 1)


def test_unknown_fields_and_unknown_types_are_kept() -> None:
    item = {"type": "from_the_future", "deep": {"x": [1, 2.5, None]}, "id": "i"}
    replay = Replay()

    replay.feed(raw_line("response_item", item, ordinal=1))
    replay.feed(raw_line("record_of_the_future", {"a": 1}, ordinal=2))

    assert replay.items == [ResponseItem(encode_json(item))]
    assert (replay.damaged, replay.next_ordinal) == (0, 3)


def test_a_session_goes_on_after_codex_cli_wrote_to_it(tmp_path: Path) -> None:
    path = codex_cli_session(tmp_path)

    append(path, message("user", "next"))

    session = load_session(path)
    assert session.items[-1] == message("user", "next")
    assert (len(session.items), session.next_ordinal) == (4, 12)

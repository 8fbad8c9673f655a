"""When a history is compacted, and what is kept of it: the pure parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.context.compaction import is_users_own, summary_item, work_notes
from codex_py.core.compact import paired, with_short_texts, without_oldest
from codex_py.core.compact_survivors import retain_skills, retain_user_messages, user_budget, work_state_of
from codex_py.core.history import History
from codex_py.core.token_usage import ContextMeter, Fill, compaction_limit, is_too_full
from codex_py.core.turn_context import ModelSettings
from codex_py.core.work_log import WorkLog, WorkState
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.events import FileChange, PatchFinished, PlanStep, PlanUpdated, SkillUsed
from codex_py.protocol.items import Message, ResponseItem, ToolCall, call_output, message, message_of_content
from codex_py.protocol.usage import TokenUsage
from codex_py.rollout.format import compacted_payload, encode_line, token_count_payload
from codex_py.rollout.replay import Replay
from codex_py.text.tokens import PICTURE_BYTES, counted_bytes


def settings(**changes: Any) -> ModelSettings:
    value = ModelSettings(
        model="m",
        instructions="",
        effort=None,
        summary=None,
        verbosity=None,
        service_tier=None,
        parallel_tool_calls=True,
        context_window=100_000,
        output_tokens=1000,
    )
    return value.replace(**changes)


def wire(**fields: Any) -> ResponseItem:
    return ResponseItem.from_wire(fields)


def made(call_id: str) -> ResponseItem:
    return wire(type="function_call", call_id=call_id, name="x", arguments="{}")


def answered(call_id: str, text: str = "ok") -> ResponseItem:
    return call_output(ToolCall(call_id, "x", ""), text)


def texts(items: list[ResponseItem]) -> list[str]:
    views = [item.view() for item in items]
    return [view.text for view in views if isinstance(view, Message)]


@pytest.mark.parametrize(
    ("window", "configured", "limit"),
    [
        (272_000, None, 244_800),
        (272_000, 270_000, 244_800),
        (272_000, 5000, 5000),
        (10_000, None, 9000),
        (None, 5000, 5000),
        (None, None, None),
    ],
)
def test_the_limit_is_the_users_and_at_most_nine_tenths_of_the_window(
    window: int | None, configured: int | None, limit: int | None
) -> None:
    assert compaction_limit(window, configured) == limit


@pytest.mark.parametrize(
    ("fill", "changes", "full"),
    [
        (Fill(89_999), {}, False),
        (Fill(90_000), {}, True),
        (Fill(10**9), {"context_window": None}, False),
        (Fill(5000), {"auto_compact_tokens": 5000}, True),
        (Fill(5000, prefix=4000), {"auto_compact_tokens": 5000}, True),
        (Fill(8999, prefix=4000), {"auto_compact_tokens": 5000, "auto_compact_scope": "body_after_prefix"}, False),
        (Fill(9000, prefix=4000), {"auto_compact_tokens": 5000, "auto_compact_scope": "body_after_prefix"}, True),
        (Fill(90_000, prefix=89_999), {"auto_compact_tokens": 5000, "auto_compact_scope": "body_after_prefix"}, True),
    ],
)
def test_a_history_is_full_at_the_limit(fill: Fill, changes: dict[str, Any], full: bool) -> None:
    assert is_too_full(fill, settings(**changes)) is full


def test_what_the_server_counted_is_not_estimated() -> None:
    history = History(lambda _: None)
    meter = ContextMeter(history)
    history.append(message("user", "x" * 4000))
    assert 1000 < meter.fill(settings(), b"[]").total < 1050
    meter.note_response(TokenUsage(input_tokens=70, total_tokens=80), len(history))
    assert meter.fill(settings(), b"[]") == Fill(80, prefix=70)
    history.append(ResponseItem(b"12345"))
    assert meter.fill(settings(), b"[]", coming=4) == Fill(83, prefix=70)
    meter.note_response(TokenUsage(), len(history))
    assert meter.fill(settings(), b"[]") == Fill(82, prefix=70)


def test_a_picture_counts_what_it_costs_and_not_its_bytes() -> None:
    url = "data:image/png;base64," + "A" * 1_000_000
    picture = message_of_content("user", [{"type": "input_image", "image_url": url}] * 2)
    assert 2 * PICTURE_BYTES < counted_bytes(picture.encoded) < 2 * PICTURE_BYTES + 200
    cut = b'{"image_url":"data:image/png;base64,AAAA'
    assert counted_bytes(cut) < len(cut) + PICTURE_BYTES
    assert counted_bytes(b"plain") == 5


@pytest.mark.parametrize(
    ("item", "own"),
    [
        (message("user", "do it"), True),
        (message("user", "see <skill> here"), True),
        (message("developer", "do it"), False),
        (message("user", "# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>"), False),
        (message("user", "<environment_context>\n</environment_context>"), False),
        (message("user", "<skill>\n<name>x</name>"), False),
        (message("user", "<turn_aborted>\n"), False),
        (summary_item("done"), False),
        (message("user", "Another language model started to solve this problem and produced a summary of its"), False),
        (answered("c"), False),
        (wire(type="hologram", role="user"), False),
    ],
)
def test_what_the_user_wrote_is_distinguished_from_what_the_host_put_in(item: ResponseItem, own: bool) -> None:
    assert is_users_own(item) is own


@pytest.mark.parametrize(("window", "budget"), [(None, 20_000), (272_000, 20_000), (10_000, 2500)])
def test_a_small_window_keeps_less_of_what_the_user_said(window: int | None, budget: int) -> None:
    assert user_budget(window) == budget


def test_the_newest_messages_are_kept_and_the_first_that_does_not_fit_is_cut() -> None:
    items = [message("user", letter * 400) for letter in "abcd"]
    kept = retain_user_messages([items[0], made("c"), *items[1:], answered("c")], 250)
    assert texts(kept) == ["b" * 100 + "…50 tokens truncated…" + "b" * 100, "c" * 400, "d" * 400]
    assert kept[1:] == items[2:]
    assert retain_user_messages(items, 205)[0] == items[2]
    assert retain_user_messages(items, 0) == []


def test_a_cut_message_loses_its_pictures_and_says_so() -> None:
    url = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    item = message_of_content("user", [url, {"type": "input_text", "text": "look" * 100}])
    assert retain_user_messages([item], 2000) == [item]
    [cut] = retain_user_messages([item], 50)
    assert cut.decode()["content"][-1]["text"] == "[1 picture left out]"
    assert b"data:image" not in cut.encoded


def test_skills_are_shown_again_up_to_a_size() -> None:
    short = message("user", "<skill>\n<name>a</name>\n<path>/a</path>\nRun it.\n</skill>")
    long = message("user", "<skill>\n<name>b</name>\n<path>/b</path>\n" + "ü" * 40_000 + "\n</skill>")
    kept = retain_skills([short, long, long, long])
    assert kept[0] == short
    assert all(text.endswith("</skill>") for text in texts(kept))
    assert sum(len(text.encode()) for text in texts(kept)) < 66_000
    assert "the rest is in the file" in texts(kept)[1]


def test_dropping_the_oldest_keeps_calls_and_outputs_together() -> None:
    items = [message("user", "x"), made("a"), made("b"), answered("a"), answered("b"), made("a"), answered("a")]
    assert without_oldest(items, 0.0) == items[1:]
    assert without_oldest(items[1:], 0.0) == [made("b"), answered("b"), made("a"), answered("a")]
    assert without_oldest(items, 0.99) == []
    assert without_oldest([], 0.5) == []


def test_a_call_goes_without_its_output_and_an_output_without_its_call() -> None:
    x = message("user", "x")
    assert paired([answered("a"), made("a"), x, answered("a"), made("b"), answered("a")]) == [
        made("a"),
        x,
        answered("a"),
    ]


def test_long_texts_keep_their_ends_and_stay_what_they_are() -> None:
    long, picture = "x" * 40_000, {"type": "input_image", "image_url": "data:image/png;base64," + "A" * 40_000}
    items = [
        message("user", "short"),
        message_of_content("user", [{"type": "input_text", "text": long}, picture]),
        wire(type="reasoning", summary=[], encrypted_content=long),
        wire(type="function_call", call_id="f", name="x", arguments=json.dumps({"text": long})),
        call_output(ToolCall("f", "x", ""), long),
        wire(type="custom_tool_call", call_id="c", name="apply_patch", input=long),
        call_output(ToolCall("c", "apply_patch", "", custom=True), [picture]),
        wire(type="local_shell_call", call_id="l", action={"command": [long]}),
        call_output(ToolCall("l", "x", ""), "gone with its call"),
    ]
    short = with_short_texts(items)
    assert [item.type for item in short] == [
        *("message", "message", "function_call", "function_call_output"),
        *("custom_tool_call", "custom_tool_call_output"),
    ]
    assert short[0] == items[0]
    assert all(len(item.encoded) < 9_000 for item in short)
    assert short[1].decode()["content"][1] == {"type": "input_text", "text": "[a picture was here]"}
    assert list(json.loads(short[2].decode()["arguments"])) == ["shortened"]
    assert short[3].decode()["output"].endswith("x" * 4_000)


def test_the_work_so_far_is_followed_through_events() -> None:
    log = WorkLog()
    change = FileChange(Path("/a"), "update")
    log.note(PatchFinished("c1", (change, FileChange(Path("/b"), "add")), True, ""))
    log.note(PatchFinished("c2", (FileChange(Path("/c"), "add"),), False, ""))
    log.note(PatchFinished("c3", (FileChange(Path("/a"), "update", Path("/d")), change), True, ""))
    log.note(PlanUpdated((PlanStep("old", "pending"),)))
    log.note(PlanUpdated((PlanStep("new", "completed"),)))
    log.note(SkillUsed("lint", "repo", Path("/s/SKILL.md"), "read"))
    state = log.state
    assert list(state.files.items()) == [("/b", "add"), ("/d", "update"), ("/a", "update")]
    assert (state.plan, state.skills) == ((PlanStep("new", "completed"),), {"/s/SKILL.md": "lint"})
    assert WorkState.from_record(json.loads(json.dumps(state.to_record()))) == state


NO_STATES: list[Any] = [None, [], {"plan": 1, "files": [1, {"path": 1}], "skills": {}}, {"plan": [{}]}]


@pytest.mark.parametrize("record", NO_STATES)
def test_a_record_that_makes_no_sense_is_no_state(record: Any) -> None:
    assert WorkState.from_record(record) == WorkState()


def test_the_work_so_far_is_read_back_from_a_history() -> None:
    plan = {"plan": [{"step": "Fix it", "status": "in_progress"}]}
    patched = (
        "Exit code: 0\nOutput:\nSuccess. Updated the following files:\nA new.txt\nM /abs/x\nD old\nnote: fuzzy\nA no"
    )
    items = [
        message("user", "<skill>\n<name>lint</name>\n<path>/s/SKILL.md</path>\nRun it.\n</skill>"),
        wire(type="function_call", call_id="p", name="update_plan", arguments=json.dumps(plan)),
        wire(type="function_call", call_id="q", name="update_plan", arguments="{broken"),
        call_output(ToolCall("c", "apply_patch", "", custom=True), patched),
        message("user", "Success. Updated the following files:\nA mine"),
        call_output(
            ToolCall("d", "x", ""), [{"type": "input_text", "text": "Success. Updated the following files:\n"}]
        ),
    ]
    assert work_state_of(items, Path("/repo"), lambda command, directory: ()) == WorkState(
        (PlanStep("Fix it", "in_progress"),),
        {"/repo/new.txt": "add", "/abs/x": "update", "/repo/old": "delete"},
        {"/s/SKILL.md": "lint"},
    )


def test_the_note_on_the_work_names_the_newest_files_and_nothing_hidden() -> None:
    files = {f"/f{number}": "update" for number in range(250)}
    [note] = work_notes([PlanStep("a\x1b[31m\nb", "pending")], files, {})
    [text] = texts([note])
    assert "\x1b" not in text
    assert "- (50 earlier ones are not named)\n- `/f50` (update)" in text
    assert "/f49" not in text
    assert work_notes([], {}, {}) == []


def replayed(*records: tuple[str, Any]) -> Replay:
    replay = Replay()
    for ordinal, (kind, payload) in enumerate(records):
        encoded = payload if isinstance(payload, bytes) else encode_json(payload)
        replay.feed(encode_line(ordinal, kind, encoded, timestamp="2026-11-22T01:00:00.000Z"))
    return replay


def counted(total: int) -> tuple[str, Any]:
    return "event_msg", token_count_payload(TokenUsage(total_tokens=total), TokenUsage(), window=None)


def recorded(item: ResponseItem) -> tuple[str, Any]:
    return "response_item", item.encoded


def test_a_stored_count_is_about_what_the_server_had_seen() -> None:
    said = wire(type="message", role="assistant", content=[])
    before = [recorded(message("user", "x")), recorded(made("c")), recorded(answered("c")), counted(70)]
    assert replayed(*before).covered() == 2
    assert replayed(*before, recorded(said)).covered() == 2
    assert replayed(*before, recorded(said), counted(90)).covered() == 4
    assert replayed(recorded(said)).covered() == 0


def test_a_stored_compaction_brings_its_work_and_forgets_the_count() -> None:
    state = WorkState((), {"/a": "add"}, {"/s": "lint"})
    payload = compacted_payload("sum", [message("user", "x")], window=1, work_state=state.to_record())
    replay = replayed(recorded(made("c")), counted(70), ("compacted", payload))
    assert (replay.covered(), replay.window) == (0, 1)
    assert WorkState.from_record(replay.work_state) == state
    assert replayed(("compacted", payload), counted(9)).covered() == 1
    foreign = compacted_payload("sum", [], window=2)
    assert replayed(("compacted", payload), ("compacted", foreign)).work_state == state.to_record()

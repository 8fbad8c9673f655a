"""The history as wires of other APIs read it: calls with their outputs, ids that fit, reasoning for its own model."""

from __future__ import annotations

import random
from typing import Any

import pytest

from codex_py.model.wires.history import (
    CallStep,
    Entry,
    HistoryReader,
    IdForm,
    InputMessage,
    ModelMessage,
    NewEntries,
    PicturePart,
    ReasoningStep,
    TextStep,
)
from codex_py.model.wires.tools import ToolTable
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.items import ResponseItem
from codex_py.protocol.origin import Origin, sendable, with_origin, with_origins

CHAT = IdForm(r"[\x21-\x7e]{1,40}", 40)
HERE = Origin("here", "m", "chat")


def user(text: str) -> bytes:
    return encode_json({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})


def assistant(text: str) -> bytes:
    return encode_json({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})


def call(call_id: str, name: str = "f", arguments: str = "{}", **more: Any) -> bytes:
    value = {"type": "function_call", "call_id": call_id, "name": name, "arguments": arguments, **more}
    return encode_json(value)


def output(call_id: str, content: Any = "ok") -> bytes:
    return encode_json({"type": "function_call_output", "call_id": call_id, "output": content})


def reasoning(text: str, origin: Origin | None = None) -> bytes:
    content = [{"type": "reasoning_text", "text": text}]
    item = ResponseItem.from_wire({"type": "reasoning", "summary": [], "content": content})
    return (item if origin is None else with_origin(item, origin)).encoded


def read(*items: bytes, form: IdForm = CHAT) -> list[Entry]:
    return HistoryReader(form).read(items, HERE).entries


def step(call_id: str, result: str = "ok", name: str = "f", arguments: str = "{}") -> CallStep:
    return CallStep(call_id, name, arguments, (result,), call_id)


def test_calls_stand_with_their_outputs_whatever_comes_between() -> None:
    items = [user("go"), assistant("I look"), call("a"), call("b"), user("also"), output("b", "2"), output("a", "1")]
    assert read(*items) == [
        InputMessage("user", ("go",)),
        ModelMessage((TextStep("I look"), step("a", "1"), step("b", "2"))),
        InputMessage("user", ("also",)),
    ]


def test_a_call_has_one_output_and_an_output_has_a_call() -> None:
    items = [output("x"), call("a"), output("a", "1"), output("a", "2"), call("b"), user("next"), output("zzz")]
    assert read(*items) == [
        ModelMessage((step("a", "1"),)),
        ModelMessage((step("b", "aborted"),)),
        InputMessage("user", ("next",)),
    ]


def test_a_call_that_was_sent_as_aborted_stays_aborted() -> None:
    reader = HistoryReader(CHAT)
    items = [user("go"), call("a")]
    assert reader.read(items, HERE).entries[-1] == ModelMessage((step("a", "aborted"),))
    assert reader.read([*items, output("a", "late")], HERE).entries == []


def test_only_what_is_new_is_read() -> None:
    reader = HistoryReader(CHAT)
    items = [user("go"), call("a"), output("a")]
    reader.read(items, HERE)
    assert reader.read(items, HERE) == NewEntries([], False)
    assert reader.read([*items, user("more")], HERE) == NewEntries([InputMessage("user", ("more",))], False)
    assert reader.read([user("a summary")], HERE) == NewEntries([InputMessage("user", ("a summary",))], True)
    assert reader.read([user("a summary")], Origin("there", "m", "chat")).restarted


def test_reasoning_is_read_for_the_model_that_wrote_it() -> None:
    items = [reasoning("old"), reasoning("own", HERE), reasoning("other", HERE.replace(model="n")), assistant("hi")]
    [message] = read(*items)
    assert message == ModelMessage(
        (
            ReasoningStep(
                {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "own"}]},
            ),
            TextStep("hi"),
        )
    )


def test_ids_fit_are_unique_and_are_the_same_each_time() -> None:
    long = "call_" + "x" * 60
    items = [item for call_id in ("call_0", "call_0", long, "ü") for item in (call(call_id), output(call_id))]
    ids = [entry.calls[0].call_id for entry in read(*items) if isinstance(entry, ModelMessage)]
    assert ids[0] == "call_0"
    assert len(set(ids)) == 4
    assert all(len(call_id) <= 40 and call_id.isascii() for call_id in ids)
    assert ids == [entry.calls[0].call_id for entry in read(*items) if isinstance(entry, ModelMessage)]
    mistral = read(*items, form=IdForm("[a-zA-Z0-9]{9}", 9))
    assert all(len(entry.calls[0].call_id) == 9 for entry in mistral if isinstance(entry, ModelMessage))


@pytest.mark.parametrize(
    ("item", "name", "arguments"),
    [
        (call("a", "run", '{"x": 1}', namespace="mcp__s"), "mcp__s__run", '{"x": 1}'),
        (call("a", "", ""), "unknown", "{}"),
        (call("a", "odd name!", "[1]"), "odd_name_", '{"malformed_arguments":"[1]"}'),
        (call("a", "f", '{"x": '), "f", '{"malformed_arguments":"{\\"x\\": "}'),
        (
            encode_json({"type": "custom_tool_call", "call_id": "a", "name": "apply_patch", "input": "*** x"}),
            "apply_patch",
            '{"input":"*** x"}',
        ),
        (
            encode_json({"type": "local_shell_call", "call_id": "a", "action": {"command": ["ls"]}}),
            "local_shell",
            '{"command":["ls"]}',
        ),
    ],
)
def test_every_sort_of_call_is_a_function(item: bytes, name: str, arguments: str) -> None:
    assert read(item, output("a")) == [ModelMessage((step("a", "ok", name, arguments),))]


def test_pictures_are_kept_and_unknown_items_are_left_out() -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AA", "detail": "high"}
    items = [
        encode_json({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "see"}, picture]}),
        encode_json({"type": "brand_new", "x": 1}),
        encode_json({"type": "web_search_call", "id": "w"}),
        call("a"),
        output("a", [{"type": "input_text", "text": "here"}, picture, {"type": "brand_new"}]),
        encode_json({"type": "message", "role": "system", "content": "be brief"}),
        encode_json({"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]}),
        encode_json({"type": "message", "role": "user", "content": []}),
        encode_json({"type": "compaction", "encrypted_content": "sealed"}),
    ]
    shown = PicturePart("data:image/png;base64,AA", "high")
    entries = read(*items)
    assert entries[:4] == [
        InputMessage("user", ("see", shown)),
        ModelMessage((CallStep("a", "f", "{}", ("here", shown), "a"),)),
        InputMessage("developer", ("be brief",)),
        ModelMessage((TextStep("no"),)),
    ]
    assert len(entries) == 5
    assert "sealed" not in repr(entries[4])


def test_any_history_in_any_steps_pairs_its_calls_and_only_grows() -> None:
    for seed in range(300):
        chance = random.Random(seed)
        makers = [
            lambda chance=chance: user(f"u{chance.random()}"),
            lambda: assistant("said"),
            lambda chance=chance: call(f"c{chance.randrange(4)}"),
            lambda chance=chance: output(f"c{chance.randrange(4)}"),
            lambda: reasoning("r", HERE),
        ]
        items = [chance.choice(makers)() for _ in range(40)]
        reader, entries, at = HistoryReader(CHAT), list[Entry](), 0
        while at < len(items):
            at += chance.randrange(1, 10)
            reading = reader.read(items[:at], HERE)
            assert not reading.restarted or not entries
            entries += reading.entries
        calls = [step for entry in entries if isinstance(entry, ModelMessage) for step in entry.calls]
        assert len({step.call_id for step in calls}) == len(calls) == sum(b'"function_call"' in item for item in items)


def test_an_item_goes_back_to_its_own_model_as_it_came() -> None:
    encoded = b'{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"sealed"}'
    here = Origin("openai", "gpt-5.5", "responses")
    stored = with_origin(ResponseItem(encoded), here)
    assert stored.encoded != encoded
    assert with_origin(stored, Origin("other", "m", "responses")) == stored
    assert sendable(stored.encoded, here) == encoded
    assert sendable(stored.encoded, here.replace(model="gpt-5.6")) is None
    assert sendable(stored.encoded, here.replace(provider="azure")) is None
    assert sendable(stored.encoded, here.replace(wire="chat")) is None
    assert sendable(encoded, here) == encoded
    message = user("made_by")
    assert with_origin(ResponseItem(message), here).encoded == sendable(message, here) == message


def test_a_stored_item_without_an_origin_belongs_to_the_provider_of_its_session() -> None:
    encoded = b'{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"sealed"}'
    [item, message] = with_origins([ResponseItem(encoded), ResponseItem(user("hi"))], "openai")
    assert message.encoded == user("hi")
    assert sendable(item.encoded, Origin("openai", "any", "responses")) == encoded
    assert sendable(item.encoded, Origin("azure", "any", "responses")) is None
    assert sendable(item.encoded, Origin("openai", "any", "chat")) is None


def test_a_compaction_goes_to_the_other_models_of_its_provider() -> None:
    encoded = b'{"type":"compaction","encrypted_content":"sealed"}'
    here = Origin("openai", "gpt-5.5", "responses")
    stored = with_origin(ResponseItem(encoded), here).encoded
    assert sendable(stored, here.replace(model="gpt-5.6")) == encoded
    assert sendable(stored, here.replace(provider="azure")) is None


def test_a_field_of_the_server_by_the_same_name_proves_nothing() -> None:
    item = ResponseItem.from_wire({"type": "reasoning", "made_by": {"provider": "x"}, "summary": []})
    here = Origin("openai", 'a "model"', "responses")
    assert sendable(with_origin(item, here).encoded, here) == b'{"type":"reasoning","summary":[]}'
    assert sendable(item.encoded, here) is None


def test_tools_become_functions_with_flat_names_that_lead_back() -> None:
    table = ToolTable()
    parameters = {"type": "object", "properties": {"q": {"type": "string"}}}
    tools = [
        {"type": "function", "name": "run", "description": "Runs.", "strict": False, "parameters": parameters},
        {"type": "custom", "name": "patch", "description": "Patches.", "format": {"type": "grammar"}},
        {"type": "namespace", "name": "mcp__s__", "tools": [{"type": "function", "name": "find"}]},
        {"type": "web_search"},
    ]
    assert table.load(encode_json(tools))
    assert not table.load(encode_json(tools))
    assert [tool.name for tool in table.tools] == ["run", "patch", "mcp__s__find"]
    assert table.tools[0].parameters == parameters
    assert list(table.tools[1].parameters["properties"]) == ["input"]
    assert table.name_fields("mcp__s__find") == {"name": "find", "namespace": "mcp__s__"}
    assert table.name_fields("invented") == {"name": "invented"}

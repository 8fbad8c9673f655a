"""`exec` with the built-in provider `anthropic`, pointed at the loopback: keys, schemas, cache figures, two runs."""

from __future__ import annotations

import json
from typing import Any

from tests.support.fake_messages import FakeMessages, answer, blocks_of, says, thinks, uses
from tests.support.home import Place
from tests.support.process import run

KEY = "sk-ant-0123456789abcdef"


def anthropic(place: Place, model: FakeMessages, top: str = "") -> Place:
    place.configure(
        f'model = "claude-opus-5-5"\nmodel_provider = "anthropic"\nsandbox_mode = "danger-full-access"\n{top}\n'
        f'[model_providers.anthropic]\nbase_url = "{model.base_url}"\n'
    )
    return place.with_env(ANTHROPIC_API_KEY=KEY)


def test_a_task_with_a_patch_and_two_commands_at_once_and_a_second_run(place: Place) -> None:
    patch = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n"
    first = answer(
        thinks("a plan"),
        uses("toolu_1", "apply_patch", {"input": patch}),
        uses("toolu_2", "exec_command", {"cmd": "pwd"}),
    )
    second = answer(
        uses("toolu_3", "exec_command", {"cmd": "cat new.txt"}), uses("toolu_4", "exec_command", {"cmd": "ls"})
    )
    usage = {"input_tokens": 5, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5}
    with FakeMessages(first, second, answer(says("done"), usage=usage), answer(says("bye")), key=KEY) as model:
        place = anthropic(place, model)
        ended = run(place, "exec", "--json", "go")
        again = run(place, "exec", "resume", "--last", "and now")
    assert (ended.status, again.status, again.out) == (0, 0, "bye\n"), ended.err + again.err
    assert (place.repo / "new.txt").read_text() == "hello\n"
    totals = json.loads(ended.out.splitlines()[-1])["usage"]
    assert (totals["input_tokens"], totals["cached_input_tokens"]) == (106, 90)
    assert len([block for block in blocks_of(model.bodies[3], "user") if block["type"] == "tool_result"]) == 4
    assert any(block["type"] == "thinking" for block in blocks_of(model.bodies[3], "assistant"))
    stored = b"".join(path.read_bytes() for path in place.rollouts())
    assert KEY.encode() not in stored


def test_an_answer_of_a_form_is_asked_for_as_the_api_has_it(place: Place) -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"n": {"type": "integer", "minimum": 1}},
        "required": ["n"],
    }
    place.write("schema.json", json.dumps({**schema, "additionalProperties": False}))
    with FakeMessages(answer(says('{"n": 0}')), answer(says('{"n": 2}'))) as model:
        ended = run(anthropic(place, model), "exec", "--output-schema", "schema.json", "go")
    assert (ended.status, json.loads(ended.out)) == (0, {"n": 2}), ended.err
    form = model.bodies[0]["output_config"]["format"]
    assert form["schema"]["properties"] == {"n": {"type": "integer"}}


def test_a_refusal_is_named_and_fails_the_run(place: Place) -> None:
    refusal = answer(says("I"), stop="refusal", details={"type": "refusal", "category": "cyber", "explanation": "no"})
    with FakeMessages(refusal) as model:
        ended = run(anthropic(place, model), "exec", "go")
    assert ended.status == 76
    assert "the model has refused to answer: cyber: no" in ended.err


def test_a_key_never_shows_in_an_error(place: Place) -> None:
    with FakeMessages(answer(says("hi")), key="another", excuse={"headers", "unplayed"}) as model:
        ended = run(anthropic(place, model), "exec", "go")
    assert ended.status == 77
    assert KEY not in ended.err
    assert "401 Unauthorized" in ended.err

"""`codex-py doctor --provider`, and the models of a server of the Messages API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.config.load import ConfigRequest, load_config
from codex_py.services.provider_check import check_provider
from tests.support.fake_messages import FakeMessages, answer, api_refusal, thinks, uses
from tests.support.fake_responses import (
    FakeResponses,
    api_error,
    call,
    completed,
    cut,
    delta,
    fake_model,
    hang,
    html,
    raw,
    reasoning,
    repeat,
    say,
    stall_headers,
    status,
    tokens,
)
from tests.support.home import Place
from tests.support.process import run
from tests.support.wire_dialects import DIALECTS, Dialect

WHOLE = answer(
    thinks("two calls"),
    uses("toolu_1", "report", {"check": "first", "colour": "red"}),
    uses("toolu_2", "report", {"check": "second", "colour": "Red"}),
    usage={"input_tokens": 20, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 20},
)
PLAIN = answer(uses("toolu_1", "report", {"check": "first", "colour": "none"}))


def use_messages(place: Place, model: FakeMessages, **keys: Any) -> None:
    place.use_model(model.base_url, wire_api="messages", **keys)


def works(out: str) -> dict[str, Any]:
    return {one["name"]: one["works"] for one in json.loads(out)["capabilities"]}


def test_one_tiny_request_shows_what_works(place: Place) -> None:
    with FakeMessages(WHOLE) as model:
        use_messages(place, model)
        ended = run(place, "doctor", "--provider", "fake", "-m", "claude-opus-5-5")
    lines = {line[7:17].strip(): line for line in ended.out.splitlines()}
    assert ended.status == 0
    assert list(lines) == ["answer", "streaming", "tools", "parallel", "reasoning", "pictures", "cache"]
    assert all(line.startswith("ok ") for line in lines.values())
    assert "`claude-opus-5-5` of `fake` at " in lines["answer"]
    assert "Messages API" in lines["answer"]
    assert "100 tokens in (60% cached, 20 written)" in lines["cache"]
    [body] = model.bodies
    assert (len(body["messages"]), len(body["tools"])) == (1, 1)
    assert body["messages"][0]["content"][0]["type"] == "image"


def test_what_fails_without_the_picture_too_is_the_fault(place: Place) -> None:
    refusals = [api_refusal(400, "invalid_request_error", text) for text in ("no image input here", "no such tool")]
    with FakeMessages(*refusals) as model:
        use_messages(place, model)
        ended = run(place, "doctor", "--provider", "fake", "-m", "claude-opus-5-5")
    assert ended.status == 1
    assert "no such tool" in ended.out and "image" not in ended.out


def test_a_refused_picture_is_noted_and_the_rest_is_found_out_without_it(place: Place) -> None:
    refusal = api_refusal(400, "invalid_request_error", "image input is not supported")
    with FakeMessages(refusal, PLAIN) as model:
        use_messages(place, model)
        ended = run(place, "doctor", "--provider", "fake", "-m", "claude-opus-5-5", "--json")
    expected = {"answer": True, "streaming": True, "tools": True, "parallel": None, "reasoning": None}
    assert (ended.status, works(ended.out)) == (0, {**expected, "pictures": None, "cache": None})
    assert "image input is not supported" in ended.out


@pytest.mark.parametrize(
    ("play", "name", "text"),
    [
        (api_refusal(529, "overloaded_error", "Overloaded"), "answer", "529: Overloaded"),
        (api_refusal(401, "authentication_error", "invalid x-api-key"), "answer", "check the API key"),
        (status(200, "<html><title>Login</title>"), "answer", "an HTML page titled"),
    ],
)
def test_what_does_not_work_is_a_fault(place: Place, play: Any, name: str, text: str) -> None:
    with FakeMessages(play) as model:
        use_messages(place, model)
        ended = run(place, "doctor", "--provider", "fake", "-m", "claude-opus-5-5")
    [fault] = [line for line in ended.out.splitlines() if line.startswith("FAULT")]
    assert (ended.status, fault[7:17].strip(), text in fault) == (1, name, True)


@pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.wire)
@pytest.mark.parametrize("how", ["talks", "rambles", "errs", "refuses"])
def test_what_a_small_model_does_not_show_is_no_fault_of_its_server(place: Place, wire: Dialect, how: str) -> None:
    plays: dict[str, Any] = {
        "talks": wire.say("Once upon a time"),
        "rambles": wire.ended("and then " * 20, "limit"),
        "errs": wire.answer("", [("c1", "report", {"colour": 7})]),
        "refuses": wire.ended("I cannot", "refusal"),
    }
    with wire.server(plays[how], excuse={"replay"}) as model:
        place.use_model(model.base_url, wire_api=wire.wire)
        ended = run(place, "doctor", "--provider", "fake", "-m", "some-model")
    lines = {line[7:17].strip(): line for line in ended.out.splitlines()}
    assert (ended.status, ended.err) == (0, "")
    assert lines["answer"].startswith("ok ")
    assert ("incomplete" in lines["answer"]) == (how == "rambles")
    for name in ("tools", "parallel", "reasoning", "pictures"):
        assert lines[name].startswith("note ")
        assert "not shown by the model" in lines[name]


@pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.wire)
def test_a_picture_that_is_refused_is_a_note_on_every_api(place: Place, wire: Dialect) -> None:
    refusal = api_error(400, "image input is not supported")
    with wire.server(refusal, wire.say("Once upon a time"), excuse={"replay", "prefix"}) as model:
        place.use_model(model.base_url, wire_api=wire.wire)
        ended = run(place, "doctor", "--provider", "fake", "-m", "some-model")
    [line] = [line for line in ended.out.splitlines() if "pictures" in line[:17]]
    assert (ended.status, "image input is not supported" in line) == (0, True)


def test_a_server_of_the_responses_api_is_checked_in_the_same_way(place: Place) -> None:
    calls = [call(f"c{n}", "report", {"check": "x", "colour": "red"}) for n in range(2)]
    play = [reasoning("blob"), delta("a"), delta("b"), say("ab"), *calls, completed(tokens(100, 5, cached=50))]
    with fake_model(place, play):
        ended = run(place, "doctor", "--provider", "fake", "--json")
    assert (ended.status, set(works(ended.out).values())) == (0, {True})


def test_the_model_is_the_configured_one_where_the_provider_may_have_it(place: Place) -> None:
    calls = [call(f"c{n}", "report", {"check": "x", "colour": "red"}) for n in range(2)]
    with FakeResponses([*calls, completed(tokens(100, 5))]) as model:
        table = f'[model_providers.mine]\nbase_url = "{model.base_url}"\n'
        place.configure(
            'model = "my-model"\n' + table + f'[model_providers.openrouter]\nbase_url = "{model.base_url}"\n'
        )
        place.env["OPENROUTER_API_KEY"] = "sk-or"
        question = run(place, "doctor", "--provider", "mine", "--json")
        built_in = run(place, "doctor", "--provider", "openrouter")
        unknown = run(place, "doctor", "--provider", "nowhere")
    assert (question.status, model.requests[0].body["model"]) == (0, "my-model")
    assert (built_in.status, built_in.out, len(model.requests)) == (2, "", 1)
    assert "no model is chosen for the provider `openrouter`" in built_in.err
    assert unknown.err.count("`openrouter`") == 1


def test_a_provider_without_its_key_is_one_line(place: Place) -> None:
    ended = run(place, "doctor", "--provider", "anthropic")
    assert (ended.status, ended.out) == (1, "")
    assert "missing environment variable `ANTHROPIC_API_KEY`" in ended.err


def test_the_models_of_a_server_of_the_messages_api(place: Place) -> None:
    data = [
        {"type": "model", "id": "claude-opus-5-5", "display_name": "Claude Opus 5.5"},
        {"type": "model", "id": "new"},
    ]
    with FakeMessages(get={"/v1/models": status(200, {"data": data, "has_more": False})}) as model:
        use_messages(place, model)
        ended = run(place, "models", "--provider", "fake", "-c", "model=claude-opus-5-5")
    assert ended.out.splitlines() == ["* claude-opus-5-5  1,000,000  Claude Opus 5.5", "? new"]
    assert model.gets == ["/v1/models?limit=1000"]


@pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.wire)
def test_a_bad_server_is_named_on_every_api(place: Place, wire: Dialect) -> None:
    faults: list[tuple[Any, str]] = [
        (api_error(401, "bad key"), "bad key"),
        (html("<title>Sign in</title>"), "Sign in"),
        (status(404), "404"),
        ([raw(b": hello\n\n"), cut()], "cut off"),
        ([stall_headers(1000.0)], "no answer"),
    ]
    for play, words in faults:
        with wire.server(repeat(play), excuse={"chat", "messages", "prefix", "replay"}) as model:
            place.use_model(model.base_url, wire_api=wire.wire, stream_idle_timeout_ms=300, request_max_retries=0)
            checked = run(place, "doctor", "--provider", "fake", "--json")
            listed = run(place, "models", "--provider", "fake")
        assert (checked.status, listed.status) == (1, 1), words
        assert words in checked.out + checked.err
        assert "Traceback" not in checked.err + listed.err
        assert len(listed.err.splitlines()) == 1


@pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.wire)
@pytest.mark.parametrize("where", ["before the headers", "behind the headers", "in the answer", "after a refusal"])
async def test_a_server_that_falls_silent_is_given_up_and_named(place: Place, wire: Dialect, where: str) -> None:
    silent = [stall_headers(1000.0)]
    plays: dict[str, Any] = {
        "before the headers": [silent],
        "behind the headers": [[raw(b": ping\n\n"), hang(1000.0)]],
        "in the answer": [[*wire.half("Once upon"), hang(1000.0)]],
        "after a refusal": [api_error(400, "image input is not supported"), silent],
    }
    with wire.server(*plays[where], excuse={"replay", "prefix"}) as model:
        place.use_model(model.base_url, wire_api=wire.wire)
        config = load_config(ConfigRequest(home=place.codex_home, cwd=place.repo, env=place.env)).config
        found = await check_provider(
            config, "fake", model="some-model", env=place.env, home=place.codex_home, patience=0.3
        )
    assert [(one.name, one.works) for one in found] == [("answer", False)]
    assert "sends nothing more of an answer for 0.3 s" in found[0].text

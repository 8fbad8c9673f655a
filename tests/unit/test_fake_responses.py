"""The fake server finds what is wrong with a request, and can go wrong in every scripted way itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest

from tests.support.fake_responses import (
    FakeResponses,
    Json,
    Play,
    call,
    completed,
    custom_call,
    cut,
    end,
    failed,
    item,
    reasoning,
    repeat,
    say,
)
from tests.support.script import Element, Repeat

ODD: Json = {"type": "odd", "id": "x", "unknown": [1]}
USER: Json = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": 'hé "input":['}]}


def body_of(*items: Any, **changed: Any) -> Json:
    return {
        "model": "m",
        "instructions": 'the word "input":[ is here too',
        "stream": True,
        "input": list(items),
        "tools": [],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "thread-1",
        **changed,
    }


def encoded(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def output(call_id: str, text: str = "ok", kind: str = "function_call_output") -> Json:
    return {"type": kind, "call_id": call_id, "output": text}


def shell_call(call_id: str) -> Json:
    return call(call_id, "exec_command", {"cmd": "ls"})["item"]


def send(model: FakeResponses, content: bytes, http: httpx.Client, **header: str) -> httpx.Response:
    all_headers = {
        "content-type": "application/json",
        **{name.replace("_", "-"): value for name, value in header.items()},
    }
    return http.post(model.base_url + "/responses", content=content, headers=all_headers)


@pytest.fixture
def http() -> Iterator[httpx.Client]:
    # No certificates: those of the machine take longer to load than all requests of a test.
    with httpx.Client(trust_env=False, verify=False) as client:
        yield client


@contextmanager
def unjudged(*script: Play | Repeat, excuse: set[str] | None = None) -> Iterator[FakeResponses]:
    """A server whose problems are looked at here, and not asserted at its exit."""
    model = FakeResponses(*script, excuse=excuse)
    model.__enter__()
    try:
        yield model
    finally:
        model.close()


def names(model: FakeResponses) -> list[str]:
    """Which checks complained."""
    return [problem.split(": ")[1] for problem in model.problems]


def problems_of(http: httpx.Client, *bodies: Json, excuse: set[str] | None = None) -> list[str]:
    """Which checks complain when these bodies are sent."""
    with unjudged(repeat([]), excuse=excuse) as model:
        for body in bodies:
            send(model, encoded(body), http)
    return names(model)


def test_a_good_conversation_has_no_problems(http: httpx.Client) -> None:
    calls = [
        reasoning("blob", "thinking"),
        call("a", "exec_command", {"cmd": "ls"}),
        custom_call("b", "apply_patch", "x"),
    ]
    items = [event["item"] for event in calls]
    answers = [output("a"), output("b", kind="custom_tool_call_output")]
    with FakeResponses(calls, [say("done")], [say("again")]) as model:
        send(model, encoded(body_of(USER)), http)
        send(model, encoded(body_of(USER, *items, *answers)), http)
        send(model, encoded(body_of(USER, *items, *answers, say("done")["item"], USER)), http)

    assert model.requests[1].output_of("b") == "ok"
    assert model.requests[2].texts("user") == ['hé "input":['] * 2
    assert model.requests[0].input_bytes == encoded([USER])
    assert model.connections == 1


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("store", {"store": True}),
        ("store", {"store": None}),
        ("stream", {"stream": False}),
        ("include", {"include": []}),
        ("previous_response_id", {"previous_response_id": None}),
        ("cache_key", {"prompt_cache_key": ""}),
        ("items", {"input": "hello"}),
        ("items", {"input": ["hello"]}),
        ("items", {"input": [{"role": "user"}]}),
        ("items", {"input": [{"type": ""}]}),
    ],
)
def test_a_wrong_field_is_a_problem(http: httpx.Client, name: str, changed: Json) -> None:
    assert problems_of(http, body_of(USER, **changed)) == [name]
    assert problems_of(http, body_of(USER, **changed), excuse={name}) == []


@pytest.mark.parametrize(
    ("complaints", "items"),
    [
        (["pairs"], [shell_call("a")]),
        (["pairs"], [output("a")]),
        (["pairs", "pairs"], [output("a"), shell_call("a")]),
        (["pairs"], [shell_call("a"), output("a"), output("a")]),
        (["pairs"], [shell_call("a"), shell_call("a"), output("a")]),
        (["pairs", "pairs"], [shell_call("a"), output("a", kind="custom_tool_call_output")]),
        (["order"], [shell_call("a"), shell_call("b"), output("b"), output("a")]),
        ([], [shell_call("a"), output("a"), shell_call("b"), output("b")]),
        ([], [shell_call("a"), shell_call("b"), output("a"), output("b")]),
        ([], [shell_call("a"), shell_call("a"), output("a"), output("a")]),
        ([], [{"type": "web_search_call", "id": "ws_1"}]),
    ],
)
def test_calls_and_outputs_must_pair_in_order(http: httpx.Client, complaints: list[str], items: list[Json]) -> None:
    assert problems_of(http, body_of(USER, *items)) == complaints


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("prefix", body_of(USER, USER), body_of(USER)),
        ("prefix", body_of(USER), body_of({**USER, "role": "developer"}, USER)),
        # The same JSON in other bytes, as when an old item is encoded again.
        ("prefix", body_of(USER), body_of(dict(reversed(USER.items())), USER)),
        ("head", body_of(USER), {"stream": True, **body_of(USER)}),
        ("tools", body_of(USER, tools=[{"type": "function"}]), body_of(USER)),
    ],
)
def test_a_request_must_extend_the_one_before(http: httpx.Client, name: str, before: Json, after: Json) -> None:
    assert problems_of(http, before, after) == [name]
    assert problems_of(http, before, after, excuse={name}) == []


@pytest.mark.parametrize(
    "after",
    [
        body_of(USER, USER),
        body_of(USER, model="n"),
        body_of(USER, instructions="others", service_tier="flex"),
        {**body_of(USER), "metadata": 1},
    ],
)
def test_what_may_change_between_requests(http: httpx.Client, after: Json) -> None:
    assert problems_of(http, body_of(USER), after) == []


@pytest.mark.parametrize(
    ("came_back", "complaints"),
    [
        ([ODD, say("hi")["item"]], []),
        ([dict(reversed(ODD.items())), say("hi")["item"]], []),
        ([say("hi")["item"]], ["replay"]),
        ([{"type": "odd", "id": "x"}, say("hi")["item"]], ["replay"]),
        ([say("hi")["item"], ODD], ["replay"]),
    ],
)
@pytest.mark.parametrize("ending", [completed(), cut(), failed("server_error"), end()])
def test_what_the_model_said_must_come_back(
    http: httpx.Client, came_back: list[Json], complaints: list[str], ending: Element
) -> None:
    with unjudged([item(ODD), say("hi"), ending, say("after the end")], [say("done")]) as model:
        with suppress(httpx.RemoteProtocolError):
            send(model, encoded(body_of(USER)), http)
        send(model, encoded(body_of(USER, *came_back)), http)
    assert names(model) == complaints


def test_a_compaction_excuses_prefix_and_replay(http: httpx.Client) -> None:
    with FakeResponses([say("old")], [say("new")], excuse={"prefix"}) as model:
        send(model, encoded(body_of(USER)), http)
        send(model, encoded(body_of({**USER, "role": "developer"})), http)
    assert len(model.requests) == 2


def test_threads_are_distinguished_and_counted(http: httpx.Client) -> None:
    with unjudged(repeat([]), excuse=set()) as model:
        send(model, encoded(body_of(USER, USER)), http)
        send(model, encoded(body_of(USER, prompt_cache_key="thread-2")), http)
    assert names(model) == ["threads"]


def test_the_cache_key_is_the_thread(http: httpx.Client) -> None:
    with unjudged(repeat([])) as model:
        send(model, encoded(body_of(USER)), http, thread_id="another")
        send(model, encoded(body_of(USER, client_metadata={"thread_id": "another"})), http)
    assert names(model) == ["cache_key", "cache_key"]


@pytest.mark.parametrize(
    ("content", "name"),
    [(b"", "json"), (b"[]", "json"), (b'{"a":1,"a":2}', "json"), (b'{"a":1} x', "json"), (b"\xff", "json")],
)
def test_a_body_that_is_no_object_is_a_problem(http: httpx.Client, content: bytes, name: str) -> None:
    with unjudged() as model:
        assert send(model, content, http).status_code == 400
    assert names(model) == [name]


def test_the_content_type_is_json(http: httpx.Client) -> None:
    with unjudged([]) as model:
        send(model, encoded(body_of(USER)), http, content_type="text/plain")
    assert names(model) == ["content_type"]


def test_a_request_after_the_end_and_a_wrong_path_are_problems(http: httpx.Client) -> None:
    with unjudged() as model:
        assert send(model, encoded(body_of(USER)), http).status_code == 400
        assert http.post(model.base_url + "/chat/completions", content=b"{}").status_code == 404
    assert names(model) == ["script", "script"]


def test_leaving_the_block_asserts() -> None:
    with pytest.raises(AssertionError, match=r"1 scripted answer\(s\) were never asked for"), FakeResponses([say("x")]):
        pass
    with FakeResponses([say("x")], excuse={"unplayed"}):
        pass
    with pytest.raises(AssertionError, match="no such check"):
        FakeResponses(excuse={"prefixes"})


def test_an_error_in_the_block_is_not_hidden(http: httpx.Client) -> None:
    with pytest.raises(KeyError) as caught, FakeResponses() as model:
        send(model, encoded(body_of(USER)), http)
        raise KeyError("mine")
    assert "the script is at its end" in caught.value.__notes__[0]

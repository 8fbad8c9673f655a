"""The fake server finds what is wrong with a request, and can go wrong in every scripted way itself."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any

import httpx
import pytest

from tests.support.fake_responses import (
    FakeResponses,
    Json,
    Play,
    Request,
    call,
    completed,
    custom_call,
    cut,
    delta,
    end,
    failed,
    hang,
    headers,
    html,
    item,
    raw,
    reasoning,
    redirect,
    repeat,
    reset,
    say,
    stall_headers,
    status,
)
from tests.support.invariants import top_level_spans
from tests.support.script import Answer, Element, Repeat

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
    given = {"content-type": "application/json", **{name.replace("_", "-"): value for name, value in header.items()}}
    return http.post(model.base_url + "/responses", content=content, headers=given)


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


def test_threads_are_told_apart_and_counted(http: httpx.Client) -> None:
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


def test_a_chunked_body_is_read_and_one_without_length_is_not(http: httpx.Client) -> None:
    whole = encoded(body_of(USER))
    with unjudged([say("hi")]) as model:
        answer = http.post(
            model.base_url + "/responses",
            content=iter([whole[:9], whole[9:]]),
            headers={"content-type": "application/json"},
        )
        with socket.create_connection(("127.0.0.1", model.port)) as connection:
            connection.sendall(b"POST /v1/responses HTTP/1.1\r\nhost: x\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 411")
    assert answer.status_code == 200
    assert model.requests[0].raw == whole
    assert names(model) == ["length"]


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


def test_events_are_streamed_as_sse(http: httpx.Client) -> None:
    with FakeResponses([headers({"x-request-id": "r"}), delta("é"), raw(b": note\n\n"), raw(b"")]) as model:
        answer = send(model, encoded(body_of(USER)), http)
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["x-request-id"] == "r"
    assert answer.text == (
        'event: response.output_text.delta\ndata: {"type":"response.output_text.delta","delta":"é"}\n\n: note\n\n'
        + f"event: response.completed\ndata: {json.dumps(completed(), separators=(',', ':'))}\n\n"
    )


@pytest.mark.parametrize("ending", [cut(), reset()])
@pytest.mark.parametrize("before", [[], [delta("half")]])
def test_a_connection_can_break_at_any_place(http: httpx.Client, ending: Element, before: list[Json]) -> None:
    with FakeResponses([*before, ending], [say("fine")]) as model:
        with pytest.raises(httpx.TransportError):
            send(model, encoded(body_of(USER)), http)
        assert send(model, encoded(body_of(USER)), http).status_code == 200


@pytest.mark.parametrize(
    ("answer", "code", "kind"),
    [
        (status(429, {"error": {"message": "slow"}}, {"retry-after": "1"}), 429, "application/json"),
        (html("<h1>no</h1>"), 200, "text/html; charset=utf-8"),
        (redirect("http://127.0.0.1:9/x"), 307, None),
        (headers({"content-type": None}, status=503), 503, None),
    ],
)
def test_whole_answers(http: httpx.Client, answer: Any, code: int, kind: str | None) -> None:
    with FakeResponses([answer], answer if isinstance(answer, Answer) else [answer]) as model:
        for _ in range(2):
            response = send(model, encoded(body_of(USER)), http)
            assert (response.status_code, response.headers.get("content-type")) == (code, kind)


@pytest.mark.parametrize("element", [hang, stall_headers])
def test_a_hang_lasts_until_its_event(element: Callable[[threading.Event], Element]) -> None:
    held = threading.Event()
    with FakeResponses([element(held), say("late")]) as model, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(httpx.post, model.base_url + "/responses", json=body_of(USER), trust_env=False)
        request = model.wait_for(1)
        assert not waiting.done()
        held.set()
        assert "late" in waiting.result().text
    assert request.path == "/v1/responses"


def test_the_exit_ends_every_hang() -> None:
    with FakeResponses([delta("x"), hang(threading.Event())]) as model, ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(httpx.post, model.base_url + "/responses", json=body_of(USER), trust_env=False)
        model.wait_for(1)
        model.close()
        with pytest.raises(httpx.TransportError):
            waiting.result()


def test_a_script_can_answer_what_it_is_asked(http: httpx.Client) -> None:
    def echo(request: Request) -> list[Json]:
        return [say(request.texts("user")[-1].upper())]

    with FakeResponses(repeat(echo)) as model:
        assert "HÉ" in send(model, encoded(body_of(USER)), http).text
        assert "HÉ" in send(model, encoded(body_of(USER, say('HÉ "INPUT":[')["item"])), http).text


def test_get_requests_are_answered_by_path(http: httpx.Client) -> None:
    with FakeResponses(get={"/v1/models": status(200, {"models": []})}) as model:
        assert http.get(model.base_url + "/models?x=1").json() == {"models": []}
        assert http.get(model.base_url + "/other").status_code == 404
    assert model.gets == ["/v1/models?x=1", "/v1/other"]


def test_spans_are_bytes_of_the_values() -> None:
    raw = ' { "a" : "é\\"b\\":" , "b" : [ 1 , {"a":2} ] , "c":null } '.encode()
    spans = top_level_spans(raw)
    assert {key: raw[start:stop] for key, (start, stop) in spans.items()} == {
        "a": '"é\\"b\\":"'.encode(),
        "b": b'[ 1 , {"a":2} ]',
        "c": b"null",
    }


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a"}', '{"a":}', '{"a":1,}', "{a:1}", '{"a":1}{'])
def test_what_is_no_object_has_no_spans(text: str) -> None:
    with pytest.raises(ValueError):
        top_level_spans(text.encode())

"""`codex-py acp` and a client that does not keep the protocol, stops reading, or goes away."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable

import pytest

from tests.support.acp import Client, Json, Refused, acp
from tests.support.fake_responses import FakeResponses, call, fake_model, hang, say
from tests.support.home import Place
from tests.support.hooks import entry, hook_inputs, noting, use_hooks
from tests.support.process import is_running, run, start

NEVER = threading.Event()
OUTSIDE = {"cmd": "touch made", "sandbox_permissions": "require_escalated", "justification": "to make it"}
JUNK = (
    (b"{", -32700),
    (b"\xff\xfe\x00", -32700),
    (b"[" * 100_000, -32700),
    (b"[]", -32600),
    (b"null", -32600),
    (b'"text"', -32600),
    (b"{}", -32600),
    (b'{"jsonrpc":"2.0","id":{},"method":"session/new"}', -32600),
    (b'{"jsonrpc":"2.0","id":null,"method":"session/new"}', -32600),
    (b'{"jsonrpc":"2.0","id":7,"method":5}', -32600),
    (b'{"jsonrpc":"2.0","id":7,"method":"nosuch/method"}', -32601),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/new","params":[]}', -32602),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{}}', -32602),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":{"sessionId":"nosuch","prompt":[]}}', -32002),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/load","params":{"sessionId":"../../x","cwd":"/"}}', -32002),
    (b'{"jsonrpc":"2.0","id":7,"method":"session/prompt","params":' + b'{"a":' * 5000 + b"1" + b"}" * 5001, None),
)
# To be passed over: nobody wants an answer.
SILENT = (
    b"",
    b"   ",
    b'{"jsonrpc":"2.0","method":"nosuch/notification"}',
    b'{"jsonrpc":"2.0","method":"session/cancel"}',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"nosuch"}}',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":{}}}',
    b'{"jsonrpc":"2.0","id":99,"result":{}}',
    b'{"jsonrpc":"2.0","id":"99","error":{"code":1,"message":"no"}}',
)


def use(place: Place, model: FakeResponses, top: str = "") -> Place:
    place.use_model(model.base_url, top)
    return place


def answered(client: Client, count: int) -> list[int]:
    """The codes of errors so far, when there are so many."""
    client.wait(lambda: len(client.errors) >= count)
    return [one["code"] for one in client.errors]


def test_junk_is_answered_and_hurts_nobody(place: Place) -> None:
    with fake_model(place, [hang(0.5), say("done")]), acp(place) as client:
        session = client.open(place)
        prompt = client.begin_prompt(session, "go")
        for line, code in JUNK:
            for silent in SILENT:
                client.write(silent + b"\n")
            before = len(client.errors)
            client.write(line + b"\n")
            assert answered(client, before + 1)[-1] == code or code is None
        assert client.answer(prompt)["stopReason"] == "end_turn"
        finished = client.close()

    assert client.said() == "done"
    assert (finished.status, finished.err) == (0, "")


def test_a_line_without_an_end_is_not_kept(place: Place) -> None:
    with fake_model(place, [say("done")]), acp(place) as client:
        client.write(b"x" * (65 * 1024 * 1024) + b"\n")
        assert answered(client, 1) == [-32700]
        assert client.prompt(client.open(place), "go")["stopReason"] == "end_turn"


def test_a_thousand_requests_at_once_are_all_answered(place: Place) -> None:
    with fake_model(place, [say("done")]), acp(place) as client:
        session = client.open(place)
        numbers = [client.begin("session/set_mode", sessionId=session, modeId="plan") for _ in range(1000)]
        wrong = [client.begin("session/prompt", sessionId="nosuch", prompt=[]) for _ in range(1000)]
        assert [client.answer(number) for number in numbers] == [{}] * 1000
        for number in wrong:
            with pytest.raises(Refused):
                client.answer(number)
        client.ask("session/set_mode", sessionId=session, modeId="ask")
        assert client.prompt(session, "go")["stopReason"] == "end_turn"


def test_what_was_asked_last_is_answered_before_the_end(place: Place) -> None:
    lines: list[Json] = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}},
        {"jsonrpc": "2.0", "id": 2, "method": "session/list", "params": {}},
    ]
    ended = run(place, "acp", stdin="\n".join(map(json.dumps, lines)).encode())

    assert (ended.status, ended.err) == (0, "")
    assert sorted(event["id"] for event in ended.events) == [1, 2]


def _goes(client: Client) -> int:
    return client.close().status


def _is_told_to_end(number: signal.Signals) -> Callable[[Client], int]:
    def end(client: Client) -> int:
        client.running.send_signal(number)
        return client.running.wait().status

    return end


@pytest.mark.parametrize(
    ("end", "status"),
    [(_goes, 0), (_is_told_to_end(signal.SIGTERM), 143), (_is_told_to_end(signal.SIGINT), 130)],
)
def test_whoever_ends_it_turns_are_recorded_and_children_gone(
    place: Place, end: Callable[[Client], int], status: int
) -> None:
    use_hooks(place, SessionEnd=[entry(noting(place))])
    works = call("c1", "exec_command", {"cmd": "echo $$ > pid; echo on; sleep 1000", "login": False})
    with FakeResponses([works], [say("back")], excuse={"threads", "tools"}) as model:
        with acp(use(place, model, 'sandbox_mode = "danger-full-access"')) as client:
            first, second = client.open(place), client.open(place)
            prompt = client.begin_prompt(first, "wait")
            client.wait(lambda: any(one.get("content") for one in client.calls()))
            seen = end(client)
            ended = client.answer(prompt)
        again = run(place, "exec", "resume", first, "and now?")

    assert seen == status
    assert ended["stopReason"] == "cancelled"
    assert not is_running(int((place.repo / "pid").read_text()))
    # One in which nothing was said has not begun.
    assert {one["session_id"] for one in hook_inputs(place)} - {second} == {first}
    assert "aborted" in model.requests[1].output_of("c1")
    assert (again.status, again.out) == (0, "back\n")


def test_the_client_goes_while_it_is_asked(place: Place) -> None:
    with fake_model(place, [call("c1", "exec_command", OUTSIDE)]), acp(place) as client:
        prompt = client.begin_prompt(client.open(place), "go")
        client.wait(lambda: bool(client.requests))
        assert client.close().status == 0
        assert client.answer(prompt)["stopReason"] == "cancelled"

    assert not (place.repo / "made").exists()


def test_a_client_that_has_stopped_reading_does_not_keep_it_alive(place: Place) -> None:
    reader, writer = os.pipe()
    with FakeResponses([say("x" * 3_000_000)]) as model:
        use(place, model)
        with start(place, "acp", stdin="open", stdout=writer) as running:
            os.close(writer)
            opened: Json = {"cwd": str(place.repo), "mcpServers": []}
            pipe = running.popen.stdin
            assert pipe is not None
            lines = os.fdopen(reader, "rb")
            pipe.write(json.dumps({"id": 1, "method": "session/new", "params": opened}).encode() + b"\n")
            pipe.flush()
            session = json.loads(lines.readline())["result"]["sessionId"]
            prompt = [{"type": "text", "text": "go"}]
            question = {"id": 2, "method": "session/prompt", "params": {"sessionId": session, "prompt": prompt}}
            pipe.write(json.dumps(question).encode() + b"\n")
            pipe.flush()
            while b"xxx" not in lines.read(100):
                pass
            pipe.close()
            assert running.wait().status == 0
            lines.close()


def test_a_client_that_has_closed_its_end_is_gone(place: Place) -> None:
    reader, writer = os.pipe()
    with FakeResponses() as model:
        use(place, model)
        with start(place, "acp", stdin="open", stdout=writer) as running:
            os.close(writer)
            os.close(reader)
            pipe = running.popen.stdin
            assert pipe is not None
            pipe.write(b'{"id": 1, "method": "session/list"}\n')
            pipe.flush()
            ended = running.wait()

    assert ended.status == 0
    assert "cannot write to the client: broken pipe" in ended.err


def test_help_and_wrong_flags_are_reported_as_everywhere(place: Place) -> None:
    shown, wrong = run(place, "acp", "--help"), run(place, "acp", "--nosuch")

    assert (shown.status, shown.err) == (0, "")
    assert "Agent Client Protocol" in shown.out
    assert (wrong.status, wrong.out) == (2, "")
    assert wrong.err.startswith("error: ")

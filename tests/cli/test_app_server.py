"""`codex-py app-server` as a process: introductions, what is wrong with a request, and how it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal

import pytest

from tests.support.app_client import AppClient, Json, Refused, app_server, command, refusal
from tests.support.fake_responses import delta, fake_model, say
from tests.support.home import Place
from tests.support.process import run, start


def test_a_client_introduces_itself_once_and_first(place: Place) -> None:
    with app_server(place, name=None) as client:
        assert refusal(client, "thread/list") == (-32600, "not initialized")
        result = client.introduce()
        assert refusal(client, "initialize", clientInfo={"name": "x"}) == (-32600, "already initialized")
        code, message = refusal(client, "no/such/thing")
        finished = client.close()

    name, version, rest = result["userAgent"].replace("/", " ", 1).split(" ", 2)
    assert (name, result["codexHome"], result["platformFamily"]) == ("test_client", str(place.codex_home), "unix")
    assert tuple(map(int, version.split("."))) >= (0, 151, 0)
    assert "codex-py/" in rest
    assert (code, message) == (-32600, "invalid request: unknown method `no/such/thing`")
    assert (finished.status, finished.err) == (0, "")


def test_the_files_of_an_untrusted_project_do_nothing(place: Place) -> None:
    place.write(".codex/config.toml", 'model = "evil"\nnotify = ["touch", "notified"]\n')
    place.write(
        ".codex/hooks.json", json.dumps({"hooks": {"SessionStart": [{"hooks": [{"command": "touch hooked"}]}]}})
    )
    with fake_model(place, [say("ok")]) as model, app_server(place) as client:
        started = client.ask("thread/start", cwd=str(place.repo), sandbox="workspace-write")
        client.turn(started["thread"]["id"], "go")
        client.close()

    assert model.requests[0].body["model"] == started["model"] != "evil"
    assert not (place.repo / "notified").exists()
    assert not (place.repo / "hooked").exists()
    assert any("hooks" in message for message in client.warnings())


def test_the_login_the_models_and_named_directories_are_known_where_the_directory_is_gone(place: Place) -> None:
    place.use_model("http://127.0.0.1:9/v1")
    with app_server(place) as client:
        here = {method: client.ask(method) for method in ("account/read", "model/list")}
        shutil.rmtree(place.repo)
        assert {method: client.ask(method) for method in here} == here
        code, message = refusal(client, "thread/start")
        started = client.ask("thread/start", cwd=str(place.home))
        client.close()

    assert (code, message) == (-32600, "the directory this server was started in is gone: name one as `cwd`")
    assert started["cwd"] == str(place.home)


def test_what_was_asked_before_the_input_ended_is_answered(place: Place) -> None:
    place.use_model("http://127.0.0.1:9/v1")
    question = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "pipe"}}},
        {"id": 2, "method": "thread/start", "params": {"cwd": str(place.repo)}},
        {"id": "three", "method": "model/list"},
    ]
    finished = run(place, "app-server", stdin=b"\n".join(json.dumps(one).encode() for one in question))

    assert {one["id"] for one in finished.events if "result" in one} == {1, 2, "three"}
    assert (finished.status, finished.err) == (0, "")


def test_junk_is_refused_and_harms_nobody(place: Place) -> None:
    with fake_model(place, [say("ok")]), app_server(place) as client:
        thread = client.open(place)
        client.write(b'garbage\n\n[1]\n"x"\n{}\n{"id":true,"method":"thread/list"}\n\xff\xfe\n')
        client.write(b'{"id":null,"method":"thread/list"}\n{"id":"s","method":7}\n' + b"[" * 100_000 + b"\n")
        client.send({"id": 999, "result": {"decision": "accept"}})
        wrong: list[tuple[str, Json]] = [
            ("turn/start", {"threadId": thread}),
            ("turn/start", {"threadId": thread, "input": "text"}),
            ("turn/start", {"threadId": thread, "input": [{"type": "text"}]}),
            ("turn/start", {"threadId": thread, "input": [{"type": "audio", "url": "x"}]}),
            ("turn/start", {"threadId": thread, "input": [], "sandboxPolicy": {"type": "all"}}),
            ("turn/start", {"threadId": thread, "input": [], "effort": "enormous"}),
            ("turn/start", {"threadId": "x" * 10_000, "input": []}),
            ("turn/start", {"threadId": thread, "input": [{"type": "text", "text": "\ud800"}]}),
            ("thread/start", {"cwd": "/tmp/\ud800"}),
            ("thread/read", {"threadId": "../../etc/passwd"}),
            ("thread/list", {"limit": -1}),
            ("thread/list", {"cursor": "x"}),
            ("thread/list", {"originators": "x"}),
            ("thread/start", {"config": {"a": {"b": "c"}, "nested": json.loads("[" * 100 + "]" * 100)}}),
            ("command/exec", {"command": "ls"}),
            ("skills/config/write", {"enabled": True}),
        ]
        for method, params in wrong:
            assert refusal(client, method, **params)[0] == -32600
        client.wait(lambda: len(client.errors) == 9)
        large = '{"id":998,"method":"turn/start","params":{"threadId":"%s","input":[],"outputSchema":{"a":1e999}}}\n'
        client.write((large % thread).encode())
        with pytest.raises(Refused):
            client.answer(998)
        turn = client.turn(thread, "go")
        finished = client.close()

    assert {error["code"] for error in client.errors} == {-32700, -32600}
    assert turn["status"] == "completed"
    assert (finished.status, finished.err) == (0, "")


def test_a_line_without_end_is_refused_and_passed_over(place: Place) -> None:
    with app_server(place) as client:
        for _ in range(65):
            client.write(b"x" * 2**20)
        client.write(b"\n")
        assert client.ask("thread/loaded/list") == {"data": [], "nextCursor": None}
        client.close()

    assert client.errors == [{"code": -32700, "message": "a line is over 64 MiB"}]


def test_a_thousand_requests_at_once_are_all_answered(place: Place) -> None:
    with app_server(place) as client:
        numbers = [client.begin("thread/loaded/list") for _ in range(1000)]
        assert {len(client.answer(number)["data"]) for number in numbers} == {0}
        client.close()


def test_notifications_nobody_wants_are_not_sent(place: Place) -> None:
    with (
        fake_model(place, [delta("o"), say("ok")]),
        app_server(place, optOutNotificationMethods=["item/agentMessage/delta"]) as client,
    ):
        client.turn(client.open(place), "go")
        client.close()

    assert client.notified("item/agentMessage/delta") == []


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_ends_it_in_order(place: Place, number: signal.Signals, status: int) -> None:
    with fake_model(place, [command("c1", "sleep 1000", yield_time_ms=30000)]), app_server(place) as client:
        client.begin_turn(client.open(place), "wait")
        client.next("item/started", lambda params: params["item"]["type"] == "commandExecution")
        client.running.send_signal(number)
        finished = client.running.wait()

    [rollout] = place.rollouts()
    assert (finished.status, finished.has_traceback) == (status, False)
    assert '"type":"turn_aborted"' in rollout.read_text()


def test_a_closed_input_ends_what_runs_and_records_it(place: Place) -> None:
    with fake_model(place, [command("c1", "sleep 1000", yield_time_ms=30000)]), app_server(place) as client:
        turn = client.begin_turn(client.open(place), "wait")
        client.next("item/started", lambda params: params["item"]["type"] == "commandExecution")
        finished = client.close()

    [rollout] = place.rollouts()
    assert (finished.status, finished.err) == (0, "")
    assert (
        client.notified("turn/completed")[0]["turn"] | {"id": turn, "status": "interrupted"}
        == (client.notified("turn/completed")[0]["turn"])
    )
    assert '"type":"turn_aborted"' in rollout.read_text()


def test_a_client_that_does_not_read_holds_nothing_up_at_the_end(place: Place) -> None:
    reader, writer = os.pipe()
    try:
        with (
            fake_model(place, [say("x" * 1_000_000)]) as model,
            start(place, "app-server", stdin="open", stdout=writer) as running,
        ):
            client = AppClient(running)
            client.begin("initialize", clientInfo={"name": "deaf"})
            thread = {"cwd": str(place.repo), "sandbox": "read-only"}
            client.begin("thread/start", **thread)
            line = b"".join(iter(lambda: os.read(reader, 1), b"\n"))
            line = b"".join(iter(lambda: os.read(reader, 1), b"\n"))
            opened = json.loads(line)["result"]["thread"]["id"]
            client.begin("turn/start", threadId=opened, input=[{"type": "text", "text": "go"}])
            model.wait_for(1)
            running.close_stdin()
            finished = running.wait()
    finally:
        os.close(reader)
        os.close(writer)

    assert (finished.status, finished.err) == (0, "")


def test_another_place_to_listen_at_is_refused(place: Place) -> None:
    finished = run(place, "app-server", "--listen", "ws://127.0.0.1:1")
    assert (finished.status, finished.out) == (2, "")
    assert finished.err.startswith("error: cannot listen at `ws://127.0.0.1:1`")

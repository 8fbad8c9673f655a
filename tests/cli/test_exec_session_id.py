"""`exec --session-id`: the same command goes on after a crash, and prints the stored answer after success."""

from __future__ import annotations

import json
import os
import signal
import threading

import pytest

from tests.support.fake_responses import api_error, call, fake_model, hang, say
from tests.support.home import Place
from tests.support.process import run, start

FULL_ACCESS = 'sandbox_mode = "danger-full-access"\n'


def texts_of_user(request: object) -> list[str]:
    """The texts of the user's messages in a request, without those of the host."""
    items = getattr(request, "input")  # noqa: B009 - any request
    texts = [part.get("text", "") for item in items if item.get("role") == "user" for part in item["content"]]
    return [text for text in texts if not text.startswith("<")]


def test_a_repeated_command_prints_the_stored_answer_without_a_request(place: Place) -> None:
    with fake_model(place, [say("forty-two")]) as model:
        first = run(place, "exec", "--session-id", "task-1", "what is it?")
        second = run(place, "exec", "--session-id", "task-1", "what is it?")
        lines = run(place, "exec", "--session-id", "task-1", "--json", "what is it?", "-o", "answer.txt")
        assert len(model.requests) == 1
    assert (first.status, first.out) == (0, "forty-two\n")
    assert (second.status, second.out) == (0, "forty-two\n")
    assert second.err == "the stored answer of an earlier run; `--again` asks the model again\n"
    assert (place.repo / "answer.txt").read_text() == "forty-two"
    assert [event["type"] for event in lines.events] == [
        "thread.started",
        "turn.started",
        "item.completed",
        "turn.completed",
    ]
    assert lines.events[2]["item"]["text"] == "forty-two"
    assert len(place.rollouts()) == 1


def test_another_prompt_goes_on_in_the_session_and_both_answers_stay_stored(place: Place) -> None:
    with fake_model(place, [say("one")], [say("two")], [say("three")]) as model:
        assert run(place, "exec", "--session-id", "s", "first").out == "one\n"
        assert run(place, "exec", "--session-id", "s", "second").out == "two\n"
        assert run(place, "exec", "--session-id", "s", "first").out == "one\n"
        assert run(place, "exec", "--session-id", "s", "second").out == "two\n"
        assert run(place, "exec", "--session-id", "s", "--again", "first").out == "three\n"
        assert texts_of_user(model.requests[2]) == ["first", "second", "first"]
        assert len(model.requests) == 3
    assert len(place.rollouts()) == 1


def test_a_killed_run_goes_on_where_it_stopped(place: Place) -> None:
    step = [call("c1", "exec_command", {"cmd": "echo 1 >> steps"})]
    with fake_model(place, step, [hang(threading.Event())], [say("done")], top=FULL_ACCESS) as model:
        with start(place, "exec", "--session-id", "job", "do it") as running:
            model.wait_for(2)
            os.kill(running.pid, signal.SIGKILL)
            running.wait()
        ended = run(place, "exec", "--session-id", "job", "do it")
        again = run(place, "exec", "--session-id", "job", "do it")
        assert len(model.requests) == 3
    assert (ended.status, ended.out, again.out) == (0, "done\n", "done\n")
    assert (place.repo / "steps").read_text() == "1\n"
    texts = texts_of_user(model.requests[2])
    assert texts[0] == "do it"
    assert texts[1].startswith("The run of this task was stopped before the task was done.")
    assert model.requests[2].output_of("c1").endswith("Output:\n")


def test_a_failed_run_goes_on_too(place: Place) -> None:
    with fake_model(place, api_error(400, "no"), [say("done")]) as model:
        assert run(place, "exec", "--session-id", "job", "do it").status == 1
        assert run(place, "exec", "--session-id", "job", "do it").out == "done\n"
        assert texts_of_user(model.requests[1])[0] == "do it"


def test_the_second_of_two_runs_at_once_says_so(place: Place) -> None:
    with (
        fake_model(place, [hang(threading.Event())]) as model,
        start(place, "exec", "--session-id", "busy", "wait") as running,
    ):
        model.wait_for(1)
        second = run(place, "exec", "--session-id", "busy", "--artifacts", "out", "wait")
        running.send_signal(signal.SIGINT)
        assert running.wait().status == 130
    assert (second.status, second.out) == (79, "")
    assert second.err.startswith("error: session `busy` is in use by another run; ")
    # They belong to the run that has the session.
    assert list((place.repo / "out").iterdir()) == []


def test_a_uuid_names_the_session_itself_and_resume_finds_the_others_by_their_name(place: Place) -> None:
    thread = "0199A213-81C0-7800-8AA1-BBAB2A035A53"
    with fake_model(place, [say("one")], [say("two")], [say("three")], excuse={"threads"}):
        run(place, "exec", "--session-id", thread, "first")
        run(place, "exec", "--session-id", "by.name-1", "second")
        assert run(place, "exec", "resume", "by.name-1", "more").out == "three\n"
    listed = {one["first_prompt"]: one["id"] for one in json.loads(run(place, "sessions", "list", "--json").out)}
    assert listed["first"] == thread.lower()
    assert len(place.rollouts()) == 2


@pytest.mark.parametrize("text", ["", "../up", "a/b", "x" * 65, "a b", ".", "..", ".hidden", "é", "a\n", "a$"])
def test_an_unsafe_id_is_refused_before_anything_runs(text: str, place: Place) -> None:
    place.use_model("http://127.0.0.1:9")
    ended = run(place, "exec", f"--session-id={text}", "go")
    assert (ended.status, ended.out) == (2, "")
    assert "is not a session id" in ended.err
    assert not (place.codex_home / "exec-runs").exists()


@pytest.mark.parametrize(
    "words",
    [
        ["--again", "go"],
        ["--session-id", "a", "--ephemeral", "go"],
        ["resume", "--session-id", "a", "--last", "go"],
        ["fork", "--session-id", "a", "--last", "go"],
    ],
)
def test_flags_that_exclude_each_other(words: list[str], place: Place) -> None:
    place.use_model("http://127.0.0.1:9")
    ended = run(place, "exec", *words)
    assert (ended.status, ended.out) == (2, "")

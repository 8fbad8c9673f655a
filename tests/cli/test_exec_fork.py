"""`codex-py exec fork`: a new session that goes on from some turn of another one."""

from __future__ import annotations

import threading

import pytest

from tests.support.fake_responses import call, completed, fake_model, hang, reasoning, repeat, say, tokens
from tests.support.home import Place
from tests.support.process import run, start
from tests.support.rollout import read_rollout, recorded_items


def test_a_fork_goes_on_from_the_end_of_a_turn_and_leaves_the_parent_alone(place: Place) -> None:
    work = [reasoning("blob"), call("c", "exec_command", {"cmd": "echo hi"})]
    spent = completed(tokens(100, 10))
    script = (work, [say("one"), spent], [say("two"), spent], [say("three"), spent], [say("four"), spent])
    with fake_model(place, *script, excuse={"threads"}) as model:
        run(place, "exec", "a")
        run(place, "exec", "resume", "--last", "b")
        [parent] = place.rollouts()
        before = parent.read_bytes()
        forked = run(place, "exec", "fork", parent.stem[-36:], "--turn", "1", "--json", "c")
        [fork] = set(place.rollouts()) - {parent}
        again = run(place, "exec", "resume", fork.stem[-36:], "d")

    first, second = model.requests[1], model.requests[3]
    assert [forked.status, again.status] == [0, 0]
    assert second.input == [*first.input, say("one")["item"], second.input[-1]]
    assert second.input_bytes.startswith(first.input_bytes[:-1] + b",")
    assert second.texts("user")[-1] == "c"
    assert second.body["prompt_cache_key"] == fork.stem[-36:] != parent.stem[-36:]
    assert forked.events[0] == {"type": "thread.started", "thread_id": fork.stem[-36:]}
    assert model.requests[4].texts("assistant") == ["one", "three"]
    assert parent.read_bytes() == before
    header = read_rollout(fork)[0]
    assert (header.type, header.payload["forked_from_id"]) == ("session_meta", parent.stem[-36:])
    assert [record.ordinal for record in read_rollout(fork)] == list(range(len(read_rollout(fork))))


@pytest.mark.parametrize("arguments", [["--last"], ["--last", "--all"], ["ID"]])
def test_without_a_turn_a_fork_takes_everything(place: Place, arguments: list[str]) -> None:
    with fake_model(place, repeat([say("ok")]), excuse={"threads"}) as model:
        run(place, "exec", "a")
        [parent] = place.rollouts()
        words = [parent.stem[-36:] if word == "ID" else word for word in arguments]
        ended = run(place, "exec", "fork", *words, "-", stdin=b"b")

    assert ended.stdout == b"ok\n"
    assert [text for text in model.requests[1].texts("user") if not text.startswith("<")] == ["a", "b"]


def test_a_running_session_can_be_forked_and_its_open_calls_are_closed(place: Place) -> None:
    held = threading.Event()
    work = [call("c", "exec_command", {"cmd": "echo hi"}), hang(held), say("one")]
    with (
        fake_model(place, work, [say("fork")], [say("parent")], excuse={"threads", "pairs", "order"}) as model,
        start(place, "exec", "--json", "a") as running,
    ):
        running.wait_until(lambda it: b'"item.completed"' in it.stdout)
        [parent] = place.rollouts()
        forked = run(place, "exec", "fork", parent.stem[-36:], "b")
        held.set()
        ended = running.wait()

    assert [forked.status, ended.status] == [0, 0]
    [fork] = set(place.rollouts()) - {parent}
    outputs = [item["call_id"] for item in recorded_items(fork) if item["type"] == "function_call_output"]
    assert outputs == ["c"]
    assert model.requests[1].texts("user")[-1] == "b"


@pytest.mark.parametrize(
    ("arguments", "status", "result"),
    [
        (["fork", "ID", "--turn", "2", "x"], 2, "has 1 turn;"),
        (["fork", "ID", "--turn", "0", "x"], 2, "no turn 0"),
        (["fork", "ID", "--turn", "two", "x"], 2, "--turn"),
        (["fork"], 2, "no session to fork"),
        (["fork", "nothing of that name", "x"], 2, "no session with the name or id"),
        (["--turn", "1", "x"], 2, "`--turn` goes with `fork`"),
        (["resume", "ID", "--turn", "1", "x"], 2, "`--turn` goes with `fork`"),
        (["fork", "ID", "x", "y"], 2, "more than one prompt"),
    ],
)
def test_a_fork_that_makes_no_sense_is_one_line(place: Place, arguments: list[str], status: int, result: str) -> None:
    with fake_model(place, [say("ok")]):
        run(place, "exec", "a")
        [parent] = place.rollouts()
        ended = run(place, "exec", *[parent.stem[-36:] if word == "ID" else word for word in arguments])

    assert (ended.status, ended.stdout, len(ended.err.splitlines())) == (status, b"", 1)
    assert result in ended.err
    assert place.rollouts() == [parent]

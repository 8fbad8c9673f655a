"""`[sessions] titles = "model"`: one short request after the first turn names the session."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.fake_responses import FakeResponses, api_error, call, say
from tests.support.home import Place
from tests.support.process import run

WANTED = '[sessions]\ntitles = "model"\n'
EXCUSED = {"threads", "prefix", "tools", "replay"}


def names(place: Place) -> list[str]:
    file = place.codex_home / "session_index.jsonl"
    return [json.loads(line)["thread_name"] for line in file.read_text().splitlines()] if file.exists() else []


def use(place: Place, model: FakeResponses, more: str = WANTED) -> None:
    place.use_model(model.base_url)
    with (place.codex_home / "config.toml").open("a") as config:
        config.write(more)


def test_the_model_names_a_session_after_its_first_turn(place: Place) -> None:
    work = [call("c", "exec_command", {"cmd": "echo secret-output"})]
    answers = (work, [say("it is done")], [say('**"Fix the flux\tcapacitor."**\nand more')], [say("again")])
    with FakeResponses(*answers, excuse=EXCUSED) as model:
        use(place, model)
        assert run(place, "exec", "look at the flux capacitor").status == 0
        assert run(place, "exec", "resume", "Fix the flux capacitor", "more").status == 0
    assert names(place) == ["Fix the flux capacitor"]
    request = model.requests[2]
    assert (len(request.input), request.body.get("tools", []), len(str(request.body)) < 3000) == (1, [], True)
    assert "look at the flux capacitor" in request.texts("user")[0]
    assert "it is done" in request.texts("user")[0]
    assert "secret-output" not in str(request.body)
    # Nothing of it is part of the conversation.
    assert "flux capacitor." not in str(model.requests[3].input)
    assert len(model.requests) == 4
    [listed] = json.loads(run(place, "sessions", "list", "--json").out)
    assert listed["name"] == "Fix the flux capacitor"


@pytest.mark.parametrize("answer", [[say(" \n")], [api_error(400, "no")]])
def test_a_session_without_a_title_goes_on(place: Place, answer: list[Any]) -> None:
    with FakeResponses([say("done")], answer, excuse=EXCUSED) as model:
        use(place, model)
        ended = run(place, "exec", "hello")
    assert (ended.status, ended.out, names(place)) == (0, "done\n", [])
    assert "this session has no title from the model" in ended.err


def test_nobody_is_asked_for_a_title_unless_it_is_wanted(place: Place) -> None:
    with FakeResponses([say("one")], [say("two")], [say("three")], excuse=EXCUSED) as model:
        use(place, model, "")
        run(place, "exec", "hello")
        run(place, "exec", "-c", 'sessions.titles="first-words"', "hello")
        run(place, "exec", "-c", 'sessions.titles="model"', "--ephemeral", "hello")
        wrong = run(place, "exec", "-c", 'sessions.titles="all"', "hello")
    assert (len(model.requests), names(place)) == (3, [])
    assert (wrong.status, wrong.err.count("\n")) == (2, 1)

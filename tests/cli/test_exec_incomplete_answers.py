"""Answers that reach their limit, are filtered or are refused: named to people and to scripts, the same on each API."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.fake_responses import completed, repeat, say
from tests.support.home import Place
from tests.support.process import run
from tests.support.wire_dialects import DIALECTS, MESSAGES, RESPONSES, Dialect

every_wire = pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.wire)
PRICE = '[models."local-model"]\ninput_usd = 10000\noutput_usd = 100000\n'


def ask(place: Place, wire: Dialect, play: Any, *flags: str) -> tuple[Any, int]:
    """Run `exec --json` against a server that always answers like this; the run, and how many requests there were."""
    with wire.server(repeat(play), excuse={"chat", "messages", "replay", "prefix"}) as model:
        place.use_model(model.base_url, wire_api=wire.wire)
        with (place.codex_home / "config.toml").open("a") as file:
            file.write(PRICE)
        ended = run(place, "exec", "--json", "-m", "local-model", *flags, "go")
        return ended, len(model.requests)


@every_wire
@pytest.mark.parametrize(
    ("how", "words", "code", "status"),
    [
        ("limit", "the limit of 32,768 output tokens", "context_length", 65),
        ("filter", "`content_filter`", "refused", 76),
        ("refusal", "the model has refused to answer", "refused", 76),
    ],
)
def test_it_is_named_with_its_code(place: Place, wire: Dialect, how: str, words: str, code: str, status: int) -> None:
    if (wire, how) == (MESSAGES, "filter"):
        words = "the model has refused to answer"
    ended, requests = ask(place, wire, wire.ended("I cannot", how))
    failed = ended.events[-1]
    assert (failed["type"], failed["error"]["code"], ended.status) == ("turn.failed", code, status)
    assert words in failed["error"]["message"]
    # The Responses API alone has advice for a model that was filtered, which is sent once.
    assert requests == (2 if (wire, how) == (RESPONSES, "filter") else 1)


@every_wire
@pytest.mark.parametrize("how", ["limit", "refusal"])
def test_people_read_it_on_stderr(place: Place, wire: Dialect, how: str) -> None:
    with wire.server(wire.ended("I cannot", how)) as model:
        place.use_model(model.base_url, wire_api=wire.wire)
        ended = run(place, "exec", "-m", "local-model", "go")
    words = {"limit": "the answer is incomplete", "refusal": "the model has refused to answer"}[how]
    assert (ended.status, words in ended.err) == ({"limit": 65, "refusal": 76}[how], True)
    # The words of a refusal are all there is to read; half an answer could be taken for a whole one.
    assert ended.out == {"limit": "", "refusal": "I cannot\n"}[how]


@every_wire
@pytest.mark.parametrize("how", ["limit", "refusal"])
def test_it_costs_what_the_server_has_counted(place: Place, wire: Dialect, how: str) -> None:
    ended, _ = ask(place, wire, wire.ended("I cannot", how), "--artifacts", str(place.home / "out"))
    result = json.loads((place.home / "out/result.json").read_text())
    assert (ended.status, result["usage"]["input_tokens"], result["usage"]["output_tokens"]) == (
        {"limit": 65, "refusal": 76}[how],
        100,
        7,
    )
    costs = json.loads(run(place, "cost", "--json").out)
    assert costs["total"]["cost_usd"] == pytest.approx(1.7)


@every_wire
def test_what_was_said_until_then_stays_in_the_session(place: Place, wire: Dialect) -> None:
    with wire.server(wire.ended("the first half", "limit"), wire.say("the second")) as model:
        place.use_model(model.base_url, wire_api=wire.wire)
        run(place, "exec", "-m", "local-model", "go")
        ended = run(place, "exec", "resume", "--last", "-m", "local-model", "go on")
        assert wire.said(model.requests[1]) == ["the first half"]
    assert (ended.status, ended.out) == (0, "the second\n")


@pytest.mark.parametrize(
    ("response", "status"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, 65),
        ({"status": "failed", "error": {"code": "invalid_prompt", "message": "odd"}}, 76),
    ],
)
def test_a_completed_event_that_says_otherwise_is_believed(place: Place, response: Any, status: int) -> None:
    last = completed()
    last["response"] |= response
    ended, _ = ask(place, RESPONSES, [say("half"), last])
    assert ended.status == status, ended.out

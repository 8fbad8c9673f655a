"""`exec` and a history that gets too long: what a script and a person see."""

from __future__ import annotations

import json

from tests.support.fake_responses import call, completed, fake_model, hang, say, tokens
from tests.support.home import MODEL, Place
from tests.support.process import run, start

FULL = completed(tokens(300_000, 10))
WORK = [call("c", "exec_command", {"cmd": "true", "login": False}), FULL]


def test_a_script_gets_an_item_and_the_answer(place: Place) -> None:
    with fake_model(place, WORK, [say("the summary"), completed(tokens(40, 10))], [say("done")]):
        ended = run(place, "exec", "--json", "go")
    [item] = [event["item"] for event in ended.events if event.get("item", {}).get("type") == "context_compaction"]
    assert item == {
        "id": "item_1",
        "type": "context_compaction",
        "before_tokens": item["before_tokens"],
        "after_tokens": item["after_tokens"],
        "how": "local",
        "reason": "context_limit",
    }
    assert item["before_tokens"] > 300_000 > item["after_tokens"]
    assert ended.status == 0
    assert ended.events[-1]["usage"]["input_tokens"] == 300_040
    assert ended.events[-2]["item"]["text"] == "done"


def test_a_person_sees_the_tokens_before_and_after(place: Place) -> None:
    with fake_model(place, WORK, [say("the summary")], [say("done")]):
        ended = run(place, "exec", "go")
    [line] = [line for line in ended.err.splitlines() if line.startswith("context compacted:")]
    assert line.startswith("context compacted: about 300,0")
    assert "the summary" not in ended.err
    assert ended.out == "done\n"


def test_a_stored_session_is_compacted_on_request(place: Place) -> None:
    with fake_model(place, [say("one")], [say("the summary")], [say("two")]) as model:
        first = run(place, "exec", "--json", "first")
        thread = json.loads(first.out.splitlines()[0])["thread_id"]
        compacted = run(place, "exec", "resume", thread, "/compact\nkeep the names\n")
        second = run(place, "exec", "resume", thread, "second")
        shown = run(place, "sessions", "show", thread)
    assert "\nuser\nfirst\nsummary\nthe summary\n\n--- turn 2 " in shown.out
    assert (compacted.status, compacted.out) == (0, "")
    assert "context compacted:" in compacted.err
    assert model.requests[1].texts("user")[-1].endswith("dwell on this: keep the names")
    assert (second.status, second.out) == (0, "two\n")
    assert model.requests[2].window == 1


def test_a_session_that_is_resumed_with_a_smaller_model_is_compacted_by_the_larger(place: Place) -> None:
    script = [[say("one"), completed(tokens(20_000, 10))], [say("the summary")], [say("two")]]
    with fake_model(place, *script, top='[models."small"]\ncontext_window = 10000\n') as model:
        run(place, "exec", "first")
        ended = run(place, "exec", "resume", "--last", "-m", "small", "second")
    assert (ended.status, ended.out) == (0, "two\n")
    assert [request.body["model"] for request in model.requests] == [MODEL, MODEL, "small"]


def test_what_was_said_is_kept_when_the_compaction_before_it_is_killed(place: Place) -> None:
    full = [say("one"), completed(tokens(300_000, 10))]
    script = [full, [hang(60)], [say("the summary")], [say("three")], [say("four")]]
    with fake_model(place, *script, excuse={"json", "length"}) as model:
        run(place, "exec", "first")
        with start(place, "exec", "resume", "--last", "remember the milk") as running:
            model.wait_for(2)
            running.popen.kill()
            running.wait()
        third = run(place, "exec", "resume", "--last", "third")
        fourth = run(place, "exec", "resume", "--last", "fourth")
        [rollout] = place.rollouts()
        shown = run(place, "sessions", "show", rollout.stem[-36:])
    assert (third.out, fourth.out) == ("three\n", "four\n")
    assert model.requests[2].texts("user").count("remember the milk") == 1
    for request in model.requests[3:]:
        said = request.texts("user")
        assert [text for text in said if "milk" in text or text in ("first", "third", "fourth")] == [
            "first",
            "remember the milk",
            "third",
            *(["fourth"] if request is model.requests[4] else []),
        ]
    assert shown.out.count("remember the milk") == 1


def test_what_was_said_is_there_once_after_a_compaction_before_it(place: Place) -> None:
    full = [say("one"), completed(tokens(300_000, 10))]
    with fake_model(place, full, [say("the summary")], [say("two")], [say("three")]) as model:
        run(place, "exec", "first")
        run(place, "exec", "resume", "--last", "remember the milk")
        run(place, "exec", "resume", "--last", "third")
    assert [text for text in model.requests[3].texts("user") if text in ("first", "remember the milk", "third")] == [
        "first",
        "remember the milk",
        "third",
    ]


def test_a_compaction_that_fails_is_a_failed_run(place: Place) -> None:
    with fake_model(place, [say("one")], [say("")], [say("")]):
        run(place, "exec", "first")
        ended = run(place, "exec", "resume", "--last", "/compact")
    assert ended.status == 1
    assert ended.err.splitlines()[-1] == "ERROR: the model wrote no summary"


def test_the_word_alone_begins_no_compaction_of_nothing(place: Place) -> None:
    with fake_model(place, [say("what is that?")]):
        ended = run(place, "exec", "/compact")
    assert (ended.status, ended.out) == (0, "what is that?\n")


def test_a_summary_prompt_that_cannot_be_read_is_reported_at_once(place: Place) -> None:
    with fake_model(place, top='experimental_compact_prompt_file = "missing.md"'):
        ended = run(place, "exec", "go")
    assert ended.status == 2
    assert "missing.md`: no such file or directory; correct `experimental_compact_prompt_file`" in ended.err

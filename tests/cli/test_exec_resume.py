"""`codex-py exec resume`: the next run goes on where the last one ended, byte for byte."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.fake_responses import call, completed, fake_model, hang, reasoning, repeat, say, tokens
from tests.support.home import GIF, Place
from tests.support.process import run, start
from tests.support.rollout import read_rollout, recorded_items

UNKNOWN = "01a20027-2345-79b2-bdc3-b28e73fdbaf0"


def session_of(path: Path) -> str:
    return path.stem[-36:]


@pytest.mark.parametrize(
    "arguments",
    [
        ["resume", "ID", "next"],
        ["resume", "--last", "next"],
        ["-s", "read-only", "--json", "resume", "ID", "next"],
        ["resume", "ID", "next", "-s", "read-only", "--json"],
        ["resume", "--json", "ID", "-c", 'model_reasoning_effort="low"', "next", "--skip-git-repo-check"],
        ["--skip-git-repo-check", "resume", "--last", "--color", "never", "next"],
        ["resume", "next", "--last"],
    ],
)
def test_options_stand_anywhere_around_resume(place: Place, arguments: list[str]) -> None:
    script = ([reasoning("blob"), say("one"), call("c", "exec_command", {"cmd": "echo hi"})], [say("two")])
    with fake_model(place, *script, [say("three")], top='model_reasoning_effort = "low"') as model:
        assert run(place, "exec", "first").status == 0
        [path] = place.rollouts()
        ended = run(place, "exec", *[session_of(path) if word == "ID" else word for word in arguments])

    assert ended.status == 0
    assert model.requests[2].texts("assistant") == ["one", "two"]
    assert model.requests[2].texts("user")[-2:] == ["first", "next"]
    assert model.requests[2].body["prompt_cache_key"] == session_of(path)
    assert place.rollouts() == [path]
    if "--json" in arguments:
        assert ended.events[0] == {"type": "thread.started", "thread_id": session_of(path)}


@pytest.mark.parametrize(
    ("arguments", "stdin", "prompt"),
    [
        (["--last"], b"piped\n", "piped\n"),
        (["--last", "-"], b"piped", "piped"),
        (["--last", "arg"], b"piped", "arg\n\n<stdin>\npiped\n</stdin>"),
        (["ID"], b"piped", "piped"),
        (["ID", "-"], b"piped", "piped"),
    ],
)
def test_a_resumed_session_takes_its_prompt_like_a_new_one(
    place: Place, arguments: list[str], stdin: bytes, prompt: str
) -> None:
    with fake_model(place, [say("one")], [say("two")]) as model:
        run(place, "exec", "first")
        words = [session_of(place.rollouts()[0]) if word == "ID" else word for word in arguments]
        assert run(place, "exec", "resume", *words, stdin=stdin).stdout == b"two\n"

    assert model.requests[1].texts("user")[-1] == prompt


def test_usage_counts_the_earlier_runs(place: Place) -> None:
    first = completed(tokens(100, 10, cached=40, reasoning=5, written=7))
    second = completed(tokens(300, 30, cached=100, reasoning=20))
    with fake_model(place, [say("one"), first], [say("two"), second], [say("three"), second]):
        alone = run(place, "exec", "--json", "first")
        after = run(place, "exec", "resume", "--last", "--json", "next")
        continued = run(place, "exec", "resume", "--last", "and then")

    def counts(inputs: int, cached: int, written: int, taken: int, thinking: int) -> dict[str, Any]:
        return {
            "input_tokens": inputs,
            "cached_input_tokens": cached,
            "cache_write_input_tokens": written,
            "output_tokens": taken,
            "reasoning_output_tokens": thinking,
            "cost_usd": pytest.approx(((inputs - cached) * 1.25 + cached * 0.125 + taken * 10) / 1e6),
        }

    assert alone.events[-1] == {"type": "turn.completed", "usage": counts(100, 40, 7, 10, 5)}
    assert after.events[-1] == {
        "type": "turn.completed",
        "usage": counts(400, 140, 7, 40, 25),
        "turn_usage": counts(300, 100, 0, 30, 20),
    }
    assert continued.err.splitlines()[-5:] == [
        "turn: 300 tokens in (33% cached), 30 out",
        "session: 700 tokens in (34% cached, 7 written), 70 out",
        "cost: $0.0006, session $0.0013",
        "tokens used",
        "530",
    ]


def test_settings_that_changed_are_appended(place: Place) -> None:
    with fake_model(place, [say("one")], [say("two")]) as model:
        run(place, "exec", "first")
        ended = run(place, "exec", "-m", "gpt-5.2", "resume", "--last", "-s", "workspace-write", "next")

    assert ended.status == 0
    before, after = model.requests
    added = after.input[len(before.input) + 1 :]
    assert after.body["model"] == "gpt-5.2"
    assert [one["role"] for one in added][-1] == "user"
    assert "`workspace-write`" in "".join(text for one in added for text in [part["text"] for part in one["content"]])
    assert after.texts("user")[-1] == "next"


def test_the_output_schema_and_an_image_go_with_a_resumed_turn_too(place: Place) -> None:
    schema = place.write("schema.json", '{"type": "object"}')
    place.write("p.gif", GIF)
    with fake_model(place, [say("one")], [say("{}")]) as model:
        run(place, "exec", "first")
        ended = run(place, "exec", "resume", "--last", "--output-schema", schema, "-i", "p.gif", "next")

    assert ended.stdout == b"{}\n"
    assert model.requests[1].body["text"]["format"]["schema"] == {"type": "object"}
    assert [part["type"] for part in model.requests[1].input[-1]["content"]][1] == "input_image"


def test_last_is_the_newest_of_this_directory(place: Place) -> None:
    elsewhere = place.home / "elsewhere"
    elsewhere.mkdir()
    with fake_model(place, repeat([say("ok")]), excuse={"threads"}) as model:
        run(place, "exec", "here, old")
        run(place, "exec", "here, new")
        run(place, "exec", "--skip-git-repo-check", "elsewhere", cwd=elsewhere)
        here = run(place, "exec", "resume", "--last", "one more")
        anywhere = run(place, "exec", "resume", "--last", "--all", "and one more")
        none = run(place, "exec", "resume", "--last", "-C", place.home, "--skip-git-repo-check", "none")

    prompts = [[text for text in request.texts("user") if not text.startswith("<")] for request in model.requests]
    assert [here.status, anywhere.status] == [0, 0]
    assert prompts[3:] == [["here, new", "one more"], ["here, new", "one more", "and one more"]]
    assert (none.status, none.stdout, len(none.err.splitlines())) == (1, b"", 1)


def test_the_newest_is_reported_by_what_is_written_and_not_by_the_file_s_age(place: Place) -> None:
    with fake_model(place, repeat([say("ok")]), excuse={"threads"}) as model:
        run(place, "exec", "old")
        [old] = place.rollouts()
        run(place, "exec", "new")
        old.touch()
        run(place, "exec", "resume", "--last", "more")

    assert "new" in model.requests[2].texts("user")


def test_a_session_that_is_not_there_is_an_error(place: Place) -> None:
    with fake_model(place):
        endings = [
            run(place, "exec", "resume", UNKNOWN, "go"),
            run(place, "exec", "resume", "--last", "go"),
            run(place, "exec", "resume", "../../etc/passwd", "go"),
        ]

    assert [(one.status, one.stdout, len(one.err.splitlines())) for one in endings] == [
        (2, b"", 1),
        (1, b"", 1),
        (2, b"", 1),
    ]
    assert UNKNOWN in endings[0].err
    assert place.rollouts() == []


def test_resume_without_a_session_is_a_usage_error(place: Place) -> None:
    ended = run(place, "exec", "resume", stdin=b"go")

    assert (ended.status, ended.stdout, len(ended.err.splitlines())) == (2, b"", 1)


def test_damage_in_the_file_does_not_stop_a_resume(place: Place) -> None:
    with fake_model(place, [say("one")], [say("two")]):
        run(place, "exec", "first")
        [path] = place.rollouts()
        lines = path.read_bytes().splitlines(keepends=True)
        path.write_bytes(b"".join([*lines[:3], b"garbage\x00\n", *lines[3:]]) + b'{"timestamp":"2026-')
        ended = run(place, "exec", "resume", "--last", "next")

    assert (ended.status, ended.stdout) == (0, b"two\n")
    good = [line for line in path.read_bytes().splitlines() if line.startswith(b"{") and line.endswith(b"}")]
    assert [json.loads(line)["payload"] for line in good][-1]["type"] == "task_complete"


def test_a_second_writer_is_refused_and_the_first_unharmed(place: Place) -> None:
    held = threading.Event()
    with fake_model(place, [hang(held), say("done")]) as model, start(place, "exec", "first") as running:
        model.wait_for(1)
        [path] = place.rollouts()
        refused = run(place, "exec", "resume", session_of(path), "me too")
        held.set()
        ended = running.wait()

    assert (refused.status, refused.stdout, len(refused.err.splitlines())) == (1, b"", 1)
    assert "already has an active writer" in refused.err
    assert (ended.status, ended.stdout) == (0, b"done\n")
    assert [record.ordinal for record in read_rollout(path)] == list(range(len(read_rollout(path))))


def test_the_file_holds_the_history_exactly_as_it_was_sent(place: Place) -> None:
    script = ([reasoning("blob", "s"), say("one ✓"), call("c", "exec_command", {"cmd": "echo hi"})], [say("two")])
    with fake_model(place, *script) as model:
        run(place, "exec", "first")

    [path] = place.rollouts()
    records = read_rollout(path)
    # But for the field that says which model made it.
    items = [{key: value for key, value in item.items() if key != "made_by"} for item in recorded_items(path)]
    assert items == [*model.requests[1].input, say("two")["item"]]
    assert (records[0].type, records[0].payload["id"], records[0].payload["cwd"]) == (
        "session_meta",
        session_of(path),
        str(place.repo),
    )

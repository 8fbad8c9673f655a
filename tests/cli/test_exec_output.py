"""What a script sees of `codex-py exec`: stdout, stderr, the JSON lines, the file of the last message."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest

from codex_py import __version__
from tests.support.fake_responses import (
    Stream,
    api_error,
    call,
    completed,
    custom_call,
    cut,
    delta,
    failed,
    fake_model,
    incomplete,
    item,
    reasoning,
    reasoning_delta,
    repeat,
    say,
    status,
    tokens,
)
from tests.support.home import MODEL, Place
from tests.support.process import run

ADD = "*** Begin Patch\n*** Add File: new.txt\n+one\n*** End Patch\n"
EDIT = "*** Begin Patch\n*** Update File: new.txt\n@@\n-one\n+two\n*** End Patch\n"
DELETE = "*** Begin Patch\n*** Delete File: new.txt\n*** End Patch\n"
WRONG = "*** Begin Patch\n*** Update File: absent.txt\n@@\n-one\n+two\n*** End Patch\n"


def command(item_id: str, text: str, output: str, code: int | None, state: str) -> dict[str, Any]:
    return {
        "id": item_id,
        "type": "command_execution",
        "command": text,
        "aggregated_output": output,
        "exit_code": code,
        "status": state,
    }


def change(item_id: str, path: Path, kind: str, state: str) -> dict[str, Any]:
    changes = [{"path": str(path), "kind": kind}]
    return {"id": item_id, "type": "file_change", "changes": changes, "status": state}


def usage(inputs: int = 0, cached: int = 0, taken: int = 0, thinking: int = 0, **more: float) -> dict[str, Any]:
    counts: dict[str, Any] = {
        "input_tokens": inputs,
        "cached_input_tokens": cached,
        "cache_write_input_tokens": 0,
        "output_tokens": taken,
        "reasoning_output_tokens": thinking,
        "cost_usd": ANY,
        **more,
    }
    return {"type": "turn.completed", "usage": counts}


def started_and_completed(started: dict[str, Any], ended: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "item.started", "item": started}, {"type": "item.completed", "item": ended}]


def done(item_id: str, kind: str, text: str) -> dict[str, Any]:
    return {"type": "item.completed", "item": {"id": item_id, "type": kind, "text": text}}


@pytest.mark.parametrize(
    "text",
    ["done", "two\nlines\n", "  spaces kept  ", "ünïcode ✓ 👩‍💻", "\x1b]0;title\x07 \x00 raw when piped", "| a |"],
)
def test_stdout_is_the_final_message_byte_for_byte(place: Place, text: str) -> None:
    with fake_model(place, [delta("do"), say("first"), say(text)]):
        ended = run(place, "exec", "go")

    assert (ended.status, ended.stdout) == (0, text.encode() + b"\n")


@pytest.mark.parametrize("answer", [[], [say("")], [say(" \n")], [reasoning("blob", "Thinking")]])
def test_a_turn_without_an_answer_has_failed(place: Place, answer: Any) -> None:
    with fake_model(place, answer, answer, excuse={"threads"}):
        ended = run(place, "exec", "-o", "answer.txt", "go")
        lines = run(place, "exec", "--json", "go")

    assert (ended.status, ended.stdout) == (1, b"")
    assert ended.err.splitlines()[-1] == "ERROR: the turn ended without an answer"
    assert not (place.repo / "answer.txt").exists()
    assert lines.status == 1
    assert lines.events[-1] == {
        "type": "turn.failed",
        "error": {"message": "the turn ended without an answer", "code": "internal"},
    }


def test_a_command_that_still_runs_at_the_end_is_stopped_and_its_item_completed(place: Place) -> None:
    left = call("c1", "exec_command", {"cmd": "echo up; sleep 1000", "yield_time_ms": 250, "login": False})
    with fake_model(place, *[[left], [say("It runs.")]] * 2, excuse={"threads"}):
        ended = run(place, "exec", "go")
        lines = run(place, "exec", "--json", "go")

    shown = "`/bin/bash -c 'echo up; sleep 1000'` was still running when the turn ended, and was stopped"
    assert (ended.status, ended.out) == (0, "It runs.\n")
    assert f"warning: {shown}\n" in ended.err
    kinds = [(event["type"], event.get("item", {}).get("type")) for event in lines.events]
    assert kinds[-3:] == [
        ("item.completed", "command_execution"),
        ("item.completed", "error"),
        ("turn.completed", None),
    ]
    done, warning = (event["item"] for event in lines.events[-3:-1])
    assert (done["status"], done["aggregated_output"], warning["message"]) == ("failed", "up\n", shown)
    [started] = [event["item"]["id"] for event in lines.events if event["type"] == "item.started"]
    assert done["id"] == started


def test_the_work_is_reported_on_stderr(place: Place) -> None:
    script = (
        [reasoning("blob", "Thinking about it"), say("I look."), call("c1", "exec_command", {"cmd": "echo hi"})],
        [call("c2", "exec_command", {"cmd": "echo no; exit 3"})],
        [say("It says hi."), completed(tokens(12_000, 345, cached=1_000))],
    )
    with fake_model(place, *script, top='model_reasoning_effort = "low"\nmodel_reasoning_summary = "auto"'):
        ended = run(place, "exec", "what does it say?")

    output = re.sub(r"(?m)^(session id:) [0-9a-f-]{36}$", r"\1 ID", ended.err)
    output = re.sub(r"(?m)^( succeeded| exited 3) in [0-9.]+m?s:$", r"\1 in TIME:", output)
    assert ended.stdout == b"It says hi.\n"
    assert (
        output
        == f"""codex-py v{__version__}
--------
workdir: {place.repo}
model: {MODEL}
provider: fake
approval: never
sandbox: read-only
reasoning effort: low
reasoning summaries: auto
session id: ID
--------
user
what does it say?
thinking
Thinking about it
codex
I look.
exec
/bin/bash -lc 'echo hi' in {place.repo}
 succeeded in TIME:
hi
exec
/bin/bash -lc 'echo no; exit 3' in {place.repo}
 exited 3 in TIME:
no
codex
It says hi.
turn: 12,000 tokens in (8% cached), 345 out
cost: $0.0173
tokens used
11,345
"""
    )


def test_a_patch_is_reported_with_its_diff_and_a_call_that_failed_with_its_reason(place: Place) -> None:
    odd = call("r", "no_such_tool", {})
    with fake_model(
        place, [custom_call("p", "apply_patch", ADD)], [custom_call("q", "apply_patch", WRONG)], [odd], []
    ) as model:
        ended = run(place, "exec", "-s", "workspace-write", "add a file")

    assert "apply patch\npatch: completed\n" in ended.err
    assert str(place.repo / "new.txt") in ended.err
    assert "\n+one\n" in ended.err
    assert "apply_patch verification failed" in model.requests[2].output_of("q")
    assert "\npatch: not applied\napply_patch verification failed: " in ended.err
    assert "\nno_such_tool: failed\nunsupported call: no_such_tool\n" in ended.err


def test_terminal_escapes_reach_stderr_only_in_a_visible_form(place: Place) -> None:
    hostile = "\x1b]52;c;aGk=\x07 \x1b[2J \u202eevil \x9b31m"
    script = (
        [reasoning("b", hostile), say(hostile), call("c", "exec_command", {"cmd": "printf '\\033]0;x\\007'"})],
        [say("fine")],
    )
    with fake_model(place, *script):
        ended = run(place, "exec", f"hello {hostile}")

    assert re.findall(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", ended.err) == []


@pytest.mark.parametrize(
    ("choice", "environment", "coloured"),
    [
        ("always", {}, True),
        ("always", {"NO_COLOR": "1"}, True),
        ("auto", {}, False),
        ("auto", {"TERM": "xterm-256color"}, False),
        ("never", {}, False),
    ],
)
def test_colours_follow_the_flag(place: Place, choice: str, environment: dict[str, str], coloured: bool) -> None:
    with fake_model(place, [say("done")]):
        ended = run(place.with_env(**environment), "exec", "--color", choice, "go")

    assert (b"\x1b[" in ended.stderr) is coloured
    assert ended.stdout == b"done\n"


def test_json_lines_tell_a_whole_turn(place: Place) -> None:
    script = (
        [
            reasoning_delta("Thin"),
            reasoning("blob", "Thinking", "again"),
            delta("I lo"),
            say("I look."),
            call("c1", "exec_command", {"cmd": "echo hi"}),
            completed(tokens(100, 10, cached=40, reasoning=5)),
        ],
        [call("c2", "exec_command", {"cmd": "echo no >&2; exit 3"}), completed(tokens(100, 10))],
        [custom_call("p1", "apply_patch", ADD), completed(None)],
        [call("p2", "exec_command", {"cmd": f"apply_patch <<'EOF'\n{EDIT}EOF"})],
        [custom_call("p3", "apply_patch", WRONG)],
        [custom_call("p4", "apply_patch", DELETE)],
        [call("c3", "no_such_tool", {})],
        [item({"type": "odd_item", "id": "odd"}), say("done"), completed(tokens(1, 1, cached=1, reasoning=1))],
    )
    with fake_model(place, *script) as model:
        ended = run(place, "exec", "--json", "-s", "workspace-write", "go")

    [first, *events] = ended.events
    new, echo, no = place.repo / "new.txt", "/bin/bash -lc 'echo hi'", "/bin/bash -lc 'echo no >&2; exit 3'"
    assert first.keys() == {"type", "thread_id"}
    assert first["thread_id"] == model.requests[0].body["prompt_cache_key"]
    assert events == [
        {"type": "turn.started"},
        done("item_0", "reasoning", "Thinking\n\nagain"),
        done("item_1", "agent_message", "I look."),
        *started_and_completed(
            command("item_2", echo, "", None, "in_progress"), command("item_2", echo, "hi\n", 0, "completed")
        ),
        *started_and_completed(
            command("item_3", no, "", None, "in_progress"), command("item_3", no, "no\n", 3, "failed")
        ),
        {"type": "item.completed", "item": change("item_4", new, "add", "completed")},
        {"type": "item.completed", "item": change("item_5", new, "update", "completed")},
        {"type": "item.completed", "item": change("item_6", new, "delete", "completed")},
        done("item_7", "agent_message", "done"),
        # One answer came without a count of its tokens.
        usage(201, 41, 21, 6, known_cost_usd=0.000415125, unpriced_requests=1),
    ]
    assert (ended.status, ended.stderr) == (0, b"")
    assert model.requests[7].output_of("c3") == "unsupported call: no_such_tool"


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_what_the_model_thinks_can_be_hidden(place: Place, flags: list[str]) -> None:
    with fake_model(place, repeat([reasoning("B", "a secret thought"), say("done")]), excuse={"threads"}):
        shown = run(place, "exec", *flags, "go")
        hidden = run(place, "exec", *flags, "-c", "hide_agent_reasoning=true", "go")

    assert "a secret thought" in shown.out + shown.err
    assert "a secret thought" not in hidden.out + hidden.err
    assert "done" in hidden.out


def test_both_names_of_the_json_flag_are_one(place: Place) -> None:
    with fake_model(place, [say("done")]):
        ended = run(place, "exec", "--experimental-json", "go")

    assert ended.events[1:] == [{"type": "turn.started"}, done("item_0", "agent_message", "done"), usage()]


def test_json_lines_keep_any_text(place: Place) -> None:
    text = 'line\u2028sep \u0085 \ud83d\ude00 \x1b[31m \x00 \\ " 👩‍💻\n\n'
    text = text.encode("utf-16", "surrogatepass").decode("utf-16")
    with fake_model(place, [say(text)]):
        ended = run(place, "exec", "--json", "go")

    assert len(ended.stdout.split(b"\n")) == 5
    assert [event["item"]["text"] for event in ended.events if "item" in event] == [text]


def test_a_lone_surrogate_survives_to_the_next_request(place: Place) -> None:
    with fake_model(place, [say("bad \ud800 half"), completed(end_turn=False)], [say("done")]) as model:
        ended = run(place, "exec", "--json", "go")

    assert ended.status == 0
    assert model.requests[1].texts("assistant") == ["bad \ud800 half"]


def test_json_lines_tell_retries_and_then_the_answer(place: Place) -> None:
    with fake_model(place, status(503), [say("half"), cut()], failed_once(), [say("done")]) as model:
        ended = run(place, "exec", "--json", "go")

    kinds = [event["type"] for event in ended.events]
    errors = [event["message"] for event in ended.events if event["type"] == "error"]
    assert ended.status == 0
    assert kinds == [
        "thread.started",
        "turn.started",
        "error",
        "item.completed",
        "error",
        "error",
        "item.completed",
        "turn.completed",
    ]
    assert [re.sub(r" \(.+\)$", "", message) for message in errors] == [f"Reconnecting... {n}/5" for n in (1, 2, 3)]
    assert "503" in errors[0]
    assert "busy" in errors[2]
    assert model.requests[3].texts("assistant") == ["half"]


def failed_once() -> list[dict[str, Any]]:
    return [failed("server_error", "busy")]


@pytest.mark.parametrize(
    ("answer", "said", "code", "status"),
    [
        (api_error(400, "the schema is wrong"), "the schema is wrong", "internal", 1),
        (api_error(400, "not that", kind="invalid_prompt"), "not that", "refused", 76),
        (api_error(401, "no such key"), "401", "auth", 77),
        (api_error(403, "not for you"), "403", "auth", 77),
        (api_error(402, "pay first"), "402", "quota", 72),
        (api_error(404, "no such model", kind="model_not_found"), "no such model", "config", 2),
        (api_error(429, "out of money", kind="insufficient_quota"), "out of money", "quota", 72),
        (api_error(400, "too long", kind="context_length_exceeded"), "too long", "context_length", 65),
        ([delta("half a"), failed("context_length_exceeded", "too long")], "too long", "context_length", 65),
        ([delta("half a"), failed("cyber_policy", "not that")], "not that", "refused", 76),
        ([say("half"), incomplete("max_output_tokens")], "max_output_tokens", "context_length", 65),
        ([delta("and so on and so forth, ")] * 500, "repeats itself without end", "internal", 1),
    ],
)
def test_a_failed_turn_is_reported_once_with_its_code_and_its_status(
    place: Place, answer: Any, said: str, code: str, status: int
) -> None:
    with fake_model(place, answer, answer, excuse={"threads"}):
        ended = run(place, "exec", "--json", "go")
        human = run(place, "exec", "go")

    [error, failure] = ended.events[-2:]
    assert ended.status == status
    assert error == {"type": "error", "message": failure["error"]["message"]}
    assert failure == {"type": "turn.failed", "error": {"message": error["message"], "code": code}}
    assert said in error["message"]
    assert [event["type"] for event in ended.events].count("error") == 1
    assert (human.status, human.stdout) == (status, b"")
    assert [line for line in human.err.splitlines() if line.startswith("ERROR:")] == [f"ERROR: {error['message']}"]


def test_a_model_that_goes_on_without_a_word_is_stopped(place: Place) -> None:
    with fake_model(place, repeat([completed(end_turn=False)])) as model:
        ended = run(place, "exec", "--json", "go")

    assert (ended.status, len(model.requests)) == (1, 10)
    message = "the model said nothing 10 times and asked to go on"
    assert ended.events[-1] == {"type": "turn.failed", "error": {"message": message, "code": "internal"}}


@pytest.mark.parametrize("stream", [[say("wait"), completed(end_turn=False)], [call("c", "no_such_tool", {})]])
def test_a_model_that_goes_on_and_does_nothing_is_stopped(place: Place, stream: Stream) -> None:
    with fake_model(place, repeat(stream)) as model:
        ended = run(place, "exec", "--json", "go")

    assert (ended.status, len(model.requests)) == (1, 100)
    message = "the model went on 100 times and called no tool that exists"
    assert ended.events[-1] == {"type": "turn.failed", "error": {"message": message, "code": "internal"}}


def test_a_model_that_does_something_now_and_then_goes_on(place: Place) -> None:
    talk: Stream = [say("wait"), completed(end_turn=False)]
    work: Stream = [call("c", "exec_command", {"cmd": "true", "login": False})]
    with fake_model(place, *[talk] * 60, work, *[talk] * 60, [say("done")]) as model:
        ended = run(place, "exec", "go")

    assert (ended.stdout, len(model.requests)) == (b"done\n", 122)


def test_the_last_message_goes_to_a_file_too(place: Place) -> None:
    target = place.home / "last message.txt"
    with fake_model(place, [say("one"), say("the answer\n")]):
        ended = run(place, "exec", "--ephemeral", "-o", target, "go")

    assert ended.stdout == b"the answer\n\n"
    assert target.read_bytes() == b"the answer\n"
    assert place.rollouts() == []


def test_a_failed_turn_leaves_the_old_file_alone(place: Place) -> None:
    target = place.home / "last.txt"
    target.write_text("old")
    with fake_model(place, api_error(400, "no")):
        ended = run(place, "exec", "--output-last-message", target, "go")

    assert (ended.status, target.read_text()) == (1, "old")


def test_json_on_a_terminal_has_no_control_characters(place: Place) -> None:
    text = "a\x9b31mb\x9d0;title\x9c"
    with fake_model(place, [say(text)]):
        ended = run(place, "exec", "--json", "go")
    exported = run(place, "sessions", "export", place.rollouts()[0].stem[-36:], "--format", "jsonl")
    for output in (ended, exported):
        assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", output.out) == []
        assert repr(text) in str([json.loads(line) for line in output.out.splitlines()])


def test_a_json_line_is_one_line_for_every_reader(place: Place) -> None:
    text = "a\u2028b\u2029c\x85d\\\u2028e"
    with fake_model(place, [say(text)]):
        ended = run(place, "exec", "--json", "go")

    # This splits at every character that any Unicode text calls the end of a line, as Node's line reader nearly does.
    lines = [json.loads(line) for line in ended.stdout.decode().splitlines()]
    assert [line["item"]["text"] for line in lines if line["type"] == "item.completed"] == [text]


def test_parallel_calls_are_answered_in_their_order(place: Place) -> None:
    # The first ends after the second is gone.
    wait = "until [ -s pid ]; do :; done; while kill -0 $(cat pid) 2>/dev/null; do :; done"
    slow = call("slow", "exec_command", {"cmd": f"{wait}; echo slow"})
    quick = call("quick", "exec_command", {"cmd": "echo $$ > pid.new; mv pid.new pid; echo quick"})
    with fake_model(place, [slow, quick], [say("done")]) as model:
        ended = run(place, "exec", "-s", "danger-full-access", "go")

    outputs = [one["call_id"] for one in model.requests[1].input if one["type"] == "function_call_output"]
    assert (ended.status, outputs) == (0, ["slow", "quick"])


def test_two_calls_with_one_id_are_two_items(place: Place) -> None:
    twins = [call("same", "exec_command", {"cmd": f"echo {word}"}) for word in ("one", "two")]
    with fake_model(place, twins, [say("done")]) as model:
        ended = run(place, "exec", "--json", "-s", "danger-full-access", "go")

    outputs = [one["output"].splitlines()[-1] for one in model.requests[1].input if one["type"].endswith("_output")]
    ids = {
        kind: [event["item"]["id"] for event in ended.events if event["type"] == kind]
        for kind in ("item.started", "item.completed")
    }
    assert (ended.status, outputs) == (0, ["one", "two"])
    assert ids == {"item.started": ["item_0", "item_1"], "item.completed": ["item_0", "item_1", "item_2"]}


def test_the_skills_of_a_failed_turn_are_reported_too(place: Place) -> None:
    path = place.write(".agents/skills/lint/SKILL.md", "---\nname: lint\ndescription: checks\n---\n")
    with fake_model(place, [failed("context_length_exceeded", "too long")]):
        ended = run(place, "exec", "--json", "use $lint")
    assert ended.events[-1]["type"] == "turn.failed"
    assert ended.events[-1]["skills_used"] == [{"name": "lint", "scope": "repo", "path": str(path), "kind": "explicit"}]

"""`notify`: the user's program is told of a completed turn."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from tests.support.fake_responses import api_error, fake_model, say
from tests.support.home import Place
from tests.support.process import run

# Writes its arguments into a named pipe, so that a test can wait for it without asking again and again.
PROGRAM = "import json, os, sys; open(sys.argv[1], 'w').write(json.dumps([sys.argv[2:], os.getcwd()]))"


def result(place: Place, prompt: str, *flags: str | Path, answer: str = "done") -> tuple[Any, dict[str, Any]]:
    """What the program was given, and the first line of the run."""
    pipe = place.home / "told"
    os.mkfifo(pipe)
    command = json.dumps([sys.executable, "-c", PROGRAM, str(pipe), "own"])
    # Both ends, so that neither side waits for the other to open it.
    descriptor = os.open(pipe, os.O_RDWR)
    with fake_model(place, [say("first"), say(answer)], top=f"notify = {command}"):
        ended = run(place, "exec", "--json", *flags, prompt)
        with os.fdopen(descriptor, "rb") as reader:
            content = b""
            while not content.endswith(b"]"):
                content += os.read(reader.fileno(), 65536)
    assert ended.status == 0
    return json.loads(content), ended.events[0]


def test_the_program_gets_the_turn_as_json(place: Place) -> None:
    [[own, argument], cwd], first = result(place, "say ünï")
    turn = json.loads(argument)

    assert (own, cwd) == ("own", str(place.repo))
    assert list(turn) == [
        "type",
        "thread-id",
        "turn-id",
        "cwd",
        "client",
        "input-messages",
        "last-assistant-message",
    ]
    assert turn["turn-id"] not in ("", first["thread_id"])
    assert {**turn, "turn-id": ""} == {
        "type": "agent-turn-complete",
        "thread-id": first["thread_id"],
        "turn-id": "",
        "cwd": str(place.repo),
        "client": "codex_exec",
        "input-messages": ["say ünï"],
        "last-assistant-message": "done",
    }


def test_an_answer_of_any_length_is_reported(place: Place) -> None:
    [[_, argument], _], _ = result(place, "go", answer="word " * 100_000)
    turn = json.loads(argument)

    assert turn["last-assistant-message"].startswith("word word")
    assert "characters left out" in turn["last-assistant-message"]
    assert turn["input-messages"] == ["go"]


def test_a_program_that_is_not_there_is_a_warning(place: Place) -> None:
    with fake_model(place, [say("done")], top='notify = ["no-such-program", "x"]'):
        ended = run(place, "exec", "go")

    assert (ended.status, ended.out) == (0, "done\n")
    assert "warning: cannot start `no-such-program`, the program of `notify`: no such file" in ended.err


def test_a_failed_turn_is_not_reported(place: Place) -> None:
    mark = place.home / "mark"
    with fake_model(place, api_error(400, "no"), top=f"notify = {json.dumps(['no-such-program', str(mark)])}"):
        ended = run(place, "exec", "go")

    assert ended.status == 1
    assert "notify" not in ended.err


def test_a_module_of_the_project_is_not_loaded(place: Place) -> None:
    (place.repo / "json.py").write_text("raise SystemExit('loaded from the project')\n")
    [[own, _], _], _ = result(place, "go")
    assert own == "own"

"""The published Python SDK of the app-server drives `codex-py` in place of the program it was made for."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from tests.support.fake_responses import (
    FakeResponses,
    api_error,
    call,
    completed,
    custom_call,
    delta,
    fake_model,
    say,
    tokens,
)
from tests.support.home import BIN, GIF, Place
from tests.support.sdk_drive import PATCH, SCHEMA, played
from tests.support.warm import warm_command

_PLAYER: Final = Path(__file__).parents[1] / "support/sdk/app.py"
_GUIDE: Final = Path(__file__).parents[2] / "docs/guides/servers.md"
_GIF: Final = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"


def play(place: Place, model: FakeResponses, scene: str, **job: Any) -> Any:
    """One scene of `sdk/app.py`; gives back what the SDK saw."""
    assert find_spec("openai_codex"), "run `scripts/setup_sdk` first"
    place.use_model(model.base_url)
    result = {"codex_bin": warm_command(), "env": place.env, "cwd": str(place.repo), "scene": scene, **job}
    return played([sys.executable, str(_PLAYER)], place, result)["seen"]


def test_turns_with_tools_structure_and_pictures(place: Place) -> None:
    skill = place.write(".agents/skills/alpha/SKILL.md", "---\nname: alpha\ndescription: does alpha\n---\nBODY\n")
    picture = place.write("p.gif", GIF)
    outside = {"cmd": "echo hi", "login": False, "sandbox_permissions": "require_escalated", "justification": "must"}
    script = (
        [delta("on it"), say("on it"), call("c1", "exec_command", outside)],
        [custom_call("p1", "apply_patch", PATCH)],
        [say('{"answer": "hi"}'), completed(tokens(100, 10))],
        [say("seen")],
    )
    with FakeResponses(*script) as model:
        seen = play(place, model, "turns", schema=SCHEMA, picture=str(picture), url=_GIF, skill=["alpha", str(skill)])

    assert seen["first"] == [
        "completed",
        '{"answer": "hi"}',
        ["userMessage", "agentMessage", "commandExecution", "fileChange", "agentMessage"],
    ]
    assert (seen["usage"], seen["second"]) == (110, ["completed", "seen"])
    assert seen["read"] == [
        ["userMessage", "agentMessage", "commandExecution", "fileChange", "agentMessage"],
        ["userMessage", "agentMessage"],
    ]
    assert (seen["models"][0], seen["account"]) == ("gpt-5.1-codex", None)
    assert seen["server"]["serverInfo"]["version"].startswith("0.")
    assert model.requests[0].body["reasoning"]["effort"] == "high"
    assert model.requests[0].body["text"]["format"]["schema"] == SCHEMA
    assert [part["type"] for part in model.requests[3].input[-1]["content"]].count("input_image") == 2
    assert "BODY" in "\n".join(model.requests[3].texts("user"))


def test_the_example_of_the_guide_runs_as_it_stands(place: Place) -> None:
    example = _GUIDE.read_text().partition("```python\n")[2].partition("```")[0]
    assert "/src/api" in example
    env = {**place.env, "PATH": f"{BIN}:{place.env['PATH']}"}
    script = [sys.executable, "-c", example.replace("/src/api", str(place.repo))]
    with fake_model(place, [say("it was the clock")]):
        done = subprocess.run(script, env=env, cwd=place.home, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "it was the clock\n", "")


def test_a_turn_is_talked_to_and_stopped_while_it_streams(place: Place) -> None:
    sleeper = call("c1", "exec_command", {"cmd": "sleep 1000", "login": False, "yield_time_ms": 30000})
    with FakeResponses([sleeper], [say("back")]) as model:
        seen = play(place, model, "streamed")

    assert (seen["status"], seen["again"], seen["seen"][-1]) == ("interrupted", "back", "turn/completed")
    assert "aborted" in model.requests[1].output_of("c1")


def test_threads_are_stored_and_come_back(place: Place) -> None:
    script = [say("one")], [say("two")], [say("SUMMARY")], [say("three")]
    with FakeResponses(*script, excuse={"threads"}) as model:
        seen = play(place, model, "stored")

    assert seen == {"archived": True, "names": ["", "one"], "forked": True, "last": "three"}


def test_a_failing_provider_raises(place: Place) -> None:
    with FakeResponses(api_error(400, "the model is out")) as model:
        assert play(place, model, "failing") == "400 Bad Request: the model is out"

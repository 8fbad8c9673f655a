"""What a person sees of commands in the background, and what the model is sent about their end."""

from __future__ import annotations

from tests.repl.conftest import ready_model
from tests.support.fake_responses import call, say
from tests.support.home import Place
from tests.support.terminal import Terminal


def begun(command: str) -> dict[str, object]:
    return {"cmd": command, "yield_time_ms": 250}


def test_a_command_in_the_background_is_seen_from_its_start_to_its_end(place: Place) -> None:
    waits = "echo ready; until test -e go; do sleep 0.1; done; echo over"
    with (
        ready_model(place, [call("c1", "exec_command", begun(waits))], [say("it runs")], [say("I know")]) as model,
        Terminal(place, "run", width=120) as terminal,
    ):
        terminal.wait_for("● it runs").wait_for_prompt().wait_for("1 running · /ps")
        assert "◌ $ echo ready; until" in terminal.whole
        assert "runs in the background" in terminal.whole
        place.write("go", "")
        terminal.wait_for("exited 0").wait_until_gone("1 running")
        terminal.type("go on")
        terminal.press("enter")
        terminal.wait_for("● I know")
    sent = model.requests[2].texts("developer")[-1]
    assert "<background_command_ended>" in sent
    assert "has ended with exit code 0" in sent
    assert "over" in sent


def test_a_command_in_the_background_that_fails_says_so(place: Place) -> None:
    waits = "until test -e go; do sleep 0.1; done; echo broken; exit 3"
    with (
        ready_model(place, [call("c1", "exec_command", begun(waits))], [say("it runs")]),
        Terminal(place, "run", width=120) as terminal,
    ):
        terminal.wait_for("● it runs").wait_for("1 running")
        place.write("go", "")
        terminal.wait_for("exit 3").wait_for("broken")


def test_enter_looks_at_a_command_and_another_key_stops_it(place: Place) -> None:
    with (
        ready_model(
            place, [call("c1", "exec_command", begun("echo here it is; sleep 600"))], [say("it runs")], [say("I know")]
        ) as model,
        Terminal(place, "run", width=100) as terminal,
    ):
        terminal.wait_for("● it runs").wait_for("1 running").type("/ps\r")
        terminal.wait_for("Enter look").wait_for("s stop it").press("enter")
        terminal.wait_for("── Session").wait_for("here it is").press("escape")
        terminal.wait_for("s stop it").type("s")
        terminal.wait_for("stopped by you").wait_until_gone("1 running")
        terminal.type("and now?")
        terminal.press("enter")
        terminal.wait_for("● I know")
    assert "was stopped by the user" in model.requests[2].texts("developer")[-1]

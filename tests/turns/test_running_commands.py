"""What is told of commands while they run, and what a user can do about them."""

from __future__ import annotations

import os
from typing import Any

from codex_py.protocol import events
from tests.support.fake_responses import FakeResponses, Request, call, say
from tests.support.home import Place
from tests.support.session import scripted_session, watched_session


def session_id(request: Request, call_id: str) -> int:
    return int(request.output_of(call_id).split("session ID ")[1].split()[0])


def begin(command: str) -> dict[str, Any]:
    return call("c1", "exec_command", {"cmd": command, "login": False, "yield_time_ms": 250})


async def test_output_is_reported_before_the_command_ends(place: Place) -> None:
    os.mkfifo(place.repo / "go")
    script = [call("c1", "exec_command", {"cmd": "printf 'be\\303'; read x < go; printf '\\244gun'", "login": False})]
    async with scripted_session(place, script, [say("ok")]) as (_, watched):

        def release(event: events.Event) -> None:
            if isinstance(event, events.CommandOutput) and event.text == "be":
                (place.repo / "go").write_text("on\n")

        watched.session.subscribe(release)
        await watched.say("run it")
    # The end is part of the whole output; the half of a character is never told.
    assert watched.of(events.CommandOutput)[0] == events.CommandOutput("c1", "be")
    assert watched.of(events.CommandFinished)[0].output == "beägun"


async def test_a_flood_is_reported_in_few_and_small_pieces(place: Place) -> None:
    script = [call("c1", "exec_command", {"cmd": "yes line | head -c 50000000; read x < /dev/null", "login": False})]
    async with scripted_session(place, script, [say("ok")]) as (_, watched):
        await watched.say("run it")
    pieces = watched.of(events.CommandOutput)
    [ended] = watched.of(events.CommandFinished)
    assert all(len(piece.text) <= 8192 for piece in pieces)
    assert len(pieces) <= ended.seconds * 20 + 1


async def test_a_secret_is_not_reported_in_pieces(place: Place) -> None:
    place = place.with_env(FAKE_KEY="hush-hush-hush")
    gates = [place.repo / "first", place.repo / "second"]
    for gate in gates:
        os.mkfifo(gate)
    command = "printf 'a hush-hu'; read x < first; printf 'sh-hush b'; read x < second"
    with FakeResponses([call("c1", "exec_command", {"cmd": command, "login": False})], [say("ok")]) as model:
        async with watched_session(place, model, env_key="FAKE_KEY") as watched:
            result: list[str] = []

            def release(event: events.Event) -> None:
                if isinstance(event, events.CommandOutput):
                    gates[len(result)].write_text("on\n")
                    result.append(event.text)

            watched.session.subscribe(release)
            await watched.say("run it")
    assert result == ["a ", "[redacted] b"]


async def test_a_command_left_running_goes_on_reporting_and_its_end_is_reported(place: Place) -> None:
    os.mkfifo(place.repo / "go")

    def let_go(request: Request) -> list[dict[str, Any]]:
        return [call("c2", "write_stdin", {"session_id": session_id(request, "c1")})]

    async with scripted_session(place, [begin("read x < go; echo late")], let_go, [say("ok")]) as (_, watched):

        def release(event: events.Event) -> None:
            if isinstance(event, events.CommandInput):
                (place.repo / "go").write_text("on\n")

        watched.session.subscribe(release)
        await watched.say("run it")
    [started] = watched.of(events.CommandStarted)
    assert watched.of(events.CommandInput) == [events.CommandInput("c1", started.command, "")]
    [ended] = watched.of(events.CommandFinished)
    assert (ended.call_id, ended.output, ended.exit_code) == ("c1", "late\n", 0)


async def test_running_commands_are_listed_and_stopped(place: Place) -> None:
    os.mkfifo(place.repo / "never")
    async with scripted_session(place, [begin("echo up; cat never")], [say("it runs")]) as (model, watched):
        assert watched.session.processes() == ()
        await watched.say("serve")
        [live] = watched.session.processes()
        assert live.id == session_id(model.requests[1], "c1")
        assert (live.cwd, live.tty, live.outside, live.tail) == (place.repo, False, True, "up\n")
        assert live.command.endswith("'echo up; cat never'")
        assert await watched.session.stop_process(live.id) is True
        assert watched.session.processes() == ()
        assert await watched.session.stop_process(live.id) is False
    [ended] = watched.of(events.CommandFinished)
    assert (ended.call_id, ended.exit_code, ended.status) == ("c1", 137, "failed")


async def test_the_model_learns_that_a_command_was_stopped(place: Place) -> None:
    os.mkfifo(place.repo / "never")

    def look(request: Request) -> list[dict[str, Any]]:
        return [call("c2", "write_stdin", {"session_id": session_id(request, "c1")})]

    async with scripted_session(place, [begin("cat never")], [say("it runs")], look, [say("gone")]) as (model, watched):
        await watched.say("serve")
        await watched.session.stop_process(watched.session.processes()[0].id)
        assert len(watched.of(events.CommandFinished)) == 1
        await watched.say("still there?")
    assert "Process exited with code 137" in model.requests[3].output_of("c2")

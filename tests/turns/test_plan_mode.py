"""Plan mode: nothing is written until the plan is accepted."""

from __future__ import annotations

from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import AcceptPlan, OverrideTurnContext
from codex_py.protocol.policy import DangerFullAccess
from tests.support.fake_responses import FakeResponses, call, custom_call, delta, say
from tests.support.home import Place
from tests.support.session import scripted_session, watched_session

PATCH = "*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\n"
ESCALATED = {"sandbox_permissions": "require_escalated", "justification": "May I?"}
RULE = 'prefix_rule(pattern = ["touch"], sandbox = "off")\n'


@pytest.mark.parametrize(
    "written",
    [
        call("c1", "exec_command", {"cmd": "touch made", "login": False}),
        call("c1", "exec_command", {"cmd": "touch made", "login": False, **ESCALATED}),
        call("c1", "exec_command", {"cmd": f"apply_patch <<'EOF'\n{PATCH}EOF"}),
        call("c1", "shell", {"command": ["touch", "made"]}),
        custom_call("c1", "apply_patch", PATCH),
    ],
)
@pytest.mark.parametrize("approval", ["never", "on-request", "on-failure", "untrusted"])
async def test_nothing_is_written_whatever_the_settings_say(
    place: Place, written: dict[str, Any], approval: Any
) -> None:
    (place.codex_home / "rules").mkdir()
    (place.codex_home / "rules" / "mine.rules").write_text(RULE)
    async with scripted_session(
        place, [written], [say("I see")], sandbox="danger-full-access", approval=approval, can_ask=True
    ) as (_, watched):
        # Whoever is asked says yes.
        watched.session.subscribe(lambda event: watched.agree(event))
        await watched.session.submit(OverrideTurnContext(plan=True))
        assert isinstance(await watched.say("make it"), events.TurnCompleted)
    assert not (place.repo / "made").exists()


async def test_a_patch_that_is_refused_is_reported(place: Place) -> None:
    async with scripted_session(place, [custom_call("c1", "apply_patch", PATCH)], [say("I see")]) as (model, watched):
        await watched.session.submit(OverrideTurnContext(plan=True))
        await watched.say("make it")
    reason = model.requests[1].output_of("c1")
    assert reason.startswith("patch refused: in plan mode nothing is written")
    assert watched.of(events.PatchRejected) == [events.PatchRejected("c1", reason)]
    assert watched.of(events.PatchStarted) == []


async def test_reading_works(place: Place) -> None:
    with FakeResponses([call("c1", "exec_command", {"cmd": "cat README.md", "login": False})], [say("ok")]) as model:
        async with watched_session(place, model) as watched:
            await watched.session.submit(OverrideTurnContext(plan=True))
            await watched.say("look")
    assert model.requests[1].output_of("c1").endswith("Output:\n# Demo\n\nA small demo.\n")


@pytest.mark.parametrize(
    ("cmd", "more", "why"),
    [
        (
            "touch made",
            ESCALATED,
            "in plan mode nothing is written until the user has accepted the plan, so that no command may leave the"
            " sandbox",
        ),
        (
            "true",
            {},
            "a rule of the user wants to be asked: look; in plan mode nobody is asked: put it into the plan",
        ),
    ],
)
async def test_what_would_be_asked_is_refused_in_the_name_of_plan_mode(
    place: Place, cmd: str, more: dict[str, Any], why: str
) -> None:
    (place.codex_home / "rules").mkdir()
    (place.codex_home / "rules" / "mine.rules").write_text('prefix_rule(["true"], "prompt", "look")\n')
    question = call("c1", "exec_command", {"cmd": cmd, "login": False, **more})
    async with scripted_session(
        place, [question], [say("I see")], sandbox="workspace-write", approval="on-request", can_ask=True
    ) as (model, watched):
        await watched.session.submit(OverrideTurnContext(plan=True))
        await watched.say("make it")
    assert model.requests[1].output_of("c1") == f"command refused: {why}"


async def test_no_wider_sandbox_is_asked_for(place: Place) -> None:
    wanted = {"permissions": {"file_system": {"write": [str(place.home)]}}, "reason": "please"}
    with FakeResponses([call("c1", "request_permissions", wanted)], [say("ok")]) as model:
        async with watched_session(place, model, approval="on-request", can_ask=True) as watched:
            await watched.session.submit(OverrideTurnContext(plan=True))
            await watched.say("look")
    assert model.requests[1].output_of("c1") == (
        "request_permissions is not available: in plan mode nothing is written until the user has accepted the plan;"
        " say in the plan what it takes to carry it out"
    )


async def test_a_command_from_before_is_not_typed_into(place: Place) -> None:
    begun = call("c1", "exec_command", {"cmd": "sh", "tty": True, "login": False, "yield_time_ms": 250})

    def type_into(request: Any) -> list[dict[str, Any]]:
        session = int(request.output_of("c1").split("session ID ")[1].split()[0])
        return [call("c2", "write_stdin", {"session_id": session, "chars": "touch made\n"})]

    async with scripted_session(place, [begun], [say("running")], type_into, [say("ok")]) as (model, watched):
        await watched.say("start it")
        await watched.session.submit(OverrideTurnContext(plan=True))
        await watched.say("write with it")
    assert "in plan mode nothing is written" in model.requests[3].output_of("c2")
    assert not (place.repo / "made").exists()


async def test_the_model_is_informed_when_it_begins_and_when_it_ends(place: Place) -> None:
    async with scripted_session(place, [say("one")], [say("two")], [say("three")]) as (model, watched):
        for plan in (False, True, False):
            await watched.session.submit(OverrideTurnContext(plan=plan))
            await watched.say("hi")
    first, second, third = (request.texts("developer") for request in model.requests)
    assert not [text for text in first if "<collaboration_mode>" in text]
    permissions, mode = second[len(first) :]
    assert "`sandbox_mode` is `read-only`" in permissions
    assert mode.startswith("<collaboration_mode>\nPlan mode is on.")
    permissions, mode = third[len(second) :]
    assert "`sandbox_mode` is `danger-full-access`" in permissions
    assert mode.startswith("<collaboration_mode>\nPlan mode is over")


async def test_a_change_of_settings_is_reported(place: Place) -> None:
    async with scripted_session(place) as (_, watched):
        await watched.session.submit(OverrideTurnContext(plan=True))
        await watched.session.submit(OverrideTurnContext(plan=True))
    [changed] = watched.of(events.SettingsChanged)
    assert (changed.plan, changed.sandbox) == (True, DangerFullAccess())


async def test_a_plan_is_reported_and_accepted(place: Place) -> None:
    text = "Here it is.\n<proposed_plan>\n# Plan\n1. write\n</proposed_plan>\n"
    pieces = [delta("Here it is.\n<prop"), delta("osed_plan>\n# Plan\n1. wr"), delta("ite\n</proposed_plan>\n")]
    made = [custom_call("c1", "apply_patch", PATCH)]
    async with scripted_session(place, [*pieces, say(text)], made, [say("done")]) as (model, watched):
        await watched.session.submit(OverrideTurnContext(plan=True))
        planned = await watched.say("plan it")
        assert isinstance(planned, events.TurnCompleted)
        assert watched.of(events.PlanProposed) == [events.PlanProposed(planned.turn_id, "# Plan\n1. write")]
        await watched.session.submit(AcceptPlan("Quickly."))
        assert watched.session.settings.plan is False
    shown = "Here it is.\n# Plan\n1. write\n"
    assert "".join(one.text for one in watched.of(events.TextDelta)) == shown
    assert planned.last_message == watched.of(events.MessageDone)[0].text == shown
    assert model.requests[1].texts("user")[-1] == "The plan is accepted. Carry it out.\n\nQuickly."
    assert (place.repo / "made").read_text() == "x\n"


async def test_a_resumed_session_is_out_of_it_and_says_so(place: Place) -> None:
    over = "this session was left in plan mode, which is over: files may be changed again, as the permissions allow"
    with FakeResponses([say("one")], [say("two")], [say("three")]) as model:
        async with watched_session(place, model) as watched:
            await watched.session.submit(OverrideTurnContext(plan=True))
            await watched.say("plan it")
            thread = watched.session.thread_id
        async with watched_session(place, model, resume=thread) as watched:
            await watched.say("go on")
            assert events.Warned(over) in watched.seen
        async with watched_session(place, model, resume=thread) as watched:
            await watched.say("go on")
            assert events.Warned(over) not in watched.seen
    assert model.requests[1].texts("developer")[-1].startswith("<collaboration_mode>\nPlan mode is over")

"""Every event a hook can be configured for: the same in `exec` and in the servers, whatever front end is there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from codex_py.hooks.schema import HOOK_EVENTS
from tests.support.acp import acp, choose
from tests.support.agents import spawn, wait
from tests.support.app_client import app_server, deciding
from tests.support.fake_responses import Request, call, fake_model, repeat, say
from tests.support.home import Place
from tests.support.hooks import entry, hook_inputs, noting, use_hooks
from tests.support.process import run
from tests.support.script import shell

PROMPT = "use $alpha"
ASKING = {"sandbox": "workspace-write", "approvalPolicy": "on-request"}
SETTINGS = """
sandbox_mode = "workspace-write"
approval_policy = "on-request"
model_auto_compact_token_limit = 9000
"""
DONE = {"plan": [{"step": "write it", "status": "completed"}]}


def one_after_the_other() -> Any:
    """A turn that uses a skill, fails, asks, has an agent work, ends a step of the plan, and outgrows its window."""
    script = [
        [shell("c1", "true")],
        [call("c2", "view_image", {"path": "missing.png"})],
        [shell("c3", "touch ../mark", sandbox_permissions="require_escalated", justification="so")],
        [spawn("s1", "help")],
        [wait("w1", "agent-1")],
        [call("u1", "update_plan", DONE)],
        [shell("c4", "head -c 60000 /dev/zero | tr '\\0' x", max_output_tokens=20_000)],
        [say("the summary")],
        [say("done")],
    ]

    def answer(request: Request) -> Any:
        return [say("helped")] if "help" in request.texts("user") else script.pop(0)

    return repeat(answer)


def in_exec(place: Place) -> None:
    # It lacks an approval that nobody gives.
    assert run(place, "exec", PROMPT).status == 73


def in_the_app_server(place: Place) -> None:
    with app_server(place, decide=deciding(requestApproval={"decision": "accept"})) as client:
        client.turn(client.open(place, **ASKING), PROMPT)
        client.close()


def in_acp(place: Place) -> None:
    with acp(place, decide=choose("once")) as client:
        client.prompt(client.open(place), PROMPT)
        client.close()


@pytest.mark.parametrize("front_end", [in_exec, in_the_app_server, in_acp])
def test_every_event_fires(place: Place, front_end: Callable[[Place], None]) -> None:
    place.write(".agents/skills/alpha/SKILL.md", "---\nname: alpha\ndescription: does alpha\n---\nBODY\n")
    use_hooks(place, **{event: [entry(noting(place))] for event in HOOK_EVENTS})
    with fake_model(place, one_after_the_other(), excuse={"threads"}, top=SETTINGS):
        front_end(place)

    heard = {one["hook_event_name"] for one in hook_inputs(place)}
    # `exec` waits for nobody.
    silent = {"Notification"} if front_end is in_exec else set[str]()
    assert set(HOOK_EVENTS) - heard == silent

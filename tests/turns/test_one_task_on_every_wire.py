"""One task on every API, with the same files in the end; the fake servers check pairing and prefix of each request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import Compact
from tests.support.fake_chat import FakeChat
from tests.support.fake_messages import FakeMessages
from tests.support.fake_responses import Request, repeat
from tests.support.home import Place
from tests.support.session import watched_session
from tests.support.skills import add_skill, skill_text
from tests.support.wire_dialects import CHAT, DIALECTS, MESSAGES, RESPONSES, Dialect, shell

PATCH = (
    "*** Begin Patch\n*** Add File: made.txt\n+by a patch\n*** Update File: README.md\n-# Demo\n+# Done\n*** End Patch"
)
AGENT = FakeChat.agent_model
NEXT = {"responses": CHAT, "chat": MESSAGES, "messages": RESPONSES}


class Model:
    """Plays the steps of the session and of its agent, whatever the order in which their requests come."""

    def __init__(self, wire: Dialect, *steps: Callable[[Request], Any], agent: tuple[Any, ...] = ()) -> None:
        self.server: Any = None
        self._wire, self._steps, self._agent = wire, list(steps), list(agent)

    def __call__(self, request: Request) -> Any:
        if request.body["model"] == AGENT:
            return self._agent.pop(0)
        if isinstance(self.server, FakeChat | FakeMessages) and not request.body.get("tools"):
            self.server.forget_prefix()
        return self._steps.pop(0)(request)

    @property
    def is_over(self) -> bool:
        return not self._steps and not self._agent


def first_model(wire: Dialect) -> Model:
    def wait(request: Request) -> Any:
        agent = json.loads(wire.outputs(request)["call_4"])["agent_id"]
        return wire.answer("", [("call_5", "wait_agent", {"targets": [agent], "timeout_ms": 30_000})])

    def report(request: Request) -> Any:
        assert "the agent is done" in wire.outputs(request)["call_5"]
        return wire.say("all done")

    return Model(
        wire,
        lambda request: wire.answer("I patch.", [("call_1", "apply_patch", {"input": PATCH})]),
        lambda request: wire.answer(
            "", [shell("call_2", "cat made.txt > two.txt; echo 2"), shell("call_3", "echo three > three.txt; echo 3")]
        ),
        lambda request: wire.answer("", [("call_4", "spawn_agent", {"message": "write agent.txt", "model": AGENT})]),
        wait,
        report,
        lambda request: wire.say("SUMMARY of what was done"),
        agent=(wire.answer("", [shell("call_1", "echo agent > agent.txt")]), wire.say("the agent is done")),
    )


@pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.wire)
async def test_a_task_with_a_patch_commands_a_skill_an_agent_a_compaction_and_another_provider(
    place: Place, wire: Dialect
) -> None:
    add_skill(place.repo / ".agents/skills", "lint", skill_text("lint", body="LINT-RULES: be brief."))
    first, other = first_model(wire), NEXT[wire.wire]
    with wire.server(repeat(first), excuse={"threads"}) as server:
        first.server = server
        async with watched_session(place, server, wire_api=wire.wire) as watched:
            ended = await watched.say("$lint do the task")
            assert isinstance(ended, events.TurnCompleted), ended
            assert ended.last_message == "all done"
            await watched.session.submit(Compact())
            thread = watched.session.thread_id
    assert first.is_over
    assert b"LINT-RULES" in server.requests[0].raw
    assert len(watched.of(events.ContextCompacted)) == 1
    second = Model(
        other,
        lambda request: other.answer("", [shell("call_1", "cat agent.txt three.txt > last.txt; echo 4")]),
        lambda request: other.say("after it"),
    )
    excused = {"replay", "prefix", "head", "tools"} if other is RESPONSES else None
    with other.server(repeat(second), excuse=excused) as server:
        second.server = server
        options: dict[str, Any] = {"wire_api": other.wire, "name": "another"}
        async with watched_session(place, server, resume=thread, **options) as watched:
            assert isinstance(await watched.say("and now the rest"), events.TurnCompleted)
    assert b"SUMMARY of what was done" in server.requests[0].raw
    files = {path.name: path.read_text() for path in place.repo.glob("[!.]*.*")}
    assert files == {
        "README.md": "# Done\n\nA small demo.\n",
        "made.txt": "by a patch\n",
        "two.txt": "by a patch\n",
        "three.txt": "three\n",
        "agent.txt": "agent\n",
        "last.txt": "agent\nthree\n",
    }

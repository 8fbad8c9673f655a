"""What the front matter of a skill changes for the rest of a turn: model and effort, and no tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import SkillInput, TextInput, UserTurn
from tests.support.agents import tool_names
from tests.support.fake_responses import FakeResponses, Request, call, say
from tests.support.home import Place
from tests.support.script import api_error
from tests.support.session import Watched, scripted_session, watched_session
from tests.support.skills import NO_BUNDLED, add_skill, repo_root, skill_text

TOOL = f"[skills]\ntool = true\n{NO_BUNDLED}"
PATCH = "*** Begin Patch\n*** Add File: new.txt\n+hello\n*** End Patch\n"


def add(place: Place, more: str, name: str = "fix") -> Path:
    return add_skill(repo_root(place), name, skill_text(name, more=more))


def run(call_id: str, command: str) -> dict[str, Any]:
    return call(call_id, "exec_command", {"cmd": command})


async def using(
    place: Place, *answers: dict[str, Any], message: str = "$fix it", top: str = TOOL, **session: Any
) -> tuple[list[Request], Watched]:
    """A turn that uses the skill, with a call after the other, and one more turn."""
    with FakeResponses(*([answer] for answer in answers), [say("done")], [say("more")]) as model:
        async with watched_session(place, model, top, **session) as watched:
            await watched.say(message)
            await watched.say("and now?")
    return model.requests, watched


def effort_of(request: Request) -> object:
    return (request.body.get("reasoning") or {}).get("effort")


async def test_model_and_effort_hold_for_the_rest_of_the_turn(place: Place) -> None:
    add(place, "model: gpt-5.1-codex-mini\neffort: high\n")
    requests, watched = await using(place, run("c1", "true"))
    own = requests[-1].body["model"]
    assert [request.body["model"] for request in requests] == ["gpt-5.1-codex-mini", "gpt-5.1-codex-mini", own]
    assert own != "gpt-5.1-codex-mini"
    assert [effort_of(request) == "high" for request in requests] == [True, True, False]
    [used] = watched.of(events.SkillUsed)
    assert used.applied == (("model", "gpt-5.1-codex-mini"), ("effort", "high"))
    # Tools stand before all that a prompt cache serves.
    assert tool_names(requests[0]) == tool_names(requests[1]) == tool_names(requests[2])


WAYS = ["mention", "pick", "tool", "read", "words"]


@pytest.mark.parametrize("way", WAYS)
async def test_every_way_of_using_a_skill_applies_them(place: Place, way: str) -> None:
    path = add(place, "effort: high\nallowed-tools: Read\n", "fix-tests")
    top = TOOL if way != "words" else f'[skills]\nnatural_names = "on"\n{NO_BUNDLED}'
    first = {"tool": [call("k", "skill", {"name": "fix-tests"})], "read": [run("k", f"cat {path}")]}.get(way, [])
    answers = [*first, run("c1", "touch new.txt")]
    async with scripted_session(place, *([answer] for answer in answers), [say("done")], top=top) as (model, watched):
        text = {"mention": "$fix-tests", "words": "use the fix-tests skill"}.get(way, "go")
        picked = [SkillInput("fix-tests", path)] if way == "pick" else []
        await watched.session.submit(UserTurn((*picked, TextInput(text))))
    [used] = watched.of(events.SkillUsed)
    assert used.applied == (("effort", "high"),)
    assert effort_of(model.requests[-1]) == "high"
    assert (place.repo / "new.txt").exists()


@pytest.mark.parametrize(
    ("line", "warning"),
    [
        ("effort: hihg", "the skill `fix`: `effort: hihg` is left out: did you mean `high`?"),
        ("model: two words", "the skill `fix`: `model: two words` is left out: it is not the name of a model"),
        ("model: sonnet", "the skill `fix`: `model: sonnet` is left out: this session asks `"),
    ],
)
async def test_a_refused_value_warns_and_changes_nothing(place: Place, line: str, warning: str) -> None:
    add(place, f"{line}\n")
    requests, watched = await using(place)
    assert any(warned.startswith(warning) for warned in watched.warnings), watched.warnings
    assert requests[0].body["model"] == requests[1].body["model"]
    assert effort_of(requests[0]) == effort_of(requests[1])
    assert [used.applied for used in watched.of(events.SkillUsed)] == [()]


@pytest.mark.parametrize("line", ["model: [a]", "effort: {a: b}", "context: {}"])
async def test_a_field_of_the_wrong_type_costs_only_itself(place: Place, line: str) -> None:
    add(place, f"{line}\nargument-hint: x\n")
    _, watched = await using(place)
    assert any(f"ignored `{line.partition(':')[0]}`" in warned for warned in watched.warnings)
    assert [used.name for used in watched.of(events.SkillUsed)] == ["fix"]


async def test_a_model_that_the_provider_refuses_is_given_up(place: Place) -> None:
    add(place, "model: no-such-model\n")
    with FakeResponses(api_error(404, "no such model", kind="model_not_found"), [say("done")]) as model:
        async with watched_session(place, model, TOOL) as watched:
            last = await watched.say("$fix")
    assert isinstance(last, events.TurnCompleted)
    assert model.requests[0].body["model"] == "no-such-model"
    assert model.requests[1].body["model"] != "no-such-model"
    assert any("the model `no-such-model` that a skill asks for is refused" in warned for warned in watched.warnings)


@pytest.mark.parametrize(
    "allowed", ["Read", "Bash(git add:*)", "mcp__github", "[Edit]", "Nonsense", "5", "{a: b}", "'*'"]
)
@pytest.mark.parametrize("way", ["mention", "read"])
async def test_allowed_tools_change_no_approval_and_refuse_no_tool(place: Place, allowed: str, way: str) -> None:
    path = add(place, f"allowed-tools: {allowed}\n")
    first = [run("k", f"cat {path}")] if way == "read" else []
    patch = call("p1", "apply_patch", {"input": PATCH})
    message = "look" if way == "read" else "$fix it"
    _, watched = await using(place, *first, run("c1", "touch made"), patch, message=message)
    assert (place.repo / "made").exists()
    assert (place.repo / "new.txt").exists()
    [used] = watched.of(events.SkillUsed)
    assert used.applied == ()
    (place.repo / "new.txt").unlink()
    await using(place, call("p1", "apply_patch", {"input": PATCH}), message=message, sandbox="read-only")
    assert not (place.repo / "new.txt").exists()


async def test_a_command_that_reads_several_skills_uses_none_of_them(place: Place) -> None:
    paths = [add(place, "effort: high\n", name) for name in ("fix", "lint")]
    requests, _ = await using(place, run("c1", f"cat {paths[0]} {paths[1]}"), message="look")
    assert effort_of(requests[1]) == effort_of(requests[0])

"""What the front matter of a skill changes for the rest of a turn: model, effort and tools."""

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
from tests.support.session import Watched, watched_session
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


def warnings_of(watched: Watched) -> list[str]:
    return [warned.message for warned in watched.of(events.Warned)]


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
    answers = [*first, run("c1", "touch new.txt"), run("c2", "cat README.md")]
    with FakeResponses(*([answer] for answer in answers), [say("done")]) as model:
        async with watched_session(place, model, top) as watched:
            text = {"mention": "$fix-tests", "words": "use the fix-tests skill"}.get(way, "go")
            picked = [SkillInput("fix-tests", path)] if way == "pick" else []
            await watched.session.submit(UserTurn((*picked, TextInput(text))))
    [used] = watched.of(events.SkillUsed)
    assert used.applied == (("effort", "high"), ("allowed-tools", "Read"))
    last = model.requests[-1]
    assert effort_of(last) == "high"
    assert "the skill `fix-tests` permits in this turn (`allowed-tools: Read`)" in last.output_of("c1")
    assert not (place.repo / "new.txt").exists()
    assert "permits" not in last.output_of("c2")


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
    assert any(warned.startswith(warning) for warned in warnings_of(watched)), warnings_of(watched)
    assert requests[0].body["model"] == requests[1].body["model"]
    assert effort_of(requests[0]) == effort_of(requests[1])
    assert [used.applied for used in watched.of(events.SkillUsed)] == [()]


@pytest.mark.parametrize("line", ["model: [a]", "effort: {a: b}", "context: {}"])
async def test_a_field_of_the_wrong_type_costs_only_itself(place: Place, line: str) -> None:
    add(place, f"{line}\nargument-hint: x\n")
    _, watched = await using(place)
    assert any(f"ignored `{line.partition(':')[0]}`" in warned for warned in warnings_of(watched))
    assert [used.name for used in watched.of(events.SkillUsed)] == ["fix"]


@pytest.mark.parametrize("written", ["{Read: true}", "5", "true", "[{Read: 1}, 7]"])
async def test_tools_that_cannot_be_read_permit_none(place: Place, written: str) -> None:
    path = add(place, f"allowed-tools: {written}\nargument-hint: x\n")
    requests, watched = await using(place, run("c1", "cat README.md"))
    assert "permits in this turn (`allowed-tools: (unreadable)`)" in requests[1].output_of("c1")
    assert any(
        warned.startswith(f"ignored metadata {path}: ")
        and "`allowed-tools` permits no tool until it is corrected" in warned
        for warned in warnings_of(watched)
    )


@pytest.mark.parametrize("written", ["", "[]"])
async def test_no_allowed_tools_limit_nothing(place: Place, written: str) -> None:
    add(place, f"allowed-tools: {written}\n")
    requests, _ = await using(place, run("c1", "touch new.txt"))
    assert "permits" not in requests[1].output_of("c1")


async def test_a_model_that_the_provider_refuses_is_given_up(place: Place) -> None:
    add(place, "model: no-such-model\n")
    with FakeResponses(api_error(404, "no such model", kind="model_not_found"), [say("done")]) as model:
        async with watched_session(place, model, TOOL) as watched:
            last = await watched.say("$fix")
    assert isinstance(last, events.TurnCompleted)
    assert model.requests[0].body["model"] == "no-such-model"
    assert model.requests[1].body["model"] != "no-such-model"
    assert any(
        "the model `no-such-model` that a skill asks for is refused" in warned for warned in warnings_of(watched)
    )


@pytest.mark.parametrize(
    ("allowed", "command", "runs"),
    [
        ("Read", "cat README.md", True),
        ("Read", "rm -f README.md", False),
        ("Read", "cat README.md > copy", False),
        ("Read", "python3 -c 1", False),
        ("Grep, Glob", "grep -r x .", True),
        ("Bash", "touch a", True),
        ("Bash(touch:*)", "touch a", True),
        ("Bash(touch:*)", "cd . && touch a", True),
        ("Bash(touch:*)", "touch a; rm a", False),
        ("Bash(touch:*)", "touch $(echo a)", False),
        ("Bash(touch:*)", "cat README.md", False),
        ("Bash(touch:*), Read", "cat README.md && touch a", True),
        ("Bash(git *)", "touch a", False),
        ("Bash(touch a)", "touch a b", False),
        ("Edit", "touch a", False),
        ("Nonsense", "cat README.md", False),
        ("exec_command", "touch a", True),
    ],
)
async def test_only_permitted_commands_run(place: Place, allowed: str, command: str, runs: bool) -> None:
    add(place, f"allowed-tools: {allowed}\n")
    requests, _ = await using(place, run("c1", command))
    assert ("permits in this turn" not in requests[1].output_of("c1")) is runs


@pytest.mark.parametrize(
    ("allowed", "written"), [("Read", False), ("Bash(cat:*)", False), ("Write", True), ("apply_patch", True)]
)
async def test_a_patch_needs_a_permission_of_its_own(place: Place, allowed: str, written: bool) -> None:
    add(place, f"allowed-tools: [{allowed}]\n")
    patch = call("p1", "apply_patch", {"input": PATCH})
    hidden = run("p2", f"apply_patch <<'EOF'\n{PATCH}EOF")
    await using(place, patch, hidden)
    assert (place.repo / "new.txt").exists() is written


async def test_two_skills_permit_what_both_do_and_the_next_turn_is_free(place: Place) -> None:
    add(place, "allowed-tools: Bash\n")
    add(place, "allowed-tools: Read, Write\n", "lint")
    answers = [[run("c1", "touch a")], [run("c2", "cat README.md")], [say("done")], [run("c3", "touch b")], [say("x")]]
    with FakeResponses(*answers) as model:
        async with watched_session(place, model, TOOL) as watched:
            await watched.say("$fix and $lint")
            await watched.say("go on")
    last = model.requests[-1]
    assert [("permits in this turn" in last.output_of(call_id)) for call_id in ("c1", "c2", "c3")] == [
        True,
        False,
        False,
    ]


async def test_a_skill_never_widens_what_the_sandbox_allows(place: Place) -> None:
    add(place, "allowed-tools: Bash, Write\n")
    await using(place, call("p1", "apply_patch", {"input": PATCH}), sandbox="read-only")
    assert not (place.repo / "new.txt").exists()


async def test_a_command_that_reads_several_skills_uses_none_of_them(place: Place) -> None:
    paths = [add(place, "allowed-tools: Read\n", name) for name in ("fix", "lint")]
    requests, _ = await using(place, run("c1", f"cat {paths[0]} {paths[1]}"), run("c2", "touch a"), message="look")
    assert "permits in this turn" not in requests[2].output_of("c2")

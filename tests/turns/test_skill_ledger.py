"""The ledger of uses: how each came, what it put into the context, and how its turn ended."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.protocol import ops
from codex_py.protocol.events import CommandStarted
from codex_py.protocol.ops import SkillInput, TextInput
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.session import scripted_session, watched_session
from tests.support.skills import NO_BUNDLED, add_skill, own_root, repo_root, skill_text, talk


def entries(place: Place, kind: str | None = None) -> list[dict[str, Any]]:
    lines = (place.codex_home / "skills-usage.jsonl").read_text().splitlines()
    found = [json.loads(line) for line in lines]
    return [entry for entry in found if (entry["kind"] == "turn") == (kind == "turn")]


def outcomes(place: Place) -> list[str]:
    return [entry["outcome"] for entry in entries(place, "turn")]


def run_command(number: int, line: str) -> dict[str, Any]:
    return call(f"c{number}", "exec_command", {"cmd": line})


async def test_each_use_says_how_it_came_and_its_tokens(place: Place) -> None:
    mentioned = add_skill(repo_root(place), "lint", skill_text("lint", body="x" * 4000))
    picked = add_skill(own_root(place), "fmt")
    add_skill(own_root(place), "release-notes")
    await talk(
        place,
        "$lint",
        (TextInput("go"), SkillInput("fmt", picked)),
        "please use the release-notes skill for this",
        top='[skills]\nnatural_names = "on"\n',
    )
    uses = entries(place)
    assert [(use["name"], use["way"]) for use in uses] == [
        ("lint", "named"),
        ("fmt", "picked"),
        ("release-notes", "natural"),
    ]
    assert 1000 < uses[0]["tokens"] < 1200
    assert all(use["session"] and use["turn"] and use["project"] == str(place.repo) for use in uses)
    assert outcomes(place) == ["completed"] * 3
    assert str(mentioned) == uses[0]["path"]


async def test_a_skill_named_in_words_that_the_model_then_reads_came_by_its_name(place: Place) -> None:
    path = add_skill(own_root(place), "release-notes")
    async with scripted_session(place, [run_command(1, f"cat {path}")], [say("done")], top=NO_BUNDLED) as (_, watched):
        await watched.say("use the release-notes skill")
    [use] = [entry for entry in entries(place) if entry["kind"] == "read"]
    assert (use["way"], use.get("suggested")) == ("natural", True)


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("no, that is not what I meant", ["completed", "corrected"]),
        ("That’s wrong!", ["completed", "corrected"]),
        ("undo that", ["completed", "corrected"]),
        ("no problem, go on", ["completed"]),
        ("now the tests", ["completed"]),
        ("nothing else", ["completed"]),
    ],
)
async def test_a_message_that_corrects_the_turn_before_is_its_outcome(
    place: Place, second: str, expected: list[str]
) -> None:
    add_skill(repo_root(place), "lint")
    await talk(place, "$lint", second)
    assert outcomes(place) == expected


async def test_only_the_turn_right_before_is_corrected(place: Place) -> None:
    add_skill(repo_root(place), "lint")
    await talk(place, "$lint", "thanks", "no, wrong")
    assert outcomes(place) == ["completed"]


async def test_a_resumed_session_knows_which_turn_it_corrects(place: Place) -> None:
    add_skill(repo_root(place), "lint")
    async with scripted_session(place, [say("one")], top=NO_BUNDLED) as (model, watched):
        await watched.say("$lint")
    with FakeResponses([say("two")], excuse={"threads"}) as model:
        async with watched_session(place, model, NO_BUNDLED, resume=watched.session.thread_id) as resumed:
            await resumed.say("wrong, do it again")
    first, second = entries(place, "turn")
    assert (first["outcome"], second["outcome"]) == ("completed", "corrected")
    assert (first["session"], first["turn"]) == (second["session"], second["turn"])


async def test_the_users_own_revert_undoes_the_turn_before(place: Place) -> None:
    add_skill(repo_root(place), "lint")
    async with scripted_session(place, [say("one")], top=NO_BUNDLED) as (_, watched):
        await watched.say("$lint")
        await watched.session.submit(ops.UserShell("git status; git checkout -- ."))
    assert outcomes(place) == ["completed", "undone"]


async def test_an_interrupted_turn_and_failing_scripts_are_recorded(place: Place) -> None:
    path = add_skill(repo_root(place), "lint")
    place.write(".agents/skills/lint/scripts/run.sh", "exit 3\n")
    script = "sh .agents/skills/lint/scripts/run.sh"
    steps = ([run_command(1, script)], [run_command(2, script)], [say("one")], [run_command(3, f"cat {path}")])
    async with scripted_session(place, *steps, top=NO_BUNDLED) as (_, watched):
        await watched.say("check")
        watched.on(CommandStarted, watched.session.interrupt)
        await watched.say("again")
    first, second = entries(place, "turn")
    assert (first["outcome"], first["skills"]) == ("completed", [{"path": str(path), "tokens": 0, "exits": [3, 3]}])
    assert second["outcome"] == "interrupted"


async def test_the_ledger_can_be_switched_off(place: Place) -> None:
    add_skill(repo_root(place), "lint")
    talked = await talk(place, "$lint", "no", top="[skills]\nledger = false\n")
    assert [use.name for use in talked.uses] == ["lint"]
    assert not (place.codex_home / "skills-usage.jsonl").exists()


async def test_turns_without_skills_leave_no_line(place: Place) -> None:
    add_skill(repo_root(place), "lint")
    await talk(place, "hello", "no")
    assert not (place.codex_home / "skills-usage.jsonl").exists()


async def test_a_named_skill_that_cannot_be_loaded_is_a_failed_use(place: Place) -> None:
    bad = add_skill(own_root(place), "bad", "---\nname: bad\n---\n")
    gone = add_skill(repo_root(place), "gone")
    denied = add_skill(repo_root(place), "denied")
    top = f'[sandbox]\ndeny_read = ["{denied}"]\n'

    def remove() -> None:
        gone.write_bytes(b"---\nname: gone\ndescription: x\n---\n\xff\xfe")

    linked = [f"[$bad]({bad})", "[$bad](skill://bad)", "[$bad](~/.agents/skills/bad/SKILL.md)"]
    talked = await talk(place, "$gone", remove, "$bad and $gone", *linked, [SkillInput("bad", bad)], top=top)
    nothing = f"`$bad` selects nothing: `{bad}` could not be loaded: missing field `description`"
    assert nothing in talked.warnings
    assert not [warning for warning in talked.warnings if warning.startswith("no skill at")]
    failed = [(use["name"], use["scope"], use["path"], use["way"]) for use in entries(place) if use["kind"] == "failed"]
    ways = [way for name, _, _, way in failed if name == "bad"]
    assert ways == ["named", "named", "named", "named", "picked"]
    assert ("bad", "user", str(bad), "named") in failed
    assert ("gone", "repo", str(gone), "named") in failed

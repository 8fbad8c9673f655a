"""Skills used by the way, by a command: noticed once a turn and put on record, and nothing else comes of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.protocol import events
from tests.support.bodies import injected, skill_list, user, whole_body
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.session import scripted_session, watched_session
from tests.support.skills import NO_BUNDLED, add_metadata, add_skill, line, own_root, repo_root, talk


def commands(*lines: str) -> list[dict[str, Any]]:
    return [call(f"c{number}", "exec_command", {"cmd": line}) for number, line in enumerate(lines, start=1)]


def lines_of(place: Place) -> list[dict[str, Any]]:
    file = place.codex_home / "skills-usage.jsonl"
    assert file.stat().st_mode & 0o777 == 0o600
    return [json.loads(line) for line in file.read_text().splitlines()]


def ledger(place: Place) -> list[dict[str, Any]]:
    """The uses on record, without the ends of turns."""
    return [entry for entry in lines_of(place) if entry["kind"] != "turn"]


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("cat {path}", "read"),
        ("cd .agents/skills/lint && cat SKILL.md | head -5", "read"),
        ("bash -lc \"sed -n '1,20p' .agents/skills/lint/SKILL.md\"", "read"),
        ("rg -n steps .agents/skills/lint/SKILL.md || true", "read"),
        ("cat < .agents/skills/lint/SKILL.md", "read"),
        ("bash .agents/skills/lint/scripts/run.sh --all", "script"),
        ("(cd .agents/skills/lint/scripts; ./run.sh)", "script"),
        ("env A=1 timeout 60 sh {scripts}/run.sh", "script"),
    ],
)
async def test_reading_a_skill_or_running_its_script_is_noticed(place: Place, command: str, kind: str) -> None:
    path = add_skill(repo_root(place), "lint")
    place.write(".agents/skills/lint/scripts/run.sh", "#!/bin/sh\necho linted\n").chmod(0o755)
    [run] = commands(command.format(path=path, scripts=path.parent / "scripts"))
    async with scripted_session(place, [run], [say("one")], top=NO_BUNDLED) as (model, watched):
        await watched.say("check the code")
    first, second = model.requests
    listed = skill_list(line(path))
    assert first.body == whole_body(place, first, user("check the code"), skills=listed)
    expected = [user("check the code"), run["item"], second.output_item("c1")]
    assert second.body == whole_body(place, second, *expected, skills=listed)
    assert [(use.name, use.scope, use.path, use.kind) for use in watched.of(events.SkillUsed)] == [
        ("lint", "repo", path, kind)
    ]
    [entry] = ledger(place)
    use = {"at": "", "name": "lint", "scope": "repo", "path": str(path), "kind": kind, "project": str(place.repo)}
    turn = watched.of(events.TurnStarted)[0].turn_id
    ids = {"session": watched.session.thread_id, "turn": turn}
    assert {**entry, "at": ""} == {**use, **ids, "way": "model"}
    [end] = [line for line in lines_of(place) if line["kind"] == "turn"]
    [used] = end["skills"]
    assert (end["outcome"], end["turn"], used["path"]) == ("completed", turn, str(path))
    # What the command printed is what the model has of the skill; a search without a hit prints nothing.
    assert used["exits"] == ([0] if kind == "script" else [])
    assert (used["tokens"] > 0) == (kind == "read" and not command.startswith("rg"))


async def test_a_use_is_noticed_once_a_turn_and_again_in_the_next(place: Place) -> None:
    path = add_skill(repo_root(place), "lint")
    place.write(".agents/skills/lint/scripts/run.sh", "echo linted\n")
    # One after the other: of two at once, either may be the first use.
    reads, runs = commands("cat .agents/skills/lint/SKILL.md", "bash .agents/skills/lint/scripts/run.sh")
    again = call("c3", "exec_command", {"cmd": "bash .agents/skills/lint/scripts/run.sh"})
    with FakeResponses([reads], [runs], [say("one")], [again], [say("two")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("check the code")
            await watched.say("once more")
    last = model.requests[-1]
    outputs = [last.output_item(name) for name in ("c1", "c2", "c3")]
    done = [user("check the code"), reads["item"], outputs[0], runs["item"], outputs[1], say("one")["item"]]
    expected = [*done, user("once more"), again["item"], outputs[2]]
    assert last.body == whole_body(place, last, *expected, skills=skill_list(line(path)))
    assert [use.kind for use in watched.of(events.SkillUsed)] == ["read", "script"]
    assert [entry["kind"] for entry in ledger(place)] == ["read", "script"]


async def test_a_skill_that_was_named_is_not_noticed_a_second_time(place: Place) -> None:
    path = add_skill(repo_root(place), "lint")
    [read] = commands(f"cat {path}")
    async with scripted_session(place, [read], [say("one")], top=NO_BUNDLED) as (model, watched):
        await watched.say("$lint")
    last = model.requests[-1]
    expected = [injected(path), user("$lint"), read["item"], last.output_item("c1")]
    assert last.body == whole_body(place, last, *expected, skills=skill_list(line(path)))
    assert [use.kind for use in watched.of(events.SkillUsed)] == ["explicit"]


async def test_skills_read_from_a_list_of_files_are_noticed(place: Place) -> None:
    paths = [add_skill(repo_root(place), name) for name in ("fmt", "lint")]
    add_skill(repo_root(place), "off")
    hidden = add_skill(own_root(place), "hidden")
    add_metadata(hidden, "policy: {allow_implicit_invocation: false}\n")
    off = NO_BUNDLED + '[[skills.config]]\nname = "off"\nenabled = false\n'
    first, second = commands(
        f"find .agents -name SKILL.md | sort | xargs head -n 5; cat {hidden}",
        'for f in .agents/skills/*/SKILL.md; do cat "$f"; done',
    )
    async with scripted_session(place, [first], [second], [say("one")], top=off) as (_, watched):
        await watched.say("look around")
    assert watched.of(events.SkillUsed) == [events.SkillUsed(path.parent.name, "repo", path, "read") for path in paths]


async def test_a_session_that_leaves_nothing_behind_keeps_no_record(place: Place) -> None:
    path = add_skill(repo_root(place), "lint")
    talked = await talk(place, "$lint", ephemeral=True)
    assert talked.uses == [events.SkillUsed("lint", "repo", path, "explicit")]
    assert not (place.codex_home / "skills-usage.jsonl").exists()

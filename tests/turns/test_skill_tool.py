"""The `skill` tool: a skill that the model loads itself, as the output of a call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.skills.inject import MAX_BODY_BYTES
from tests.support.agents import spawn, tool_names
from tests.support.bodies import skill_list, user, whole_body
from tests.support.fake_responses import FakeResponses, Request, call, say
from tests.support.home import Place
from tests.support.session import Watched, scripted_session, watched_session
from tests.support.skills import NO_BUNDLED, add_metadata, add_skill, line, repo_root, skill_text

TOOL = f"[skills]\ntool = true\n{NO_BUNDLED}"
NO_SHELL = f"[features]\nshell_tool = false\n{NO_BUNDLED}"


def load(name: str, args: str | None = None, *, call_id: str = "k1") -> dict[str, Any]:
    return call(call_id, "skill", {"name": name} if args is None else {"name": name, "args": args})


def loaded(path: Path, name: str = "", then: str = "Follow these instructions now.") -> str:
    tag = f'<skill-loaded name="{name or path.parent.name}">'
    return f"{tag}\n<path>{path}</path>\n{path.read_text()}\n</skill-loaded>\n{then}"


async def loading(place: Place, *calls: dict[str, Any], top: str = TOOL) -> tuple[list[Request], Watched]:
    """A turn in which the model makes calls one after the other."""
    with FakeResponses(*([one] for one in calls), [say("done")], [say("more")]) as model:
        async with watched_session(place, model, top) as watched:
            await watched.say("check the code")
            await watched.say("and now?")
    return model.requests, watched


@pytest.mark.parametrize(("top", "shown"), [(NO_BUNDLED, False), (TOOL, True), (NO_SHELL, True)])
async def test_it_is_shown_where_it_is_wanted_or_no_command_can_read_the_file(
    place: Place, top: str, shown: bool
) -> None:
    async with scripted_session(place, [say("done")], top=top) as (model, watched):
        await watched.say("hi")
    assert ("skill" in tool_names(model.requests[0])) == shown


async def test_a_model_that_runs_no_commands_is_shown_it(place: Place) -> None:
    catalog = place.write("models.json", '{"models": [{"slug": "gpt-5.1-codex", "shell_type": "disabled"}]}')
    with FakeResponses([say("done")]) as model:
        async with watched_session(place, model, f'model_catalog_json = "{catalog}"\n{NO_BUNDLED}') as watched:
            await watched.say("hi")
    names = tool_names(model.requests[0])
    assert ("skill" in names, "exec_command" in names) == (True, False)


async def test_a_skill_is_appended_as_the_output_of_the_call_and_nothing_before_it_moves(place: Place) -> None:
    path = add_skill(repo_root(place), "lint")
    (first, second, third), watched = await loading(place, load("lint", "app.py"))
    [spec] = [tool for tool in first.body["tools"] if tool.get("name") == "skill"]
    assert sorted(spec["parameters"]["properties"]) == ["args", "name"]
    listed = skill_list(line(path))
    output = {
        "type": "function_call_output",
        "call_id": "k1",
        "output": loaded(path, then="Follow these instructions now, for: app.py"),
    }
    said = [user("check the code"), load("lint", "app.py")["item"], output]
    bodies = [
        whole_body(place, request, *items, skills=listed, more_tools=[spec])
        for request, items in zip(
            (first, second, third), (said[:1], said, [*said, say("done")["item"], user("and now?")]), strict=True
        )
    ]
    assert [_sorted_tools(request.body) for request in (first, second, third)] == [_sorted_tools(one) for one in bodies]
    assert watched.of(events.SkillUsed) == [events.SkillUsed("lint", "repo", path, "read")]
    entry, end = [json.loads(text) for text in (place.codex_home / "skills-usage.jsonl").read_text().splitlines()]
    assert (entry["name"], entry["kind"], entry["way"], entry["tokens"] > 0) == ("lint", "read", "model", True)
    assert (end["kind"], end["outcome"], end["turn"]) == ("turn", "completed", entry["turn"])


def _sorted_tools(body: dict[str, Any]) -> dict[str, Any]:
    """Where among the tools it stands is not what this is about."""
    return {**body, "tools": sorted(body["tools"], key=lambda tool: str(tool.get("name")))}


async def test_one_name_of_a_skill_is_as_good_as_another_and_a_wrong_one_gets_the_closest(place: Place) -> None:
    for name in ("lint", "lint-all", "deploy"):
        add_skill(repo_root(place), name)
    off = f'{TOOL}[[skills.config]]\nname = "deploy"\nenabled = false\n'
    calls = [
        load("$lint", call_id="k1"),
        load("lnt", call_id="k2"),
        load("deploy", call_id="k3"),
        load("", call_id="k4"),
        call("k5", "skill", {}),
        call("k6", "skill", "not JSON"),
        call("k7", "skill", {"skill": "lint", "args": "a.py"}),
    ]
    requests, watched = await loading(place, *calls, top=off)
    last = requests[-1]
    assert last.output_of("k1").startswith('<skill-loaded name="lint">\n')
    assert last.output_of("k2") == "there is no skill `lnt`; the closest are `lint`"
    assert last.output_of("k3") == "there is no skill `deploy`; there are `lint`, `lint-all`"
    assert last.output_of("k4").startswith("there is no skill ``; there are ")
    assert "name" in last.output_of("k5")
    assert "JSON" in last.output_of("k6")
    assert last.output_of("k7").endswith("Follow these instructions now, for: a.py")
    assert [use.name for use in watched.of(events.SkillUsed)] == ["lint"]


async def test_where_there_are_no_skills_it_says_so(place: Place) -> None:
    requests, _ = await loading(place, load("lint"))
    assert requests[-1].output_of("k1") == "there is no skill `lint`; there are no skills"


async def test_two_skills_of_one_name_are_not_guessed_between(place: Place) -> None:
    here = add_skill(repo_root(place), "lint")
    there = add_skill(place.home / ".agents/skills", "lint")
    requests, watched = await loading(place, load("lint"))
    output = requests[-1].output_of("k1")
    assert output.startswith("2 skills are called `lint`: use a whole name, or read the file of one: ")
    assert str(here) in output
    assert str(there) in output
    assert watched.of(events.SkillUsed) == []


async def test_a_skill_only_for_mentions_is_not_the_models_to_load(place: Place) -> None:
    path = add_skill(repo_root(place), "quiet")
    add_metadata(path, "policy: {allow_implicit_invocation: false}\n")
    add_skill(repo_root(place), "lint")
    calls = [load("quiet"), load("quie", call_id="k2"), spawn("k3", "look", skills=["quiet"])]
    requests, watched = await loading(place, *calls)
    refusal = "the skill `quiet` is only for the user to ask for, by writing `$quiet` in a message"
    outputs = [requests[-1].output_of(call_id) for call_id in ("k1", "k2", "k3")]
    assert outputs == [refusal, "there is no skill `quie`; there are `lint`", refusal]
    assert watched.of(events.SkillUsed) == []


async def test_a_long_skill_is_cut_where_a_named_one_is(place: Place) -> None:
    body = "a line of the skill\n" * (MAX_BODY_BYTES // 10)
    path = add_skill(repo_root(place), "long", skill_text("long", body=body))
    requests, _ = await loading(place, load("long"))
    output = requests[-1].output_of("k1")
    kept, _, note = output.partition("\n[cut here: ")
    assert MAX_BODY_BYTES - 100 < len(kept) < MAX_BODY_BYTES + 300
    assert f"of {path.stat().st_size} bytes; the rest is in the file" in note
    assert output.endswith("</skill-loaded>\nFollow these instructions now.")


async def test_what_a_loaded_skill_needs_and_has_not_is_reported(place: Place) -> None:
    needs = "dependencies:\n  tools:\n    - {type: env_var, value: DEPLOY_TOKEN, description: deploys}\n"
    add_skill(repo_root(place), "deploy", skill_text("deploy", more=needs))
    _, watched = await loading(place, load("deploy"))
    [warned] = watched.warnings
    assert "`DEPLOY_TOKEN`" in warned


async def test_a_skill_that_has_vanished_is_an_answer_and_not_the_end(place: Place) -> None:
    path = add_skill(repo_root(place), "lint")

    def vanish(_: Request) -> list[dict[str, Any]]:
        path.unlink()
        return [load("lint")]

    async with scripted_session(place, vanish, [say("done")], top=TOOL) as (model, watched):
        ended = await watched.say("go")
    assert isinstance(ended, events.TurnCompleted)
    assert model.requests[1].output_of("k1").startswith("cannot read the skill `lint`: ")

"""`exec` with skills: what a script and a person read of them, and the whole of what was sent."""

from __future__ import annotations

import json
import sys

import pytest

from tests.support import no_namespaces
from tests.support.bodies import developer, injected, said, skill_list, user, whole_body
from tests.support.fake_responses import call, fake_model, say
from tests.support.home import Place
from tests.support.process import COMMAND, Running, run
from tests.support.skills import NO_BUNDLED, add_skill, line, own_root, repo_root, root_of_known_length, skill_text

FULL_ACCESS = 'sandbox_mode = "danger-full-access"\n'


def test_what_is_wrong_with_skills_and_mentions_is_reported_in_lines_and_the_turn_goes_on(place: Place) -> None:
    root = root_of_known_length(place)
    lint = add_skill(root, "lint", skill_text("lint", "x" * 1000))
    bad = add_skill(own_root(place), "bad", "---\nname: bad\n---\n")
    need = "dependencies:\n  tools:\n    - {type: env_var, value: DEPLOY_TOKEN, description: deploys}\n"
    deploy = add_skill(root, "deploy", skill_text("deploy", "x", more=need))
    message = "$LINT $bad $lint $deploy"
    with fake_model(
        place,
        [say("done")],
        [say("done")],
        excuse={"threads"},
        top=f'{FULL_ACCESS}[skills]\nmax_context_tokens = 114\nroots = ["{root}"]\n{NO_BUNDLED}',
    ) as model:
        human = run(place, "exec", message)
        script = run(place, "exec", "--json", message)
    # 114 tokens without 10 for the other skill.
    kept = "x" * 382
    result = [
        f"failed to load skill {bad}: missing field `description`",
        "1 skill description was shortened for the model, by 618 of 1,000 characters: the list of skills has "
        "a budget of 114 tokens; to make room switch off skills you do not use (`codex-py skills disable NAME`) or "
        'set `skills.budget = "1%"`, the share of the context window that shows them all',
        f"`$bad` selects nothing: `{bad}` could not be loaded: missing field `description`",
        "environment variable `DEPLOY_TOKEN` (deploys) is not set; skill `deploy` may not work without it",
    ]
    assert (human.status, human.out) == (0, "done\n")
    shown = human.err.splitlines()
    assert [one for one in shown if one.startswith("warning: ")] == [f"warning: {one}" for one in result]
    uses = [f"skill: deploy ({deploy})", f"skill: lint ({lint})"]
    assert [one for one in shown if one.startswith("skill: ")] == uses
    errors = [event["item"] for event in script.events if event.get("item", {}).get("type") == "error"]
    assert [error["message"] for error in errors] == result
    assert script.status == 0
    assert script.events[-1]["skills_used"] == [
        {"name": path.parent.name, "scope": "user", "path": str(path), "kind": "explicit"} for path in (deploy, lint)
    ]
    lines = ("- deploy: x (file: r0/deploy/SKILL.md)", f"- lint: {kept} (file: r0/lint/SKILL.md)")
    listed = skill_list(*lines, roots=(root,))
    for request in model.requests:
        value = [injected(deploy), injected(lint), user(message)]
        assert request.body == whole_body(place, request, *value, skills=listed)


def test_what_a_skill_applied_is_in_the_events_and_on_the_screen(place: Place) -> None:
    path = add_skill(repo_root(place), "lint", skill_text("lint", more="model: gpt-5.1-codex-mini\neffort: high\n"))
    with fake_model(place, [say("done")], [say("done")], excuse={"threads"}, top=NO_BUNDLED):
        script = run(place, "exec", "--json", "$lint")
        human = run(place, "exec", "$lint")
    applied = {"model": "gpt-5.1-codex-mini", "effort": "high"}
    [used] = script.events[-1]["skills_used"]
    assert used == {"name": "lint", "scope": "repo", "path": str(path), "kind": "explicit", "applied": applied}
    [shown] = [line for line in human.err.splitlines() if "effort high" in line]
    assert "lint" in shown and "high" in shown and "gpt-5.1-codex-mini" in shown


def test_a_session_that_goes_on_learns_of_new_skills_and_the_user_of_new_faults(place: Place) -> None:
    lint = add_skill(repo_root(place), "lint")
    with fake_model(place, [say("one")], [say("two")], top=f"{FULL_ACCESS}{NO_BUNDLED}") as model:
        first = run(place, "exec", "hi")
        fmt = add_skill(own_root(place), "fmt")
        twin = add_skill(own_root(place) / "more", "lint")
        second = run(place, "exec", "resume", "--last", "$lint and $fmt")
    assert (first.status, second.status) == (0, 0)
    last = model.requests[-1]
    both = skill_list(line(lint), line(fmt), line(twin))
    expected = [user("hi"), said("one"), developer(both), injected(fmt), user("$lint and $fmt")]
    assert last.body == whole_body(place, last, *expected, skills=skill_list(line(lint)))
    assert (
        f"warning: `$lint` could mean 2 skills and selects none: `[$lint]({lint})` (repo) or `[$lint]({twin})` (user)\n"
    ) in second.err


def test_rules_of_the_command_line_and_skills_used_by_the_way(place: Place) -> None:
    lint, fmt = add_skill(repo_root(place), "lint"), add_skill(own_root(place), "fmt")
    read = call("c1", "exec_command", {"cmd": f"cat {lint} {fmt}"})
    with fake_model(place, [read], [say("done")], top=f"{FULL_ACCESS}{NO_BUNDLED}") as model:
        ended = run(place, "exec", "--json", "-c", 'skills.config=[{name="fmt",enabled=false}]', "go")
    last = model.requests[-1]
    expected = [user("go"), read["item"], last.output_item("c1")]
    assert last.body == whole_body(place, last, *expected, skills=skill_list(line(lint)))
    assert ended.events[-1]["skills_used"] == [{"name": "lint", "scope": "repo", "path": str(lint), "kind": "read"}]


NEW_SKILL = "skill.py new release-notes --description 'Writes release notes. Use when a version is tagged.'"
LANDLOCK_ONLY = ("-c", "sandbox.allow_partial=true")


@pytest.mark.parametrize("flags", [(), ("--allow-skills",)])
def test_skill_creator_makes_a_skill_when_the_user_allows_it(place: Place, flags: tuple[str, ...]) -> None:
    create = f"python3 {place.codex_home}/skills/.system/skill-creator/scripts/{NEW_SKILL}; echo x > .agents/other"
    answers = ([call("c1", "exec_command", {"cmd": create})], [say("done")], [say("seen")])
    (place.repo / ".agents").mkdir()
    with fake_model(place, *answers, excuse={"threads"}) as model:
        ended = run(place, "exec", "-s", "workspace-write", *flags, "use $skill-creator for release notes")
        run(place, "exec", "hi")
    assert ended.status == 0
    output = model.requests[1].output_of("c1")
    made = place.repo / ".agents/skills/release-notes/SKILL.md"
    assert made.exists() is bool(flags)
    assert ("codex-py exec -s workspace-write --allow-skills" in output) is not bool(flags)
    assert ("- release-notes: Writes release notes" in json.dumps(model.requests[2].body)) is bool(flags)
    assert not (place.repo / ".agents/other").exists()


@pytest.mark.parametrize("flags", [(), ("--allow-skills",)])
def test_patches_may_write_skills_when_the_user_allows_it(place: Place, flags: tuple[str, ...]) -> None:
    names = ("skills/new/SKILL.md", "other", "skills/.git/config")
    calls = [
        call(name, "apply_patch", {"input": f"*** Begin Patch\n*** Add File: .agents/{name}\n+x\n*** End Patch"})
        for name in names
    ]
    with fake_model(place, calls, [say("done")]) as model:
        run(place, "exec", "-s", "workspace-write", *flags, "go")
    written, *refused = [model.requests[1].output_of(name) for name in names]
    assert (place.repo / ".agents/skills/new/SKILL.md").exists() is bool(flags)
    assert ("the user allows writing skills with `--allow-skills`" in written) is not bool(flags)
    assert all("is kept read-only" in output for output in refused)


def test_skills_are_made_writable_by_the_flag_where_only_landlock_works(place: Place) -> None:
    make = "mkdir -p .agents/skills/new && echo x > .agents/skills/new/SKILL.md"
    with fake_model(place, [call("c1", "exec_command", {"cmd": make})], [say("done")]):
        arguments = ("exec", "-s", "workspace-write", "--allow-skills", *LANDLOCK_ONLY, "go")
        argv = [sys.executable, no_namespaces.__file__, COMMAND, *arguments]
        with Running(argv, env=place.env, cwd=place.repo) as running:
            ended = running.wait()
    assert ended.status == 0, ended.err
    assert (place.repo / ".agents/skills/new/SKILL.md").exists()
    # What it cannot hold beside that is said.
    assert "warning: only Landlock works here: commands can change `.git`, `.codex`, `.agents`" in ended.err


def test_the_flag_does_not_follow_links_and_needs_a_sandbox_that_writes(place: Place) -> None:
    read_only = run(place, "exec", "--offline", "--allow-skills", "go")
    assert (read_only.status, "add `-s workspace-write`" in read_only.err) == (2, True)
    assert not (place.repo / ".agents").exists()
    (place.home / "elsewhere").mkdir()
    (place.repo / ".agents").symlink_to(place.home / "elsewhere")
    linked = run(place, "exec", "--offline", "-s", "workspace-write", "--allow-skills", "go")
    assert "leads elsewhere through a link" in linked.err
    assert not (place.home / "elsewhere/skills").exists()

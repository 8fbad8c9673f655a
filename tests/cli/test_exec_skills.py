"""`exec` with skills: what a script and a person read of them, and the whole of what was sent."""

from __future__ import annotations

from pathlib import Path

from tests.support.bodies import developer, injected, said, skill_list, user, whole_body
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.process import run
from tests.support.skills import NO_BUNDLED, add_skill, own_root, repo_root, root_of_known_length, skill_text

FULL_ACCESS = 'sandbox_mode = "danger-full-access"\n'


def line(path: Path) -> str:
    return f"- {path.parent.name}: does things (file: {path})"


def test_what_is_wrong_with_skills_and_mentions_is_told_in_lines_and_the_turn_goes_on(place: Place) -> None:
    root = root_of_known_length(place)
    lint = add_skill(root, "lint", skill_text("lint", "x" * 1000))
    bad = add_skill(own_root(place), "bad", "---\nname: bad\n---\n")
    need = "dependencies:\n  tools:\n    - {type: env_var, value: DEPLOY_TOKEN, description: deploys}\n"
    deploy = add_skill(root, "deploy", skill_text("deploy", "x", more=need))
    message = "$LINT $bad $lint $deploy"
    with FakeResponses([say("done")], [say("done")], excuse={"threads"}) as model:
        place.use_model(
            model.base_url, f'{FULL_ACCESS}[skills]\nmax_context_tokens = 200\nroots = ["{root}"]\n{NO_BUNDLED}'
        )
        human = run(place, "exec", message)
        script = run(place, "exec", "--json", message)
    # 200 tokens without 86 for the table of roots and 10 for the other skill.
    kept = "x" * 382
    told = [
        f"failed to load skill {bad}: missing field `description`",
        "1 skill description was shortened for the model, by 618 of 1,000 characters: the list of skills has "
        "a budget of 200 tokens; to make room switch off skills you do not use (`codex-py skills disable NAME`) or "
        "raise `skills.max_context_tokens`",
        f"`$bad` selects nothing: `{bad}` could not be loaded: missing field `description`",
        "environment variable `DEPLOY_TOKEN` (deploys) is not set; skill `deploy` may not work without it",
    ]
    assert (human.status, human.out) == (0, "done\n")
    shown = human.err.splitlines()
    assert [one for one in shown if one.startswith("warning: ")] == [f"warning: {one}" for one in told]
    uses = [f"skill: deploy ({deploy})", f"skill: lint ({lint})"]
    assert [one for one in shown if one.startswith("skill: ")] == uses
    errors = [event["item"] for event in script.events if event.get("item", {}).get("type") == "error"]
    assert [error["message"] for error in errors] == told
    assert script.status == 0
    assert script.events[-1]["skills_used"] == [
        {"name": path.parent.name, "scope": "user", "path": str(path), "kind": "explicit"} for path in (deploy, lint)
    ]
    lines = ("- deploy: x (file: r0/deploy/SKILL.md)", f"- lint: {kept} (file: r0/lint/SKILL.md)")
    listed = skill_list(*lines, roots=(root,))
    for request in model.requests:
        given = [injected(deploy), injected(lint), user(message)]
        assert request.body == whole_body(place, request, *given, skills=listed)


def test_a_session_that_goes_on_is_told_of_new_skills_and_the_user_of_new_faults(place: Place) -> None:
    lint = add_skill(repo_root(place), "lint")
    with FakeResponses([say("one")], [say("two")]) as model:
        place.use_model(model.base_url, f"{FULL_ACCESS}{NO_BUNDLED}")
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
    with FakeResponses([read], [say("done")]) as model:
        place.use_model(model.base_url, f"{FULL_ACCESS}{NO_BUNDLED}")
        ended = run(place, "exec", "--json", "-c", 'skills.config=[{name="fmt",enabled=false}]', "go")
    last = model.requests[-1]
    expected = [user("go"), read["item"], last.output_item("c1")]
    assert last.body == whole_body(place, last, *expected, skills=skill_list(line(lint)))
    assert ended.events[-1]["skills_used"] == [{"name": "lint", "scope": "repo", "path": str(lint), "kind": "read"}]

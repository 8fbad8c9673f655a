"""The skills manager in the real program: what it writes counts in the session that is open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codex_py.protocol.encoding import as_list, as_object
from tests.support.fake_responses import FakeResponses, say
from tests.support.home import Place
from tests.support.skills import add_skill, repo_root, skill_text
from tests.support.terminal import Terminal


def trusted(place: Place, model: FakeResponses) -> None:
    """A model to ask, and a directory that is not asked about."""
    trust = f'[projects."{place.repo}"]\ntrust_level = "trusted"\n'
    place.use_model(model.base_url, f'sandbox_mode = "workspace-write"\n{trust}')


def test_a_skill_is_switched_off_in_the_manager_and_the_model_hears_no_more_of_it(place: Place) -> None:
    write_skill(place.repo, "deploy")
    with FakeResponses([say("One.")], [say("Two.")]) as model:
        trusted(place, model)
        with Terminal(place, height=40) as terminal:
            terminal.wait_for_prompt()
            terminal.type("first\r")
            terminal.wait_for("One.").wait_for_prompt()
            terminal.type("/skills\r")
            terminal.wait_for("── Skills")
            terminal.type("deploy")
            terminal.wait_for("❯ [x] deploy")
            terminal.press("tab")
            terminal.wait_for("deploy is off")
            terminal.press("escape")
            terminal.wait_until_gone("── Skills")
            terminal.type("second\r")
            terminal.wait_for("Two.")
        result = [text for item in model.requests[-1].input for text in texts_of(item) if "- fix-tests" in text]
        assert "- deploy: " in result[0]
        assert "- deploy: " not in result[-1] and len(result) == 2


def test_a_skill_is_inserted_from_the_manager(place: Place) -> None:
    write_skill(place.repo, "deploy")
    with FakeResponses([say("Shipped.")]) as model:
        trusted(place, model)
        with Terminal(place) as terminal:
            terminal.wait_for_prompt()
            terminal.type("/skills\r")
            terminal.wait_for("── Skills")
            terminal.type("deploy")
            terminal.wait_for("❯ [x] deploy")
            terminal.press("enter")
            terminal.wait_for("› $deploy")
            terminal.type("now\r")
            terminal.wait_for("Shipped.")
        assert any("<name>deploy</name>" in text for item in model.requests[-1].input for text in texts_of(item))


def test_what_is_wrong_with_skills_is_shown(place: Place) -> None:
    place.write(".agents/skills/broken/SKILL.md", "---\nname: broken\n---\n")
    with FakeResponses([say("One.")]) as model:
        trusted(place, model)
        with Terminal(place, height=40) as terminal:
            terminal.wait_for("failed to load skill").wait_for_prompt()
            terminal.type("use $broken now\r")
            terminal.wait_for("$broken selects no skill").wait_for("could not be loaded")
            terminal.type("s")
            terminal.wait_for("`$broken` selects nothing").wait_for("One.")
    assert not any(text.startswith("<skill>") for item in model.requests[-1].input for text in texts_of(item))


def test_a_mention_that_could_mean_several_skills_is_asked_about_before_it_is_sent(place: Place) -> None:
    write_skill(place.repo, "deploy")
    write_skill(place.home, "deploy")
    with FakeResponses([say("One.")]) as model:
        trusted(place, model)
        with Terminal(place, height=40) as terminal:
            terminal.wait_for_prompt().type("use $deploy now\r")
            terminal.wait_for("Which skill is $deploy?").wait_for("repo · ").wait_for("user · ~/.agents")
            assert not model.requests
            terminal.press("escape")
            terminal.wait_for("› use $deploy now").press("enter")
            terminal.wait_for("Which skill is $deploy?").type("2")
            terminal.wait_for("One.")
            assert "could mean" not in terminal.text
    [skill] = [text for item in model.requests[-1].input for text in texts_of(item) if text.startswith("<skill>")]
    assert f"<path>{place.home}" in skill or f"<path>{place.repo}" in skill


def test_a_mistyped_mention_is_held_back_with_the_name_it_could_mean(place: Place) -> None:
    write_skill(place.repo, "deploy-app")
    with FakeResponses([say("One.")]) as model:
        trusted(place, model)
        with Terminal(place, height=40) as terminal:
            terminal.wait_for_prompt().paste("\n".join(f"line {n} costs $deploy-ap" for n in range(20)))
            terminal.type(" use $deploy-ap, please\x1b\x1b")
            terminal.wait_for("please").press("enter")
            terminal.wait_for("Which skill is $deploy-ap?").press("enter")
            terminal.wait_for("One.").wait_for("use $deploy-app, please")
            assert "[Pasted text #1 · 20 lines]" in terminal.whole
    texts = [text for item in model.requests[-1].input for text in texts_of(item)]
    assert any("<name>deploy-app</name>" in text for text in texts)
    assert any("line 19 costs" in text and "use $deploy-app, please" in text for text in texts)


def test_the_words_behind_a_mistyped_mention_in_a_script_without_spaces_stay(place: Place) -> None:
    write_skill(place.repo, "代码审查")
    with FakeResponses([say("One.")]) as model:
        trusted(place, model)
        with Terminal(place, height=40) as terminal:
            terminal.wait_for_prompt().type("请用$代")
            terminal.wait_for("Ships it.").type("\x1b\x15请用$代碼审查检查一下\x1b\x1b")
            terminal.wait_for("检查一下").press("enter")
            terminal.wait_for("Which skill is").press("enter")
            terminal.wait_for("One.")
    texts = [text for item in model.requests[-1].input for text in texts_of(item)]
    assert any("<name>代码审查</name>" in text for text in texts)
    assert "请用$代码审查检查一下" in texts


def write_skill(repo: Path, name: str) -> None:
    directory = repo / ".agents/skills" / name
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Ships it.\n---\nDo it.\n")


def texts_of(item: dict[str, Any]) -> list[str]:
    """The texts of a message."""
    return [as_object(part).get("text", "") for part in as_list(item.get("content"))]


def test_the_menu_offers_a_skill_that_was_made_a_moment_ago_and_it_is_called_new(place: Place) -> None:
    with FakeResponses([say("Done.")]) as model:
        trusted(place, model)
        with Terminal(place, height=40) as terminal:
            terminal.wait_for_prompt()
            made = [
                add_skill(root, name, skill_text(name, f"the {name}"))
                for root, name in (
                    (repo_root(place), "zz-one"),
                    (place.home / ".agents/skills", "zz-two"),
                    (place.repo / ".codex/skills", "zz-three"),
                )
            ]
            terminal.type("$zz-")
            for path in made:
                terminal.wait_for(f"the {path.parent.name}")
            terminal.type("one ")
            terminal.type("go\r")
            terminal.wait_for("Done.")
            shown = "".join(terminal.whole.split())
            assert "theskill`zz-one`isnewsincethelastturn" in shown
            assert "haschangedsince" not in shown


def test_the_menu_shows_the_argument_hint_and_a_slash_passes_arguments_on(place: Place) -> None:
    more = 'argument-hint: "[issue] [branch]"\narguments: [issue, branch]\neffort: high\n'
    body = "Work on $1, on the branch ${branch}. All: $ARGUMENTS."
    add_skill(repo_root(place), "deploy", skill_text("deploy", more=more, body=body))
    with FakeResponses([say("Shipped.")]) as model:
        trusted(place, model)
        with Terminal(place, height=40) as terminal:
            terminal.wait_for_prompt()
            terminal.type("/depl")
            terminal.wait_for("[issue] [branch]")
            terminal.press("escape")
            terminal.type('oy 42 "my branch"\r')
            terminal.wait_for("Shipped.")
            assert "effort high" in " ".join(terminal.whole.split()) or "effort: high" in terminal.whole
    result = [text for item in model.requests[-1].input for text in texts_of(item) if "<name>deploy</name>" in text]
    assert 'Work on 42, on the branch my branch. All: 42 "my branch".' in result[0]


def test_a_picked_skill_brings_the_words_to_begin_with_and_is_mentioned_once(place: Place) -> None:
    for name, prompt in (("alpha", "Check the code."), ("beta", "Use $beta on what has changed.")):
        place.write(f".agents/skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: does {name}\n---\nBODY\n")
        place.write(f".agents/skills/{name}/agents/openai.yaml", f"interface:\n  default_prompt: {prompt}\n")
    with FakeResponses([say("first")], [say("second")], [say("third")], [say("fourth")]) as model:
        trusted(place, model)
        with Terminal(place) as terminal:
            terminal.wait_for_prompt()
            terminal.type("$alp")
            terminal.wait_for("does alpha")
            terminal.press("tab")
            terminal.wait_for("› $alpha Check the code.")
            terminal.type("\r")
            terminal.wait_for("● first").wait_for_prompt()
            terminal.type("$bet")
            terminal.wait_for("does beta")
            terminal.press("tab")
            terminal.wait_for("› Use $beta on what has changed.")
            terminal.type("\r")
            terminal.wait_for("● second").wait_for_prompt()
            terminal.type("please $bet")
            terminal.wait_for("does beta")
            terminal.press("tab")
            terminal.type("now\r")
            terminal.wait_for("● third").wait_for_prompt()
            terminal.type("/skills\r")
            terminal.wait_for("── Skills")
            terminal.type("beta")
            terminal.wait_for("❯ [x] beta")
            terminal.press("enter")
            terminal.wait_until_gone("── Skills")
            terminal.wait_for("› Use $beta on what has changed.")
            terminal.type("\r")
            terminal.wait_for("● fourth")
    messages = [request.texts("user")[-1] for request in model.requests]
    assert messages == [
        "$alpha Check the code.",
        "Use $beta on what has changed.",
        "please $beta now",
        "Use $beta on what has changed.",
    ]
    assert all(request.texts("user")[-2].startswith("<skill>") for request in model.requests)

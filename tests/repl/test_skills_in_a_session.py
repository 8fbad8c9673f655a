"""The skills manager in the real program: what it writes counts in the session that is open."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from codex_py.protocol.encoding import as_list, as_object
from tests.support.fake_responses import FakeResponses, say
from tests.support.home import Place
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
        told = [text for item in model.requests[-1].input for text in texts_of(item) if "- fix-tests" in text]
        assert "- deploy: " in told[0]
        assert "- deploy: " not in told[-1] and len(told) == 2


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


def test_what_is_wrong_with_skills_and_mentions_is_shown(place: Place) -> None:
    write_skill(place.repo, "deploy")
    write_skill(place.home, "deploy")
    place.write(".agents/skills/broken/SKILL.md", "---\nname: broken\n---\n")
    with FakeResponses([say("One.")], [say("Two.")]) as model:
        trusted(place, model)
        with Terminal(place, height=40) as terminal:
            terminal.wait_for_prompt()
            terminal.type("use $deploy now\r")
            terminal.wait_for("failed to load skill")
            terminal.wait_for("`$deploy` could mean 2 skills and selects none")
            terminal.wait_for("One.").wait_for_prompt()
            terminal.type("use $broken now\r")
            terminal.wait_for("`$broken` selects nothing")
            terminal.wait_for("Two.")
    assert not any(text.startswith("<skill>") for item in model.requests[-1].input for text in texts_of(item))


def write_skill(repo: Path, name: str) -> None:
    directory = repo / ".agents/skills" / name
    directory.mkdir(parents=True)
    (directory / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Ships it.\n---\nDo it.\n")


def texts_of(item: dict[str, Any]) -> list[str]:
    """The texts of a message."""
    return [as_object(part).get("text", "") for part in as_list(item.get("content"))]

"""Skills that a message names in words: the row below the input while typing, and Tab that mentions them."""

from __future__ import annotations

import pytest

from tests.repl.conftest import ready_model
from tests.support.fake_responses import say
from tests.support.home import Place
from tests.support.terminal import Terminal

NAMED = "◆ $release-notes"


def make_skill(place: Place, name: str, about: str = "Writes them") -> None:
    place.write(f".agents/skills/{name}/SKILL.md", f"---\nname: {name}\ndescription: {about}\n---\nBody of {name}.\n")


def test_tab_turns_a_skill_named_in_words_into_a_mention(place: Place) -> None:
    make_skill(place, "release-notes")
    with ready_model(place, [say("written")]) as model, Terminal(place) as terminal:
        terminal.wait_for_prompt()
        terminal.type("use the release notes skill for 1.2")
        terminal.wait_for(f"{NAMED} · Tab names it")
        terminal.press("tab")
        terminal.wait_for("› use the $release-notes skill for 1.2")
        terminal.wait_until_gone("◆")
        terminal.type("!\r")
        terminal.wait_for("● written")

    assert model.requests[0].texts("user")[-1] == "use the $release-notes skill for 1.2!"
    assert any("Body of release-notes." in text for text in model.requests[0].texts("user"))


def test_the_row_goes_when_the_name_does(place: Place) -> None:
    make_skill(place, "release-notes")
    with ready_model(place), Terminal(place) as terminal:
        terminal.wait_for_prompt()
        terminal.type("use the release notes skill")
        terminal.wait_for(NAMED)
        terminal.press("ctrl-u")
        terminal.wait_until_gone("◆")


def test_a_name_that_fits_two_skills_shows_both_and_takes_neither(place: Place) -> None:
    make_skill(place, "release-notes")
    make_skill(place, "release_notes")
    with ready_model(place), Terminal(place) as terminal:
        terminal.wait_for_prompt()
        terminal.type("use the release notes skill")
        terminal.wait_for("◆ $release-notes or $release_notes · which one?")
        terminal.press("tab")
        terminal.type("X")
        terminal.wait_for("skillX")
        assert "$release" not in terminal.text.partition("›")[2].splitlines()[0]


@pytest.mark.parametrize(
    ("text", "setting"),
    [
        ("where are the release notes?", "suggest"),
        ("do not use the release notes skill", "suggest"),
        ("!use the release notes skill", "suggest"),
        ("use the release notes skill", "off"),
    ],
)
def test_no_row_without_a_skill_that_is_named(place: Place, text: str, setting: str) -> None:
    make_skill(place, "release-notes")
    with ready_model(place, top="", tables=f'[skills]\nnatural_names = "{setting}"\n'), Terminal(place) as terminal:
        terminal.wait_for_prompt()
        terminal.type(text)
        terminal.press("tab")
        terminal.type("X")
        terminal.wait_for(f"{text}X")
        assert "◆" not in terminal.text


def test_with_natural_names_on_the_row_says_what_will_be_used(place: Place) -> None:
    make_skill(place, "release-notes")
    with ready_model(place, top="", tables='[skills]\nnatural_names = "on"\n'), Terminal(place, width=40) as terminal:
        terminal.wait_for_prompt()
        terminal.type("按 release-notes 这个 skill 来")
        terminal.wait_for(NAMED)
        assert "Tab" not in terminal.text

"""What a resumed session shows: how long it is, its last turns, and that there is more; and what is asked twice."""

from __future__ import annotations

from tests.repl.conftest import Ready
from tests.support.fake_responses import FakeResponses, completed, say, tokens
from tests.support.home import Place
from tests.support.terminal import Terminal


def test_the_last_turns_are_shown_with_a_line_about_the_rest(place: Place, ready: Ready) -> None:
    answers = [[say(f"answer {number}."), completed(tokens(1000, 10))] for number in range(7)]
    with FakeResponses(*answers) as model:
        ready(model)
        with Terminal(place, "question 0.", height=60) as terminal:
            for number in range(1, 7):
                terminal.wait_for(f"answer {number - 1}.").wait_for_prompt().type(f"question {number}.")
                terminal.wait_for(f"question {number}.").press("enter")
            terminal.wait_for("answer 6.").wait_for_prompt().press("ctrl-d")
            assert terminal.wait_for_end() == 0
        with Terminal(place, "resume", "--last", height=60) as terminal:
            terminal.wait_for("answer 6.").wait_for_prompt()
            assert "resumed   7 turns · " in terminal.whole
            assert "% context left" in terminal.whole
            assert "2 earlier turns not shown" in terminal.whole
            assert "question 1." not in terminal.whole
            assert "question 2." in terminal.whole


def test_full_access_is_asked_about_once(place: Place, ready: Ready) -> None:
    with FakeResponses() as model:
        ready(model)
        with Terminal(place, height=30) as terminal:
            terminal.wait_for_prompt().type("/sandbox danger-full-access\r")
            terminal.wait_for("Run without a sandbox?").type("n")
            terminal.wait_until_gone("Run without").wait_for("workspace-write").type("/sandbox foo\r")
            terminal.wait_for("unknown sandbox `foo`: use `read-only`").type("/sandbox danger-full-access\r")
            terminal.wait_for("Run without a sandbox?").type("y")
            terminal.wait_for("no sandbox")


def test_the_head_of_the_diff_counts(place: Place, ready: Ready) -> None:
    place.write("README.md", "changed\n")
    place.write("new.txt", "one\ntwo\n")
    with FakeResponses() as model:
        ready(model)
        with Terminal(place, height=30) as terminal:
            terminal.wait_for_prompt().type("/diff\r")
            terminal.wait_for("Uncommitted changes · 2 files +3 −3")

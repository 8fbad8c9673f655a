"""What a resumed session shows: how long it is, its last turns, and that there is more; and what is asked twice."""

from __future__ import annotations

import re

from tests.repl.conftest import ready_model
from tests.support.fake_responses import completed, say, status, tokens
from tests.support.home import Place
from tests.support.terminal import Terminal


def test_the_last_turns_are_shown_with_a_line_about_the_rest(place: Place) -> None:
    answers = [[say(f"answer {number}."), completed(tokens(1000, 10))] for number in range(7)]
    with ready_model(place, *answers):
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


def test_full_access_is_asked_about_once(place: Place) -> None:
    with ready_model(place), Terminal(place, height=30) as terminal:
        terminal.wait_for_prompt().type("/sandbox danger-full-access\r")
        terminal.wait_for("Run without a sandbox?").type("n")
        terminal.wait_until_gone("Run without").wait_for("workspace-write").type("/sandbox foo\r")
        terminal.wait_for("unknown sandbox `foo`: use `read-only`").type("/sandbox danger-full-access\r")
        terminal.wait_for("Run without a sandbox?").type("y")
        terminal.wait_until_gone("Run without").wait_for("no sandbox").type("/sandbox read-only\r")
        terminal.wait_for("· read-only").type("/sandbox danger-full-access\r")
        terminal.wait_for(lambda now: now.text.count("sandbox: danger-full-access") == 2).wait_for("no sandbox")
        terminal.type("/new\r")
        terminal.wait_for(lambda now: now.text.count("codex-py 0") == 2).wait_for_prompt()
        terminal.type("/sandbox danger-full-access\r")
        terminal.wait_for("Run without a sandbox?").press("escape")


def test_a_session_that_began_without_a_sandbox_goes_back_to_none_unasked(place: Place) -> None:
    with ready_model(place, top='sandbox_mode = "danger-full-access"'), Terminal(place, height=30) as terminal:
        terminal.wait_for("Run without a sandbox?").type("y")
        terminal.wait_for_prompt().wait_for("no sandbox").type("/sandbox\r")
        terminal.wait_for("Sandbox: what commands may do").type("1")
        terminal.wait_for("· read-only").type("/sandbox\r")
        terminal.wait_for("Sandbox: what commands may do").type("3")
        terminal.wait_for("sandbox: danger-full-access").wait_for("no sandbox")


def test_a_session_that_starts_without_a_sandbox_asks_once(place: Place) -> None:
    with ready_model(place, top='sandbox_mode = "danger-full-access"'):
        with Terminal(place, height=30) as terminal:
            terminal.wait_for("Run without a sandbox?").wait_for("❯ n  No, use workspace-write").press("enter")
            terminal.wait_for_prompt().wait_for("main · workspace-write")
        with Terminal(place, "-s", "danger-full-access", height=30) as terminal:
            terminal.wait_for("Run without a sandbox?").type("a")
            terminal.wait_for_prompt().wait_for("no sandbox").type("/new\r")
            terminal.wait_for(lambda now: now.text.count("codex-py 0") == 2).wait_for_prompt()
        with Terminal(place, height=30) as terminal:
            terminal.wait_for_prompt().wait_for("no sandbox")
            assert "Run without" not in terminal.whole
    assert "hide_full_access_warning = true" in (place.codex_home / "config.toml").read_text()


def test_a_flag_that_is_named_dangerous_is_not_asked_about(place: Place) -> None:
    with ready_model(place), Terminal(place, "--yolo") as terminal:
        terminal.wait_for_prompt().wait_for("no sandbox")


def test_a_model_that_the_provider_does_not_list_is_warned_about(place: Place) -> None:
    names = ("qwen-coder", "qwen-coder-2", "llama")
    listed = status(200, {"object": "list", "data": [{"id": name} for name in names]})
    with ready_model(place, get={"/v1/models": listed}), Terminal(place, "-m", "qwen-codr", width=110) as terminal:
        warning = "unknown model `qwen-codr`: `fake` does not list it; did you mean `qwen-coder` or `qwen-coder-2`?"
        terminal.wait_for(warning).wait_for_prompt().type("/model lama\r")
        terminal.wait_for("unknown model `lama`: `fake` does not list it; did you mean `llama`?")


def test_the_head_of_the_diff_counts(place: Place) -> None:
    place.write("README.md", "changed\n")
    place.write("new.txt", "one\ntwo\n")
    with ready_model(place), Terminal(place, height=30) as terminal:
        terminal.wait_for_prompt().type("/diff\r")
        terminal.wait_for("Uncommitted changes · 2 files +3 −3")


def test_a_chip_is_a_chip_again_in_a_resumed_session(place: Place) -> None:
    pasted = "\n".join(f"line {number} é" for number in range(20))
    with ready_model(place, [say("seen."), completed(tokens(1000, 10))], [say("again.")]) as model:
        with Terminal(place) as terminal:
            terminal.wait_for_prompt().type("é look at ")
            terminal.paste(pasted)
            terminal.wait_for("[Pasted text #1 · 20 lines]").type(" closely\r")
            terminal.wait_for("seen.").wait_for_prompt().press("ctrl-d")
            assert terminal.wait_for_end() == 0
        with Terminal(place, "resume", "--last") as terminal:
            terminal.wait_for("› é look at [Pasted text #1 · 20 lines] closely").wait_for_prompt()
            assert "line 7" not in terminal.whole
            assert re.search(r"\n  gpt-5.1-codex medium · \d+% left · \$", terminal.text)
            terminal.type("more\r")
            terminal.wait_for("again.")
    assert f"é look at {pasted} closely" in model.requests[1].texts("user")

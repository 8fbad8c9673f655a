"""Commands of the user's own, from files, and notes for AGENTS.md."""

from __future__ import annotations

import base64
import os
import re

from tests.repl.conftest import ready_model, use_and_trust
from tests.support.fake_responses import Json, Request, say
from tests.support.home import Place
from tests.support.terminal import Terminal


def test_a_file_of_the_user_is_a_command(place: Place) -> None:
    prompts = place.codex_home / "prompts"
    prompts.mkdir()
    (prompts / "explain.md").write_text(
        "---\ndescription: Explain a file\nargument-hint: FILE\n---\nExplain $1 well.\n"
    )
    (prompts / "status.md").write_text("My own status of $ARGUMENTS.\n")
    with (
        ready_model(place, [say("One.")], [say("Two.")], [say("Three.")]) as model,
        Terminal(place, width=100) as terminal,
    ):
        terminal.wait_for_prompt().type("/expl")
        terminal.wait_for("Explain a file").type("ain app.py\r")
        terminal.wait_for("› /explain app.py").wait_for("One.").wait_for_prompt()
        terminal.type("/prompts:status all\r")
        terminal.wait_for("Two.").wait_for_prompt()
        (prompts / "later.md").write_text("Later on.\n")
        terminal.type("/lat")
        terminal.wait_for("Later on.").press("enter")
        terminal.wait_for("Three.")
    said = [request.texts("user")[-1] for request in model.requests]
    assert said == ["Explain app.py well.", "My own status of all.", "Later on."]


def test_commands_of_a_project_count_when_it_is_trusted(place: Place) -> None:
    place.write(".codex/prompts/look-over.md", "Check it.\n")
    place.write(".claude/commands/front/build.md", "Build $ARGUMENTS.\n")
    (place.repo / ".codex/prompts/outside.md").symlink_to("/etc/passwd")
    with ready_model(place, [say("One.")], [say("Two.")]) as model:
        with Terminal(place, width=100) as terminal:
            terminal.wait_for_prompt().type("/look-over\r")
            terminal.wait_for("One.").wait_for_prompt().type("/front:build it\r")
            terminal.wait_for("Two.").wait_for_prompt().type("/outside\r")
            terminal.wait_for("no command or skill `/outside`")
        place.use_model(model.base_url, f'[projects."{place.repo}"]\ntrust_level = "untrusted"\n')
        with Terminal(place, width=100) as terminal:
            terminal.wait_for_prompt().type("/look-over\r")
            terminal.wait_for("no command or skill `/look-over`")
    assert [request.texts("user")[-1] for request in model.requests] == ["Check it.", "Build it."]


def test_a_line_is_added_to_agents_md_after_a_yes(place: Place) -> None:
    with ready_model(place, [say("One.")], [say("Two.")]) as model, Terminal(place, width=100) as terminal:
        terminal.wait_for_prompt().type("# use tabs\r")
        terminal.wait_for("Add this line to AGENTS.md?").wait_for("AGENTS.md, a new file").press("escape")
        terminal.wait_until_gone("Add this line").type("#use tabs\r")
        terminal.wait_for("│ - use tabs").press("enter")
        terminal.wait_for("added to AGENTS.md").type("go\r")
        terminal.wait_for("One.").wait_for_prompt().type("# Title\r")
        terminal.wait_for("AGENTS.md, at its end").type("m")
        terminal.wait_for("Two.")
    assert (place.repo / "AGENTS.md").read_text() == "- use tabs\n"
    assert any("- use tabs" in text for text in model.requests[0].texts("user"))
    assert model.requests[1].texts("user")[-1] == "# Title"


ANSWER = "Run this:\n\n```sh\nmake test\n```\n\nor\n\n```python\nimport this\nprint(1)\n```\n"


def copied(terminal: Terminal) -> list[str]:
    """What was written to the clipboard through the terminal."""
    return [base64.b64decode(text).decode() for text in re.findall(rb"\x1b\]52;c;([^\a]*)\a", bytes(terminal.raw))]


def test_answers_and_their_code_are_copied_and_shown_raw(place: Place) -> None:
    with (
        ready_model(place, [say("First answer.")], [say(ANSWER)]),
        Terminal(place, "go", width=100, height=40) as terminal,
    ):
        terminal.wait_for("● First answer.").wait_for_prompt().type("more\r")
        terminal.wait_for("print(1)").wait_for_prompt().type("/copy 2\r")
        terminal.wait_for("copied answer 2 from the end, 13 characters").type("/copy code\r")
        terminal.wait_for("Copy which block?").press("down", "enter")
        terminal.wait_for("copied code, 20 characters").type("/copy 9\r")
        terminal.wait_for("`9` is not the number of an answer: there are 2").type("\x1bOQ")
        terminal.wait_for("Run this:\n\n```sh")
        terminal.type("q")
        terminal.wait_for_prompt()
        assert copied(terminal) == ["First answer.", "import this\nprint(1)"]


def test_a_side_question_leaves_the_conversation_as_it_is(place: Place) -> None:
    with (
        ready_model(
            place, [say("The first.")], [say("Aside: **hidden words**.")], [say("The second.")], excuse={"threads"}
        ) as model,
        Terminal(place, "hello", width=100) as terminal,
    ):
        terminal.wait_for("The first.").wait_for_prompt().type("/side what is it?\r")
        terminal.wait_for("Side question · not part of the conversation").wait_for(
            "Aside: hidden words."
        ).wait_for_prompt()
        terminal.type("go on\r")
        terminal.wait_for("The second.")
    aside, after = model.requests[1], model.requests[2]
    assert "hello" in aside.texts("user") and "The first." in aside.texts("assistant")
    assert aside.texts("user")[-1].startswith("what is it?")
    assert not any(
        "what is it?" in text or "hidden words" in text for text in (*after.texts("user"), *after.texts("assistant"))
    )


def test_a_review_is_made_in_a_context_of_its_own(place: Place) -> None:
    place.write("README.md", "changed\n")
    answers = {"uncommitted": say("Line 1 is **wrong**."), "go": say("I see."), "hello": say("Hi.")}

    def answer(request: Request) -> list[Json]:
        last = request.texts("user")[-1]
        return [next(found for word, found in answers.items() if word in last)]

    with (
        ready_model(place, answer, answer, answer, excuse={"threads"}) as model,
        Terminal(place, "hello", width=100, height=40) as terminal,
    ):
        terminal.wait_for("● Hi.").wait_for_prompt().type("/review\r")
        terminal.wait_for("Review what?").wait_for("Own instructions…").type("i")
        terminal.wait_for("What should the review look at?").type("names\r")
        terminal.wait_for("› /review names").wait_for("● Line 1 is wrong.").wait_for_prompt().type("go\r")
        terminal.wait_for("● I see.")
    review, after = model.requests[1], model.requests[2]
    assert "hello" not in review.texts("user") and "Look at this above all: names" in review.texts("user")[-1]
    assert any("Line 1 is **wrong**." in text for text in after.texts("user") + after.texts("developer"))


def test_the_status_line_is_a_text_of_the_user_or_what_a_command_prints(place: Place) -> None:
    shown = ("{model} · on {branch} · {running} · {effort} {nothing}", "gpt-5.1-codex · on main · medium")
    script = "read facts; touch made; echo $facts | grep -o main; printf other"
    with ready_model(place, [say("One.")], tables=f'[tui]\nstatus_line = "{shown[0]}"\n') as model:
        with Terminal(place, width=100) as terminal:
            terminal.wait_for_prompt().wait_for(f"  {shown[1]}")
            assert "workspace-write  " not in terminal.rows[-1]
        use_and_trust(place, model, tables=f'[tui]\nstatus_line = {{ command = "{script}" }}\n')
        with Terminal(place, width=100) as terminal:
            terminal.wait_for(lambda now: now.rows[-1].startswith("  main") or "\n  main" in now.text)
            terminal.type("go\r")
            terminal.wait_for("One.").wait_for_prompt()
        use_and_trust(place, model, tables='[tui]\nstatus_line = { command = "sleep 100" }\n')
        with Terminal(place, width=100) as terminal:
            terminal.wait_for("status line: no answer within 2 s")
    assert not (place.repo / "made").exists()


def test_fork_offers_the_messages_of_the_session(place: Place) -> None:
    with (
        ready_model(place, [say("One.")], [say("Two.")], [say("Three.")], excuse={"threads"}) as model,
        Terminal(place, "first question", width=100, height=40) as terminal,
    ):
        terminal.wait_for("One.").wait_for_prompt().type("second question\r")
        terminal.wait_for("Two.").wait_for_prompt().type("/fork\r")
        terminal.wait_for("Fork before which message?").wait_for("2  second question").press("enter")
        terminal.wait_for("› second question").wait_for("resumed   1 turn").type(" again\r")
        terminal.wait_for("Three.")
    assert model.requests[2].texts("user")[-1] == "second question again"
    assert "Two." not in model.requests[2].texts("assistant")


def test_a_pipe_in_the_place_of_agents_md_takes_no_line_and_stops_nothing(place: Place) -> None:
    os.mkfifo(place.repo / "AGENTS.md")
    with ready_model(place, [say("One.")]), Terminal(place, width=100) as terminal:
        terminal.wait_for_prompt().type("# use tabs\r")
        terminal.wait_for("Add this line to AGENTS.md?").press("enter")
        terminal.wait_for("cannot write").wait_for_prompt().type("go\r")
        terminal.wait_for("One.")


def test_a_line_is_added_to_agents_md_in_plain_lines_too(place: Place) -> None:
    with ready_model(place, [say("One.")]) as model, Terminal(place, TERM="dumb", width=100) as terminal:
        terminal.wait_for(lambda shown: shown.text.endswith("\n>")).type("#use tabs\r")
        terminal.wait_for("Add this line to AGENTS.md?").wait_for("- use tabs").wait_for("AGENTS.md, a new file")
        terminal.type("p\r")
        terminal.wait_for("added to AGENTS.md").type("go\r")
        terminal.wait_for("One.")
        assert b"\x1b" not in terminal.raw
    assert (place.repo / "AGENTS.md").read_text() == "- use tabs\n"
    assert any("- use tabs" in text for text in model.requests[0].texts("user"))

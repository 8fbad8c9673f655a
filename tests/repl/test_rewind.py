"""`/undo` and `/rewind` in the terminal session."""

from __future__ import annotations

from typing import Any

from tests.repl.conftest import ready_model
from tests.support.fake_responses import call, say
from tests.support.home import Place
from tests.support.terminal import Terminal


def work(command: str) -> list[dict[str, Any]]:
    return [call("c", "exec_command", {"cmd": command})]


def test_undo_brings_back_the_files_and_returns_the_message(place: Place) -> None:
    place.write("a.txt", "one\n")
    script = (work("rm a.txt; echo x > new.txt"), [say("first done")], [say("second done")])
    with (
        ready_model(
            place, *script, excuse={"threads", "prefix", "replay"}, top='sandbox_mode = "workspace-write"'
        ) as model,
        Terminal(place, width=100, height=50) as terminal,
    ):
        terminal.wait_for_prompt().type("tidy up\r")
        terminal.wait_for("first done").wait_for("1 file changed, 1 deleted · /undo")
        terminal.wait_for_prompt().type("/undo\r")
        terminal.wait_for("brought back: a.txt").wait_for("deleted: new.txt").wait_for("› tidy up")
        assert (place.repo / "a.txt").read_text() == "one\n"
        assert not (place.repo / "new.txt").exists()
        terminal.type(" again\r")
        terminal.wait_for("second done")
        terminal.wait_for_prompt().type("/rewind latest files\r")
        terminal.wait_for("deleted: a.txt")
        assert not (place.repo / "a.txt").exists()
    said = [text for text in model.requests[2].texts("user") if not text.startswith("<")]
    assert said == ["tidy up again"]


def test_escape_twice_lists_the_turns_shows_what_would_happen_and_goes_back(place: Place) -> None:
    place.write("a.txt", "one\n")
    place.write("b.txt", "one\n")
    script = (work("echo two > a.txt; echo two > b.txt"), [say("first done")], [say("second done")])
    with (
        ready_model(place, *script, excuse={"threads", "prefix", "replay"}, top='sandbox_mode = "workspace-write"'),
        Terminal(place, width=100, height=50) as terminal,
    ):
        terminal.wait_for_prompt().type("make it two\r")
        terminal.wait_for("first done").wait_for("2 files changed")
        terminal.wait_for_prompt().type("and then\r")
        terminal.wait_for("second done")
        terminal.wait_for_prompt()
        place.write("b.txt", "mine\n")
        terminal.type("\x1b")
        terminal.type("\x1b")
        terminal.wait_for("Go back before which turn?").wait_for("1  make it two")
        terminal.wait_for("2 files changed")
        terminal.type("\x1b[B\r")
        terminal.wait_for("Bring back what?").type("b")
        terminal.wait_for("Go back?").wait_for("would be restored: a.txt").wait_for("in conflict: b.txt")
        terminal.wait_for("-mine").wait_for("+one").wait_for("would go back by 2 turns")
        assert (place.repo / "a.txt").read_text() == "two\n"
        terminal.type("o")
        terminal.wait_for("the conversation goes back by 2 turns").wait_for_prompt()
        assert terminal.text.rstrip().count("› make it two") > 1
    assert [(place.repo / name).read_text() for name in ("a.txt", "b.txt")] == ["one\n", "one\n"]
    assert (place.repo / "b.txt.rewind-conflict").read_text() == "mine\n"


def test_a_preview_that_is_refused_changes_nothing(place: Place) -> None:
    with (
        ready_model(
            place,
            work("echo x > new.txt"),
            [say("first done")],
            excuse={"threads"},
            top='sandbox_mode = "workspace-write"',
        ),
        Terminal(place, width=100, height=50) as terminal,
    ):
        terminal.wait_for_prompt().type("go\r")
        terminal.wait_for("first done")
        terminal.wait_for_prompt().type("/rewind\r")
        terminal.wait_for("Go back before which turn?").type("\r")
        terminal.wait_for("Bring back what?").type("f")
        terminal.wait_for("would be deleted: new.txt").type("n")
        terminal.wait_for_prompt()
    assert (place.repo / "new.txt").exists()


def test_a_running_command_is_stopped_before_going_back(place: Place) -> None:
    script = (work("echo x > new.txt; sleep 600; echo y > late.txt"), [say("never")])
    with (
        ready_model(
            place, *script, excuse={"threads", "prefix", "replay", "unplayed"}, top='sandbox_mode = "workspace-write"'
        ),
        Terminal(place, width=100, height=50) as terminal,
    ):
        terminal.wait_for_prompt().type("go on\r")
        terminal.wait_for("sleep 600")
        terminal.wait_for(lambda _: (place.repo / "new.txt").exists())
        terminal.type("/undo\r")
        terminal.wait_for("deleted: new.txt").wait_for("› go on")
    assert not (place.repo / "new.txt").exists()


def test_the_session_can_be_written_to_a_file(place: Place) -> None:
    with ready_model(place, [say("first done")]), Terminal(place, width=100, height=50) as terminal:
        terminal.wait_for_prompt().type("hello there\r")
        terminal.wait_for("first done").wait_for_prompt().type("/export talk.html\r")
        terminal.wait_for("wrote talk.html")
    assert "hello there" in (place.repo / "talk.html").read_text()

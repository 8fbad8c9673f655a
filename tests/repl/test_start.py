"""What is on the screen when a session begins, and how it ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from codex_py import __version__
from tests.support.fake_responses import fake_model, say
from tests.support.home import Place
from tests.support.process import COMMAND, run
from tests.support.terminal import Terminal


def trust(place: Place) -> str:
    """TOML that says that the place's repository is trusted."""
    return f'[projects."{place.repo}"]\ntrust_level = "trusted"\n'


def test_the_banner_tells_what_the_session_runs_with(place: Place) -> None:
    place.write(".agents/skills/bad/SKILL.md", "no head")
    with fake_model(place, top=trust(place)), Terminal(place, width=200) as terminal:
        terminal.wait_for("! failed to load skill").wait_for_prompt()

        shown = terminal.text

    assert f"codex-py {__version__}" in shown
    assert "gpt-5.1-codex" in shown and "fake" in shown
    assert "workspace-write" in shown and "on-request" in shown
    assert "5 found" in shown
    assert "bad/SKILL.md: missing YAML frontmatter" in shown


def test_a_message_is_answered_on_the_screen(place: Place) -> None:
    with fake_model(place, [say("**Hello** there")], top=trust(place)) as model, Terminal(place) as terminal:
        terminal.wait_for_prompt().type("hi you")
        terminal.press("enter")
        terminal.wait_for("● Hello there").wait_for_prompt()

        assert "› hi you" in terminal.text
        terminal.press("ctrl-d")
        assert terminal.wait_for_end() == 0

    assert model.requests[0].texts("user")[-1] == "hi you"


def test_what_is_sent_before_the_session_is_open_is_not_lost(place: Place) -> None:
    with fake_model(place, [say("right away")], top=trust(place)), Terminal(place) as terminal:
        terminal.wait_for("› ").type("go")
        terminal.press("enter")
        terminal.wait_for("● right away")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (40, 10), (60, 5), (30, 2)])
def test_the_prompt_is_drawn_before_the_session_is_open(place: Place, width: int, height: int) -> None:
    with (
        fake_model(place, top=trust(place)),
        Terminal(place, "-c", COMMAND, command="/bin/sh", width=width, height=height) as terminal,
    ):
        terminal.wait_for("› ")
        first, cursor = [row for row in terminal.rows if row], terminal.cursor
        assert (first[0][:14], first[1:]) == ("› Ask anything", ["  starting…"])
        assert cursor == (terminal.rows.index(first[0]), 2)
        terminal.type("typed early")
        terminal.wait_for_prompt().wait_for("› typed early")
        assert terminal.whole.count("typed early") == 1
        assert "starting" not in terminal.whole
        # The terminal has been asked for its colours once.
        assert bytes(terminal.raw).count(b"\x1b]11;?\x1b\\") == 1


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_while_the_program_loads_gives_the_terminal_back(place: Place, number: signal.Signals) -> None:
    with fake_model(place, top=trust(place)):
        script = f'before=$(stty -g); {COMMAND}; echo "status $?"; test "$before" = "$(stty -g)" && echo as before'
        with Terminal(place, "-c", script, command="/bin/sh") as terminal:
            terminal.wait_for("› ")
            [program] = Path(f"/proc/{terminal.child.pid}/task/{terminal.child.pid}/children").read_text().split()
            os.kill(int(program), number)
            assert terminal.wait_for_end() == 0
            assert (f"status {128 + number}" in terminal.whole, "as before" in terminal.whole) == (True, True)


def test_a_prompt_on_the_command_line_is_sent_at_once(place: Place) -> None:
    with fake_model(place, [say("yes")], top=trust(place)) as model, Terminal(place, "are you there?") as terminal:
        terminal.wait_for("● yes")

    assert model.requests[0].texts("user")[-1] == "are you there?"


def test_an_untrusted_directory_asks_once(place: Place) -> None:
    with fake_model(place):
        with Terminal(place) as terminal:
            terminal.wait_for("Do you trust this directory?").type("y")
            terminal.wait_for("workspace-write [")
            terminal.wait_for_prompt().press("ctrl-d")
            terminal.wait_for_end()
        with Terminal(place) as terminal:
            terminal.wait_for_prompt()

            assert "Do you trust" not in terminal.whole


@pytest.mark.parametrize("verb", ["resume", "fork"])
@pytest.mark.parametrize("which", ["nope", "--last"])
def test_nothing_is_asked_about_a_directory_for_a_session_that_there_is_not(
    place: Place, verb: str, which: str
) -> None:
    ended = run(place, verb, which)
    status, missing = (1, "no session to resume in") if which == "--last" else (2, "no session with the name or id")
    assert (ended.status, missing in ended.err) == (status, True)
    assert "Do you trust" not in ended.out


def test_without_a_key_there_is_a_choice(place: Place) -> None:
    place.configure(trust(place))
    with Terminal(place) as terminal:
        terminal.wait_for("Welcome to codex-py").type("o")
        terminal.wait_for("offline-rules").wait_for_prompt()


def test_a_session_goes_on_where_it_was_left(place: Place) -> None:
    with fake_model(place, [say("one")], [say("two")], top=trust(place)) as model:
        with Terminal(place, "first") as terminal:
            terminal.wait_for("● one").wait_for_prompt().press("ctrl-d")
            terminal.wait_for_end()
        with Terminal(place, "resume", "--last") as terminal:
            terminal.wait_for("● one").wait_for_prompt().type("second")
            terminal.press("enter")
            terminal.wait_for("● two")

    assert model.requests[1].texts("user")[-2:] == ["first", "second"]


def test_ctrl_c_twice_quits(place: Place) -> None:
    with fake_model(place, top=trust(place)), Terminal(place) as terminal:
        terminal.wait_for_prompt().press("ctrl-c")
        terminal.wait_for("press Ctrl-C again to quit").press("ctrl-c")

        assert terminal.wait_for_end() == 0


def test_the_terminal_is_given_back_after_a_signal(place: Place) -> None:
    with fake_model(place, top=trust(place)), Terminal(place) as terminal:
        terminal.wait_for_prompt()
        terminal.child.kill(signal.SIGTERM)

        assert terminal.wait_for_end() == 143
        assert bytes(terminal.raw).endswith(b"\x1b[23;2t")
        assert b"\x1b[?1004l" in terminal.raw and b"\x1b[?2004l" in terminal.raw


def test_a_dumb_terminal_gets_plain_lines(place: Place) -> None:
    with fake_model(place, [say("plain answer")], top=trust(place)), Terminal(place, TERM="dumb") as terminal:
        terminal.wait_for(lambda shown: shown.text.endswith("\n>")).type("hello")
        terminal.press("enter")
        terminal.wait_for("codex\nplain answer")

        assert b"\x1b" not in terminal.raw


def test_a_word_that_is_nearly_a_command_is_not_sent_to_the_model(place: Place) -> None:
    with Terminal(place, "exce") as terminal:
        assert terminal.wait_for_end() == 2
        assert "did you mean `exec`?" in terminal.text

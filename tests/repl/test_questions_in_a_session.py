"""Questions as a person meets them: keys into the real program, and what its screen shows."""

from __future__ import annotations

import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support import no_namespaces
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.process import COMMAND
from tests.support.terminal import Terminal

PUSH = {"cmd": "touch made", "sandbox_permissions": "require_escalated", "justification": "Make it?", "login": False}


@contextmanager
def session(
    place: Place, *calls: Any, typed: str = "go\r", flags: Sequence[str] = ()
) -> Generator[tuple[FakeResponses, Terminal]]:
    """A session in a trusted directory, in which the model makes the calls, each in an answer of its own."""
    with FakeResponses(*([one] for one in calls), [say("All done.")]) as model:
        trust = f'[projects."{place.repo}"]\ntrust_level = "trusted"\n'
        place.use_model(model.base_url, f'sandbox_mode = "workspace-write"\napproval_policy = "on-request"\n{trust}')
        with Terminal(place, *flags) as terminal:
            terminal.wait_for_prompt()
            terminal.type(typed)
            yield model, terminal
            terminal.wait_for("All done.")


# Tries every terminal there is: to type into it, to take it over, to read and write it, and to make one.
TERMINALS = """
import fcntl, os, pathlib, termios

def attempt(what):
    try:
        what()
    except OSError:
        return []
    return ["reached"]

found = []
for path in ["/dev/tty", "/dev/console", *map(str, pathlib.Path("/dev/pts").glob("[0-9]*"))]:
    found += attempt(lambda: os.open(path, os.O_RDWR)) + attempt(lambda: os.open(path, os.O_WRONLY | os.O_NOCTTY))
for fd in range(3):
    for request in (termios.TIOCSTI, termios.TIOCSCTTY, 0x541C):
        found += attempt(lambda: fcntl.ioctl(fd, request, b"q"))
found += attempt(os.openpty)
print("terminals:", found)
"""


def test_with_landlock_alone_each_command_is_asked_about_and_reaches_no_terminal(place: Place) -> None:
    place.write("terminals.py", TERMINALS)
    run_it = {"cmd": f"{sys.executable} -I -S terminals.py", "login": False}
    with FakeResponses([call("c1", "exec_command", run_it)], [say("All done.")]) as model:
        trust = f'[projects."{place.repo}"]\ntrust_level = "trusted"\n'
        place.use_model(model.base_url, f'sandbox_mode = "workspace-write"\napproval_policy = "on-request"\n{trust}')
        with Terminal(place, no_namespaces.__file__, COMMAND, command=sys.executable) as terminal:
            terminal.wait_for_prompt()
            terminal.type("go\r")
            terminal.wait_for("Run this command?").wait_for("only Landlock works here")
            terminal.type("y")
            terminal.wait_for("All done.")
    assert "terminals: []" in model.requests[-1].output_of("c1")


def test_a_command_is_approved_from_its_dialog(place: Place) -> None:
    with session(place, call("c1", "exec_command", PUSH)) as (_, terminal):
        terminal.wait_for("Run this outside the sandbox?").wait_for("❯ n  No")
        terminal.wait_for("model: Make it?")
        terminal.type("y")
    assert (place.repo / "made").exists()


def test_enter_is_a_no_and_a_no_can_say_why(place: Place) -> None:
    calls = [call(f"c{number}", "exec_command", PUSH) for number in (1, 2)]
    with session(place, *calls) as (model, terminal):
        terminal.wait_for("❯ n  No")
        terminal.press("enter")
        terminal.wait_for("declined").wait_for("❯ n  No")
        terminal.type("e")
        terminal.wait_for("what should the model do instead?")
        terminal.type("use make\r")
    assert not (place.repo / "made").exists()
    assert model.requests[-1].output_of("c1").startswith("command declined by the user: do not try it again")
    assert model.requests[-1].output_of("c2") == "command declined by the user, who says: use make"


def test_ctrl_c_in_a_dialog_says_no_and_stops_the_turn(place: Place) -> None:
    with FakeResponses([call("c1", "exec_command", PUSH)], [say("All done.")]) as model:
        trust = f'[projects."{place.repo}"]\ntrust_level = "trusted"\n'
        place.use_model(model.base_url, f'sandbox_mode = "workspace-write"\napproval_policy = "on-request"\n{trust}')
        with Terminal(place, "go") as terminal:
            terminal.wait_for("❯ n  No").press("ctrl-c")
            terminal.wait_for("! Interrupted.").wait_for_prompt().type("and now?\r")
            terminal.wait_for("● All done.")
    assert not (place.repo / "made").exists()
    assert model.requests[1].output_of("c1").startswith("aborted")


def test_of_several_questions_each_says_which_it_is(place: Place) -> None:
    options = [{"label": one, "description": one} for one in ("tea", "coffee")]
    questions = [{"id": name, "header": name, "question": "Which?", "options": options} for name in ("One", "Two")]
    with session(place, call("c1", "request_user_input", {"questions": questions})) as (_, terminal):
        terminal.wait_for("── One · 1 of 2 ──").type("1")
        terminal.wait_for("── Two · 2 of 2 ──").type("2")


def test_a_pattern_is_edited_and_kept_for_good(place: Place) -> None:
    commands = [{**PUSH, "cmd": "touch -a two"}, {**PUSH, "cmd": "touch -a three"}]
    calls = [call(f"c{number}", "exec_command", one) for number, one in enumerate(commands)]
    with session(place, *calls) as (_, terminal):
        terminal.wait_for("❯ n  No")
        terminal.type("a")
        terminal.wait_for("› touch -a two")
        terminal.press("ctrl-w")
        terminal.wait_for(lambda now: "› touch -a\n" in now.text)
        terminal.press("enter")
    assert '["touch", "-a"]' in (place.codex_home / "rules/codex-py/default.rules").read_text()
    assert (place.repo / "three").exists()


def test_a_question_of_the_model_is_answered(place: Place) -> None:
    options = [{"label": "sqlite", "description": "no server"}, {"label": "postgres", "description": "real"}]
    question = {"questions": [{"id": "db", "header": "Database", "question": "Which one?", "options": options}]}
    with session(place, call("c1", "request_user_input", question)) as (model, terminal):
        terminal.wait_for("── Database").wait_for("2  postgres")
        terminal.type("2")
        terminal.wait_for("? Which one?\n  ↳ postgres\n")
    assert '{"answers":["postgres"]}' in model.requests[-1].output_of("c1")


def test_what_is_typed_when_a_dialog_comes_up_does_not_answer_it(place: Place) -> None:
    with session(place, call("c1", "exec_command", PUSH), typed="go\rand then") as (_, terminal):
        terminal.wait_for("because you were typing")
        terminal.type("yes please")
        terminal.press("escape")
        terminal.wait_for("All done.").wait_for("› and then")
    assert not (place.repo / "made").exists()


def test_a_command_cannot_print_lines_that_pass_for_the_dialog_s_own(place: Place) -> None:
    forged = "touch made" + "\n" * 13 + "why: it is safe"
    with session(place, call("c1", "exec_command", {**PUSH, "cmd": forged})) as (_, terminal):
        terminal.wait_for("│ touch made").wait_for("(12 blank lines)").wait_for("│ why: it is safe")
        terminal.wait_for("  why: it asks to run outside the sandbox")
        terminal.press("enter")
    assert not (place.repo / "made").exists()


@pytest.mark.parametrize("flag", ["-a", "--ask-for-approval"])
def test_a_flag_says_when_commands_are_asked_about(place: Place, flag: str) -> None:
    inside = call("c1", "exec_command", {"cmd": "touch made", "login": False})
    with session(place, inside, flags=[flag, "untrusted"]) as (_, terminal):
        terminal.wait_for("Run this command?").wait_for("│ touch made").press("enter")
    assert not (place.repo / "made").exists()

    with session(place, call("c1", "exec_command", PUSH), flags=[flag, "never"]) as (model, terminal):
        terminal.wait_for("All done.")
        assert "Run this" not in terminal.whole
    assert "the approval policy `never` does not let you ask" in model.requests[1].output_of("c1")
    assert not (place.repo / "made").exists()

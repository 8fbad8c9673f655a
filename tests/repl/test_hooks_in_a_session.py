"""Hooks as a person at the terminal meets them."""

from __future__ import annotations

import os

from codex_py import __version__
from tests.repl.conftest import ready_model
from tests.support.fake_responses import call, say
from tests.support.home import Place
from tests.support.hooks import NO_PUSH, entry, hook_inputs, noting, use_hooks, write_script
from tests.support.process import is_running
from tests.support.skills import add_skill, repo_root, skill_text
from tests.support.terminal import Terminal


def test_a_hooks_no_is_on_the_screen(place: Place) -> None:
    use_hooks(place, PreToolUse=[entry(write_script(place, "no-push.sh", NO_PUSH), "Bash")])
    with (
        ready_model(place, [call("c1", "exec_command", {"cmd": "git push"})], [say("All done.")]) as model,
        Terminal(place) as terminal,
    ):
        terminal.wait_for_prompt()
        terminal.type("push it\r")
        terminal.wait_for("All done.")
        assert "a PreToolUse hook blocked `git push`: BLOCKED: git push is not allowed" in " ".join(
            terminal.whole.split()
        )
    assert model.requests[1].output_of("c1").startswith("blocked by a PreToolUse hook")


def test_a_new_session_after_another_one_has_its_own_beginning(place: Place) -> None:
    use_hooks(place, SessionStart=[entry(noting(place))], SessionEnd=[entry(noting(place))])
    with (
        ready_model(place, [say("First.")], [say("Second.")], excuse={"threads"}) as model,
        Terminal(place) as terminal,
    ):
        terminal.wait_for_prompt()
        terminal.type("hi\r")
        terminal.wait_for("First.").wait_for_prompt()
        terminal.type("/new\r")
        terminal.wait_for(lambda now: now.text.count(f"codex-py {__version__}") == 2).wait_for_prompt()
        terminal.type("hi again\r")
        terminal.wait_for("Second.").wait_for_prompt()
        terminal.type("/quit\r")
        assert terminal.wait_for_end() == 0
    seen = [(one["hook_event_name"], one.get("source", one.get("reason"))) for one in hook_inputs(place)]
    assert seen == [
        ("SessionStart", "startup"),
        ("SessionEnd", "clear"),
        ("SessionStart", "clear"),
        ("SessionEnd", "prompt_input_exit"),
    ]
    assert len(model.requests) == 2


def test_ctrl_c_ends_the_wait_for_the_hooks_of_a_session_that_was_left(place: Place) -> None:
    begun = place.home / "begun"
    os.mkfifo(begun)
    use_hooks(place, SessionEnd=[entry(f"echo $$ > {begun}; sleep 300")])
    with ready_model(place, [say("First.")]), Terminal(place) as terminal:
        terminal.wait_for_prompt()
        terminal.type("hi\r")
        terminal.wait_for("First.").wait_for_prompt()
        terminal.type("/quit\r")
        pid = int(begun.read_text())
        terminal.type("\x03")
        assert terminal.wait_for_end() == 0
        assert "SessionEnd hooks were stopped" in terminal.whole
    assert not is_running(pid)


def test_the_hooks_of_a_skill_are_trusted_in_the_session(place: Place) -> None:
    hooks = "hooks:\n  PreToolUse:\n    - matcher: Bash\n      command: echo not here >&2; exit 2\n"
    add_skill(repo_root(place), "fix", skill_text("fix", more=hooks))
    pushes = [[call(f"c{number}", "exec_command", {"cmd": "git push"})] for number in range(2)]
    with ready_model(place, pushes[0], [say("One.")], pushes[1], [say("Two.")]) as model, Terminal(place) as terminal:
        terminal.wait_for_prompt()
        terminal.type("$fix push\r")
        terminal.wait_for("One.").wait_for_prompt()
        assert "or `/hooks` in a session, shows it and asks" in " ".join(terminal.whole.split())
        terminal.type("/hooks\r")
        terminal.wait_for("not trusted")
        terminal.type("\r")
        terminal.wait_for("Run the hooks of the skill fix?")
        terminal.type("y")
        terminal.wait_for("● PreToolUse")
        terminal.type("\x1b")
        terminal.wait_for("the hooks of the skill `fix` are run in the turns that use it").wait_for_prompt()
        terminal.type("$fix push\r")
        terminal.wait_for("Two.")
    assert model.requests[-1].output_of("c1") == "blocked by a PreToolUse hook: not here"

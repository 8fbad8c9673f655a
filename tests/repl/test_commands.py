"""The slash commands, typed."""

from __future__ import annotations

import shutil
import tomllib

import pytest

from codex_py import __version__
from tests.repl.conftest import ready_model
from tests.support.fake_responses import call, say
from tests.support.home import Place
from tests.support.terminal import Terminal


def run_command(terminal: Terminal, line: str) -> None:
    """Type a command and send it."""
    terminal.wait_for_prompt().type(line)
    terminal.wait_for(f"› {line}").press("enter")


def test_help_lists_commands_and_keys(place: Place) -> None:
    with ready_model(place), Terminal(place, width=100, height=76) as terminal:
        terminal.wait_for_prompt().type("?")
        terminal.wait_for("── Help")
        for word in ("/model", "/skills", "/context", "/quit", "$name", "Ctrl-R", "Shift-Tab"):
            terminal.wait_for(word)
        terminal.press("escape")
        terminal.wait_until_gone("── Help")


def test_the_model_is_changed_by_its_name_and_kept_after_a_yes(place: Place) -> None:
    with ready_model(place, [say("ok")]) as model:
        config = (place.codex_home / "config.toml").read_text().split("\n", 1)
        place.configure(f"# mine\n{config[0]} # the usual\n{config[1]}")
        with Terminal(place) as terminal:
            run_command(terminal, "/model gpt-5.5 high")
            terminal.wait_for("model: gpt-5.5, effort high").wait_for_prompt().type("hi")
            terminal.press("enter")
            terminal.wait_for("● ok")
            run_command(terminal, "/model")
            terminal.wait_for("Enter use this model").type("-mini\r")
            terminal.wait_for("Reasoning effort").wait_for("❯ ● default").type("2")
            terminal.wait_for("Keep this model as the default?").wait_for("❯ n").type("y")
            terminal.wait_for("saved in `~/.codex/config.toml`")
            run_command(terminal, "/model gpt-5.5 loud")
            terminal.wait_for("`loud`: use")

    assert model.requests[0].body["model"] == "gpt-5.5"
    config = (place.codex_home / "config.toml").read_text()
    assert config.startswith('# mine\nmodel = "gpt-5.5-mini" # the usual\n')
    assert tomllib.loads(config)["model_reasoning_effort"] == "low"


def test_a_mistyped_model_names_the_nearest(place: Place) -> None:
    with ready_model(place), Terminal(place, width=100) as terminal:
        run_command(terminal, "/model gpt-5.1-codx")
        terminal.wait_for("unknown model `gpt-5.1-codx`; did you mean `gpt-5.1-codex`?")


def test_the_sandbox_and_the_approvals_are_changed(place: Place) -> None:
    with ready_model(place), Terminal(place) as terminal:
        run_command(terminal, "/sandbox read-only")
        terminal.wait_for("sandbox: read-only").wait_for("main · read-only")
        run_command(terminal, "/approvals never")
        terminal.wait_for("approvals: never")
        run_command(terminal, "/approvals sometimes")
        terminal.wait_for("`sometimes`: use")
        run_command(terminal, "/mcp now")
        terminal.wait_for("`/mcp` takes no arguments: `now`")
        run_command(terminal, "/vim maybe")
        terminal.wait_for("`maybe`: use")


def test_the_theme_is_kept(place: Place) -> None:
    with ready_model(place), Terminal(place) as terminal:
        run_command(terminal, "/theme light")
        terminal.wait_for("theme: light")

    assert tomllib.loads((place.codex_home / "config.toml").read_text())["tui"] == {"theme": "light"}


def test_the_context_is_a_bar(place: Place) -> None:
    with ready_model(place, [say("ok")]), Terminal(place, "hi") as terminal:
        terminal.wait_for("● ok")
        run_command(terminal, "/context")
        terminal.wait_for("tools").wait_for("tokens")


def test_a_diff_shows_what_has_changed(place: Place) -> None:
    place.write("README.md", "# Demo\n\nA large demo.\n")
    with ready_model(place), Terminal(place) as terminal:
        run_command(terminal, "/diff")
        terminal.wait_for("A large demo.").wait_for("A small demo.")


def test_a_diff_names_files_that_must_not_be_read_without_their_content(place: Place) -> None:
    place.write("README.md", "TOKEN=hunter2-hunter2\n")
    place.write("new.env", "TOKEN=hunter2-hunter2\n")
    place.write("fresh", "something new\n")
    with ready_model(place, top='sandbox.deny_read = ["*.env", "README.md"]\n'), Terminal(place) as terminal:
        run_command(terminal, "/diff")
        shown = terminal.wait_for("something new").wait_for("new.env").wait_for("README.md").whole
    assert "hunter2" not in shown
    assert "A small demo." not in shown


def test_a_new_session_knows_nothing_of_the_one_before(place: Place) -> None:
    with (
        ready_model(place, [say("one")], [say("two")], excuse={"threads"}) as model,
        Terminal(place, "first") as terminal,
    ):
        terminal.wait_for("● one")
        run_command(terminal, "/new")
        terminal.wait_for(lambda shown: shown.whole.count(f"codex-py {__version__}") == 2).wait_for_prompt().type(
            "second"
        )
        terminal.press("enter")
        terminal.wait_for("● two")

    assert "first" not in model.requests[1].texts("user")


def test_plan_mode_writes_nothing_until_the_plan_is_accepted(place: Place) -> None:
    write = call("c1", "exec_command", {"cmd": "echo x > made.txt"})
    with (
        ready_model(place, [say("<proposed_plan>\nmake a file\n</proposed_plan>")], [write], [say("made")]),
        Terminal(place) as terminal,
    ):
        terminal.wait_for_prompt().press("shift-tab")
        terminal.wait_for("plan mode · ").type("make it\rand sa")
        # A word that was begun before the question came up is no answer to it.
        terminal.wait_for("Carry out this plan?").type("y")
        terminal.wait_for("↑↓ first, because you were typing").press("down")
        terminal.wait_for("Enter answer").type("y")
        terminal.wait_for("● made").wait_for_prompt()

    assert (place.repo / "made.txt").read_text() == "x\n"


def test_the_last_answer_is_copied_through_the_terminal(place: Place) -> None:
    with ready_model(place, [say("copy me")]), Terminal(place, "hi") as terminal:
        terminal.wait_for("● copy me")
        run_command(terminal, "/copy")
        terminal.wait_for("copied the last answer, 7 characters, through the terminal")

        assert b"\x1b]52;c;Y29weSBtZQ==\x07" in terminal.raw


def test_processes_are_listed_and_stopped(place: Place) -> None:
    long = {"cmd": "echo begun; sleep 600", "yield_time_ms": 250}
    with ready_model(place, [call("c1", "exec_command", long)], [say("it runs")]), Terminal(place, "run") as terminal:
        terminal.wait_for("● it runs")
        run_command(terminal, "/ps")
        terminal.wait_for("sleep 600").press("escape")
        terminal.wait_for("Ask anything")
        run_command(terminal, "/stop")
        terminal.wait_for("stopped 1 command")


def test_a_review_and_a_guide_have_their_own_prompts(place: Place) -> None:
    place.write("README.md", "changed\n")
    with (
        ready_model(place, [say("reviewed")], [say("written")], excuse={"threads"}) as model,
        Terminal(place) as terminal,
    ):
        run_command(terminal, "/review")
        terminal.wait_for("Review what?").type("u")
        terminal.wait_for("› /review uncommitted").wait_for("● reviewed")
        run_command(terminal, "/init")
        terminal.wait_for("● written")

    assert "AGENTS.md" in model.requests[1].texts("user")[-1]


def test_what_is_typed_right_behind_a_dialog_is_in_the_input(place: Place) -> None:
    with ready_model(place), Terminal(place) as terminal:
        run_command(terminal, "/theme")
        terminal.wait_for("── Theme").type("\x1bhello there")
        terminal.wait_for("› hello there")


def test_where_there_is_nothing_to_review_the_model_is_not_asked(place: Place) -> None:
    with ready_model(place) as model, Terminal(place) as terminal:
        run_command(terminal, "/review uncommitted")
        terminal.wait_for("nothing to review: no uncommitted changes").wait_for_prompt()
        run_command(terminal, "/review branch main")
        terminal.wait_for("nothing to review: this branch has nothing that `main` has not").wait_for_prompt()
        shutil.rmtree(place.repo / ".git")
        run_command(terminal, "/review uncommitted")
        terminal.wait_for("is not in a git repository")

    assert not model.requests


@pytest.mark.parametrize("word", ["/quit", "/exit"])
def test_quit_leaves(word: str, place: Place) -> None:
    with ready_model(place), Terminal(place) as terminal:
        run_command(terminal, word)

        assert terminal.wait_for_end() == 0


def test_a_window_that_is_closed_ends_it_like_a_hangup(place: Place) -> None:
    with ready_model(place), Terminal(place) as terminal:
        terminal.wait_for_prompt().close_window()

        assert terminal.wait_for_end() == 129
    assert not (place.codex_home / "log").exists()


def test_a_session_that_is_not_there_costs_nothing(place: Place) -> None:
    with ready_model(place, [say("still here")]), Terminal(place) as terminal:
        terminal.wait_for_prompt().type("/resume nonsense")
        terminal.press("enter")
        terminal.wait_for("no session with the name or id `nonsense`")
        run_command(terminal, "/fork 1")
        terminal.wait_for("there is no turn of this session yet").type("hello")
        terminal.press("enter")
        terminal.wait_for("● still here").wait_for_prompt().type("/fork 7")
        terminal.press("enter")
        terminal.wait_for("✗ ").wait_for_prompt().press("ctrl-d")

        assert terminal.wait_for_end() == 0
        assert terminal.whole.count(f"codex-py {__version__}") == 1


def test_a_session_is_named_while_it_is_open(place: Place) -> None:
    with ready_model(place, [say("still here")], [say("A fine title")], excuse={"threads", "prefix", "tools"}):
        with Terminal(place) as terminal:
            run_command(terminal, "/rename early")
            terminal.wait_for("this session is not kept yet").wait_for_prompt().type("hello\r")
            terminal.wait_for("● still here")
            run_command(terminal, "/rename auto")
            terminal.wait_for("this session is named `A fine title`")
            run_command(terminal, "/rename  the  parser")
            terminal.wait_for("this session is named `the parser`")
            run_command(terminal, "/rename")
            terminal.wait_for("── What is this session called?").type("the lexer\r")
            terminal.wait_for("this session is named `the lexer`").wait_for_prompt().press("ctrl-d")
            terminal.wait_for_end()
        with Terminal(place, "resume", "the lexer") as terminal:
            terminal.wait_for("● still here")


def test_commands_and_skills_by_their_names_in_plain_lines(place: Place) -> None:
    place.write(".agents/skills/lint/SKILL.md", "---\nname: lint\ndescription: Looks.\n---\nLook closely.\n")
    with ready_model(place, [say("still here")], [say("linted")]) as model, Terminal(place, TERM="dumb") as terminal:
        terminal.wait_for(lambda shown: shown.text.endswith("\n>")).type("/resume nonsense\r")
        terminal.wait_for("error: no session with the name or id `nonsense`").type("/nosuch\r")
        terminal.wait_for("error: no command or skill `/nosuch`").type("hello\r")
        terminal.wait_for("codex\nstill here").type("/lint app.py\r")
        terminal.wait_for("skill: lint").wait_for("codex\nlinted").type("/quit\r")

        assert terminal.wait_for_end() == 0
    assert model.requests[1].texts("user")[-1] == "$lint app.py"

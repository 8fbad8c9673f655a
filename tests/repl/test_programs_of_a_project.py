"""What a repository names, and programs that lie in a project, are not started for the terminal."""

from __future__ import annotations

import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.repl.conftest import ready_model, use_and_trust
from tests.repl.test_commands import run_command
from tests.support.fake_responses import FakeResponses, say
from tests.support.home import Place
from tests.support.hooks import entry, use_hooks
from tests.support.hostile import PlantedPrograms, hostile_repository
from tests.support.terminal import Terminal

NAMES = ("rg", "less", "xclip", "xsel", "wl-copy", "tmux", "git", "bash", "sh", "cat", "tee", "bwrap", "my-program")


def test_a_diff_and_a_review_of_a_hostile_repository_start_nothing(place: Place) -> None:
    subprocess.run(["git", "branch", "other"], cwd=place.repo, env=place.env, check=True)
    hostile = hostile_repository(place)
    with (
        ready_model(
            place, [say("saw the changes")], [say("saw the branch")], [say("saw the commit")], excuse={"threads"}
        ),
        Terminal(place, height=60) as terminal,
    ):
        run_command(terminal, "/diff")
        terminal.wait_for("README.md").wait_for("changed")
        run_command(terminal, "/review uncommitted")
        terminal.wait_for("● saw the changes")
        run_command(terminal, "/review branch")
        terminal.wait_for("Review against which branch?").press("enter")
        terminal.wait_for("● saw the branch")
        run_command(terminal, "/review commit")
        terminal.wait_for("Review which commit?").wait_for("more").press("enter")
        terminal.wait_for("● saw the commit")
    assert hostile.ran() == []


@pytest.mark.parametrize("is_added", [False, True], ids=["of the project", "of an added directory"])
def test_programs_that_commands_may_write_are_passed_over(place: Place, is_added: bool) -> None:
    place.write(".gitignore", ".venv\n")
    place.write("README.md", "changed\n")
    # The model's commands may write in temporary directories anyway.
    with TemporaryDirectory(dir="/var/tmp") as added, FakeResponses([say("a long answer")]) as model:
        planted = PlantedPrograms(place, (Path(added) if is_added else place.repo / ".venv") / "bin", NAMES)
        use_and_trust(place, model, 'notify = ["my-program"]')
        use_hooks(place, UserPromptSubmit=[entry("cat | tee $HOME/told")])
        hostile = planted.place.with_env(DISPLAY=":99", WAYLAND_DISPLAY="none", TMUX="/none,1,0")
        with Terminal(hostile, *(["--add-dir", added] if is_added else []), width=160) as terminal:
            run_command(terminal, "/diff")
            terminal.wait_for("README.md").wait_for("changed").wait_for_prompt().type("@READ")
            terminal.wait_for("README.md ").press("escape", "ctrl-c")
            terminal.wait_for_prompt().type("hello\r")
            terminal.wait_for("`my-program` of `notify` is not started: it is").wait_for_prompt().press("ctrl-t")
            terminal.wait_for("(END)").type("q")
            run_command(terminal, "/copy")
            terminal.wait_for("copied the last answer").wait_for_prompt().press("ctrl-d")
            assert terminal.wait_for_end() == 0
    assert planted.ran() == []
    assert "hello" in (place.home / "told").read_text()


@pytest.mark.parametrize("variable", ["VISUAL", "EDITOR"])
def test_an_editor_of_the_project_is_named_and_not_started(place: Place, variable: str) -> None:
    planted = PlantedPrograms(place, place.repo / ".venv/bin", NAMES)
    hostile = planted.place.with_env(**{variable: "my-program --wait"})
    with ready_model(place), Terminal(hostile, width=200) as terminal:
        terminal.wait_for_prompt().press("ctrl-g")
        terminal.wait_for(f"`my-program` of {variable} is not started: it is `{place.repo}/.venv/bin/my-program`")
    assert planted.ran() == []


def test_what_an_editor_of_the_user_starts_is_looked_up_elsewhere(place: Place) -> None:
    planted = PlantedPrograms(place, place.repo / ".venv/bin", NAMES)
    editor = place.home / "editor"
    editor.write_text('#!/usr/bin/env sh\necho edited | tee "$1"\n')
    editor.chmod(0o755)
    with ready_model(place), Terminal(planted.place.with_env(VISUAL=str(editor)), width=200) as terminal:
        terminal.wait_for_prompt().press("ctrl-g")
        terminal.wait_for("› edited")
    assert planted.ran() == []

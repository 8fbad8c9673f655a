"""`exec review`: what is asked of the model, by which model, and what is refused."""

from __future__ import annotations

import subprocess

import pytest

from tests.support.fake_responses import fake_model, say
from tests.support.home import MODEL, Place
from tests.support.hostile import PlantedPrograms, hostile_repository
from tests.support.process import run


def question(place: Place, *arguments: str, top: str = "") -> tuple[str, str, str]:
    """The prompt, the model and the permissions of the review, of a repository with a new file."""
    place.write("new.py", "x = 1\n")
    with fake_model(place, [say("[P1] it breaks")], top=top) as model:
        ended = run(place, *arguments)
    assert (ended.status, ended.out) == (0, "[P1] it breaks\n")
    [request] = model.requests
    permissions = next(text for text in request.texts("developer") if text.startswith("<permissions"))
    return request.texts("user")[-1], request.body["model"], permissions


@pytest.mark.parametrize(
    ("flags", "about"),
    [
        ([], "Review the uncommitted changes: "),
        (["--uncommitted"], "Review the uncommitted changes: "),
        (["--base", "main"], "Review what the current branch changes against `main`"),
        (["--commit", "HEAD"], "Review what the commit `HEAD` changes: see `git show HEAD`."),
        (["--commit", "HEAD", "--title", "start"], 'Review what the commit `HEAD` ("start") changes'),
    ],
)
def test_the_flags_say_what_is_reviewed(place: Place, flags: list[str], about: str) -> None:
    prompt, model, permissions = question(place, "exec", "review", *flags)
    assert prompt.startswith(about)
    assert (model, "`read-only`" in permissions) == (MODEL, True)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "nothing to review: no uncommitted changes; `--base BRANCH` and `--commit SHA` review others"),
        (["--base", "main"], "nothing to review: this branch has nothing that `main` has not"),
        (["--json"], "nothing to review: no uncommitted changes; `--base BRANCH` and `--commit SHA` review others"),
    ],
)
def test_without_changes_nobody_is_asked(place: Place, flags: list[str], said: str) -> None:
    with fake_model(place) as model:
        ended = run(place, "exec", "review", *flags)
    assert (ended.status, ended.out, ended.err) == (0, "", said + "\n")
    assert (model.requests, place.rollouts()) == ([], [])


def test_the_prompt_says_what_to_look_at_and_the_review_model_looks(place: Place) -> None:
    prompt, model, _ = question(place, "review", "is the locking right?", top='review_model = "gpt-5.4"')
    assert "Look at this above all: is the locking right?" in prompt
    assert model == "gpt-5.4"


@pytest.mark.parametrize("flags", [["--thread-source", "cli"], ["--cyber-access-program=x"], ["--artifacts", "out"]])
def test_a_review_is_known_behind_any_flag(place: Place, flags: list[str]) -> None:
    prompt, _, _ = question(place, "exec", *flags, "review")
    assert prompt.startswith("Review the uncommitted changes: ")


def test_a_model_of_the_command_line_comes_first(place: Place) -> None:
    _, model, _ = question(place, "exec", "-m", "gpt-5.2", "review", top='review_model = "gpt-5.4"')
    assert model == "gpt-5.2"


def test_a_trusted_project_is_only_read_too(place: Place) -> None:
    _, _, permissions = question(place, "exec", "--trust", "review")
    assert "`read-only`" in permissions


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["review", "--base", "main", "--commit", "HEAD"], 2, "`--base` and `--commit` exclude each other"),
        (["review", "--title", "x"], 2, "`--title` goes with `--commit`"),
        (["--base", "main", "do it"], 2, "`--base` goes with `review`"),
        (["review", "--base", "no-such"], 2, "there is no branch or commit `no-such` here"),
        (["review", "--base", "--output=/tmp/x"], 2, "`--base` needs a value"),
        (["review", "--base=--output=x"], 2, "there is no branch or commit `--output=x` here"),
    ],
)
def test_what_cannot_be_reviewed_is_refused(place: Place, arguments: list[str], status: int, said: str) -> None:
    with fake_model(place):
        ended = run(place, "exec", *arguments)
    assert (ended.status, ended.out) == (status, "")
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1


@pytest.mark.parametrize("is_partial", [False, True])
@pytest.mark.parametrize("flags", [["--uncommitted"], ["--base", "HEAD~1"], ["--commit", "HEAD"]])
def test_a_review_of_a_hostile_repository_starts_nothing(place: Place, flags: list[str], is_partial: bool) -> None:
    hostile = hostile_repository(place, is_partial=is_partial)
    prompt, _, _ = question(place, "exec", "review", *flags)
    assert prompt.startswith("Review ")
    assert hostile.ran() == []


def test_a_review_takes_no_git_of_the_project(place: Place) -> None:
    planted = PlantedPrograms(place, place.repo / ".venv/bin", ["git", "bwrap", "bash", "sh"])
    prompt, _, _ = question(planted.place, "exec", "review", "--base", "main")
    assert prompt.startswith("Review ")
    assert planted.ran() == []


@pytest.mark.parametrize("verb", ["resume", "fork", "review"])
def test_each_verb_has_its_own_help(place: Place, verb: str) -> None:
    helps = [run(place, "exec", *words).out for words in ([verb, "--help"], ["-m", "x", verb, "-h"], ["--help"])]
    assert helps[0] == helps[1] != helps[2]
    assert helps[0].startswith(f"usage: codex-py exec {verb} [OPTIONS] ")


def test_the_model_gets_what_it_needs_to_look(place: Place) -> None:
    subprocess.run(["git", "checkout", "-q", "-b", "it's"], cwd=place.repo, env=place.env, check=True)
    prompt, _, _ = question(place, "exec", "review", "--base", "it's")
    assert "`git diff $(git merge-base HEAD 'it'\"'\"'s')`" in prompt

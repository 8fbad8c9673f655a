"""What the offline rules take a prompt for."""

from __future__ import annotations

import pytest

from codex_py.offline.prompts import (
    FindText,
    OfflineRequest,
    PlainRequest,
    ReplaceText,
    RunCommands,
    RunTests,
    read_prompt,
)

DESCRIBE, ABOUT = PlainRequest.DESCRIBE_REPOSITORY, PlainRequest.DESCRIBE_SELF
GREET, NEEDS_MODEL = PlainRequest.GREET, PlainRequest.NEEDS_MODEL

CASES: list[tuple[str, OfflineRequest]] = [
    ("what is this repository?", DESCRIBE),
    ("What does this project do?", DESCRIBE),
    ("what's in this repo", DESCRIBE),
    ("explain this codebase", DESCRIBE),
    ("Describe the project.", DESCRIBE),
    ("how do I run this project?", DESCRIBE),
    ("which languages is this project written in", DESCRIBE),
    ("what is this?", DESCRIBE),
    ("explain this repository's retry loop", NEEDS_MODEL),
    ("find `retry_delay`", FindText("retry_delay")),
    ("Find every use of `a b` please", FindText("a b")),
    ("where is retry_delay defined?", FindText("retry_delay")),
    ('search for "limit = 10"', FindText("limit = 10")),
    ("which files use OfflineModel", FindText("OfflineModel")),
    ("grep for TODO", FindText("TODO")),
    ("where is parse.config set?", FindText("parse.config")),
    ("find a good name for it", NEEDS_MODEL),
    ("run the tests", RunTests()),
    ("please run all the tests", RunTests()),
    ("which tests fail?", RunTests()),
    ("why do the tests fail", RunTests()),
    ("fix the failing test", RunTests()),
    ("make the tests pass", RunTests()),
    ("tests", RunTests()),
    ("run the tests in tests/test_app.py", RunTests("tests/test_app.py")),
    ("why does test_add fail?", RunTests("test_add")),
    ("run the test `tests/test_a.py::test_b`", RunTests("tests/test_a.py::test_b")),
    ("write tests for the parser that fail", NEEDS_MODEL),
    ("add a test that passes", NEEDS_MODEL),
    ("run `git status`", RunCommands(("git status",))),
    ("Run `ls -la` and `pwd`", RunCommands(("ls -la", "pwd"))),
    ("please execute this command: `$ make`", RunCommands(("make",))),
    ("`ls`", RunCommands(("ls",))),
    ("run ```sh\necho a\necho b\n```", RunCommands(("echo a\necho b",))),
    ("run `pytest -q`", RunCommands(("pytest -q",))),
    ("run `npm test`", RunCommands(("npm test",))),
    ("don't run `rm -rf /`", NEEDS_MODEL),
    ("never execute `make`", NEEDS_MODEL),
    ("why is `foo` slow?", NEEDS_MODEL),
    ("replace `old` with `new` in app.py", ReplaceText("old", "new", "app.py")),
    ("Replace 'a' by 'b' in the file src/x.py.", ReplaceText("a", "b", "src/x.py")),
    ("change `limit = 10` to `limit = 20`", ReplaceText("limit = 10", "limit = 20")),
    ("in short, rename `a` to `b` in `my file.txt`", ReplaceText("a", "b", "my file.txt")),
    ("replace `x` in app.py with `y`", ReplaceText("x", "y", "app.py")),
    ("replace `x` with nothing in app.py", ReplaceText("x", "", "app.py")),
    ("replace `a` with `b` in this project", ReplaceText("a", "b")),
    ("replace `a` with `a` in app.py", NEEDS_MODEL),
    ("replace the parser with a better one", NEEDS_MODEL),
    ("who are you?", ABOUT),
    ("what can you do", ABOUT),
    ("are you an AI?", ABOUT),
    ("how do I log in", ABOUT),
    ("help", ABOUT),
    ("hello", GREET),
    ("Hi there!", GREET),
    ("thank you", GREET),
    ("", GREET),
    ("   \n", GREET),
    ("refactor the parser", NEEDS_MODEL),
    ("add a --json flag to `list`", NEEDS_MODEL),
    ("Wie spät ist es?", NEEDS_MODEL),
    ("run `ls` then find `a_b`", RunCommands(("ls",))),
    ("find `a_b`, then run `ls`", FindText("a_b")),
]


@pytest.mark.parametrize(("prompt", "request_"), CASES, ids=[prompt[:40] for prompt, _ in CASES])
def test_a_prompt_is_taken_for_what_it_asks(prompt: str, request_: OfflineRequest) -> None:
    assert read_prompt(prompt) == request_


@pytest.mark.parametrize("word", ["`", "run `", "find ", "replace `a` with ", "tests ", "what is ", "\ue000", "'x"])
def test_a_long_prompt_is_read_at_once(word: str) -> None:
    assert read_prompt(word * 20_000) is not None

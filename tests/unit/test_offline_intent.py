"""What a prompt is taken for."""

from __future__ import annotations

import pytest

from codex_py.offline.intent import About, Find, Greet, Intent, Plan, Run, RunTests, Tour, choose_intent
from codex_py.offline.replacement import Replace
from tests.support.work import within

TOURS = [
    "what is this repository?",
    "What's this project about?",
    "explain this project",
    "describe the repo",
    "Describe this repository in two sentences.",
    "Summarise this repository in one sentence",
    "summarize the codebase",
    "What does this repo do and how do I run it?",
    "tell me about this project",
    "how do I run this project?",
    "what languages does this repo use?",
    "Please give me an overview of this repository",
    "Explain this repository and run the tests",
    "Tell me what this project is",
    "how is this repo structured?",
    "Explain what this repository does",
]
SMALL_TOURS = ["give me an overview", "overview", "what is this?", "how many files are there?", "explain this folder"]


@pytest.mark.parametrize("prompt", TOURS)
def test_a_question_about_the_project_is_a_tour(prompt: str) -> None:
    assert choose_intent(prompt) == Tour(whole=True)


@pytest.mark.parametrize("prompt", SMALL_TOURS)
def test_a_question_that_names_no_project_is_about_the_folder(prompt: str) -> None:
    assert choose_intent(prompt) == Tour(whole=False)


@pytest.mark.parametrize(
    ("prompt", "needle", "definition"),
    [
        ("find TODO", "TODO", False),
        ("find TODO comments", "TODO", False),
        ("list all TODOs", "TODO", False),
        ("Find all usages of `retry_delay`", "retry_delay", False),
        ('search for "hello world" in the code', "hello world", False),
        ("look for 'needle in hay'", "needle in hay", False),
        ("search for “curly quotes”", "curly quotes", False),
        ("grep for error handling", "handling", False),
        ("grep timeout", "timeout", False),
        ("where is choose_intent defined?", "choose_intent", True),
        ("Where is `class Foo` declared", "class Foo", True),
        ("Where is the config loaded?", "config", False),
        ("which files import asyncio?", "asyncio", False),
        ("Which file contains the main function?", "main", False),
        ("how many times is `foo` used?", "foo", False),
        ("show me where FooBar is used", "FooBar", False),
        ("find `it's`", "it's", False),
        ("find `run the tests`", "run the tests", False),
        ("where do we call foo()?", "foo", False),
    ],
)
def test_a_search_names_its_needle(prompt: str, needle: str, definition: bool) -> None:
    assert choose_intent(prompt) == Find(needle, definition)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("run the tests", RunTests("", "", False)),
        ("Run all the tests please", RunTests("", "", False)),
        ("test", RunTests("", "", False)),
        ("Tests!", RunTests("", "", False)),
        ("test this", RunTests("", "", False)),
        ("why do the tests fail?", RunTests("", "", False)),
        ("Why is test_foo failing?", RunTests("test_foo", "", False)),
        ("do the tests pass?", RunTests("", "", False)),
        ("Check that the tests are green", RunTests("", "", False)),
        ("Run the unit tests and report failures with file and line.", RunTests("", "", False)),
        ("which tests fail?", RunTests("", "", False)),
        ("run pytest", RunTests("", "pytest", False)),
        ("run npm test", RunTests("", "npm", False)),
        ("cargo test", RunTests("", "cargo", False)),
        ("run the tests in tests/unit/test_a.py", RunTests("tests/unit/test_a.py", "", False)),
        ("fix the failing tests", RunTests("", "", True)),
        ("make the tests pass", RunTests("", "", True)),
        ("run the tests and find the failing one", RunTests("", "", False)),
        ("run the tests in `src/parser`", RunTests("src/parser", "", False)),
        ("run the tests and/or the linter", RunTests("", "", False)),
    ],
)
def test_a_test_run_is_recognised(prompt: str, expected: RunTests) -> None:
    assert choose_intent(prompt) == expected


@pytest.mark.parametrize(
    ("prompt", "commands"),
    [
        ("run `ls -la`", ("ls -la",)),
        ("Run the command `echo hi` and tell me what it prints", ("echo hi",)),
        ("`git status`", ("git status",)),
        ("Please check `echo hello`", ("echo hello",)),
        ("what does `ls -la` print?", ("ls -la",)),
        ("run ls -la", ("ls -la",)),
        ('run echo "a b" and tell me the output', ("echo 'a b'",)),
        ("Führe `ls` aus", ("ls",)),
        ("`ls` を実行して", ("ls",)),
        ("execute `a --b` and `c.sh`, then `ls`", ("a --b", "c.sh", "ls")),
        ("run this:\n```sh\nls\npwd\n```\n", ("ls\npwd",)),
        ("run `mytool`", ("mytool",)),
        ("use the `requests` library and run `ls`", ("ls",)),
        ("run `rg foo` to find foo", ("rg foo",)),
        ("run `python3 -m pytest -q` and explain", ("python3 -m pytest -q",)),
        ("run `` echo `date` ``", (" echo `date` ",)),
        ("run `$ ls`", ("ls",)),
        ("run make", ("make",)),
        ("run `pytest -x` and tell me which tests fail", ("pytest -x",)),
        ("run the tests with `npm test`", ("npm test",)),
    ],
)
def test_a_command_is_run_as_written(prompt: str, commands: tuple[str, ...]) -> None:
    assert choose_intent(prompt) == Run(commands, None)


def test_a_command_may_name_its_folder() -> None:
    assert choose_intent("run `make build` in the `sub` folder") == Run(("make build",), "sub")


@pytest.mark.parametrize(
    ("prompt", "old", "new", "files"),
    [
        ("replace `A` with `B` in a.txt", "A", "B", ("a.txt",)),
        ('replace "foo" by "bar" in "my file.txt"', "foo", "bar", ("my file.txt",)),
        ("Replace foo with bar in a.txt.", "foo", "bar", ("a.txt",)),
        ("change 'x' to 'y' in a.txt and b.txt", "x", "y", ("a.txt", "b.txt")),
        ("in a.txt replace `x` with `y`", "x", "y", ("a.txt",)),
        ("In `a.txt`, change `x` to `y`.", "x", "y", ("a.txt",)),
        ("replace `x` in a.txt with `y`", "x", "y", ("a.txt",)),
        ("find `x` and replace it with `y` in a.txt", "x", "y", ("a.txt",)),
        ("remove `foo` from a.txt", "foo", "", ("a.txt",)),
        ("replace `a` with nothing in b.txt", "a", "", ("b.txt",)),
        ("replace `a` with '' in b.txt", "a", "", ("b.txt",)),
        ("change all occurrences of `a` to `b` in the file c.txt", "a", "b", ("c.txt",)),
        ('Replace the word "old" with "new" in README.md, please', "old", "new", ("README.md",)),
        ("replace `foo` with `bar`", "foo", "bar", ()),
        ("replace\n```\na\nb\n```\nwith\n```\nc\n```\nin x.txt", "a\nb", "c", ("x.txt",)),
        ("replace `run the tests` with `find it` in a.md", "run the tests", "find it", ("a.md",)),
        ("replace `a` with `b` in /abs/dir/f.py", "a", "b", ("/abs/dir/f.py",)),
        ("replace `a` with `b` in Makefile", "a", "b", ("Makefile",)),
    ],
)
def test_a_replacement_is_read(prompt: str, old: str, new: str, files: tuple[str, ...]) -> None:
    assert choose_intent(prompt) == Replace(old, new, files, everywhere=False, whole_words=False)


def test_a_renamed_name_is_meant_whole() -> None:
    assert choose_intent("rename `foo` to `bar` in src/x.py") == Replace("foo", "bar", ("src/x.py",), False, True)
    assert choose_intent("rename `foo` to `bar` everywhere") == Replace("foo", "bar", (), True, True)
    assert choose_intent("change the timeout from `30` to `60` in a.py") == Replace("30", "60", ("a.py",), False, True)


def test_everywhere_means_all_files() -> None:
    wish = choose_intent('replace every "colour" with "color" throughout the project')

    assert wish == Replace("colour", "color", (), everywhere=True, whole_words=False)


@pytest.mark.parametrize("prompt", ["hello", "hi there!", "Hallo", "Good morning", "thanks a lot", "你好", "hola"])
def test_a_greeting_is_greeted(prompt: str) -> None:
    assert choose_intent(prompt) == Greet()


@pytest.mark.parametrize(
    "prompt",
    [
        "who are you?",
        "What can you do?",
        "help",
        "how do I connect a real model?",
        "Which model are you?",
        "are you an AI?",
    ],
)
def test_questions_about_the_program_are_known(prompt: str) -> None:
    assert choose_intent(prompt) == About()


@pytest.mark.parametrize(
    "prompt",
    [
        "Explain the project's error handling strategy",
        "find out why the build is slow",
        "find the bug in parser.py",
        "write tests for parser.py",
        "add a test for the parser",
        "test the login page",
        "don't run `rm -rf /`",
        "never execute `make install`",
        "why does `rm -rf x` fail?",
        "explain `foo.py`",
        "replace the login page with a new design",
        "rename foo to bar",
        "update the version to 2.0",
        "implement a REST API for users",
        "call `main()` from app.py",
        "use the `requests` library",
        "write a function `foo`",
        "start the server",
        "create a file hello.txt containing hi",
        "what does this repository's scheduler do",
        "",
        "   \n ",
    ],
)
def test_what_needs_judgement_becomes_a_plan(prompt: str) -> None:
    assert choose_intent(prompt) == Plan(english=True)


@pytest.mark.parametrize(
    "prompt",
    [
        "Schreibe einen Test für die Anmeldung",
        "Was ist das für ein Projekt?",
        "Füge eine neue Funktion hinzu",
        "Ajoute une nouvelle fonction",
        "このリポジトリは何ですか",
        "объясни этот код",
    ],
)
def test_other_languages_become_a_plan_that_says_so(prompt: str) -> None:
    assert choose_intent(prompt) == Plan(english=False)


@pytest.mark.parametrize(
    "prompt",
    [
        "run " * 20_000,
        "`" * 60_000,
        "'" + "a'" * 30_000,
        "“" * 60_000,
        "replace " + " " * 60_000 + "x",
        "test" * 15_000,
        "`" + "test" * 15_000 + "`",
        "find " + "a." * 30_000,
        "in a.txt " * 7_000,
        "<" * 60_000,
        "where " * 10_000,
        "replace `a` with " * 4_000,
        "\n" * 60_000,
        "why " + "tests " * 10_000,
    ],
    ids=lambda prompt: prompt[:12],
)
def test_hostile_prompts_are_read_in_linear_time(prompt: str) -> None:
    wish: Intent = within(5 * len(prompt), lambda: choose_intent(prompt))

    assert wish is not None

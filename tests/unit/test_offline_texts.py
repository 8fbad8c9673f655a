"""What the offline rules read in test output, tool output, READMEs and fenced blocks, and the patches they write."""

from __future__ import annotations

import pytest

from codex_py.offline.project_tests import FailedTest, failed_tests, other_command, python_command, read_counts
from codex_py.offline.repository import first_paragraph, readme_commands
from codex_py.offline.rules import patch_for
from codex_py.offline.skills import Fence, fences, shell_text
from codex_py.offline.steps import Result, read_result
from codex_py.patch.grammar import parse_patch

PYTEST = """\
F.E                                                                      [100%]
=================================== FAILURES ===================================
_________________________________ TestA.test_b _________________________________
/repo/tests/test_a.py:7: in test_b
    assert add(1, 2) == 3
lib.py:2: in add
    return check(a)
tests/test_a.py:12: in check
    assert -1 == 3
E   assert -1 == 3
E    +  where -1 = add(1, 2)
==================================== ERRORS ====================================
__________________________ ERROR at setup of test_c[x] __________________________
tests/test_a.py:20: in fixture
    raise ValueError("no")
E   ValueError: no
=========================== short test summary info ============================
FAILED tests/test_a.py::TestA::test_b - assert -1 == 3
ERROR tests/test_a.py::test_c[x] - ValueError: no
========================= 1 failed, 1 passed, 1 error in 0.03s ==================
"""
PYTEST_FLAGS = " -m pytest -p no:cacheprovider --tb=short -rfE"
UNITTEST = """\
.F
======================================================================
FAIL: test_add (tests.test_calc.T.test_add)
----------------------------------------------------------------------
Traceback (most recent call last):
  File "/repo/tests/test_calc.py", line 6, in test_add
    self.assertEqual(add(1, 2), 3)
AssertionError: -1 != 3

----------------------------------------------------------------------
Ran 2 tests in 0.001s

FAILED (failures=1)
"""


def test_failed_tests_of_pytest_have_their_place_and_error() -> None:
    assert failed_tests(PYTEST, "/repo") == [
        FailedTest("TestA::test_b", "tests/test_a.py", 12, "assert -1 == 3"),
        FailedTest("test_c[x]", "tests/test_a.py", 20, "ValueError: no"),
    ]
    assert read_counts(PYTEST) == "1 failed, 1 passed, 1 error"


def test_failed_tests_of_one_name_in_two_files_stay_apart() -> None:
    output = """\
=================================== FAILURES ===================================
__________________________________ test_same ___________________________________
tests/test_a.py:2: in test_same
    assert 1 == 'a'
E   AssertionError: assert 1 == 'a'
__________________________________ test_same ___________________________________
tests/test_b.py:5: in test_same
    assert 1 == 'b'
E   AssertionError: assert 1 == 'b'
=========================== short test summary info ============================
FAILED tests/test_a.py::test_same - AssertionError: assert 1 == 'a'
FAILED tests/test_b.py::test_same - AssertionError: assert 1 == 'b'
"""
    assert failed_tests(output, "/repo") == [
        FailedTest("test_same", "tests/test_a.py", 2, "AssertionError: assert 1 == 'a'"),
        FailedTest("test_same", "tests/test_b.py", 5, "AssertionError: assert 1 == 'b'"),
    ]


def test_failed_tests_of_unittest_have_their_place_and_error() -> None:
    assert failed_tests(UNITTEST, "/repo") == [
        FailedTest("test_add", "tests/test_calc.py", 6, "AssertionError: -1 != 3")
    ]
    assert read_counts(UNITTEST) == "2 run, FAILED (failures=1)"


@pytest.mark.parametrize("output", ["", "ok 1 - works\nnot ok 2 - fails\n", "--- FAIL: TestX (0.00s)\n", "x" * 200_000])
def test_other_output_names_no_test(output: str) -> None:
    assert (failed_tests(output, None), read_counts(output)) == ([], "")


@pytest.mark.parametrize(
    ("pythons", "target", "command"),
    [
        ([], "", ""),
        (["python3 pytest"], "", f"python3{PYTEST_FLAGS}"),
        (["python3", "venv/bin/python pytest"], "a.py", f"venv/bin/python{PYTEST_FLAGS} a.py"),
        (["python3 pytest"], "test_a", f"python3{PYTEST_FLAGS} -k test_a"),
        (["python3"], "", "python3 -m unittest discover"),
        (["python3"], "tests/test_a.py", "python3 -m unittest tests/test_a.py"),
        (["python3 pytest"], "a b/x.py", f"python3{PYTEST_FLAGS} 'a b/x.py'"),
    ],
)  # fmt: skip
def test_python_tests_run_with_the_interpreter_that_can(pythons: list[str], target: str, command: str) -> None:
    assert python_command(pythons, target).removeprefix("PYTHONDONTWRITEBYTECODE=1 ") == command


@pytest.mark.parametrize(
    ("manifests", "command"),
    [
        ("", ""),
        ('==> package.json <==\n{"scripts": {"test": "node --test"}}\n', "npm test"),
        ('==> package.json <==\n{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}\n', ""),
        ("==> package.json <==\n{}\n\n==> Cargo.toml <==\n[package]\n", "cargo test"),
        ("==> go.mod <==\nmodule x\n", "go test ./..."),
        ("==> Makefile <==\nall:\n\ttrue\ntest:\n\ttrue\n", "make test"),
        ("==> Makefile <==\nall:\n\ttrue\n", ""),
    ],
)
def test_other_tests_run_as_a_manifest_says(manifests: str, command: str) -> None:
    assert other_command(manifests) == command


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ("Process exited with code 3\nOutput:\nhi\n", Result(3, "hi\n")),
        ("Process running with session ID 7\nOutput:\nhi", Result(None, "hi", 7)),
        ("rejected by the user", Result(None, "rejected by the user")),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\n", Result(0, "")),
        ("Process exited with code 0\nOutput:\na…9 chars truncated…b", Result(0, "a…9 chars truncated…b", None, True)),
    ],
)  # fmt: skip
def test_tool_output_is_read(output: str, result: Result) -> None:
    assert read_result(output) == result


@pytest.mark.parametrize(
    ("readme", "paragraph"),
    [
        ("# Demo\n\nA small demo of things.\n", "A small demo of things."),
        ("![badge](x)\n\n# Demo\n\nReads [the guide](g.md) **fast** for <b>you</b>.", "Reads the guide fast for you."),
        ("Demo\n====\n\nIt does four useful things.\n", "It does four useful things."),
        ("Demo is a demo\n----\nIt does four useful things.\n", "It does four useful things."),
        ("# Demo\n\n- one\n- two\n\n```\nnot this text here at all\n```\n\nBut this is it.", "But this is it."),
        ("# Demo\n\nToo short.\n", ""),
        ("", ""),
    ],
)  # fmt: skip
def test_the_first_paragraph_of_a_readme(readme: str, paragraph: str) -> None:
    assert first_paragraph(readme) == paragraph


def test_the_commands_of_a_readme() -> None:
    readme = "```sh\n# set up\nmake  # all\n\ncd x\n```\n\n```python\nx = 1\n```\n\n"
    readme += "```console\n$ ./run --fast\noutput\n```\n"
    assert readme_commands(readme) == ["make", "./run --fast"]


@pytest.mark.parametrize(
    ("markdown", "found"),
    [
        ("```sh\necho a\n```", [Fence("sh", "echo a")]),
        ("1. step:\n\n   ```bash\n   echo a\n     b\n   ```", [Fence("bash", "echo a\n  b")]),
        ("~~~~ {.sh}\n```\nx\n```\n~~~~", [Fence("sh", "```\nx\n```")]),
        ("- ```sh\n  a\n  ```\r\n", [Fence("sh", "a")]),
        ("```\na", [Fence("", "a")]),
        ("text `a` only", []),
    ],
)
def test_fenced_blocks(markdown: str, found: list[Fence]) -> None:
    assert fences(markdown) == found


@pytest.mark.parametrize(
    ("text", "shell"), [("echo a\n", "echo a"), ("$ echo a\na\n$ echo b", "echo a\necho b"), ("  $ x\n", "x")]
)
def test_what_a_block_types(text: str, shell: str) -> None:
    assert shell_text(Fence("console", text)) == shell


@pytest.mark.parametrize(
    "places", [(0,), (9,), (4, 5), (0, 3, 9), (0, 4, 8), (0, 7), (1, 2, 3, 4, 5, 6, 7, 8, 9), (5,)]
)
def test_a_patch_shows_each_line_once_and_in_order(places: tuple[int, ...]) -> None:
    lines = [f"old {n}" if n in places else f"line {n}" for n in range(10)]
    patch = patch_for("a.txt", lines, "old", "new")
    shown = [line[1:] for line in patch.split("\n")[2:-1] if line[:1] in (" ", "-")]

    assert parse_patch(patch)
    assert [line for line in shown if line.startswith("old")] == [lines[n] for n in places]
    assert [lines.index(line) for line in shown] == sorted({lines.index(line) for line in shown})

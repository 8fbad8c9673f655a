"""Finding and running a project's tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from codex_py.offline.runners import NoRunner, Runner, Surroundings, choose_runner
from tests.unit.test_offline_loop import NOTICE, Host, write_tree

UNITTEST = """import unittest
from calc import divide

class Division(unittest.TestCase):
    def test_whole(self):
        self.assertEqual(divide(6, 3), 2)

    def test_nothing(self):
        self.assertEqual(divide(6, 4), 2)
"""
PYTEST = """import pytest
from calc import divide

def test_whole():
    assert divide(6, 3) == 2

@pytest.mark.parametrize("by", [4, 0])
def test_parts(by):
    assert divide(6, by) == 2
"""
CALC = "def divide(a, b):\n    return a / b\n"


def seen(
    *names: str,
    tests: tuple[str, ...] = (),
    libraries: dict[str, str] | None = None,
    pythons: dict[str, bool] | None = None,
    **texts: str,
) -> Surroundings:
    by_name = {name.replace("_", "."): text for name, text in texts.items()}
    uses = {file: frozenset((library,)) for file, library in (libraries or {}).items()}
    return Surroundings(frozenset((*names, *by_name)), by_name, tests, uses, pythons or {})


BOTH = {".venv/bin/python": True, "python3": False}
PYTEST_COMMAND = "-m pytest -p no:cacheprovider --tb=short -rfE --continue-on-collection-errors"


@pytest.mark.parametrize(
    ("surroundings", "command"),
    [
        (seen(pyproject_toml="[tool.pytest.ini_options]\n", pythons=BOTH), f".venv/bin/python {PYTEST_COMMAND}"),
        (seen("pytest.ini", pythons={"python3": True}), f"python3 {PYTEST_COMMAND}"),
        (seen(setup_cfg="[tool:pytest]\n", pythons={"python3": True}), f"python3 {PYTEST_COMMAND}"),
        (seen(tests=("test_a.py",), pythons={"python3": False, "python": True}), f"python {PYTEST_COMMAND}"),
        (
            seen(tests=("test_a.py",), libraries={"test_a.py": "unittest"}, pythons={"python3": True}),
            "python3 -m unittest discover",
        ),
        (
            seen(tests=("tests/test_a.py",), libraries={"tests/test_a.py": "unittest"}, pythons={"python3": False}),
            "python3 -m unittest discover -s tests",
        ),
        (
            seen(
                "tests/__init__.py",
                tests=("tests/x/test_a.py",),
                libraries={"tests/x/test_a.py": "unittest"},
                pythons={"python3": False},
            ),
            "python3 -m unittest discover -s tests -t .",
        ),
        (
            seen(tests=("a_test.py",), libraries={"a_test.py": "unittest"}, pythons={"python3": False}),
            "python3 -m unittest discover -p '*_test.py'",
        ),
        (seen(package_json='{"scripts": {"test": "jest"}}'), "CI=1 npm test"),
        (seen("pnpm-lock.yaml", package_json='{"scripts": {"test": "vitest"}}'), "CI=1 pnpm test"),
        (seen(package_json="{}", tests=("a.test.mjs",)), "node --test"),
        (seen("Cargo.toml", "Makefile"), "cargo test --no-fail-fast"),
        (seen("go.mod", tests=("a/a_test.go",)), "go test -v ./..."),
        (seen(Makefile="build:\n\ttrue\ntest: build\n\ttrue\n"), "make test"),
        (seen("gradlew", "build.gradle"), "./gradlew test"),
        (seen("scripts/test"), "./scripts/test"),
        (seen("run_tests.sh"), "sh run_tests.sh"),
    ],
)
def test_the_runner_is_chosen_by_what_is_there(surroundings: Surroundings, command: str) -> None:
    runner = choose_runner(surroundings)

    assert isinstance(runner, Runner)
    assert runner.command.removeprefix("PYTHONDONTWRITEBYTECODE=1 ") == command


def test_a_runner_asked_for_by_name_wins() -> None:
    both = seen("Cargo.toml", package_json='{"scripts": {"test": "jest"}}')

    assert choose_runner(both) == choose_runner(both, tool="npm")
    assert choose_runner(both, tool="cargo") == Runner("cargo", "cargo test --no-fail-fast", "`Cargo.toml`")
    assert choose_runner(both, tool="pytest") == NoRunner("nothing here is set up for `pytest`")


def test_unittest_asked_for_is_unittest() -> None:
    runner = choose_runner(seen("conftest.py", tests=("test_a.py",), pythons={"python3": True}), tool="unittest")

    assert runner == Runner("unittest", "PYTHONDONTWRITEBYTECODE=1 python3 -m unittest discover", "asked for")


def test_a_script_that_only_says_there_are_no_tests_is_none() -> None:
    script = '{"scripts": {"test": "echo \\"Error: no test specified\\" && exit 1"}}'

    assert choose_runner(seen(package_json=script)) is None


def test_a_missing_pytest_is_said() -> None:
    missing = choose_runner(seen("conftest.py", tests=("test_a.py",), pythons={"python3": False}))

    assert missing == NoRunner(
        "the tests here are for pytest (`conftest.py`), and `python3` cannot import it: "
        "install it, for example `python3 -m pip install pytest`"
    )


async def test_unittest_failures_are_told_with_their_place(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"calc.py": CALC, "tests/test_calc.py": UNITTEST})

    told = await Host(root).ask("run the tests")

    assert told == (
        "I ran `PYTHONDONTWRITEBYTECODE=1 python3 -m unittest discover -s tests` (`tests/test_calc.py` uses unittest). "
        "The run failed with exit code 1: 1 failed, 1 passed.\n\n"
        "1. `tests/test_calc.py:9` — `test_calc.Division.test_nothing`: AssertionError: 1.5 != 2\n\n"
        f"{NOTICE}"
    )


async def test_pytest_failures_are_told_with_their_place(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"calc.py": CALC, "tests/test_calc.py": PYTEST, "conftest.py": ""})

    told = await Host(root).ask("why do the tests fail?")

    assert "The run failed with exit code 1: 2 failed, 1 passed." in told
    assert "1. `tests/test_calc.py:9` — `test_parts[4]`: assert 1.5 == 2" in told
    assert (
        "2. `tests/test_calc.py:9` — `test_parts[0]`: ZeroDivisionError: division by zero — raised at `calc.py:2`"
        in told
    )
    assert sorted(path.name for path in root.iterdir()) == ["calc.py", "conftest.py", "tests"]


async def test_a_run_that_passes_is_told_so(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"test_a.py": "def test_a():\n    assert True\n"})

    assert "All tests passed: 0 failed, 1 passed." in await Host(root).ask("run the tests")


async def test_only_the_named_file_is_run(tmp_path: Path) -> None:
    root = write_tree(
        tmp_path, {"tests/test_a.py": "def test_a(): assert 0\n", "tests/test_b.py": "def test_b(): pass\n"}
    )
    host = Host(root)

    assert "All tests passed: 0 failed, 1 passed." in await host.ask("run the tests in tests/test_b.py")
    assert host.commands[-1].endswith(" tests/test_b.py")


async def test_mending_is_left_to_a_real_model(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"test_a.py": "def test_a():\n    assert 0\n"})

    told = await Host(root).ask("fix the failing tests")

    assert "1. `test_a.py:2` — `test_a`: assert 0" in told
    assert "Mending them needs a real model: start in `test_a.py`." in told


async def test_a_sandbox_without_temporary_files_gets_a_second_try(tmp_path: Path) -> None:
    """A stand-in for pytest that fails the way pytest does when nothing can be written."""
    python = tmp_path / "python3"
    python.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        "  *find_spec*) exit 0 ;;\n"
        f'  *--capture=sys*) exec {sys.executable} "$@" ;;\n'
        "  *) echo \"FileNotFoundError: [Errno 2] No usable temporary directory found in ['/tmp']\"; exit 1 ;;\n"
        "esac\n"
    )
    python.chmod(0o755)
    root = write_tree(tmp_path / "work", {"test_a.py": "def test_a():\n    assert 0\n"})
    host = Host(root)
    host.path = f"{tmp_path}:{host.path}"

    told = await host.ask("run the tests")

    assert host.commands[-1].endswith("--capture=sys")
    assert "1. `test_a.py:2` — `test_a`: assert 0" in told


async def test_no_tests_at_all_is_said(tmp_path: Path) -> None:
    assert (await Host(tmp_path).ask("run the tests")).startswith("I found no tests here")


async def test_a_missing_runner_is_said(tmp_path: Path) -> None:
    host = Host(write_tree(tmp_path, {"Makefile": "test:\n\tno-such-runner --all\n"}))

    told = await host.ask("run the tests")

    assert "I ran `make test` (the target `test` in `Makefile`), but the runner is missing here" in told


async def test_from_a_subfolder_the_tests_of_the_repository_are_found(tmp_path: Path) -> None:
    root = write_tree(tmp_path, {"scripts/test": "#!/bin/sh\necho '3 passed in 0.1s'\n", "docs/a.md": ""})
    (root / "scripts/test").chmod(0o755)
    (root / ".git").mkdir()
    (root / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (root / ".git/objects").mkdir()
    (root / ".git/refs").mkdir()

    told = await Host(root / "docs").ask("run the tests")

    assert "All tests passed: 0 failed, 3 passed." in told

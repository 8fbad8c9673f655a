"""Running a project's tests and saying what fails, and where."""

from __future__ import annotations

import shlex
from collections.abc import Generator
from pathlib import PurePosixPath
from typing import Final

from codex_py.offline.conversation import Conversation
from codex_py.offline.failures import read_verdict
from codex_py.offline.intent import RunTests
from codex_py.offline.listing import find_place
from codex_py.offline.result import Result
from codex_py.offline.runners import PYTHONS, NoRunner, Runner, Surroundings, choose_runner
from codex_py.offline.script import Command, Request, Script, ask, look, look_at_all, require
from codex_py.offline.text import excerpt, ticked
from codex_py.offline.verdict import Verdict, counts_text, failure_list

_PATIENCE: Final = 30_000
_ROOM: Final = 50_000
_TEST_FILES: Final = (
    r"find . -maxdepth 6 \( "
    r"-name .git -o -name node_modules -o -name .venv -o -name venv -o -name target -o -name __pycache__ \) "
    r"-prune -o -type f \( "
    r"-name 'test_*.py' -o -name '*_test.py' -o -name '*.test.*' -o -name '*.spec.*' -o -path '*/test/*.*js' "
    r"-o -path '*/tests/*.*js' -o -path '*/__tests__/*' \) -print | sort | head -n 200"
)
_ENTRIES: Final = (
    "ls -Ap . || exit; ls -dp scripts/* script/* bin/* test/__init__.py tests/__init__.py 2>/dev/null ; true"
)
_READ: Final = ("pyproject.toml", "setup.cfg", "tox.ini", "package.json", "Makefile", "makefile", "GNUmakefile")
_HAS_PYTEST: Final = "import importlib.util as u, sys; sys.exit(not u.find_spec('pytest'))"
_PROBE: Final = (
    f"for p in {' '.join(PYTHONS)}; do command -v $p >/dev/null 2>&1 || continue; "
    f'if $p -c "{_HAS_PYTEST}" >/dev/null 2>&1; then echo "$p pytest"; else echo "$p"; fi; done'
)
_PYTHON_PROJECT: Final = frozenset(
    ("pytest.ini", ".pytest.ini", "pytest.toml", "conftest.py", "pyproject.toml", "setup.cfg", "tox.ini")
)
_MISSING: Final = ("No module named pytest", "command not found", ": not found", "Error 127")
_PYTEST_NOTHING: Final = 5


def run_tests(conversation: Conversation, wish: RunTests) -> Script:
    """Find the runner, run it, and report; a sandbox without a place to write gets a second try where that helps."""
    place = yield from find_place()
    runner, root = yield from _choose(None, wish)
    if runner is None and place.prefix:
        runner, root = yield from _choose(place.top, wish)
    if runner is None:
        return "I found no tests here: no test files by name, and no manifest that says how to run any."
    if isinstance(runner, NoRunner):
        return f"I did not run the tests: {runner.why}."
    result = yield from ask(Command(runner.command, root, _PATIENCE, _ROOM))
    command = runner.command
    if result.denied and runner.retry and not read_verdict(result.text, None).failures:
        command = runner.retry
        result = yield from ask(Command(command, root, _PATIENCE, _ROOM))
    verdict = read_verdict(result.text, root or conversation.cwd or place.top)
    return report(runner, command, result, verdict, fix=wish.fix)


def _choose(
    root: str | None, wish: RunTests
) -> Generator[tuple[Request, ...], tuple[Result, ...], tuple[Runner | NoRunner | None, str | None]]:
    entries, files = yield from look_at_all([_ENTRIES, _TEST_FILES], root)
    names = frozenset(line.removeprefix("./") for line in require(entries, "ls").lines)
    test_files = tuple(line.removeprefix("./") for line in files.lines)
    wanted = [name for name in _READ if name in names]
    texts = yield from look_at_all([f"head -c 24000 {name}" for name in wanted], root)
    python_tests = [file for file in test_files if file.endswith(".py")]
    libraries: dict[str, frozenset[str]] = {}
    pythons: dict[str, bool] = {}
    if python_tests or names & _PYTHON_PROJECT:
        probed = yield from look(_PROBE, root)
        words = [line.split(" ") for line in probed.lines]
        pythons = {first: rest == ["pytest"] for first, *rest in words if first in PYTHONS}
    if python_tests:
        listed = " ".join(shlex.quote(f"./{file}") for file in python_tests)
        imports = yield from look(f"grep -HoE '^[[:space:]]*(import|from) +(unittest|pytest)' {listed}", root)
        libraries = _libraries(imports)
    by_name = {name: text.text for name, text in zip(wanted, texts, strict=True)}
    seen = Surroundings(names, by_name, test_files, libraries, pythons)
    return choose_runner(seen, tool=wish.tool, target=wish.target), root


def _libraries(imports: Result) -> dict[str, frozenset[str]]:
    found: dict[str, frozenset[str]] = {}
    for line in imports.lines:
        file, _, statement = line.removeprefix("./").rpartition(":")
        found[file] = found.get(file, frozenset()) | frozenset(statement.split()[-1:])
    return found


def report(runner: Runner, command: str, result: Result, verdict: Verdict, *, fix: bool) -> str:
    """What was run and why, how it ended, and each failure with its place."""
    ran = f"I ran {ticked(command)} ({runner.why})"
    if result.running is not None:
        return (
            f"{ran}. It is still running after the longest wait I allow myself; so far it "
            f"printed:\n\n{excerpt(result.text)}"
        )
    if result.exit_code == 127 or (
        not verdict.known and not result.ok and any(mark in result.text for mark in _MISSING)
    ):
        return (
            f"{ran}, but the runner is missing here (exit "
            f"code {result.exit_code}):\n\n{excerpt(result.text, head=8, tail=8)}"
        )
    counts = counts_text(verdict)
    if result.ok:
        passed = (
            f"All tests passed: {counts}."
            if counts and verdict.passed
            else f"It reports success{f': {counts}' if counts else ''}."
        )
        return f"{ran}. {passed}"
    if runner.name == "pytest" and result.exit_code == _PYTEST_NOTHING:
        return f"{ran}. It collected no test."
    lines = [f"{ran}. The run failed with exit code {result.exit_code}{f': {counts}' if counts else ''}."]
    lines.append(failure_list(verdict) if verdict.failures else excerpt(result.text, head=10, tail=30))
    lines += _hints(result, verdict, fix=fix)
    return "\n\n".join(line for line in lines if line)


def _hints(result: Result, verdict: Verdict, *, fix: bool) -> list[str]:
    hints: list[str] = []
    if result.denied:
        hints.append(
            "Something was refused by the sandbox on the way; `-s workspace-write` lets tests write below the "
            "working directory."
        )
    if result.cut and not verdict.failures:
        hints.append("The output was too long to read whole, so failures in its middle are not listed.")
    if fix and verdict.failures:
        files = ", ".join(dict.fromkeys(ticked(failure.file) for failure in verdict.failures if failure.file))
        hints.append(f"Mending them needs a real model: start in {files or 'the files above'}.")
    missing = [failure.message for failure in verdict.failures if "No module named" in failure.message]
    if missing:
        name = missing[0].rsplit("named", 1)[-1].strip().strip("'")
        hints.append(
            f"`{PurePosixPath(name).name}` cannot be imported: it is not installed, or the tests must be started "
            f"from another folder."
        )
    return hints

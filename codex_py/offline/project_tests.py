"""Running a project's tests, and naming those that fail in the output of pytest and unittest."""

from __future__ import annotations

import re
import shlex
from typing import Final, NamedTuple

from codex_py.offline.steps import Command, Result, Rule
from codex_py.offline.wording import clip, code, excerpt
from codex_py.text.display import counted

_RUN_MS: Final = 30_000
_SHOWN: Final = 30
_PYTHON_TESTS: Final = (
    r"find . -maxdepth 6 \( -name .git -o -name node_modules -o -name .venv -o -name venv \) -prune -o -type f "
    r"\( -name 'test_*.py' -o -name '*_test.py' \) -print | sort | head -n 200"
)
_PYTHONS: Final = (".venv/bin/python", "venv/bin/python", "python3", "python")
_FIND_PYTHON: Final = (
    f"for p in {' '.join(_PYTHONS)}; do command -v $p >/dev/null 2>&1 || continue; "
    'if $p -c "import pytest" >/dev/null 2>&1; then echo "$p pytest"; else echo "$p"; fi; done'
)
_OTHERS: Final = (
    ("package.json", '"test":', "npm test"),
    ("Cargo.toml", "[", "cargo test"),
    ("go.mod", "module", "go test ./..."),
    ("Makefile", "\ntest:", "make test"),
)
_SUMMARY: Final = re.compile(r"^(?:FAILED|ERROR) (\S[^\n]*)$", re.MULTILINE)
_PYTEST_COUNTS: Final = re.compile(r"^(?:=+ )?(\d+ (?:failed|passed|error)[^\n=]*?) in \d[^\n]*$", re.MULTILINE)
_SECTION: Final = re.compile(r"^_+ (?:ERROR (?:at \w+ of|collecting) )?(\S[^\n]*?) _+$", re.MULTILINE)
_LOCATION: Final = re.compile(r"^([^\s:][^:\n]{0,400}):(\d{1,9}):", re.MULTILINE)
_ERROR: Final = re.compile(r"^E {2,}(\S[^\n]*)$", re.MULTILINE)
_UNITTEST: Final = re.compile(
    r"^(?:FAIL|ERROR): (\S+)[^\n]*\n(.*?)(?=^={10,}$|^-{10,}\nRan |\Z)", re.MULTILINE | re.DOTALL
)
_FRAME: Final = re.compile(r'^ *File "([^"\n]{1,400})", line (\d{1,9})', re.MULTILINE)
_NONE_RAN: Final = re.compile(r"^Ran 0 tests in |^(?:=+ )?(?:no tests ran|\d+ deselected) in ", re.MULTILINE)
_UNITTEST_END: Final = re.compile(r"^Ran (\d+) tests? in [^\n]*\n+((?:OK|FAILED|NO TESTS RAN)[^\n]*)$", re.MULTILINE)


class FailedTest(NamedTuple):
    """`line` is 0 where only the file is known."""

    name: str
    file: str = ""
    line: int = 0
    message: str = ""


def run_tests(target: str, cwd: str | None) -> Rule:
    """Find the test runner, run it, and name the tests that fail."""
    listed = yield Command(_PYTHON_TESTS)
    if listed.lines:
        found = yield Command(_FIND_PYTHON)
        command = python_command(found.lines, target)
        if not command:
            return "I did not run the tests: they are in Python, and no Python was found to run them."
    else:
        read = yield Command(f"head -c 8000 {' '.join(file for file, _, _ in _OTHERS)} 2>/dev/null; true")
        command = other_command(read.text)
        if not command:
            return "I found no tests here: no Python test files, and no manifest that says how to run any."
    result = yield Command(command, _RUN_MS)
    if result.is_denied and "-m pytest" in command and not failed_tests(result.text, cwd):
        # Capturing by file descriptor needs a temporary file, which a read-only sandbox does not give.
        command = f"{command} --capture=sys"
        result = yield Command(command, _RUN_MS)
    return _report(command, result, cwd)


def python_command(pythons: list[str], target: str) -> str:
    """The command for Python tests, with pytest where an interpreter has it; empty when there is no interpreter."""
    with_pytest = next((line.split()[0] for line in pythons if line.endswith(" pytest")), "")
    python = with_pytest or next((line.split()[0] for line in pythons if line.strip()), "")
    if not python:
        return ""
    wanted = (
        f" {shlex.quote(target)}" if "/" in target or "." in target else f" -k {shlex.quote(target)}" if target else ""
    )
    if with_pytest:
        return f"PYTHONDONTWRITEBYTECODE=1 {python} -m pytest -p no:cacheprovider --tb=short -rfE{wanted}"
    return f"PYTHONDONTWRITEBYTECODE=1 {python} -m unittest{wanted or ' discover'}"


def other_command(manifests: str) -> str:
    """The command for tests in another language, by the manifests as `head` prints them; empty when none says how."""
    for file, sign, command in _OTHERS:
        _, found, text = manifests.partition(f"==> {file} <==")
        if found and sign in text.partition("\n==> ")[0] and "no test specified" not in text:
            return command
    return ""


def failed_tests(output: str, cwd: str | None) -> list[FailedTest]:
    """The failed tests in the output of pytest or unittest, with the places below `cwd` relative to it."""
    text = re.sub(r"\x1b\[[0-9;]{0,20}m", "", output).replace("\r\n", "\n")
    text = text.replace(f"{cwd.rstrip('/')}/", "") if cwd else text
    sections = _pytest_sections(text)
    summary = text.rpartition("short test summary info")[2] if "short test summary info" in text else ""
    failed = [_pytest_failure(found[1], sections) for found in _SUMMARY.finditer(summary)]
    for found in () if failed else _UNITTEST.finditer(text):
        frames, lines = list(_FRAME.finditer(found[2])), found[2].strip().splitlines()
        frame = (frames[-1][1], int(frames[-1][2])) if frames else ("", 0)
        failed.append(FailedTest(found[1], *frame, lines[-1] if lines else ""))
    return list(dict.fromkeys(failed))


def read_counts(output: str) -> str:
    """The counts that pytest or unittest prints last; empty when there are none."""
    if found := list(_PYTEST_COUNTS.finditer(output)):
        return found[-1][1]
    ended = _UNITTEST_END.search(output)
    return f"{ended[1]} run, {ended[2]}" if ended else ""


def _pytest_sections(text: str) -> list[tuple[str, str]]:
    heads = list(_SECTION.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return [(head[1], text[head.end() : end]) for head, end in zip(heads, ends, strict=False)]


def _pytest_failure(line: str, sections: list[tuple[str, str]]) -> FailedTest:
    node, _, reason = line.partition(" - ")
    file, _, name = node.strip().partition("::")
    own = [text for head, text in sections if head in (name.replace("::", "."), file)]
    section = next((text for text in own if f"\n{file}:" in text), own[0] if own else "")
    line_numbers = [int(found[2]) for found in _LOCATION.finditer(section) if found[1] == file]
    error = _ERROR.search(section)
    return FailedTest(name or file, file, line_numbers[-1] if line_numbers else 0, error[1] if error else reason)


def _report(command: str, result: Result, cwd: str | None) -> str:
    ran = f"I ran {code(command)}."
    if result.session_id is not None:
        return f"{ran} It is still running after the longest wait I allow. So far it printed:\n\n{excerpt(result.text)}"
    if _NONE_RAN.search(result.text):
        why = ": these may need pytest, which no Python here has" if "-m unittest" in command else ""
        return f"{ran} No test ran{why}."
    failed, counts = failed_tests(result.text, cwd), f": {found}" if (found := read_counts(result.text)) else ""
    if result.is_ok:
        return f"{ran} The tests passed{counts}."
    lines = [f"{ran} It failed with exit code {result.exit_code}{counts}."]
    lines.append("\n".join(f"{number}. {_line(failure)}" for number, failure in enumerate(failed[:_SHOWN], 1)))
    if len(failed) > _SHOWN:
        lines.append(f"… and {counted(len(failed) - _SHOWN, 'more failure')}")
    lines.append("Fixing them needs a real model." if failed else excerpt(result.text, head=10, tail=30))
    if result.is_denied:
        lines.append("The sandbox refused something; `-s workspace-write` lets tests write in the working directory.")
    return "\n\n".join(line for line in lines if line)


def _line(failed: FailedTest) -> str:
    location = f"{failed.file}:{failed.line}" if failed.line else failed.file
    message = f": {clip(failed.message, 240)}" if failed.message else ""
    return f"{code(location)} — {code(failed.name)}{message}" if location else f"{code(failed.name)}{message}"

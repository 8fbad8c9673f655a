"""Reading the output of `cargo test` and `go test`."""

from __future__ import annotations

import re
from typing import Final

from codex_py.offline.pattern import Pattern
from codex_py.offline.verdict import Failure, Verdict

_CARGO_RESULT: Final = Pattern(
    r"^test result: \w+\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored", re.MULTILINE
)
_CARGO_FAILED: Final = Pattern(r"^test (\S[^\n]*?) \.\.\. FAILED$", re.MULTILINE)
_PANIC: Final = Pattern(
    r"^thread '([^'\n]+)'(?: \(\d+\))? panicked at ([^\n]+?):(\d{1,9}):\d{1,9}:\n([^\n]*)", re.MULTILINE
)
_OLD_PANIC: Final = Pattern(r"^thread '([^'\n]+)' panicked at '([^\n]*)', ([^\n]+?):(\d{1,9}):\d{1,9}$", re.MULTILINE)
_RUST_ERROR: Final = Pattern(r"^(error(?:\[E\d+\])?: [^\n]+)\n +--> ([^\n]+?):(\d{1,9}):\d{1,9}$", re.MULTILINE)
_GO_FAIL: Final = Pattern(r"^( *)--- FAIL: (\S+) \([^)\n]*\)$", re.MULTILINE)
_GO_PASS: Final = Pattern(r"^ *--- PASS: ", re.MULTILINE)
_GO_SKIP: Final = Pattern(r"^ *--- SKIP: ", re.MULTILINE)
_GO_PACKAGE: Final = Pattern(r"^(?:ok {2}|FAIL|\?  )\t\S+", re.MULTILINE)
_GO_LOG: Final = Pattern(r"^ {4,}([\w./-]+\.go):(\d{1,9}): ([^\n]*)", re.MULTILINE)
_GO_RUN: Final = Pattern(r"^=== (?:RUN|NAME|CONT|PAUSE) +(\S+)$", re.MULTILINE)
_GO_ERROR: Final = Pattern(r"^(?:\./|vet: )?([\w./-]+\.go):(\d{1,9}):\d{1,9}: ([^\n]+)$", re.MULTILINE)
_GO_PANIC: Final = Pattern(r"^panic: ([^\n]+)$", re.MULTILINE)
_GO_FRAME: Final = Pattern(r"^\t([^\s:]+_test\.go):(\d{1,9})", re.MULTILINE)


def read_cargo(text: str) -> Verdict:
    """Read every binary's result and the panics; compile errors count as errors."""
    results = _CARGO_RESULT.findall(text)
    failed_names = list(dict.fromkeys(_CARGO_FAILED.findall(text)))
    errors = [Failure(found[1], found[2], int(found[3])) for found in _RUST_ERROR.finditer(text)]
    if not results and not errors:
        return Verdict()
    panics = {found[1]: (found[2], int(found[3]), found[4]) for found in _PANIC.finditer(text)}
    panics |= {found[1]: (found[3], int(found[4]), found[2]) for found in _OLD_PANIC.finditer(text)}
    failures = [Failure(name, *panics.get(name, ("", 0, ""))) for name in failed_names]
    if not results:
        return Verdict(None, None, len(errors), None, tuple(errors))
    passed, failed, ignored = (sum(int(result[place]) for result in results) for place in range(3))
    return Verdict(passed, failed, len(errors), ignored, (*failures, *errors))


def read_go(text: str) -> Verdict:
    """Read `go test -v`: a test's own log lines stand after its name, before or after its verdict."""
    failed = list(_GO_FAIL.finditer(text))
    builds = [Failure(found[3], found[1], int(found[2])) for found in _GO_ERROR.finditer(text)]
    if not failed and not _GO_PACKAGE.search(text) and not builds:
        return Verdict()
    names = {found[2] for found in failed}
    logs = _go_logs(text)
    # A test whose subtest failed says nothing of its own.
    leaves = [
        name for name in dict.fromkeys(found[2] for found in failed) if not any(n.startswith(f"{name}/") for n in names)
    ]
    failures = [Failure(name, *logs.get(name, _go_panic(text))) for name in leaves]
    passed = len(_GO_PASS.findall(text))
    return Verdict(passed, len(leaves), len(builds), len(_GO_SKIP.findall(text)), (*failures, *builds))


def _go_logs(text: str) -> dict[str, tuple[str, int, str]]:
    """The first log line of each test, by the name that stands above it."""
    logs: dict[str, tuple[str, int, str]] = {}
    marks = sorted(
        [(found.start(), found[1]) for found in _GO_RUN.finditer(text)]
        + [(found.start(), found[2]) for found in _GO_FAIL.finditer(text)]
        + [(found.start(), "") for found in _GO_PASS.finditer(text)]
        + [(found.start(), "") for found in _GO_SKIP.finditer(text)]
    )
    position = -1
    for found in _GO_LOG.finditer(text):
        while position + 1 < len(marks) and marks[position + 1][0] < found.start():
            position += 1
        name = marks[position][1] if position >= 0 else ""
        if name:
            logs.setdefault(name, (found[1], int(found[2]), found[3]))
    return logs


def _go_panic(text: str) -> tuple[str, int, str]:
    panic = _GO_PANIC.search(text)
    frame = _GO_FRAME.search(text, panic.end()) if panic else None
    if panic is None:
        return "", 0, ""
    return (frame[1], int(frame[2]), f"panic: {panic[1]}") if frame else ("", 0, f"panic: {panic[1]}")

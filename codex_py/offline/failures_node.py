"""Reading the output of node's test runner, jest, vitest and mocha."""

from __future__ import annotations

import re
from typing import Final

from codex_py.offline.pattern import Pattern
from codex_py.offline.verdict import Failure, Verdict

_PLACE: Final = Pattern(
    r"(?:\(|^|\s|')((?:/|\.{0,2}/)?[\w@.+~-][\w@.+~/ -]{0,300}\.[cm]?[jt]sx?):(\d{1,9}):\d{1,9}\b", re.MULTILINE
)
_TAP_FAILURE: Final = Pattern(r"^( *)not ok \d+ - ([^\n]*)\n\1  ---\n((?:\1 [^\n]*\n|\n)*)", re.MULTILINE)
_TAP_FIELD: Final = Pattern(r"^ *(location|failureType|error): (?:'([^\n]*)'|\|-\n\s*([^\n]*)|([^\n]*))$", re.MULTILINE)
_TAP_COUNT: Final = Pattern(r"^(?:#|ℹ) (pass|fail|skipped|cancelled) (\d{1,9})$", re.MULTILINE)
_SPEC_FAILURE: Final = Pattern(
    r"^test at ([^\n]+?):(\d{1,9}):\d{1,9}\n✖ ([^\n]*?)(?: \([\d.]+ms\))?\n((?:(?!test at )[^\n]*\n?){0,12})",
    re.MULTILINE,
)
_JEST_COUNTS: Final = Pattern(r"^Tests: +([^\n]*\d+ total)$", re.MULTILINE)
_JEST_FAILURE: Final = Pattern(r"^ {2}● ([^\n]+)\n", re.MULTILINE)
_JEST_FILE: Final = Pattern(r"^FAIL (\S+)", re.MULTILINE)
_VITEST_COUNTS: Final = Pattern(r"^ +Tests {2}([^\n]*)\(\d+\)", re.MULTILINE)
_VITEST_FAILURE: Final = Pattern(r"^ FAIL {2}(\S+)(?: > ([^\n]+))?\n([^\n]*)", re.MULTILINE)
_VITEST_PLACE: Final = Pattern(r"^ ❯ (?:[^\s(]+ )?\(?([^\s()]+):(\d{1,9}):\d{1,9}", re.MULTILINE)
_MOCHA_COUNT: Final = Pattern(r"^ +(\d{1,9}) (passing|failing|pending)\b", re.MULTILINE)
_MOCHA_FAILURE: Final = Pattern(r"^ {2}\d+\) ([^\n]+(?:\n {7,}[^\n]+){0,8}):\n\n {0,6}([^\n]*)", re.MULTILINE)
_NUMBER: Final = Pattern(r"(\d{1,9}) (failed|passed|skipped|todo|pending)")


def read_tap(text: str) -> Verdict:
    """Read node's TAP output; a suite that failed only through its tests is not counted as one more."""
    failures: list[Failure] = []
    for found in _TAP_FAILURE.finditer(text):
        fields = {name: quoted or block or bare for name, quoted, block, bare in _TAP_FIELD.findall(found[3])}
        if fields.get("failureType") == "subtestsFailed":
            continue
        file, line = (
            _first_place(found[3].split("stack:", 1)[-1]) or _first_place(fields.get("location", "")) or ("", 0)
        )
        failures.append(Failure(found[2], file, line, fields.get("error", "")))
    return _counted(text, failures)


def read_node(text: str) -> Verdict:
    """Read node's spec reporter."""
    failures: list[Failure] = []
    for found in _SPEC_FAILURE.finditer(text):
        inner = _first_place(found[4])
        lines = [line.strip() for line in found[4].split("\n") if line.strip()]
        at = inner if inner and inner[0] == found[1] else (found[1], int(found[2]))
        failures.append(Failure(found[3], at[0], at[1], lines[0] if lines else ""))
    return _counted(text, failures)


def _counted(text: str, failures: list[Failure]) -> Verdict:
    counts = {kind: int(number) for kind, number in _TAP_COUNT.findall(text)}
    if "pass" not in counts:
        return Verdict()
    failed = counts.get("fail", 0) + counts.get("cancelled", 0)
    return Verdict(counts["pass"], failed, 0, counts.get("skipped", 0), tuple(failures))


def read_jest(text: str) -> Verdict:
    """Read the `●` blocks and the line of counts."""
    line = _JEST_COUNTS.search(text)
    if line is None:
        return Verdict()
    counts = {kind: int(number) for number, kind in _NUMBER.findall(line[1])}
    heads, files = list(_JEST_FAILURE.finditer(text)), list(_JEST_FILE.finditer(text))
    failures: dict[tuple[str, str], Failure] = {}
    for position, head in enumerate(heads):
        body = text[head.end() : heads[position + 1].start() if position + 1 < len(heads) else line.start()]
        owner = next((file[1] for file in reversed(files) if file.start() < head.start()), "")
        place = next(((file, at) for file, at in _places(body) if "node_modules/" not in file), (owner, 0))
        message = next((part.strip() for part in body.split("\n") if part.strip()), "")
        failures.setdefault((owner, head[1]), Failure(head[1].strip(), *place, message))
    return Verdict(
        counts.get("passed", 0), counts.get("failed", 0), 0, counts.get("skipped", 0), tuple(failures.values())
    )


def read_vitest(text: str) -> Verdict:
    """Read the ` FAIL ` blocks and the line of counts."""
    line = _VITEST_COUNTS.search(text)
    if line is None:
        return Verdict()
    counts = {kind: int(number) for number, kind in _NUMBER.findall(line[1])}
    heads = list(_VITEST_FAILURE.finditer(text))
    failures: list[Failure] = []
    for position, head in enumerate(heads):
        end = heads[position + 1].start() if position + 1 < len(heads) else line.start()
        place = _VITEST_PLACE.search(text, head.end(), end)
        at = (place[1], int(place[2])) if place else (head[1], 0)
        failures.append(Failure(head[2] or head[1], *at, head[3].strip()))
    return Verdict(counts.get("passed", 0), counts.get("failed", 0), 0, counts.get("skipped", 0), tuple(failures))


def read_mocha(text: str) -> Verdict:
    """Read the numbered failures and the counts above them."""
    counts = {kind: int(number) for number, kind in _MOCHA_COUNT.findall(text)}
    if "passing" not in counts and "failing" not in counts:
        return Verdict()
    heads = list(_MOCHA_FAILURE.finditer(text))
    failures: list[Failure] = []
    for position, head in enumerate(heads):
        body = text[head.end() : heads[position + 1].start() if position + 1 < len(heads) else len(text)]
        place = next(((file, at) for file, at in _places(body) if "node_modules/" not in file), ("", 0))
        name = " ".join(part.strip() for part in head[1].split("\n"))
        failures.append(Failure(name, *place, head[2].strip()))
    return Verdict(counts.get("passing", 0), counts.get("failing", 0), 0, counts.get("pending", 0), tuple(failures))


def _places(text: str) -> list[tuple[str, int]]:
    return [(found[1].strip(), int(found[2])) for found in _PLACE.finditer(text)]


def _first_place(text: str) -> tuple[str, int] | None:
    found = _PLACE.search(text)
    return (found[1].strip(), int(found[2])) if found else None

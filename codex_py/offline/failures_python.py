"""Reading pytest and unittest output."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from codex_py.offline.pattern import Pattern
from codex_py.offline.verdict import Failure, Verdict

_COUNTS_LINE: Final = Pattern(
    r"^(?:=+ )?((?:no tests ran|\d+ (?:failed|passed|skipped|deselected|xfailed|xpassed|warnings?|"
    r"errors?|rerun|subtests passed))"
    r"(?:, \d+ [a-z ]+)*) in \d[^\n]{0,40}$",
    re.MULTILINE,
)
_COUNT: Final = Pattern(r"(\d{1,9}) (failed|passed|skipped|error)")
# A long name leaves room for a single underscore on each side; underscores alone part the frames of one traceback.
_SECTION: Final = Pattern(r"^_+ (?=[_ ]*[^_ \n])(\S[^\n]*?) _+$", re.MULTILINE)
_SECTION_END: Final = Pattern(r"^={3,} |^!{3,} ", re.MULTILINE)
_SUMMARY: Final = Pattern(
    r"^(FAILED|ERROR|SUBFAILED)((?:\[[^\]\n]{0,200}\])? ?(?:\([^)\n]{0,200}\))?) (\S[^\n]*)$", re.MULTILINE
)
_PLACE: Final = Pattern(r"^([^\s:][^:\n]{0,400}):(\d{1,9}):(?: in \S+| \w[\w.]*)?[ \t]*$", re.MULTILINE)
_SYNTAX_PLACE: Final = Pattern(r'^E {2,}File "([^"\n]{1,400})", line (\d{1,9})', re.MULTILINE)
_ERROR_LINE: Final = Pattern(r"^E {2,}(\S[^\n]*)$", re.MULTILINE)
_LIBRARY: Final = Pattern(r"(?:^|/)(?:site-packages|lib/python3[^/]*|\.venv|<frozen[^>]*>)/|^<")
_UNITTEST_HEAD: Final = Pattern(r"^(FAIL|ERROR): ([^\n]+)$", re.MULTILINE)
_FRAME: Final = Pattern(r'^ {2,}File "([^"\n]{1,400})", line (\d{1,9})(?:, in ([^\n]+))?$', re.MULTILINE)
_RAN: Final = Pattern(r"^Ran (\d{1,9}) tests? in ", re.MULTILINE)
_UNITTEST_END: Final = Pattern(r"^(?:OK|FAILED|NO TESTS RAN)(?: \(([^)\n]*)\))?$", re.MULTILINE)
_UNITTEST_COUNT: Final = Pattern(r"([a-z ]+)=(\d{1,9})")
_RAISED: Final = Pattern(
    r"^[A-Za-z_][\w.]*(?:Error|Exception|Warning|Interrupt|Exit|Failure|Skip\w*)?(?::|$)[^\n]*$", re.MULTILINE
)


class _Section(NamedTuple):
    """One traceback: its places in order, and the first line of its error."""

    places: tuple[tuple[str, int], ...]
    message: str


def read_pytest(text: str) -> Verdict:
    """Read the short summary, the tracebacks and the last line of counts."""
    lines = list(_COUNTS_LINE.finditer(text))
    summary: list[tuple[str, str, str]] = []
    if _is_pytest(text):
        for found in _SUMMARY.finditer(text):
            node, reason = _node_and_reason(found[3])
            summary.append((found[1], f"{node} {found[2].strip()}".rstrip(), reason))
    if not lines and not summary:
        return Verdict()
    sections = _sections(text)
    counts = {kind: int(number) for number, kind in _COUNT.findall(lines[-1][1])} if lines else {}
    failures = [_pytest_failure(node, reason, sections) for _, node, reason in summary]
    return Verdict(
        counts.get("passed", 0) if lines else None,
        counts.get("failed", 0) if lines else sum(kind != "ERROR" for kind, _, _ in summary),
        counts.get("error", 0),
        counts.get("skipped", 0),
        tuple(dict.fromkeys(failures)),
    )


def _is_pytest(text: str) -> bool:
    return "short test summary info" in text or "test session starts" in text


def _node_and_reason(line: str) -> tuple[str, str]:
    node, _, reason = line.partition(" - ")
    # A parameter may itself contain the separator.
    if "[" in node and "]" not in node and "] - " in line:
        node, _, reason = line.partition("] - ")
        node += "]"
    return node.strip(), reason.strip()


def _sections(text: str) -> dict[str, _Section]:
    """The tracebacks by title: `Class.test[param]`, or the file for an error while collecting."""
    sections: dict[str, _Section] = {}
    heads = list(_SECTION.finditer(text))
    for position, head in enumerate(heads):
        end = heads[position + 1].start() if position + 1 < len(heads) else len(text)
        stop = _SECTION_END.search(text, head.end(), end)
        body = text[head.end() : stop.start() if stop else end]
        title = re.sub(r"^ERROR (?:at (?:setup|teardown) of|collecting) ", "", head[1])
        places = [(found[1].removeprefix("./"), int(found[2])) for found in _PLACE.finditer(body)]
        places += [(found[1], int(found[2])) for found in _SYNTAX_PLACE.finditer(body)]
        error = _ERROR_LINE.search(body)
        message = error[1] if error else ""
        if message.startswith("File "):
            message = next(
                (found[1] for found in reversed(list(_ERROR_LINE.finditer(body))) if ":" in found[1]), message
            )
        sections.setdefault(title, _Section(tuple(places), message))
    return sections


def _pytest_failure(node: str, reason: str, sections: dict[str, _Section]) -> Failure:
    file, _, name = node.partition("::")
    section = sections.get(name.replace("::", ".")) or sections.get(file) or sections.get(node)
    if section is None:
        return Failure(name or file, file, 0, reason)
    own = [line for path, line in section.places if path == file or path.endswith(f"/{file}")]
    ours = [place for place in section.places if not _LIBRARY.search(place[0])]
    deepest = ours[-1] if ours else None
    also = f"{deepest[0]}:{deepest[1]}" if deepest and own and not _same_file(deepest[0], file) else ""
    if not own and deepest:
        return Failure(name or file, deepest[0], deepest[1], section.message or reason)
    return Failure(name or file, file, own[-1] if own else 0, section.message or reason, also)


def _same_file(path: str, file: str) -> bool:
    return path == file or path.endswith(f"/{file}")


def read_unittest(text: str) -> Verdict:
    """Read the blocks headed `FAIL:` and `ERROR:`, and the closing lines."""
    ran, ends = _RAN.search(text), list(_UNITTEST_END.finditer(text))
    heads = list(_UNITTEST_HEAD.finditer(text))
    if ran is None:
        return Verdict()
    failures: list[Failure] = []
    for position, head in enumerate(heads):
        stop = heads[position + 1].start() if position + 1 < len(heads) else ran.start()
        failures.append(_unittest_failure(head[2], text[head.end() : stop]))
    # Tests may be run once more by a wrapper: the sums are over all runs.
    total = sum(int(found[1]) for found in _RAN.finditer(text))
    marks = {kind.strip(): int(number) for kind, number in _UNITTEST_COUNT.findall(ends[-1][1] or "")} if ends else {}
    failed, errors, skipped = marks.get("failures", 0), marks.get("errors", 0), marks.get("skipped", 0)
    names = {re.sub(r" (?:\(i?[^()]*=.*|\[.*)$", "", head[2]) for head in heads}
    passed = max(0, total - len(names) - skipped - marks.get("expected failures", 0))
    return Verdict(passed, failed, errors, skipped, tuple(failures))


def _unittest_failure(title: str, body: str) -> Failure:
    name = title.split(" ", 1)[0]
    frames = [(found[1], int(found[2]), found[3] or "") for found in _FRAME.finditer(body)]
    ours = [frame for frame in frames if not _LIBRARY.search(frame[0])] or frames[-1:]
    own = [frame for frame in ours if frame[2] == name]
    at = own[-1] if own else (ours[-1] if ours else ("", 0, ""))
    deepest = ours[-1] if ours else at
    also = f"{deepest[0]}:{deepest[1]}" if deepest[:2] != at[:2] and deepest[0] != at[0] else ""
    last_frame = 0
    for frame in _FRAME.finditer(body):
        last_frame = frame.end()
    raised = _RAISED.search(body, last_frame)
    return Failure(_qualified(title), at[0], at[1], raised[0] if raised else "", also)


def _qualified(title: str) -> str:
    """`test_a (test_u.T.test_a) (i=0)` as `test_u.T.test_a (i=0)`; import errors by the module's name."""
    found = re.match(r"(\S+) \(([\w.]+)\)(.*)", title)
    if found is None:
        return title
    name, where, rest = found[1], found[2], found[3].rstrip()
    if "_FailedTest" in where:
        return name
    return (where if where.endswith(f".{name}") else f"{where}.{name}") + rest

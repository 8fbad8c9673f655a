"""Finding a text, and files by name."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Generator
from typing import Final, NamedTuple

from codex_py.offline.intent import Find
from codex_py.offline.pattern import Pattern
from codex_py.offline.result import Result
from codex_py.offline.script import Request, Script, look, look_at_all, require
from codex_py.offline.text import clip, count, ticked

_NO_PROGRAM: Final = 127
_SHOWN: Final = 40
_MATCH: Final = Pattern(r"(?:\./)?([^\n]+?):(\d{1,9}):(.*)\Z")
_DEFINING: Final = (
    r"(?:\b(?:def|class|func|function|fn|struct|enum|interface|trait|type|const|let|var|val|static|module|namespace|"
    r"macro_rules!|define|sub|record|protocol)\b[\s(*&]*(?:\w+\s+|\([^)\n]{{0,80}}\)\s*)?{name}\b|^\s*(?:export\s+)?{name}\s*(?::[^=\n]{{1,80}})?=(?!=))"
)


class Match(NamedTuple):
    path: str
    line: int
    text: str


class Matches(NamedTuple):
    """`total` and `files` count also what is not among `matches`; `at_least` where that could not be counted."""

    matches: tuple[Match, ...]
    per_file: Counter[str]
    total: int
    files: int
    at_least: bool = False


def find(wish: Find) -> Script:
    """Search the contents, then the file names; without case when the exact text is nowhere."""
    needle = wish.needle.strip("\n").split("\n", 1)[0]
    matches = yield from _search(needle, ignore_case=False)
    names = yield from _search_names(needle)
    folded = False
    if not matches.total and not names:
        matches = yield from _search(needle, ignore_case=True)
        folded = bool(matches.total)
    return report(needle, matches, names, definition=wish.definition, folded=folded)


def _search(needle: str, *, ignore_case: bool) -> Generator[tuple[Request, ...], tuple[Result, ...], Matches]:
    text, case = shlex.quote(needle), " -i" if ignore_case else ""
    search = (
        f"rg -n --no-heading --color=never --hidden --glob '!.git' --max-columns 300{case} --fixed-strings -e {text} ."
    )
    counting = f"rg -c --color=never --hidden --glob '!.git'{case} --fixed-strings -e {text} ."
    shown = yield from look(search)
    if shown.exit_code == _NO_PROGRAM:
        grep = f"grep -rI --exclude-dir=.git --exclude-dir=node_modules --exclude-dir=.venv{case} -F -e {text}"
        search, counting = f"{grep} -n .", f"{grep} -c . | grep -v ':0$'"
        shown = require((yield from look(search)), "grep")
    matches = tuple(match for line in shown.lines if (match := _match(line)))
    per_file = Counter(match.path for match in matches)
    if not shown.cut:
        return Matches(matches, per_file, sum(per_file.values()), len(per_file))
    # The files may be too many to show as well, so that they are counted where they are.
    tally, most = yield from look_at_all(
        [
            f"{counting} | awk -F: '{{ lines += $NF }} END {{ print NR, lines + 0 }}'",
            f"{counting} | awk -F: '{{ print $NF \":\" $0 }}' | sort -t: -k1,1rn -k2 | head -n 40 | cut -d: -f2-",
        ]
    )
    numbers = tally.text.split()
    if len(numbers) != 2 or not all(number.isdigit() for number in numbers):
        return Matches(matches, per_file, len(matches), len(per_file), at_least=True)
    files, total = map(int, numbers)
    return Matches(matches, Counter(_counts(most)) or per_file, total, files)


def _search_names(needle: str) -> Generator[tuple[Request, ...], tuple[Result, ...], list[str]]:
    """Files whose path has the text, when it could be a name at all."""
    if not re.fullmatch(r"[\w./@+-]{2,100}", needle):
        return []
    quoted = shlex.quote(needle)
    named = yield from look(f"rg --files --hidden --glob '!.git' . | grep -iF -e {quoted} | head -n 50")
    if "not found" in named.text:
        named = yield from look(f"find . -not -path '*/.git/*' -type f | grep -iF -e {quoted} | head -n 50")
    return [line.removeprefix("./") for line in named.lines] if named.ok else []


def _match(line: str) -> Match | None:
    found = _MATCH.match(line)
    return Match(found[1], int(found[2]), found[3]) if found else None


def _counts(result: Result) -> dict[str, int]:
    pairs = (line.removeprefix("./").rpartition(":") for line in result.lines)
    return {path: int(number) for path, _, number in pairs if path and number.isdigit() and len(number) < 10}


def report(needle: str, found: Matches, names: list[str], *, definition: bool, folded: bool) -> str:
    """The places as `path:line`, the number of all of them, and files of that name."""
    shown_needle = ticked(clip(needle, 120))
    if not found.total and not names:
        return (
            f"{shown_needle} is nowhere in the files here (searched as fixed text, hidden files included, "
            f"ignored ones not)."
        )
    lines: list[str] = []
    if found.total:
        case = " when upper and lower case are taken as the same" if folded else ""
        least = "at least " if found.at_least else ""
        lines.append(f"{shown_needle} is on {least}{count(found.total, 'line')} in {count(found.files, 'file')}{case}:")
        lines += _places(needle, found, definition=definition)
    else:
        lines.append(f"{shown_needle} is in no file's text.")
    if names:
        more = f" and {len(names) - 10} more" if len(names) > 10 else ""
        lines += ["", f"Files with it in their name: {', '.join(ticked(name) for name in names[:10])}{more}"]
    return "\n".join(lines)


def _places(needle: str, found: Matches, *, definition: bool) -> list[str]:
    defining = re.compile(_DEFINING.format(name=re.escape(needle)))
    first = [match for match in found.matches if defining.search(match.text[:400])] if definition else []
    rest = [match for match in found.matches if match not in first] if first else list(found.matches)
    lines = [""]
    if first:
        lines += ["Defined at:", *map(_place, first[:_SHOWN])]
        lines += ["", "Other places:"] if rest else []
    elif definition:
        lines += ["No line of these looks like a definition."]
    shown = rest[: max(5, _SHOWN - len(first))]
    lines += map(_place, shown)
    left = found.total - len(shown) - len(first[:_SHOWN])
    if left > 0:
        most = ", ".join(f"{ticked(path)} ({number})" for path, number in found.per_file.most_common(6))
        lines += [f"- … and {count(left, 'more line')}; most are in {most}"]
    return lines


def _place(match: Match) -> str:
    return f"- `{match.path}:{match.line}`: {ticked(clip(match.text, 160))}"

"""Whether skills help: their uses in the ledger, what they cost, how their turns ended, and a verdict."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from codex_py.protocol.encoding import as_list, as_object, timestamp
from codex_py.protocol.value import Value
from codex_py.skills.lint_references import LintFinding
from codex_py.skills.model import Skill
from codex_py.skills.usage import WAYS

# A use that puts more into the context, or a text of more lines, wants shortening.
_MANY_TOKENS: Final = 5_000
_MANY_LINES: Final = 500
_OFTEN_NAMED: Final = 3
_MIN_FAULTS: Final = 2
_CHOSEN: Final = ("suggested", "model")
# Of two outcomes of a turn the one further on counts.
_OUTCOMES: Final = ("completed", "failed", "interrupted", "corrected", "undone")
_USES: Final = ("explicit", "read", "script")


class SkillFacts(Value):
    """Facts about a skill that need no ledger. `line_tokens` is what its line in the list takes, 0 when not listed.

    `stale` are the findings about references that lead nowhere, `overlaps` the names of skills described alike.
    """

    skill: Skill
    body_tokens: int
    body_lines: int
    line_tokens: int
    says_when: bool
    stale: tuple[LintFinding, ...] = ()
    overlaps: tuple[str, ...] = ()


class UseRecord(Value):
    """The ledger's record of a skill. `tokens` are all it put into contexts; `exits` are exit codes of its scripts."""

    ways: Mapping[str, int]
    outcomes: Mapping[str, int]
    tokens: int = 0
    exits: tuple[int, ...] = ()
    last_used: str = ""
    projects: frozenset[str] = frozenset()

    @property
    def uses(self) -> int:
        return sum(self.ways.values())

    @property
    def completed(self) -> float | None:
        """The share of its turns that were completed and left as they are; None when no end of one is known."""
        total = sum(self.outcomes.values())
        return self.outcomes.get("completed", 0) / total if total else None

    @property
    def failing(self) -> int:
        """How often a script of it ended with an error."""
        return sum(code != 0 for code in self.exits)


NO_USES: Final = UseRecord({}, {})


class SkillAssessment(Value):
    """A skill, its record, and what to do about it, with the reason."""

    facts: SkillFacts
    record: UseRecord
    verdict: str
    reason: str

    @property
    def tokens(self) -> int:
        """The tokens of one use: as recorded, else as its text is long."""
        measured = self.record.uses and round(self.record.tokens / self.record.uses)
        return measured or self.facts.body_tokens


class _Tally:
    """Counts what becomes a `UseRecord`."""

    def __init__(self) -> None:
        self.ways: Counter[str] = Counter()
        self.turns: set[tuple[str, str]] = set()
        self.tokens = 0
        self.exits: list[int] = []
        self.last_used = ""
        self.projects: set[str] = set()

    def add_use(self, entry: Mapping[str, Any]) -> None:
        self.ways[_way(entry)] += 1
        self.tokens += _count(entry.get("tokens"))
        self.last_used = max(self.last_used, str(entry.get("at")))
        self.turns.add((str(entry.get("session", "")), str(entry.get("turn", ""))))
        if isinstance(project := entry.get("project"), str):
            self.projects.add(project)

    def record(self, ends: Mapping[tuple[str, str], str]) -> UseRecord:
        outcomes = Counter(ends[turn] for turn in self.turns if turn in ends)
        ways = {way: self.ways[way] for way in WAYS if self.ways[way]}
        return UseRecord(ways, outcomes, self.tokens, tuple(self.exits), self.last_used, frozenset(self.projects))


def read_records(entries: Iterable[Mapping[str, Any]], since: float | None = None) -> dict[str, UseRecord]:
    """The records of the skills in the lines of a ledger, by the path of the `SKILL.md`.

    With `since`, in seconds since the epoch, older lines count as none. Lines that make no sense are skipped.
    """
    first = "" if since is None else timestamp(since)
    tallies: dict[str, _Tally] = {}
    ends: dict[tuple[str, str], str] = {}
    for entry in entries:
        at, path, kind = entry.get("at"), entry.get("path"), entry.get("kind")
        if not isinstance(at, str) or at < first:
            continue
        if kind == "turn":
            _note_end(entry, ends, tallies)
        elif isinstance(path, str) and kind in _USES:
            tallies.setdefault(path, _Tally()).add_use(entry)
    return {path: tally.record(ends) for path, tally in tallies.items() if tally.ways}


def judge_skills(
    facts: Sequence[SkillFacts], records: Mapping[str, UseRecord], period: str = ""
) -> tuple[SkillAssessment, ...]:
    """A verdict for each skill, the most used first. `period` is how the time span is called, as in `90d`."""
    judged = [_judge(known, records.get(str(known.skill.canonical_path), NO_USES), period) for known in facts]
    return tuple(sorted(judged, key=lambda entry: (-entry.record.uses, entry.facts.skill.name)))


def _judge(facts: SkillFacts, record: UseRecord, period: str) -> SkillAssessment:
    verdict, reason = _verdict(facts, record)
    if not record.uses:
        unused = f"not used in the last {period}" if period else "no use on record"
        if not verdict:
            verdict, reason = "unused", unused
        else:
            reason = f"{reason}; {unused}"
    elif not verdict:
        share = record.completed
        turns = "" if share is None else f", {share:.0%} of its turns completed"
        verdict, reason = "keep", f"used {_times(record.uses)}{turns}"
    return SkillAssessment(facts, record, verdict, reason)


def _verdict(facts: SkillFacts, record: UseRecord) -> tuple[str, str]:
    """The most urgent reason against leaving a skill as it is, as a verdict and a sentence; both empty without one."""
    runs, failing = len(record.exits), record.failing
    if failing >= _MIN_FAULTS and failing * 2 >= runs:
        return "fix", f"its scripts failed {failing} of {runs} times"
    known = sum(record.outcomes.values())
    bad = {name: record.outcomes[name] for name in _OUTCOMES[2:] if record.outcomes.get(name)}
    if sum(bad.values()) >= _MIN_FAULTS and sum(bad.values()) * 2 >= known:
        listed = ", ".join(f"{count} {name}" for name, count in bad.items())
        return "fix", f"of {known} turns {listed}"
    named = sum(count for way, count in record.ways.items() if way not in _CHOSEN)
    if named >= _OFTEN_NAMED and named == record.uses and facts.skill.allow_implicit:
        reason = "its description may not say when" if facts.says_when else "its description does not say when"
        return "never chosen by the model", f"named {_times(named)} and never chosen by the model: {reason}"
    for first, *rest in (facts.stale,) if facts.stale else ():
        more = f" (and {len(rest)} more)" if rest else ""
        return "stale", f"{first.path.name}:{first.line}: {first.message}{more}"
    for first, *rest in (facts.overlaps,) if facts.overlaps else ():
        more = f" and {len(rest)} more" if rest else ""
        return f"overlaps with {first}", f"its description is nearly that of `{first}`{more}"
    if facts.body_lines > _MANY_LINES:
        return "shorten", f"{facts.body_lines:,} lines: move what is not always needed into `references/`"
    tokens = round(record.tokens / record.uses) if record.uses else facts.body_tokens
    if tokens > _MANY_TOKENS:
        return "shorten", f"a use takes {tokens:,} tokens"
    return "", ""


def _note_end(entry: Mapping[str, Any], ends: dict[tuple[str, str], str], tallies: dict[str, _Tally]) -> None:
    outcome, key = entry.get("outcome"), (str(entry.get("session", "")), str(entry.get("turn", "")))
    if outcome not in _OUTCOMES:
        return
    before = ends.get(key, outcome)
    ends[key] = max(before, outcome, key=_OUTCOMES.index)
    for used in map(as_object, as_list(entry.get("skills"))):
        if isinstance(path := used.get("path"), str):
            tally = tallies.setdefault(path, _Tally())
            tally.tokens += _count(used.get("tokens"))
            tally.exits += [code for code in as_list(used.get("exits")) if isinstance(code, int)]


def _way(entry: Mapping[str, Any]) -> str:
    """How a use came about; lines of earlier versions do not say."""
    if (way := entry.get("way")) in WAYS:
        return str(way)
    if entry.get("kind") == "explicit":
        return "named"
    return "suggested" if entry.get("suggested") is True else "model"


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def parse_since(text: str, now: float | None = None) -> float | None:
    """The moment that `90d`, `12h`, `2w`, `6m`, `1y` or a date as `2026-01-31` means; None for anything else."""
    units = {"h": 3600, "d": 86_400, "w": 7 * 86_400, "m": 30 * 86_400, "y": 365 * 86_400}
    word = text.strip().lower()
    number, unit = word[:-1], word[-1:]
    moment = time.time() if now is None else now
    if unit in units and number.isascii() and number.isdigit() and len(number) <= 6:
        return max(0.0, moment - int(number) * units[unit])
    try:
        return time.mktime(time.strptime(word, "%Y-%m-%d"))
    except (ValueError, OverflowError):
        return None

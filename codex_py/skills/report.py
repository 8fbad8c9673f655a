"""Whether skills help: their uses in the ledger, how their turns ended, and a verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

from codex_py.protocol.encoding import as_list, as_object, timestamp
from codex_py.protocol.value import Value
from codex_py.skills.usage import WAYS
from codex_py.text.display import counted

# A use that puts more into the context, or a text of more lines, wants shortening.
_MANY_TOKENS: Final = 5_000
_MANY_LINES: Final = 500
_OFTEN_NAMED: Final = 3
_MIN_FAULTS: Final = 2
# Of two outcomes of a turn the one further on counts.
_OUTCOMES: Final = ("completed", "failed", "interrupted", "corrected", "undone")
_USES: Final = ("explicit", "read", "script")


class SkillFacts(Value):
    """The facts about a skill that need no ledger."""

    name: str
    body_tokens: int
    body_lines: int
    allow_implicit: bool
    says_when: bool
    stale: tuple[str, ...]
    """Each reference that leads nowhere, and script that does not parse, in words."""
    overlaps: tuple[str, ...]
    """The names of skills that are described alike."""


class UseRecord:
    """The ledger's record of one skill."""

    def __init__(self) -> None:
        self.name = self.scope = self.last_used = ""
        self.ways: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.projects: set[str] = set()
        self.exits: list[int] = []
        self.explicit = self.tokens = 0

    @property
    def uses(self) -> int:
        """The number of uses; in `explicit` of them the user mentioned or picked the skill."""
        return self.ways.total()

    @property
    def completed(self) -> float | None:
        """The share of its turns that were completed and left as they are; None when no end of one is known."""
        return self.outcomes["completed"] / self.outcomes.total() if self.outcomes else None

    @property
    def failing(self) -> int:
        """How often a script of it ended with an error."""
        return sum(code != 0 for code in self.exits)

    def add_use(self, entry: Mapping[str, Any]) -> None:
        """Count one line of the ledger; lines of earlier versions do not say how a use came about."""
        is_explicit = entry.get("kind") == "explicit"
        way = "named" if is_explicit else "suggested" if entry.get("suggested") is True else "model"
        self.ways[entry["way"] if entry.get("way") in WAYS else way] += 1
        self.explicit += is_explicit
        self.tokens += _count(entry.get("tokens"))
        self.name, self.scope = str(entry.get("name", "")), str(entry.get("scope", ""))
        self.last_used = max(self.last_used, str(entry.get("at")))
        if isinstance(project := entry.get("project"), str):
            self.projects.add(project)


def read_records(entries: Iterable[Mapping[str, Any]], since: float | None = None) -> dict[str, UseRecord]:
    """The records of the skills in the lines of a ledger, by the path of the `SKILL.md`.

    With `since`, in seconds since the epoch, older lines are left out. Lines that make no sense are skipped.
    """
    first = "" if since is None else timestamp(since)
    records: dict[str, UseRecord] = {}
    turns: dict[tuple[str, str], set[str]] = {}
    ends: dict[tuple[str, str], str] = {}
    for entry in entries:
        at, path, outcome = entry.get("at"), entry.get("path"), entry.get("outcome")
        turn = str(entry.get("session", "")), str(entry.get("turn", ""))
        if not isinstance(at, str) or at < first:
            continue
        if entry.get("kind") == "turn" and outcome in _OUTCOMES:
            ends[turn] = max(ends.get(turn, outcome), outcome, key=_OUTCOMES.index)
            for used in map(as_object, as_list(entry.get("skills"))):
                if isinstance(name := used.get("path"), str):
                    record = records.setdefault(name, UseRecord())
                    record.tokens += _count(used.get("tokens"))
                    record.exits += [code for code in as_list(used.get("exits")) if isinstance(code, int)]
        elif isinstance(path, str) and entry.get("kind") in _USES:
            records.setdefault(path, UseRecord()).add_use(entry)
            turns.setdefault(turn, set()).add(path)
    for turn, outcome in ends.items():
        for path in turns.get(turn, ()):
            records[path].outcomes[outcome] += 1
    return {path: record for path, record in records.items() if record.uses}


def judge(facts: SkillFacts, record: UseRecord, period: str) -> tuple[str, str]:
    """A verdict on a skill, and its reason. `period` is how the time span is called, as in `90d`."""
    verdict, reason = _urgent_verdict(facts, record)
    if record.uses:
        turns = "" if record.completed is None else f", {record.completed:.0%} of its turns completed"
        return (verdict, reason) if verdict else ("keep", f"used {counted(record.uses, 'time')}{turns}")
    unused = f"not used in the last {period}" if period else "no use on record"
    return (verdict, f"{reason}; {unused}") if verdict else ("unused", unused)


def _urgent_verdict(facts: SkillFacts, record: UseRecord) -> tuple[str, str]:
    """The most urgent reason against leaving a skill as it is; both texts are empty without one."""
    runs, failing, known = len(record.exits), record.failing, record.outcomes.total()
    if failing >= _MIN_FAULTS and failing * 2 >= runs:
        return "fix", f"its scripts failed {failing} of {runs} times"
    bad = {name: record.outcomes[name] for name in _OUTCOMES[2:] if record.outcomes[name]}
    if sum(bad.values()) >= _MIN_FAULTS and sum(bad.values()) * 2 >= known:
        return "fix", f"of {known} turns {', '.join(f'{count} {name}' for name, count in bad.items())}"
    if record.uses >= _OFTEN_NAMED and facts.allow_implicit and not (record.ways["suggested"] or record.ways["model"]):
        reason = "its description may not say when" if facts.says_when else "its description does not say when"
        return (
            "never chosen by the model",
            f"named {counted(record.uses, 'time')} and never chosen by the model: {reason}",
        )
    if facts.stale:
        first, *more = facts.stale
        return "stale", first + (f" (and {len(more)} more)" if more else "")
    if facts.overlaps:
        first, *more = facts.overlaps
        others = f" and {len(more)} more" if more else ""
        return f"overlaps with {first}", f"its description is nearly that of `{first}`{others}"
    if facts.body_lines > _MANY_LINES:
        return "shorten", f"{facts.body_lines:,} lines: move what is not always needed into `references/`"
    if (tokens := tokens_of_a_use(facts, record)) > _MANY_TOKENS:
        return "shorten", f"a use takes {tokens:,} tokens"
    return "", ""


def tokens_of_a_use(facts: SkillFacts, record: UseRecord) -> int:
    """As recorded, else by the length of the text."""
    return round(record.tokens / record.uses) if record.tokens and record.uses else facts.body_tokens


def _count(value: object) -> int:
    return value if isinstance(value, int) and value > 0 else 0

"""What a drill has tried and what did not hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Report:
    """`problems` is empty when everything held; `counts` says how much of what was met, in words."""

    rounds: int = 0
    counts: Counter[str] = field(default_factory=Counter[str])
    problems: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        met = ", ".join(f"{count} {what}" for what, count in sorted(self.counts.items()))
        return f"{self.rounds} rounds: {met}; {len(self.problems)} problems"

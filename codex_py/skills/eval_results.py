"""The result of a skill's evaluations: activation, pass rates, tokens and time with it and without it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean, variance
from typing import Final, Literal, NamedTuple, TypeAlias

from codex_py.protocol.value import Value
from codex_py.skills.evals import Check, EvalCase

Arm: TypeAlias = Literal["with", "without"]
ARMS: Final[tuple[Arm, ...]] = ("with", "without")
# Of a normal distribution, for an interval that holds 95 of 100 times.
_Z: Final = 1.96


class CheckResult(Value):
    """Whether a check passed, and in one line why it did not."""

    check: Check
    passed: bool
    detail: str = ""


class EvalRun(Value):
    """One run of a case."""

    case: EvalCase
    arm: Arm
    used: bool = False
    checks: tuple[CheckResult, ...] = ()
    tokens: int = 0
    seconds: float = 0.0
    usd: float = 0.0
    failure: str = ""
    """Why the run could not be judged; it counts in no rate then."""
    answer: str = ""
    unjudged: str = ""
    """Why the sentences of the case were not judged."""

    @property
    def is_right_use(self) -> bool:
        """Whether the skill was used when it should be, or left alone when not."""
        return self.used == self.case.wants_skill

    @property
    def relevant_checks(self) -> tuple[CheckResult, ...]:
        """The checks that count. Without the skill it cannot be used, so its use counts only if nothing else does."""
        others = tuple(result for result in self.checks if result.check.type != "skill")
        return others if others and self.arm == "without" else self.checks

    @property
    def passed(self) -> bool | None:
        """Whether every check that counts passed; None where nothing was checked."""
        checks = self.relevant_checks
        return all(result.passed for result in checks) if checks and not self.failure else None


class Interval(NamedTuple):
    """A difference, and the bounds between which the true one lies 95 of 100 times; None where too little was run."""

    value: float
    low: float | None = None
    high: float | None = None


class EvalResult(Value):
    """The outcome of a whole test. Differences are with the skill minus without it."""

    eval_runs: tuple[EvalRun, ...]

    def judged(self, arm: Arm) -> list[EvalRun]:
        """The runs of an arm that count."""
        return [eval_run for eval_run in self.eval_runs if eval_run.arm == arm and not eval_run.failure]

    def verdicts(self, arm: Arm) -> list[bool]:
        """Whether each run passed. A case that checks only the skill's use counts if no case checks a result."""
        runs = [eval_run for eval_run in self.judged(arm) if eval_run.checks]
        results = [eval_run for eval_run in runs if any(each.check.type != "skill" for each in eval_run.checks)]
        return [eval_run.passed is True for eval_run in results or runs]

    @property
    def activation(self) -> float | None:
        """How often the skill was used, or left alone, as it should be; None where no run could be judged."""
        return mean([eval_run.is_right_use for eval_run in self.judged("with")])

    def mean_difference(self, value: Callable[[EvalRun], float]) -> Interval | None:
        """The difference of the means of a value."""
        first, second = ([value(eval_run) for eval_run in self.judged(arm)] for arm in ARMS)
        if not first or not second:
            return None
        difference = fmean(first) - fmean(second)
        if min(len(first), len(second)) < 2:
            return Interval(difference)
        error = _Z * math.sqrt(variance(first) / len(first) + variance(second) / len(second))
        return Interval(difference, difference - error, difference + error)

    def rate_difference(self) -> Interval | None:
        """The difference of the pass rates, with the interval of Agresti and Caffo, which holds for few runs too."""
        first, second = (self.verdicts(arm) for arm in ARMS)
        if not first or not second:
            return None
        # A success and a failure are added to each arm.
        (rate_1, total_1), (rate_2, total_2) = (
            ((sum(arm) + 1) / (len(arm) + 2), len(arm) + 2) for arm in (first, second)
        )
        error = _Z * math.sqrt(rate_1 * (1 - rate_1) / total_1 + rate_2 * (1 - rate_2) / total_2)
        low, high = rate_1 - rate_2 - error, rate_1 - rate_2 + error
        return Interval(fmean(first) - fmean(second), max(-1.0, low), min(1.0, high))


def mean(values: Sequence[float]) -> float | None:
    """The mean; None of nothing."""
    return fmean(values) if values else None

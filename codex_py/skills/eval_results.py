"""The result of a skill's evaluations: activation, pass rates, tokens and time with it and without it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from codex_py.protocol.value import Value
from codex_py.skills.evals import Check, EvalCase, SkillCheck

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
    """One run of a case. `failure` is why it could not be judged; such a run counts in no rate.

    `unjudged` is why the sentences of the case were not judged.
    """

    case: EvalCase
    arm: Arm
    used: bool = False
    checks: tuple[CheckResult, ...] = ()
    tokens: int = 0
    seconds: float = 0.0
    usd: float = 0.0
    failure: str = ""
    answer: str = ""
    unjudged: str = ""

    @property
    def is_right_use(self) -> bool:
        """Whether the skill was used when it should be, or left alone when not."""
        return self.used == self.case.wants_skill

    @property
    def has_result_checks(self) -> bool:
        """Whether something was checked that a run without the skill can pass or fail."""
        return any(not isinstance(result.check, SkillCheck) for result in self.checks)

    def passes(self, *, judges_use: bool) -> bool:
        """Whether every check passed; `judges_use` counts those of the skill's use too."""
        return all(result.passed for result in self.checks if judges_use or not isinstance(result.check, SkillCheck))


class Interval(NamedTuple):
    """A difference, and the bounds between which the true one lies 95 of 100 times; None where too little was run."""

    value: float
    low: float | None = None
    high: float | None = None


class ArmResult(Value):
    """The figures of one arm; a rate and the means are None where no run could be judged."""

    eval_runs: int
    passed: int
    judged: int
    tokens: float | None
    seconds: float | None

    @property
    def pass_rate(self) -> float | None:
        return self.passed / self.judged if self.judged else None


class EvalResult(Value):
    """The outcome of a whole test; the differences are with the skill minus without it."""

    eval_runs: tuple[EvalRun, ...]
    activation: float | None
    arms: dict[Arm, ArmResult]
    pass_rate: Interval | None
    tokens: Interval | None
    seconds: Interval | None

    @property
    def failures(self) -> tuple[EvalRun, ...]:
        return tuple(eval_run for eval_run in self.eval_runs if eval_run.failure)


def sum_up(eval_runs: Sequence[EvalRun]) -> EvalResult:
    """The rates, means and differences of some runs."""
    done = [eval_run for eval_run in eval_runs if not eval_run.failure]
    arms: dict[Arm, ArmResult] = {arm: _arm(done, arm) for arm in ARMS}
    with_skill = [eval_run for eval_run in done if eval_run.arm == "with"]
    activation = sum(eval_run.is_right_use for eval_run in with_skill) / len(with_skill) if with_skill else None
    return EvalResult(
        tuple(eval_runs),
        activation,
        arms,
        _rate_difference(arms["with"], arms["without"]),
        _mean_difference(done, lambda eval_run: float(eval_run.tokens)),
        _mean_difference(done, lambda eval_run: eval_run.seconds),
    )


def _arm(done: Sequence[EvalRun], arm: Arm) -> ArmResult:
    eval_runs = [eval_run for eval_run in done if eval_run.arm == arm]
    judged, judges_use = _judged(eval_runs, arm)
    return ArmResult(
        eval_runs=len(eval_runs),
        passed=sum(eval_run.passes(judges_use=judges_use) for eval_run in judged),
        judged=len(judged),
        tokens=_mean([float(eval_run.tokens) for eval_run in eval_runs]),
        seconds=_mean([eval_run.seconds for eval_run in eval_runs]),
    )


def _judged(eval_runs: Sequence[EvalRun], arm: Arm) -> tuple[list[EvalRun], bool]:
    """The runs that count for the pass rate, and whether using the skill counts in them.

    Without the skill it cannot be used, so only what came out counts; where nothing else is checked, its use is.
    """
    checked = [eval_run for eval_run in eval_runs if eval_run.checks]
    with_results = [eval_run for eval_run in checked if eval_run.has_result_checks]
    return (with_results, arm == "with") if with_results else (checked, True)


def _rate_difference(first: ArmResult, second: ArmResult) -> Interval | None:
    """The difference of two pass rates, with the interval of Newcombe, which holds for few runs too."""
    if first.pass_rate is None or second.pass_rate is None:
        return None
    low_1, high_1 = _wilson(first.passed, first.judged)
    low_2, high_2 = _wilson(second.passed, second.judged)
    rate_1, rate_2 = first.pass_rate, second.pass_rate
    value = rate_1 - rate_2
    low = value - math.hypot(rate_1 - low_1, high_2 - rate_2)
    high = value + math.hypot(high_1 - rate_1, rate_2 - low_2)
    return Interval(value, max(-1.0, low), min(1.0, high))


def _wilson(passed: int, total: int) -> tuple[float, float]:
    rate, square = passed / total, _Z * _Z
    middle = (rate + square / (2 * total)) / (1 + square / total)
    half = _Z / (1 + square / total) * math.sqrt(rate * (1 - rate) / total + square / (4 * total * total))
    return middle - half, middle + half


def _mean_difference(done: Sequence[EvalRun], value: Callable[[EvalRun], float]) -> Interval | None:
    groups = [[value(eval_run) for eval_run in done if eval_run.arm == arm] for arm in ARMS]
    means = [_mean(group) for group in groups]
    if means[0] is None or means[1] is None:
        return None
    difference = means[0] - means[1]
    if min(map(len, groups)) < 2:
        return Interval(difference)
    error = math.sqrt(sum(_variance(group) / len(group) for group in groups))
    return Interval(difference, difference - _Z * error, difference + _Z * error)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _variance(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    return sum((value - mean) ** 2 for value in values) / (len(values) - 1)

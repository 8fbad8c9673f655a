"""`codex-py skills test`: runs a skill's evaluations and prints whether the skill is worth its tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from codex_py.batch.skill_evals import EvalPlan, run_evals
from codex_py.cli.console import aligned, print_json, print_note
from codex_py.cli.html_page import Bar, render_page, write_page
from codex_py.cli.skill_choice import Cwd, Target, choose_skills, expanded, look_here
from codex_py.cli.typer_command import Json, Overrides, Profile
from codex_py.core.build import OFFLINE_PROVIDER
from codex_py.errors import UsageError, UserError
from codex_py.protocol.usage import describe_usd
from codex_py.services.skill_checks import describe_check
from codex_py.skills.eval_results import ARMS, ArmResult, EvalResult, EvalRun, Interval
from codex_py.skills.evals import MAX_RUNS, SentenceCheck, SkillCheck, read_evals
from codex_py.text.display import counted
from codex_py.text.sanitize import sanitize_line

_SHOWN: Final = 60


def test_skill(
    target: Target,
    model: Annotated[str | None, typer.Option("-m", "--model", metavar="MODEL", help="The model to test with.")] = None,
    offline: Annotated[bool, typer.Option("--offline", help="Use the built-in rules instead of a model.")] = False,
    runs: Annotated[
        int | None, typer.Option("--runs", metavar="N", min=1, max=MAX_RUNS, help="Runs of each prompt in each arm.")
    ] = None,
    jobs: Annotated[
        int, typer.Option("-j", "--jobs", metavar="N", min=1, max=16, help="So many runs at the same time.")
    ] = 1,
    max_usd: Annotated[
        float | None, typer.Option("--max-usd", metavar="USD", help="Spend at most this much in all.")
    ] = None,
    triggers: Annotated[
        bool, typer.Option("--triggers", help="Only look whether the skill is chosen: one request a prompt.")
    ] = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page too.")] = None,
    cwd: Cwd = None,
    overrides: Overrides = None,
    profile: Profile = None,
    as_json: Json = False,
) -> int:
    """Run the evaluations of a skill with it and without it: whether it is chosen, what it helps and costs.

    They are in `evals/*.yaml` or `evals.json` of the skill. Each prompt runs in a fresh directory.
    """
    if max_usd is not None and not 0 < max_usd < float("inf"):
        raise UsageError("`--max-usd` needs an amount above 0")
    if model == OFFLINE_PROVIDER:
        model, offline = None, True
    chosen = {"model": model, "model_provider": OFFLINE_PROVIDER if offline else None}
    found = look_here(cwd, overrides, profile)
    config = found.request.replace(flags={key: value for key, value in chosen.items() if value is not None})
    skill, *others = choose_skills(found.catalog, target).skills
    if others:
        raise UserError(f"the skill `{target}` is the name of several skills: use the path of one")
    plan = EvalPlan(
        skill=skill,
        cases=read_evals(skill.directory),
        config=config,
        runs=runs,
        jobs=jobs,
        max_usd=max_usd,
        triggers=triggers,
    )
    return _run_test(plan, as_json=as_json, page=expanded(html) if html else None)


def _run_test(plan: EvalPlan, *, as_json: bool, page: Path | None) -> int:
    """Run the evaluations and print the result; the status is 1 when a run could not be judged. Raises `UserError`."""
    total = sum((plan.runs or case.runs or 1) * (1 if plan.triggers else 2) for case in plan.cases)
    done = 0

    def report(eval_run: EvalRun) -> None:
        nonlocal done
        done += 1
        print_note(f"{done}/{total} {eval_run.arm} the skill: {_first_line(eval_run.case.prompt)}: {_state(eval_run)}")

    result = asyncio.run(run_evals(plan, report))
    if page is not None:
        write_page(page, _page(plan, result))
    if as_json:
        print_json(_object(plan, result))
    else:
        _print_result(plan, result)
    print_note(*_sentence_notes(result))
    for message in dict.fromkeys(eval_run.failure for eval_run in result.failures):
        count = sum(eval_run.failure == message for eval_run in result.failures)
        print_note(f"{count} of {total} runs count in no rate: {message}")
    return 1 if result.failures else 0


def _sentence_notes(result: EvalResult) -> Iterator[str]:
    """Lines about the sentences that the model judged, and about the others with the reason."""
    checks = [checked.check for eval_run in result.eval_runs for checked in eval_run.checks]
    if judged := sum(isinstance(check, SentenceCheck) for check in checks):
        yield f"the model judged {counted(judged, 'sentence')}; they count in the pass rates"
    for reason in dict.fromkeys(eval_run.unjudged for eval_run in result.eval_runs if eval_run.unjudged):
        left = sum(len(eval_run.case.expectations) for eval_run in result.eval_runs if eval_run.unjudged == reason)
        yield f"the model did not judge {counted(left, 'sentence')} ({reason}); `--json` has them beside the answers"


def _state(eval_run: EvalRun) -> str:
    if eval_run.failure:
        return eval_run.failure
    used = "used" if eval_run.used else "not used"
    # Without the skill it cannot be used, which is no reason to fail where something else is checked.
    counts_use = eval_run.arm == "with" or not eval_run.has_result_checks
    relevant = [result for result in eval_run.checks if counts_use or not isinstance(result.check, SkillCheck)]
    failed = [result.detail for result in relevant if not result.passed]
    if not relevant:
        return used
    return f"{used}, passed" if not failed else f"{used}, failed: {failed[0]}"


def _first_line(text: str) -> str:
    line = sanitize_line(text.strip().partition("\n")[0])
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"


def _object(plan: EvalPlan, result: EvalResult) -> dict[str, Any]:
    head: dict[str, Any] = {"skill": plan.skill.name, "path": str(plan.skill.path), "activation": result.activation}
    if not plan.triggers:
        head |= {arm: _arm_object(result.arms[arm]) for arm in ARMS}
        head["difference"] = {
            "pass_rate": _interval_object(result.pass_rate),
            "tokens": _interval_object(result.tokens),
            "seconds": _interval_object(result.seconds),
        }
    return {
        **head,
        "tokens": sum(eval_run.tokens for eval_run in result.eval_runs),
        "usd": round(sum(eval_run.usd for eval_run in result.eval_runs), 6),
        "failed": len(result.failures),
        "runs": [_run_object(eval_run) for eval_run in result.eval_runs],
    }


def _arm_object(arm: ArmResult) -> dict[str, Any]:
    return {
        "runs": arm.eval_runs,
        "judged": arm.judged,
        "passed": arm.passed,
        "pass_rate": arm.pass_rate,
        "tokens": arm.tokens,
        "seconds": None if arm.seconds is None else round(arm.seconds, 3),
    }


def _interval_object(interval: Interval | None) -> dict[str, Any] | None:
    if interval is None:
        return None
    return {name: None if value is None else round(value, 4) for name, value in interval._asdict().items()}


def _run_object(eval_run: EvalRun) -> dict[str, Any]:
    return {
        "case": eval_run.case.name,
        "prompt": eval_run.case.prompt,
        "arm": eval_run.arm,
        "used": eval_run.used,
        "should_use": eval_run.case.wants_skill,
        "passed": None
        if eval_run.failure or not eval_run.checks
        else eval_run.passes(judges_use=eval_run.arm == "with" or not eval_run.has_result_checks),
        "checks": [
            {"check": describe_check(result.check), "passed": result.passed, "detail": result.detail}
            for result in eval_run.checks
        ],
        "expectations": list(eval_run.case.expectations),
        "not_judged": eval_run.unjudged or None,
        "tokens": eval_run.tokens,
        "seconds": round(eval_run.seconds, 3),
        "usd": round(eval_run.usd, 6),
        "failure": eval_run.failure or None,
        "answer": eval_run.answer,
    }


def _print_result(plan: EvalPlan, result: EvalResult) -> None:
    right = [eval_run for eval_run in result.eval_runs if eval_run.arm == "with" and not eval_run.failure]
    should = [eval_run for eval_run in right if eval_run.case.wants_skill]
    others = [eval_run for eval_run in right if not eval_run.case.wants_skill]
    print(f"skill: {sanitize_line(plan.skill.name)}")
    parts = [f"used {_ratio(should)} times when it should be"] if should else []
    parts += [f"left alone {_ratio(others)} times when not"] if others else []
    print(f"activation: {_percent(result.activation)} ({', '.join(parts) or 'nothing could be judged'})")
    if not plan.triggers:
        print("", *aligned(_table(result)), sep="\n")
    spent = sum(eval_run.usd for eval_run in result.eval_runs)
    if spent:
        print(f"\ncost: {describe_usd(spent)}")


def _table(result: EvalResult) -> list[tuple[str, ...]]:
    first, second = (result.arms[arm] for arm in ARMS)
    return [
        ("", "WITH", "WITHOUT", "DIFFERENCE", "95 % INTERVAL"),
        ("pass rate", _rate(first), _rate(second), *_difference(result.pass_rate, 100, "%")),
        ("tokens", _number(first.tokens), _number(second.tokens), *_difference(result.tokens, 1, "")),
        ("seconds", _number(first.seconds, 1), _number(second.seconds, 1), *_difference(result.seconds, 1, "", 1)),
    ]


def _ratio(eval_runs: Sequence[EvalRun]) -> str:
    return f"{sum(eval_run.is_right_use for eval_run in eval_runs)} of {len(eval_runs)}"


def _rate(arm: ArmResult) -> str:
    return "-" if arm.pass_rate is None else f"{arm.pass_rate:.0%} ({arm.passed} of {arm.judged})"


def _percent(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.0%}"


def _number(value: float | None, digits: int = 0) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _difference(interval: Interval | None, scale: int, unit: str, digits: int = 0) -> tuple[str, str]:
    if interval is None:
        return "-", "-"

    def show(value: float) -> str:
        return f"{value * scale:+,.{digits}f}{unit}"

    bounds = "-"
    if interval.low is not None and interval.high is not None:
        bounds = f"{show(interval.low)} to {show(interval.high)}"
    return show(interval.value), bounds


def _page(plan: EvalPlan, result: EvalResult) -> str:
    most = max((float(eval_run.tokens) for eval_run in result.eval_runs), default=0.0)
    rows: list[list[str | Bar]] = []
    for eval_run in result.eval_runs:
        tokens = Bar(f"{eval_run.tokens:,}", eval_run.tokens / (most or 1))
        rows.append(
            [
                eval_run.case.name,
                eval_run.case.prompt,
                eval_run.arm,
                _state(eval_run),
                tokens,
                f"{eval_run.seconds:.1f}",
                eval_run.answer,
            ]
        )
    notes = [f"Activation: {_percent(result.activation)}."]
    if not plan.triggers:
        notes += [
            f"{name.capitalize()}: {first} with the skill, {second} without it; difference {value} ({bounds})."
            for name, first, second, value, bounds in _table(result)[1:]
        ]
    head = ("Case", "Prompt", "Skill", "Result", "Tokens", "Seconds", "Answer")
    return render_page(f"Test of the skill {plan.skill.name}", notes, head, rows)

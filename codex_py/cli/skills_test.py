"""`codex-py skills test`: runs a skill's evaluations and prints whether the skill is worth its tokens."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Final

import typer

from codex_py.batch.local_engine import open_local_engine
from codex_py.batch.skill_evals import EvalPlan, run_evals
from codex_py.cli.console import aligned, print_json, print_note
from codex_py.cli.html_page import write_page
from codex_py.cli.skill_choice import Cwd, Target, choose_skills, expanded, look_here
from codex_py.cli.typer_command import Json, Overrides, Profile
from codex_py.cli.worker import run_task
from codex_py.core.build import OFFLINE_PROVIDER
from codex_py.errors import UsageError, UserError
from codex_py.protocol.usage import describe_usd
from codex_py.skills.evals import ARMS, MAX_RUNS, Check, EvalRun, difference, judged_runs, read_evals, verdicts
from codex_py.text.display import counted
from codex_py.text.sanitize import sanitize_line

_SHOWN: Final = 60
# The rows of the table: title, key, and form of its numbers.
_ROWS: Final = (("pass rate", "pass_rate", ".0%"), ("tokens", "tokens", ",.0f"), ("seconds", "seconds", ".1f"))


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

    They are in `evals/evals.json` of the skill. Each prompt runs in a fresh directory.
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
    engine = open_local_engine(config.env, run_task)
    plan = EvalPlan(skill, read_evals(skill.directory), config, engine, runs, jobs, max_usd, triggers)
    total, done = len(plan.wanted), 0

    def report(eval_run: EvalRun) -> None:
        nonlocal done
        done += 1
        prompt = sanitize_line(eval_run.case.prompt.strip().partition("\n")[0])
        prompt = prompt if len(prompt) <= _SHOWN else f"{prompt[: _SHOWN - 1]}…"
        print_note(f"{done}/{total} {eval_run.arm} the skill: {prompt}: {_state(eval_run)}")

    eval_runs = asyncio.run(run_evals(plan, report))
    figures = _figures(eval_runs)
    if as_json:
        runs_of_all = list(map(_run_object, eval_runs))
        print_json({"skill": skill.name, "path": str(skill.path), **figures, "runs": runs_of_all})
    else:
        _print_result(skill.name, figures, judged_runs(eval_runs, "with"))
    print_note(*_notes(eval_runs))
    if html is not None:  # last: the runs were paid for, whether the file can be written or not
        _write_page(expanded(html), skill.name, eval_runs, figures)
    return 1 if figures["failed"] else 0


def _state(eval_run: EvalRun) -> str:
    """How a run ended, in a line."""
    if eval_run.failure:
        return eval_run.failure
    used = "used" if eval_run.used else "not used"
    if eval_run.passed is None:
        return used
    faults = [result.fault for result in eval_run.relevant_checks if result.fault]
    return f"{used}, failed: {faults[0]}" if faults else f"{used}, passed"


def _notes(eval_runs: Sequence[EvalRun]) -> Iterator[str]:
    """Lines about the sentences that the model judged, the others with the reason, and the runs that failed."""
    checks = [result.check for eval_run in eval_runs for result in eval_run.checks]
    if judged := sum(check.type == "sentence" for check in checks):
        yield f"the model judged {counted(judged, 'sentence')}; they count in the pass rates"
    for reason in dict.fromkeys(eval_run.unjudged for eval_run in eval_runs if eval_run.unjudged):
        left = sum(len(eval_run.case.expectations) for eval_run in eval_runs if eval_run.unjudged == reason)
        yield f"the model did not judge {counted(left, 'sentence')} ({reason}); `--json` has them beside the answers"
    for message in dict.fromkeys(eval_run.failure for eval_run in eval_runs if eval_run.failure):
        count = sum(eval_run.failure == message for eval_run in eval_runs)
        yield f"{count} of {len(eval_runs)} runs count in no rate: {message}"


def _figures(eval_runs: Sequence[EvalRun]) -> dict[str, Any]:
    """The figures of the test; where both arms were run, those of each, and their differences."""
    judged = {arm: judged_runs(eval_runs, arm) for arm in ARMS if any(run.arm == arm for run in eval_runs)}
    values = {
        arm: {
            "pass_rate": [float(passed) for passed in verdicts(runs)],
            "tokens": [run.tokens for run in runs],
            "seconds": [round(run.seconds, 3) for run in runs],
        }
        for arm, runs in judged.items()
    }
    figures: dict[str, Any] = {"activation": _mean([float(run.is_right_use) for run in judged["with"]])}
    if "without" in values:
        for arm, of_arm in values.items():
            rate = of_arm["pass_rate"]
            counts = {"runs": len(judged[arm]), "judged": len(rate), "passed": int(sum(rate))}
            figures[arm] = {**counts, **{key: _mean(numbers) for key, numbers in of_arm.items()}}
        first, second = values.values()
        figures["difference"] = {key: difference(first[key], second[key], is_rate=key == "pass_rate") for key in first}
    return figures | {
        "tokens": sum(run.tokens for run in eval_runs),
        "usd": round(sum(run.usd for run in eval_runs), 6),
        "failed": sum(bool(run.failure) for run in eval_runs),
    }


def _mean(numbers: Sequence[float]) -> float | None:
    return fmean(numbers) if numbers else None


def _run_object(eval_run: EvalRun) -> dict[str, Any]:
    return {
        "case": eval_run.case.name,
        "prompt": eval_run.case.prompt,
        "arm": eval_run.arm,
        "used": eval_run.used,
        "should_use": eval_run.case.wants_skill,
        "passed": eval_run.passed,
        "checks": [
            {"check": _describe(result.check), "passed": not result.fault, "detail": result.fault}
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


def _describe(check: Check) -> str:
    """A check in a few words."""
    by = ", judged by the model" if check.type == "sentence" else ""
    return f"{check.type} `{check.text}`{f' matches `{check.matches}`' if check.matches else ''}{by}"


def _print_result(name: str, figures: dict[str, Any], judged: Sequence[EvalRun]) -> None:
    should = [eval_run.is_right_use for eval_run in judged if eval_run.case.wants_skill]
    others = [eval_run.is_right_use for eval_run in judged if not eval_run.case.wants_skill]
    parts = [f"used {sum(should)} of {len(should)} times when it should be"] if should else []
    parts += [f"left alone {sum(others)} of {len(others)} times when not"] if others else []
    print(f"skill: {sanitize_line(name)}")
    print(f"activation: {_share(figures['activation'])} ({', '.join(parts) or 'nothing could be judged'})")
    if "difference" in figures:
        print("", *aligned(list(_table(figures))), sep="\n")
    if figures["usd"]:
        print(f"\ncost: {describe_usd(figures['usd'])}")


def _table(figures: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    yield "", "WITH", "WITHOUT", "DIFFERENCE", "95 % INTERVAL"
    for title, key, form in _ROWS:
        arms = [figures[arm] for arm in ARMS]
        cells = ["-" if arm[key] is None else f"{arm[key]:{form}}" for arm in arms]
        if key == "pass_rate":
            cells = [f"{cell} ({arm['passed']} of {arm['judged']})" for cell, arm in zip(cells, arms, strict=True)]
        numbers = (figures["difference"][key] or dict.fromkeys(("value", "low", "high"))).values()
        value, low, high = ("-" if number is None else f"{number:+{form}}" for number in numbers)
        yield title, *cells, value, low if low == "-" else f"{low} to {high}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _write_page(path: Path, name: str, eval_runs: Sequence[EvalRun], figures: dict[str, Any]) -> None:
    """The figures of the table in words, and a row for each run with its answer."""
    table = list(_table(figures))[1:] if "difference" in figures else []
    notes = [f"Activation: {_share(figures['activation'])}."]
    notes += [
        f"{row.capitalize()}: {first} with the skill, {second} without it; difference {value} ({bounds})."
        for row, first, second, value, bounds in table
    ]
    rows = [
        (run.case.name, run.case.prompt, run.arm, _state(run), f"{run.tokens:,}", f"{run.seconds:.1f}", run.answer)
        for run in eval_runs
    ]
    most_tokens = max((run.tokens for run in eval_runs), default=0) or 1
    bars = [{4: run.tokens / most_tokens} for run in eval_runs]
    head = ("Case", "Prompt", "Skill", "Result", "Tokens", "Seconds", "Answer")
    write_page(path, f"Test of the skill {name}", notes, head, rows, bars)

"""Trying a skill out: each prompt as a run of `exec` in a fresh workspace, with the skill and without it.

The runs are jobs of the engine of this machine, as the tasks of a batch are: one that crashes takes no other with it.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.batch.engine import Engine, Job
from codex_py.batch.local_engine import open_local_engine
from codex_py.batch.records import read_object
from codex_py.config.keys import toml_value
from codex_py.config.load import ConfigRequest, load_config
from codex_py.errors import CodexError, UserError
from codex_py.paths import opened_directory, replace_private
from codex_py.protocol.encoding import as_list, as_object
from codex_py.protocol.value import Value
from codex_py.services.skill_checks import judge_run
from codex_py.services.skill_judge import Judgement, judge_sentences
from codex_py.services.work_directory import work_directory
from codex_py.skills.eval_results import ARMS, Arm, CheckResult, EvalResult, EvalRun, sum_up
from codex_py.skills.evals import EVALS, EvalCase
from codex_py.skills.model import Skill
from codex_py.skills.tree import MAX_FILE_BYTES, FileMode, TreeRefused, list_tree, read_file
from codex_py.text.files import FileRefused, os_reason, read_trusted

# For a run that a model would never end.
_MAX_SECONDS: Final = 1800
_NOT_RUN: Final = "not run: the budget is used up"


class EvalPlan(Value):
    """What to run. `config` is how sessions are configured; `runs` stands in place of the cases' own numbers.

    With `triggers` each prompt costs one request, and only whether the skill is used is looked at.
    """

    skill: Skill
    cases: tuple[EvalCase, ...]
    config: ConfigRequest
    runs: int | None = None
    jobs: int = 1
    max_usd: float | None = None
    triggers: bool = False


class _Budget:
    """The money that is left for runs."""

    def __init__(self, limit: float | None, jobs: int) -> None:
        self._left = limit
        self._jobs = jobs

    @property
    def is_over(self) -> bool:
        return self._left is not None and self._left <= 0

    @property
    def share(self) -> float | None:
        """The share of one of the runs at the same time."""
        return None if self._left is None else self._left / self._jobs

    def spend(self, usd: float) -> None:
        if self._left is not None:
            self._left -= usd


class _Outcome(NamedTuple):
    """What a run has come to: the part of its `result.json` that is looked at."""

    code: str
    message: str
    answer: str
    skills: frozenset[str]
    tokens: int
    usd: float

    def failure(self, *, triggers: bool) -> str:
        """Why the run cannot be judged; "" when it can."""
        return "" if triggers and self.code == "budget" else self.message


async def run_evals(plan: EvalPlan, report: Callable[[EvalRun], None]) -> EvalResult:
    """Run every case in each arm as often as it says; `report` is called for each run. Raises `UserError`."""
    budget = _Budget(plan.max_usd, plan.jobs)
    slots = asyncio.Semaphore(plan.jobs)
    arms: Sequence[Arm] = ("with",) if plan.triggers else ARMS
    engine = open_local_engine(plan.config.env)

    async def run(case: EvalCase, arm: Arm) -> EvalRun:
        async with slots:
            if budget.is_over:
                eval_run = EvalRun(case, arm, failure=_NOT_RUN)
            else:
                eval_run = await _run_case(engine, plan, case, arm, budget.share)
                budget.spend(eval_run.usd)
            report(eval_run)
            return eval_run

    wanted: list[tuple[EvalCase, Arm]] = [
        (case, arm) for case in plan.cases for _ in range(plan.runs or case.runs or 1) for arm in arms
    ]
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(case, arm)) for case, arm in wanted]
    finally:
        await engine.aclose()
    return sum_up([task.result() for task in tasks])


async def _run_case(engine: Engine, plan: EvalPlan, case: EvalCase, arm: Arm, usd: float | None) -> EvalRun:
    # In the temporary directory nothing of the project or of the skill's own evaluations can be read by chance.
    top = await asyncio.to_thread(_make_directory)
    # The skill itself lies where no run, this one or another, can change it.
    cleanup = ExitStack()
    try:
        workspace = top / "work"
        await asyncio.to_thread(_prepare, workspace, case)
        copy = await asyncio.to_thread(_copy_skill, plan, cleanup) if arm == "with" else None
        config = _configure(plan, workspace, copy)
        limits = (f"--max-seconds={_MAX_SECONDS}", *([f"--max-usd={usd:.9f}"] if usd is not None else []))
        began = time.monotonic()
        outcome = await _run_exec(engine, case, config, (*limits, "--max-requests=1") if plan.triggers else limits)
        seconds = time.monotonic() - began
        failure = outcome.failure(triggers=plan.triggers)
        used = copy is not None and str(copy / "SKILL.md") in outcome.skills
        checks: tuple[CheckResult, ...] = ()
        judged = Judgement()
        if not failure and not plan.triggers:
            loaded = load_config(config)
            checks = await judge_run(case, plan.config, loaded, workspace=workspace, answer=outcome.answer, used=used)
            if case.expectations:
                left = None if usd is None else max(usd - outcome.usd, 0.0)
                judged = await judge_sentences(case, plan.config, workspace=workspace, answer=outcome.answer, usd=left)
        return EvalRun(
            case,
            arm,
            used,
            (*checks, *judged.checks),
            outcome.tokens,
            seconds,
            outcome.usd + judged.usd,
            failure=failure,
            answer=outcome.answer,
            unjudged=judged.failure,
        )
    except CodexError as error:
        hint = getattr(error, "hint", None)
        return EvalRun(case, arm, failure=f"{error}{f'; {hint}' if hint else ''}")
    finally:
        await asyncio.to_thread(cleanup.close)
        await asyncio.to_thread(shutil.rmtree, top, ignore_errors=True)


async def _run_exec(engine: Engine, case: EvalCase, config: ConfigRequest, limits: Sequence[str]) -> _Outcome:
    """Run a case, and read what it has left in the artifacts."""
    profile = ("--profile", config.profile) if config.profile else ()
    flags = (f"{key}={toml_value(value)}" for key, value in config.flags.items())
    overrides = tuple(f"--config={text}" for text in (*config.overrides, *flags))
    # Commands of the run can write to the temporary directories.
    with work_directory(config.home / "cache" / "evals") as top:
        replace_private(top / "prompt", case.prompt.encode())
        own = ("--ephemeral", "--skip-git-repo-check", "--artifacts", str(top), "-C", str(config.cwd))
        arguments = ("exec", *own, *profile, *overrides, *limits, "-")
        status = await engine.run(Job(arguments, config.cwd, top / "prompt", top / "log"), None)
        result = read_object(top / "result.json")
    usage = as_object(result.get("usage"))
    cost = result.get("cost_usd")
    return _Outcome(
        code=str(result.get("code") or ""),
        message=str(result.get("message") or "") or (f"the run ended with status {status}" if status else ""),
        answer=str(result.get("answer") or ""),
        skills=frozenset(str(as_object(skill).get("path")) for skill in as_list(result.get("skills"))),
        tokens=int(usage.get("input_tokens", 0)) + int(usage.get("output_tokens", 0)),
        usd=float(cost) if isinstance(cost, int | float) else 0.0,
    )


def _make_directory() -> Path:
    return Path(tempfile.mkdtemp(prefix="codex-py-eval-")).resolve()


def _prepare(workspace: Path, case: EvalCase) -> None:
    """Make the workspace with the files a case starts from. Raises `UserError`."""
    try:
        workspace.mkdir(mode=0o700)
        for name, content in case.files.items():
            for inner, mode, raw in _start_files(content):
                _write(workspace / name / inner, mode, raw)
    except (TreeRefused, FileRefused) as error:
        raise UserError(f"cannot write the files of `{case.name}`: {error}") from None
    except OSError as error:
        raise UserError(f"cannot write the files of `{case.name}`: {os_reason(error)}") from error


def _start_files(content: str | Path) -> Iterator[tuple[str, FileMode, bytes]]:
    """The path of each file below the one that is named, its mode, and its content. Raises what reading raises."""
    if isinstance(content, str):
        yield "", "100644", content.encode("utf-8", "surrogateescape")
    elif content.is_dir():
        for file in list_tree(content):
            yield file.path, file.mode, read_file(content, file)
    elif (head := read_trusted(content, MAX_FILE_BYTES)) is not None:
        if head.size > MAX_FILE_BYTES:
            raise FileRefused(f"`{content.name}` is too large")
        mode: FileMode = "100755" if os.access(content, os.X_OK) else "100644"
        yield "", mode, head.raw


def _write(path: Path, mode: FileMode, raw: bytes) -> None:
    """Write a file through no link: another file of the skill, or a command, may have put one there."""
    with opened_directory(path.parent, []) as directory:
        if mode == "120000":
            os.symlink(os.fsdecode(raw), path.name, dir_fd=directory)
            return
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path.name, flags, 0o755 if mode == "100755" else 0o644, dir_fd=directory)
        with os.fdopen(descriptor, "wb") as out:
            out.write(raw)


def _copy_skill(plan: EvalPlan, cleanup: ExitStack) -> Path:
    """A copy of the skill without its evaluations, which would tell the model what is checked. Raises `UserError`.

    It is there until `cleanup` is closed.
    """
    skill = plan.skill
    # Commands may read it, unlike the cache.
    top = cleanup.enter_context(work_directory(plan.config.home / "skill-tests"))
    target = top / "skills" / skill.directory.name
    try:
        _copy_tree(skill.directory, target)
    except OSError as error:
        raise UserError(f"cannot copy the skill `{skill.name}`: {os_reason(error)}") from error
    shutil.rmtree(target / EVALS, ignore_errors=True)
    with suppress(OSError):
        (target / "evals.json").unlink(missing_ok=True)
    return target


def _copy_tree(source: Path, target: Path) -> None:
    """Copy a directory, links as links; raises `OSError`."""
    try:
        shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))
    except shutil.Error as error:
        raise OSError(str(error)) from error


def _configure(plan: EvalPlan, workspace: Path, copy: Path | None) -> ConfigRequest:
    """The user's configuration, with the skill's own place switched off and the copy in reach where there is one."""
    base = plan.config.replace(cwd=workspace)
    before = load_config(base)
    roots = [*before.config.skills.extra_user_roots, *([str(copy.parent)] if copy else [])]
    rules: list[dict[str, str | bool]] = [{"path": str(plan.skill.canonical_path), "enabled": False}]
    rules += [{"path": str(copy / "SKILL.md"), "enabled": True}] if copy else []
    flags: dict[str, Any] = {
        "skills.extra_user_roots": roots,
        "skills.config": rules,
        "skills.ledger": False,
        "notify": [],
        "approval_policy": "never",
    }
    if before.origins["sandbox_mode"].layer_type == "defaults":
        flags["sandbox_mode"] = "workspace-write"
    return base.replace(flags={**base.flags, **flags})

"""Trying a skill out: each prompt as a run of `exec` in a fresh workspace, with the skill and without it.

The runs are jobs of the engine of this machine, as the tasks of a batch are: one that crashes takes no other with it.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from codex_py.batch.engine import Engine
from codex_py.batch.skill_judge import QUIET, ExecRunner, judge_run
from codex_py.config.load import ConfigRequest, load_config
from codex_py.errors import CodexError, UserError
from codex_py.protocol.value import Value
from codex_py.services.work_directory import work_directory
from codex_py.skills.eval_results import ARMS, Arm, EvalResult, EvalRun
from codex_py.skills.evals import EVALS, EvalCase
from codex_py.skills.model import Skill

# For a run that a model would never end.
_MAX_SECONDS: Final = 1800


class EvalPlan(Value):
    """What to run."""

    skill: Skill
    cases: tuple[EvalCase, ...]
    config: ConfigRequest
    """How the sessions are configured."""
    runs: int | None = None
    """Runs of each prompt in each arm; None leaves it to the cases."""
    jobs: int = 1
    """How many runs go on at the same time."""
    max_usd: float | None = None
    triggers: bool = False
    """Whether only the skill's use is looked at; each prompt costs one request then."""

    @property
    def wanted(self) -> list[tuple[EvalCase, Arm]]:
        """Every run of the test."""
        arms: Sequence[Arm] = ("with",) if self.triggers else ARMS
        return [(case, arm) for case in self.cases for _ in range(self.runs or case.runs or 1) for arm in arms]


async def run_evals(plan: EvalPlan, engine: Engine, report: Callable[[EvalRun], None]) -> EvalResult:
    """Run every case in each arm as often as it says; `report` is called for each run. Raises `UserError`."""
    left = plan.max_usd
    slots = asyncio.Semaphore(plan.jobs)

    async def run(case: EvalCase, arm: Arm) -> EvalRun:
        nonlocal left
        async with slots:
            if left is not None and left <= 0:
                eval_run = EvalRun(case, arm, failure="not run: the budget is used up")
            else:
                share = None if left is None else left / plan.jobs
                eval_run = await _run_case(ExecRunner(engine), plan, EvalRun(case, arm), share)
                left = None if left is None else left - eval_run.usd
            report(eval_run)
            return eval_run

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(case, arm)) for case, arm in plan.wanted]
    finally:
        await engine.aclose()
    return EvalResult(tuple(task.result() for task in tasks))


async def _run_case(exec_: ExecRunner, plan: EvalPlan, eval_run: EvalRun, usd: float | None) -> EvalRun:
    # In the temporary directory nothing of the project or of the skill's own evaluations can be read by chance.
    top = await asyncio.to_thread(lambda: Path(tempfile.mkdtemp(prefix="codex-py-eval-")).resolve())
    workspace = top / "work"
    try:
        # The skill itself lies where no run, this one or another, can change it.
        with ExitStack() as cleanup:
            await asyncio.to_thread(_prepare, workspace, eval_run.case)
            copy = await asyncio.to_thread(_copy_skill, plan, cleanup) if eval_run.arm == "with" else None
            limits = [f"--max-seconds={_MAX_SECONDS}", *([f"--max-usd={usd:.9f}"] if usd is not None else [])]
            limits += ["--max-requests=1"] if plan.triggers else []
            began = time.monotonic()
            result = await exec_.run(eval_run.case.prompt, _configure(plan, workspace, copy), limits)
        eval_run = eval_run.replace(
            used=copy is not None and str(copy / "SKILL.md") in result.skills,
            tokens=result.tokens,
            seconds=time.monotonic() - began,
            usd=result.usd,
            # The one request of `--triggers` uses its budget up.
            failure="" if plan.triggers and result.code == "budget" else result.message,
            answer=result.answer,
        )
        if eval_run.failure or plan.triggers:
            return eval_run
        left = None if usd is None else max(usd - eval_run.usd, 0.0)
        return await judge_run(eval_run, plan.config, workspace, left, exec_)
    except CodexError as error:
        hint = getattr(error, "hint", None)
        return eval_run.replace(failure=f"{error}{f'; {hint}' if hint else ''}")
    finally:
        await asyncio.to_thread(shutil.rmtree, top, ignore_errors=True)


def _prepare(workspace: Path, case: EvalCase) -> None:
    """Make the workspace with the files a case starts from. Raises `UserError`."""
    try:
        workspace.mkdir(mode=0o700)
        for name, content in case.files.items():
            target = workspace / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, str):
                target.write_bytes(content.encode("utf-8", "surrogateescape"))
            elif content.is_dir():
                # A link could lead out of the skill, and the next file through it out of the workspace.
                if link := next((path for path in content.rglob("*") if path.is_symlink()), None):
                    raise OSError(f"`{link}` is a link")
                shutil.copytree(content, target, dirs_exist_ok=True)
            else:
                shutil.copy(content, target)
    except OSError as error:
        raise UserError(f"cannot write the files of `{case.name}`: {error}") from error


def _copy_skill(plan: EvalPlan, cleanup: ExitStack) -> Path:
    """A copy of the skill without its evaluations, which would tell the model what is checked. Raises `UserError`.

    It is there until `cleanup` is closed.
    """
    skill = plan.skill
    # Commands may read it, unlike the cache.
    target = cleanup.enter_context(work_directory(plan.config.home / "skill-tests")) / "skills" / skill.directory.name

    def left_out(directory: str, names: list[str]) -> list[str]:
        evals = (EVALS, "evals.json") if directory == str(skill.directory) else ()
        return [name for name in names if name in (".git", *evals)]

    try:
        return Path(shutil.copytree(skill.directory, target, symlinks=True, ignore=left_out))
    except (OSError, shutil.Error) as error:
        raise UserError(f"cannot copy the skill `{skill.name}`: {error}") from error


def _configure(plan: EvalPlan, workspace: Path, copy: Path | None) -> ConfigRequest:
    """The user's configuration, with the skill's own place switched off and the copy in reach where there is one."""
    base = plan.config.replace(cwd=workspace)
    before = load_config(base)
    roots = [*before.config.skills.extra_user_roots, *([str(copy.parent)] if copy else [])]
    rules: list[dict[str, str | bool]] = [{"path": str(plan.skill.canonical_path), "enabled": False}]
    rules += [{"path": str(copy / "SKILL.md"), "enabled": True}] if copy else []
    flags: dict[str, Any] = {"skills.extra_user_roots": roots, "skills.config": rules, **QUIET}
    if before.origins["sandbox_mode"].layer_type == "defaults":
        flags["sandbox_mode"] = "workspace-write"
    return base.replace(flags={**base.flags, **flags})

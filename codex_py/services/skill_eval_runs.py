"""Trying a skill out: each prompt through the real loop in a fresh workspace, with the skill and without it."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

from codex_py.config.load import ConfigRequest, LoadedConfig, load_config
from codex_py.core.build import SessionRequest, open_session
from codex_py.core.session import Session
from codex_py.errors import CodexError, UserError
from codex_py.model.metering import BudgetLimits
from codex_py.paths import opened_directory
from codex_py.protocol import events
from codex_py.protocol.ops import TextInput, UserTurn
from codex_py.protocol.usage import BUDGET_REACHED
from codex_py.protocol.value import Value
from codex_py.services.skill_checks import judge_run
from codex_py.services.skill_judge import Judgement, judge_sentences
from codex_py.skills.eval_results import ARMS, Arm, CheckResult, EvalResult, EvalRun, sum_up
from codex_py.skills.evals import EVALS, EvalCase
from codex_py.skills.model import Skill
from codex_py.skills.tree import MAX_FILE_BYTES, FileMode, TreeRefused, list_tree, read_file
from codex_py.text.files import FileRefused, os_reason, read_trusted

_ORIGINATOR: Final = "codex_exec"
# A run that a model never ends.
_MAX_SECONDS: Final = 1800.0
_MAX_COPIED: Final = 2_000
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


class _Watcher:
    """Follows one session: the skills it uses, its answer, and how its turn ends."""

    def __init__(self) -> None:
        self.used: set[Path] = set()
        self.end: events.TurnCompleted | events.TurnFailed | events.TurnInterrupted | None = None
        self.usage: events.UsageReported | None = None
        self.no_sandbox = ""

    def __call__(self, event: events.Event) -> None:
        match event:
            case events.SkillUsed(_, _, path):
                self.used.add(path)
            case events.UsageReported():
                self.usage = event
            case events.Warned(message, code="sandbox_missing"):
                self.no_sandbox = message
            case events.TurnCompleted() | events.TurnFailed() | events.TurnInterrupted():
                self.end = event
            case _:
                pass

    @property
    def answer(self) -> str:
        return (self.end.last_message or "") if isinstance(self.end, events.TurnCompleted) else ""

    @property
    def tokens(self) -> int:
        return self.usage.total.total_tokens if self.usage else 0

    @property
    def usd(self) -> float:
        return self.usage.costs.session.usd if self.usage else 0.0

    def failure(self, *, triggers: bool) -> str:
        """Why the run cannot be judged; "" when it can."""
        match self.end:
            case events.TurnCompleted():
                return self.no_sandbox
            case events.TurnFailed(_, message, code):
                return "" if triggers and code == BUDGET_REACHED else message
            case _:
                return "the turn was interrupted"


async def run_evals(plan: EvalPlan, report: Callable[[EvalRun], None]) -> EvalResult:
    """Run every case in each arm as often as it says; `report` is called for each run. Raises `UserError`."""
    budget = _Budget(plan.max_usd, plan.jobs)
    slots = asyncio.Semaphore(plan.jobs)
    arms: Sequence[Arm] = ("with",) if plan.triggers else ARMS

    async def run(case: EvalCase, arm: Arm) -> EvalRun:
        async with slots:
            if budget.is_over:
                eval_run = EvalRun(case, arm, failure=_NOT_RUN)
            else:
                eval_run = await _run_case(plan, case, arm, budget.share)
                budget.spend(eval_run.usd)
            report(eval_run)
            return eval_run

    wanted: list[tuple[EvalCase, Arm]] = [
        (case, arm) for case in plan.cases for _ in range(plan.runs or case.runs or 1) for arm in arms
    ]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(run(case, arm)) for case, arm in wanted]
    return sum_up([task.result() for task in tasks])


async def _run_case(plan: EvalPlan, case: EvalCase, arm: Arm, usd: float | None) -> EvalRun:
    # In the temporary directory nothing of the project or of the skill's own evaluations can be read by chance.
    top = await asyncio.to_thread(_make_directory)
    try:
        workspace = top / "work"
        await asyncio.to_thread(_prepare, workspace, case)
        copy = await asyncio.to_thread(_copy_skill, plan.skill, top) if arm == "with" else None
        loaded = load_config(_configure(plan, workspace, copy))
        limits = BudgetLimits(usd=usd, requests=1 if plan.triggers else None, seconds=_MAX_SECONDS)
        watcher = _Watcher()
        began = time.monotonic()
        async with _session(plan, loaded, workspace, limits) as session:
            session.subscribe(watcher)
            await session.submit(UserTurn((TextInput(case.prompt),)))
            for process in session.processes():
                await session.stop_process(process.id)
        seconds = time.monotonic() - began
        failure = watcher.failure(triggers=plan.triggers)
        used = copy is not None and copy / "SKILL.md" in watcher.used
        checks: tuple[CheckResult, ...] = ()
        if not failure and not plan.triggers:
            checks = await judge_run(case, plan.config, loaded, workspace=workspace, answer=watcher.answer, used=used)
        judged = Judgement()
        if case.expectations and not failure and not plan.triggers:
            left = None if usd is None else max(usd - watcher.usd, 0.0)
            judged = await judge_sentences(case, plan.config, workspace=workspace, answer=watcher.answer, usd=left)
        return EvalRun(
            case,
            arm,
            used,
            (*checks, *judged.checks),
            watcher.tokens,
            seconds,
            watcher.usd + judged.usd,
            failure=failure,
            answer=watcher.answer,
            unjudged=judged.failure,
        )
    except CodexError as error:
        hint = getattr(error, "hint", None)
        return EvalRun(case, arm, failure=f"{error}{f'; {hint}' if hint else ''}")
    finally:
        await asyncio.to_thread(shutil.rmtree, top, ignore_errors=True)


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


def _copy_skill(skill: Skill, top: Path) -> Path:
    """A copy of a skill without its evaluations, which would tell the model what is checked. Raises `UserError`."""
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
    }
    if before.origins["sandbox_mode"].layer_type == "defaults":
        flags["sandbox_mode"] = "workspace-write"
    return base.replace(flags={**base.flags, **flags})


@asynccontextmanager
async def _session(
    plan: EvalPlan, loaded: LoadedConfig, workspace: Path, limits: BudgetLimits
) -> AsyncGenerator[Session, None]:
    request = SessionRequest(
        loaded=loaded,
        home=plan.config.home,
        cwd=workspace,
        env=plan.config.env,
        originator=_ORIGINATOR,
        approval="never",
        ephemeral=True,
        limits=limits,
    )
    async with open_session(request) as session:
        yield session

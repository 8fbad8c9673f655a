"""`codex-py batch`: its command line, and everything that is checked before the first task."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final

from codex_py.batch.limits import BatchBudget, Limiter
from codex_py.batch.local_engine import open_local_engine
from codex_py.batch.progress import Display, JsonDisplay, LineDisplay
from codex_py.batch.ray_engine import RayEngine
from codex_py.batch.records import OutputDirectory, opened_output
from codex_py.batch.report import count_records, write_reports
from codex_py.batch.run_task import OWN_CODES, RunSettings, TaskRunner, branch_problem
from codex_py.batch.scheduler import RETRY_FAILED, RETRY_NONE, BatchPlan, Scheduler, plan_tasks
from codex_py.batch.tasks import Task, TaskRules, read_repositories, read_tasks
from codex_py.batch.upload import Uploader
from codex_py.batch.workspace import WorkspaceMaker
from codex_py.cli.console import print_note, print_warnings
from codex_py.cli.exec_parser import exec_parser
from codex_py.cli.options import (
    Parser,
    add_config_flags,
    add_model_flags,
    add_permission_flags,
    amount,
    count,
)
from codex_py.cli.worker import run_task
from codex_py.errors import UsageError, UserError
from codex_py.model.retry import PACE_VARIABLE, Pace
from codex_py.protocol.failures import exit_status, failure_code
from codex_py.text.display import first_names
from codex_py.text.files import os_reason

_DESCRIPTION: Final = """Run many tasks, each as one `codex-py exec` in a clean copy of its repository.

TASKS is JSONL or CSV with `id`, `prompt`, `repo` (a directory, a URL, or none), `ref`, and any long option of `exec`;
or rows of SWE-bench. Everything is below the directory of `--out`: the same command again does what is missing or has
failed, and nothing twice. Ctrl-C lets the running tasks end; twice stops them.
"""
_EPILOG: Final = """examples:
  codex-py batch tasks.jsonl --jobs 16 -s workspace-write
  codex-py batch --repos repos.txt --prompt '$migrate to pydantic 3' --branch pydantic-3 --commit -s workspace-write
  codex-py batch modules.csv --prompt 'write tests for {module}' --judge 'pytest -q' -s workspace-write
  codex-py batch tasks.jsonl --retry rate_limit --max-usd 20
"""
# Options of `exec` that are the batch's to set, or that make no sense for one task of many.
MANAGED: Final = frozenset(
    "help cd json experimental-json session-id session-dir cwd-map again artifacts ephemeral last all turn uncommitted "
    "stored base commit title color trust".split()
)
_MAX_BYTES: Final = 512 * 1024 * 1024
_MAX_PROBLEMS: Final = 20
_MAX_NAMED: Final = 10
_MAX_JOBS: Final = 1000
# A task mostly waits for its model.
_RAY_CPUS: Final = 0.25
_JUDGE_SECONDS: Final = 3600.0
_DEFAULT_OUT: Final = "codex-batch"
_FETCHED: Final = ".repositories"
_PACE: Final = ".pace"
_STATUS: Final = {"": 0, "interrupted": exit_status("interrupted"), "max_failures": 1, "max_usd": exit_status("budget")}
_ENGINES: Final = ("local", "ray")


def run(arguments: Sequence[str]) -> int:
    """Check everything that can be wrong before anything runs, then run; give back the exit status."""
    parser = batch_parser()
    if "-h" in arguments or "--help" in arguments:
        print(parser.format_help().rstrip())
        return 0
    options = parser.read(arguments)
    _check_flags(options)
    tasks, problems = _read(options)
    if not problems and options.commit and (problem := branch_problem(tasks, options.branch)):
        problems = [f"{problem}; write `{{id}}` into `--branch`"]
    if problems:
        for problem in problems[:_MAX_PROBLEMS]:
            print_note(f"error: {problem}")
        if len(problems) > _MAX_PROBLEMS:
            print_note(f"error: and {len(problems) - _MAX_PROBLEMS} more")
        return 2
    with opened_output(Path(options.out).absolute(), ["batch", *arguments]) as out:
        return asyncio.run(_run(options, tasks, out))


def batch_parser() -> Parser:
    """The flags of `batch`."""
    parser = Parser("codex-py batch", description=_DESCRIPTION, epilog=_EPILOG)
    parser.usage = "codex-py batch [OPTIONS] TASKS\n       codex-py batch [OPTIONS] --repos FILE --prompt PROMPT"
    parser.add_argument("words", nargs="*", metavar="TASKS", help="a JSONL or CSV file; `-` reads JSONL from stdin")
    parser.add_argument("--repos", metavar="FILE", help="a list of directories and URLs, a line each: REPO or REPO#REF")
    parser.add_argument("--prompt", metavar="TEXT", help="the prompt of each task; `{column}` stands for its column")
    parser.add_argument(
        "--out", metavar="DIR", default=_DEFAULT_OUT, help=f"the state and the results (default: {_DEFAULT_OUT})"
    )
    parser.add_argument(
        "--session-dir", metavar="DIR", help="the sessions of the tasks, in place of CODEX_HOME; may be below --out"
    )
    runs = parser.add_argument_group("running")
    runs.add_argument("-j", "--jobs", metavar="N", type=count, help="tasks at once (default: 4); fewer at rate limits")
    runs.add_argument("--engine", choices=_ENGINES, default="local", help="processes here, or a Ray cluster")
    runs.add_argument(
        "--ray-cpus", metavar="N", type=amount, help="with --engine ray: what a task takes of a node (default: 0.25)"
    )
    runs.add_argument("--retry", action="append", default=[], metavar="CODE", help=_RETRY_HELP)
    runs.add_argument("--max-failures", metavar="N", type=count, help="start nothing more after so many failed tasks")
    runs.add_argument("--max-usd", metavar="USD", type=amount, help="what the whole batch may cost, all runs together")
    results = parser.add_argument_group("results")
    results.add_argument(
        "--judge", metavar="COMMAND", help="run this in each directory after its task, in the sandbox; 0 is a pass"
    )
    results.add_argument(
        "--judge-seconds",
        metavar="N",
        type=amount,
        help="stop a judge that takes longer: it has failed (default: 3600)",
    )
    results.add_argument("--branch", metavar="NAME", help="with --commit: the branch; `{id}` stands for the task's id")
    results.add_argument("--commit", action="store_true", help="commit the changes of each task, without a push")
    results.add_argument(
        "--upload", metavar="URL", help="copy the results there too, such as `s3://bucket/prefix` (fsspec)"
    )
    results.add_argument("--json", action="store_true", help="print events as JSON lines on stdout")
    for add in (add_permission_flags, add_model_flags, add_config_flags):
        add(parser)
    parser.hide("cd", "trust")
    return parser


_RETRY_HELP: Final = (
    f"which failed tasks to repeat: `{RETRY_FAILED}` (default), `{RETRY_NONE}`, or codes such as `rate_limit`"
)


def _check_flags(options: argparse.Namespace) -> None:
    """Raise `UsageError` for flags that are wrong together."""
    if options.cd is not None or options.trust:
        flag = "--trust" if options.trust else "--cd"
        raise UsageError(f"`{flag}` does not go with `batch`: each task has a directory of its own")
    if len(options.words) > 1:
        raise UsageError(f"more than one file of tasks: `{options.words[1]}`")
    if options.repos is not None and options.words:
        raise UsageError("`--repos` and a file of tasks exclude each other")
    if options.repos is None and not options.words:
        raise UsageError("no tasks", hint="name a JSONL or CSV file, or `--repos FILE --prompt PROMPT`")
    if not options.out:
        raise UsageError("`--out` is empty", hint="name a directory")
    if options.session_dir == "":
        raise UsageError("`--session-dir` is empty", hint="name a directory")
    if options.prompt is not None and not options.prompt.strip():
        raise UsageError("`--prompt` is empty")
    if options.repos is not None and options.prompt is None:
        raise UsageError("`--repos` needs `--prompt`")
    if options.ray_cpus is not None and options.engine != "ray":
        raise UsageError("`--ray-cpus` goes with `--engine ray`")
    if options.commit != bool(options.branch):
        raise UsageError("`--branch NAME` and `--commit` go together")
    if options.branch:
        _check_branch(options.branch)
    if options.judge is not None and not options.judge.strip():
        raise UsageError("`--judge` is empty")
    if options.judge_seconds is not None and options.judge is None:
        raise UsageError("`--judge-seconds` goes with `--judge`")
    if options.jobs is not None and options.jobs > _MAX_JOBS:
        raise UsageError(f"`--jobs` is at most {_MAX_JOBS}, not {options.jobs}")
    for code in _retry_codes(options):
        if code not in (RETRY_FAILED, RETRY_NONE, *OWN_CODES) and failure_code(code) is None:
            raise UsageError(
                f"`{code}` is no code of a failure",
                hint=f"`{RETRY_FAILED}`, `{RETRY_NONE}`, or one of the guide's table",
            )


def _check_branch(branch: str) -> None:
    """Raise `UsageError` for what git takes for no branch, by the rules of `git check-ref-format`."""
    name = branch.replace("{id}", "id")
    parts = name.split("/")
    odd = any(character in name for character in " ~^:?*[\\{}") or not name.isprintable()
    if (
        odd
        or name in ("@", "HEAD")
        or ".." in name
        or "@{" in name
        or any(not p or p[0] in ".-" or p.endswith((".lock", ".")) for p in parts)
    ):
        raise UsageError(f"`{branch}` is not a name of a branch")


def _retry_codes(options: argparse.Namespace) -> frozenset[str]:
    codes = [code.strip() for value in options.retry for code in value.split(",")]
    return frozenset(codes or [RETRY_FAILED])


def _read(options: argparse.Namespace) -> tuple[list[Task], list[str]]:
    name = options.repos if options.repos is not None else options.words[0]
    try:
        with nullcontext(sys.stdin.buffer) if name == "-" else Path(name).open("rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise UsageError(f"cannot read `{name}`: {os_reason(error)}") from error
    if len(raw) > _MAX_BYTES:
        raise UsageError(f"`{name}` is over {_MAX_BYTES // 2**20} MiB")
    if options.repos is not None:
        return read_repositories(raw, name, options.prompt)
    parser = exec_parser()
    rules = TaskRules(parser.long_options(), MANAGED, parser.read, options.prompt or "")
    return read_tasks(raw, name, rules)


async def _run(options: argparse.Namespace, tasks: list[Task], out: OutputDirectory) -> int:
    plan = plan_tasks(tasks, out, _retry_codes(options))
    pace = Pace(out.path / _PACE)
    pace.create()
    env = {**os.environ, PACE_VARIABLE: str(out.path / _PACE)}
    uploader = Uploader(options.upload) if options.upload is not None else None
    engine = (
        RayEngine(env, options.ray_cpus or _RAY_CPUS) if options.engine == "ray" else open_local_engine(env, run_task)
    )
    settings = RunSettings(
        cwd=Path.cwd(),
        defaults=_defaults(options),
        judge=options.judge or "",
        judge_seconds=options.judge_seconds or _JUDGE_SECONDS,
        branch=options.branch or "",
        commits=options.commit,
        uploader=uploader,
        sessions=_sessions(options),
    )
    runner = TaskRunner(out, WorkspaceMaker(out.path / _FETCHED, os.environ), engine, settings)
    jobs = options.jobs or 4
    scheduler = Scheduler(plan, runner, Limiter(jobs, pace), BatchBudget(options.max_usd, plan.records))
    scheduler.max_failures = options.max_failures
    display = _display(options, scheduler)
    try:
        await _watched(scheduler, display, plan)
    finally:
        await engine.aclose()
        reports = write_reports(out, tasks, scheduler.records)
        totals = count_records(scheduler.records)
        if uploader is not None:
            _upload(uploader, reports)
        display.end(totals, scheduler.stop_reason)
        if not options.json:
            print("\n".join(map(str, reports)))
    if scheduler.stop_reason:
        print_note(_WHY_STOPPED[scheduler.stop_reason])
    return _STATUS[scheduler.stop_reason] or (1 if totals.failed or totals.rejected or totals.pending else 0)


def _upload(uploader: Uploader, reports: Sequence[Path]) -> None:
    try:
        uploader.upload_reports(reports)
    except UserError as error:
        print_warnings(str(error))


_WHY_STOPPED: Final = {
    "interrupted": "stopped; the same command goes on",
    "max_failures": "stopped by `--max-failures`; the same command goes on",
    "max_usd": "stopped: `--max-usd` is used up, or does not cover another task; the same command with more goes on",
}


async def _watched(scheduler: Scheduler, display: Display, plan: BatchPlan) -> None:
    """Run the scheduler and the display, with the signals of the terminal."""
    scheduler.on_event = display.show
    display.begin(plan)
    if plan.changed:
        names = first_names(plan.changed, _MAX_NAMED)
        display.note(f"note: done before, and not repeated although the row has changed: {names}")
    running = asyncio.ensure_future(scheduler.run())
    refreshing = asyncio.ensure_future(display.refresh())

    def interrupt() -> None:
        if scheduler.stop_reason == "interrupted":
            running.cancel()
        else:
            scheduler.stop("interrupted")
            display.note("letting the running tasks end; Ctrl-C again stops them")

    def terminate() -> None:
        scheduler.stop("interrupted")
        running.cancel()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, interrupt)
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, terminate)
    try:
        with suppress(asyncio.CancelledError):
            await running
    finally:
        refreshing.cancel()


def _sessions(options: argparse.Namespace) -> Path | None:
    return None if options.session_dir is None else Path(options.session_dir).absolute()


def _defaults(options: argparse.Namespace) -> tuple[str, ...]:
    """The arguments of `exec` that were set for all tasks."""
    parser = Parser("codex-py batch", description="")
    for add in (add_permission_flags, add_model_flags, add_config_flags):
        add(parser)
    return tuple(parser.written(options))


def _display(options: argparse.Namespace, scheduler: Scheduler) -> Display:
    if options.json:
        return JsonDisplay(sys.stdout)
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        from codex_py.batch.live_table import TableDisplay  # loads rich

        return TableDisplay(lambda: scheduler.records)
    return LineDisplay(sys.stderr)

"""One task from its workspace to its record: `exec`, then the branch, then the judge."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.batch.engine import Engine, Job
from codex_py.batch.records import JUDGE_LOG, LOG, PROMPT, WORK, OutputDirectory, TaskRecord
from codex_py.batch.tasks import Task
from codex_py.batch.upload import Uploader
from codex_py.batch.workspace import TaskWorkspace, WorkspaceMaker
from codex_py.errors import UserError
from codex_py.paths import make_private_dir
from codex_py.protocol.encoding import as_object, decode_json
from codex_py.protocol.failures import FAILURES
from codex_py.replace_file import replace_file
from codex_py.text.display import first_words
from codex_py.text.sanitize import sanitize_line

# Codes of the batch itself, beside those of `exec`.
CRASH: Final = "crash"
WORKSPACE: Final = "workspace"
COMMIT: Final = "commit"
UPLOAD: Final = "upload"
BUSY: Final = "busy"
OWN_CODES: Final = (CRASH, WORKSPACE, COMMIT, UPLOAD)
# As `timeout` of the shell says it.
_TIMED_OUT: Final = 124
_MAX_MESSAGE: Final = 300
_MAX_ACTIVITY: Final = 100
# What a judge has in common with the commands of the run before it.
_SHARED_WITH_JUDGE: Final = ("--config=", "--profile=", "--add-dir=", "--enable=", "--disable=", "--strict-config")
_UNHELD: Final = frozenset(("--dangerously-bypass-approvals-and-sandbox", "--sandbox=danger-full-access"))
OnActivity = Callable[[str], None]


class RunSettings(NamedTuple):
    """What all tasks have in common: `defaults` are arguments of `exec` before a task's own.

    `sessions` has a directory with the session of each task; without it they are in `CODEX_HOME`.
    """

    cwd: Path
    defaults: tuple[str, ...] = ()
    judge: str = ""
    judge_seconds: float = 0.0
    branch: str = ""
    commits: bool = False
    uploader: Uploader | None = None
    sessions: Path | None = None


class TaskRunner:
    """Runs tasks with an engine."""

    def __init__(self, out: OutputDirectory, maker: WorkspaceMaker, engine: Engine, settings: RunSettings) -> None:
        self._out = out
        self._maker = maker
        self._engine = engine
        self._settings = settings

    async def run(self, task: Task, limit_usd: float | None, on_activity: OnActivity) -> TaskRecord:
        """One attempt at a task, or what an earlier one has left to do; writes and gives the record.

        `busy` is not written: another process is at work in the session, and its outcome will count. When this is
        cancelled, the record says that the task is not done.
        """
        before = self._out.read_record(task)
        is_same = before.digest == task.digest
        began = time.monotonic()
        earlier = self._out.read_result(task) if is_same else None
        try:
            if earlier is not None and earlier.ok and self._out.is_complete(task):
                # Killed between the end of the run and its record, or the branch could not be made.
                workspace = await self._workspace(task, is_same)
                record = before._replace(status="ok", code="", message="", cost_usd=earlier.cost_usd)
                record = record._replace(files_changed=earlier.files_changed)
            else:
                record = TaskRecord(digest=task.digest, attempts=(before.attempts if is_same else 0) + 1)
                record = record._replace(seconds=before.seconds if is_same else 0.0)
                make_private_dir(self._out.task_directory(task))
                self._out.write_record(task, record)
                on_activity("preparing its directory")
                workspace = await self._workspace(task, is_same)
                if problem := await self._branch_problem(task, workspace):
                    record = _failed(record._replace(cost_usd=before.cost_usd or 0.0), COMMIT, problem)
                else:
                    record = await self._run_exec(task, workspace, record, limit_usd, on_activity)
        except UserError as error:
            record = TaskRecord(digest=task.digest, attempts=max(1, before.attempts), cost_usd=before.cost_usd or 0.0)
            record = _failed(record, WORKSPACE, str(error))
            make_private_dir(self._out.task_directory(task))
        else:
            if record.code == BUSY:
                return record
            if record.status == "ok":
                record = await self._finish(task, workspace, record, on_activity)
        record = record._replace(seconds=round(record.seconds + time.monotonic() - began, 3))
        self._out.write_record(task, record)
        return await self._upload(task, record)

    def lacks_files(self, task: Task, record: TaskRecord) -> bool:
        """Whether something is missing of a task that is done, and could be written."""
        has_commit = bool(record.commit) or not (self._settings.commits and record.files_changed)
        return not (has_commit and self._out.is_complete(task)) and (self._out.task_directory(task) / WORK).is_dir()

    async def complete(self, task: Task, record: TaskRecord) -> TaskRecord:
        """Write what is missing of a task that is done, without asking the model; gives its record.

        Raises `UserError` for what cannot be written.
        """
        workspace = await self._workspace(task, is_same=True)
        if not self._out.is_complete(task):
            log = self._out.task_directory(task) / LOG
            await self._engine.run(self._job(task, workspace, "--stored"), lambda _: None)
            await self._complete_patch(task, workspace)
            result = self._out.read_result(task)
            if result is None or not self._out.is_complete(task):
                raise UserError(f"cannot write its files again{_last_words(log)}")
            record = record._replace(files_changed=result.files_changed)
        if self._settings.commits and workspace.git is not None and not record.commit:
            commit = await asyncio.to_thread(self._maker.commit, workspace, *self._branch(task))
            record = record._replace(commit=commit)
        self._out.write_record(task, record)
        return await self._upload(task, record)

    async def _upload(self, task: Task, record: TaskRecord) -> TaskRecord:
        """Copy the files of a task that has ended; it counts as failed where that fails, and only this is repeated."""
        uploader = self._settings.uploader
        if uploader is not None:
            try:
                await asyncio.to_thread(uploader.upload_task, self._out.task_directory(task))
            except UserError as error:
                record = _failed(record, UPLOAD, str(error)) if record.status == "ok" else record
                self._out.write_record(task, record)
        return record

    async def _workspace(self, task: Task, is_same: bool) -> TaskWorkspace:
        make = self._maker.open if is_same else self._maker.make
        return await asyncio.to_thread(make, task.repo, task.ref, self._out.task_directory(task) / WORK)

    def _branch(self, task: Task) -> tuple[str, str]:
        """The branch of a task, and the message of its commit."""
        title = sanitize_line(f"{task.id}: {first_words(task.prompt, 60)}")
        return self._settings.branch.replace("{id}", task.id), title

    async def _branch_problem(self, task: Task, workspace: TaskWorkspace) -> str:
        """Why the task could not leave its branch, which is better known before it has cost anything."""
        if self._settings.commits and workspace.git is not None:
            try:
                await asyncio.to_thread(self._maker.check_branch, workspace, *self._branch(task))
            except UserError as error:
                return str(error)
        return ""

    async def _run_exec(
        self, task: Task, workspace: TaskWorkspace, record: TaskRecord, limit_usd: float | None, on_activity: OnActivity
    ) -> TaskRecord:
        on_activity("starting")
        limits = _limit((*self._settings.defaults, *task.options), limit_usd)
        job = self._job(task, workspace, *limits)
        status = await self._engine.run(job, lambda line: _note_line(line, on_activity))
        if status == FAILURES["busy"].status:
            return record._replace(code=BUSY)
        await self._complete_patch(task, workspace)
        result = self._out.read_result(task)
        if result is None:
            reason = f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
            return _failed(record, CRASH, f"the run {reason} and left no result{_last_words(job.log)}")
        record = record._replace(cost_usd=result.cost_usd, files_changed=result.files_changed)
        if result.ok:
            return record._replace(status="ok")
        return _failed(record, result.code or CRASH, result.message)

    async def _complete_patch(self, task: Task, workspace: TaskWorkspace) -> None:
        """Make the patch that the run of a task could not make from the base of its workspace, if that is known."""
        result = self._out.read_result(task)
        if result is not None and not result.has_patch and workspace.git is not None:
            with suppress(UserError):  # the result says why there is none
                patch, files = await asyncio.to_thread(self._maker.patch, workspace)
                self._out.write_patch(task, patch, files)

    def _job(self, task: Task, workspace: TaskWorkspace, *more: str) -> Job:
        """The run of `exec` for a task."""
        directory = self._out.task_directory(task)
        replace_file(directory / PROMPT, task.prompt.encode())
        session = ("--session-id", self._out.session_id(task), "--artifacts", str(directory), "--json")
        if self._settings.sessions is not None:
            session += ("--session-dir", str(self._settings.sessions / task.id))
        session += tuple(f"--cwd-map={earlier}={self._out.path}" for earlier in self._out.earlier)
        outside = () if workspace.base else ("--skip-git-repo-check",)
        options = (*self._settings.defaults, *task.options, *more)
        arguments = ("exec", *session, *options, *outside, "-C", str(workspace.cwd), "-")
        return Job(arguments, self._settings.cwd, directory / PROMPT, directory / LOG)

    async def _finish(
        self, task: Task, workspace: TaskWorkspace, record: TaskRecord, on_activity: OnActivity
    ) -> TaskRecord:
        if self._settings.commits and workspace.git is not None:
            on_activity("commit")
            try:
                commit = await asyncio.to_thread(self._maker.commit, workspace, *self._branch(task))
            except UserError as error:
                return _failed(record, COMMIT, str(error))
            record = record._replace(commit=commit)
        # After the commit: what the judge writes, such as bytecode, is not of the task.
        if self._settings.judge:
            on_activity("judge")
            status = await self._judge(task, workspace)
            record = record._replace(judge_status=status, verdict="fail" if status else "pass")
        return record

    async def _judge(self, task: Task, workspace: TaskWorkspace) -> int:
        """Run the judge in the sandbox of the task's commands: it runs what the model has written."""
        options = (*self._settings.defaults, *task.options)
        mode = "danger-full-access" if _UNHELD.intersection(options) else "workspace-write"
        shared = tuple(word for word in options if word.startswith(_SHARED_WITH_JUDGE))
        command = ("/bin/sh", "-c", self._settings.judge.replace("{id}", task.id))
        arguments = ("sandbox", f"--sandbox={mode}", *shared, "-C", str(workspace.cwd), "--", *command)
        log = self._out.task_directory(task) / JUDGE_LOG
        log.unlink(missing_ok=True)
        seconds = self._settings.judge_seconds
        try:
            async with asyncio.timeout(seconds):
                return await self._engine.run(Job(arguments, self._settings.cwd, None, log), None)
        except TimeoutError:
            with log.open("a") as file:
                file.write(f"stopped after {seconds:g} s\n")
            return _TIMED_OUT


def branch_problem(tasks: list[Task], branch: str) -> str:
    """Why these tasks cannot leave a branch of this name; empty if they can."""
    if "{id}" in branch:
        return ""
    seen: dict[str, str] = {}
    for task in tasks:
        if task.repo and (other := seen.setdefault(task.repo, task.id)) != task.id:
            return f"the tasks `{other}` and `{task.id}` would leave the same branch `{branch}` in one repository"
    return ""


def _limit(options: tuple[str, ...], limit_usd: float | None) -> tuple[str, ...]:
    if limit_usd is None:
        return ()
    own = [float(word.partition("=")[2]) for word in options if word.startswith("--max-usd=")]
    return (f"--max-usd={min([limit_usd, *own[-1:]]):.6f}",)


def _failed(record: TaskRecord, code: str, message: str) -> TaskRecord:
    return record._replace(status="failed", code=code, message=sanitize_line(message)[:_MAX_MESSAGE])


def _last_words(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 2048))
            lines = file.read().decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f": {lines[-1]}" if lines else ""


def _note_line(line: bytes, on_activity: OnActivity) -> None:
    """Show what a run does now, from a line of `exec --json`."""
    if not line.startswith((b'{"type":"item.', b'{"type":"error"')):
        return
    try:
        event = as_object(decode_json(line))
    except ValueError:
        return
    item = as_object(event.get("item"))
    text = item.get("command") or item.get("text") or item.get("message") or event.get("message") or item.get("type")
    on_activity(sanitize_line(first_words(str(text or ""), _MAX_ACTIVITY)))

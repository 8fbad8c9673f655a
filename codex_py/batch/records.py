"""The state of a batch: the files below its output directory, and nothing else.

`OUT/ID/result.json` and the files beside it are of `exec --artifacts`; `OUT/ID/task.json` is what the batch adds. Each
is replaced in one step, so that a kill at any moment leaves the old one or the new one.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from codex_py.batch.tasks import Task
from codex_py.errors import UsageError, UserError
from codex_py.paths import lock, open_private
from codex_py.protocol.encoding import as_list, as_object, decode_or_none, encode_json
from codex_py.replace_file import replace_file
from codex_py.text.files import os_reason

RESULT: Final = "result.json"
PATCH: Final = "changes.patch"
TRANSCRIPT: Final = "transcript.md"
_ARTIFACTS: Final = (RESULT, "events.jsonl", PATCH, TRANSCRIPT)
RECORD: Final = "task.json"
PROMPT: Final = "prompt.md"
LOG: Final = "output.log"
JUDGE_LOG: Final = "judge.log"
WORK: Final = "work"
_BATCH: Final = "batch.json"
_LOCK: Final = ".lock"

Status: TypeAlias = Literal["pending", "ok", "failed"]
Verdict: TypeAlias = Literal["", "pass", "fail"]


class TaskRecord(NamedTuple):
    """The state of a task. A `pending` one with attempts was running when the batch was stopped."""

    digest: str = ""
    status: Status = "pending"
    code: str = ""
    message: str = ""
    attempts: int = 0
    cost_usd: float | None = None
    seconds: float = 0.0
    files_changed: int = 0
    verdict: Verdict = ""
    judge_status: int | None = None
    commit: str = ""

    @property
    def is_failed(self) -> bool:
        """Whether it counts as a failure of the batch."""
        return self.status == "failed" or self.verdict == "fail"


# In the order of the fields: a record may have been damaged, or written by hand.
_FIELD_TYPES: Final = (str, str, str, str, int, int | float | None, int | float, int, str, int | None, str)


class RunResult(NamedTuple):
    """The part that the batch reads of a `result.json`."""

    ok: bool
    code: str
    message: str
    cost_usd: float | None
    files_changed: int
    has_patch: bool


class OutputDirectory:
    """The output directory, held by one batch at a time. `earlier` are the paths it had when it was used before."""

    def __init__(self, path: Path, batch_id: str, earlier: Sequence[str] = ()) -> None:
        self.path: Final = path
        self.earlier: Final = tuple(earlier)
        self._batch_id = batch_id

    def task_directory(self, task: Task) -> Path:
        """Where the files of a task are."""
        return self.path / task.id

    def session_id(self, task: Task) -> str:
        """The session of a task: the same in every run of this batch, and another one if the task is changed."""
        return str(uuid.uuid5(uuid.UUID(self._batch_id), f"{task.id}\0{task.digest}"))

    def read_record(self, task: Task) -> TaskRecord:
        """The record of a task; a new one where there is none that can be read."""
        fields = read_object(self.path / task.id / RECORD)
        record = TaskRecord(**{name: fields[name] for name in TaskRecord._fields if name in fields})
        is_whole = "attempts" in fields and record.status in ("pending", "ok", "failed")
        return record if is_whole and all(map(isinstance, record, _FIELD_TYPES)) else TaskRecord()

    def write_record(self, task: Task, record: TaskRecord) -> None:
        """Replace the record of a task."""
        replace_file(self.path / task.id / RECORD, encode_json({"id": task.id, **record._asdict()}) + b"\n")

    def read_result(self, task: Task) -> RunResult | None:
        """The result that the run of a task has left; None where there is none of its session."""
        fields = read_object(self.path / task.id / RESULT)
        session = fields.get("session") or fields.get("session_id")
        # A run that fails before its session begins has none.
        if session != self.session_id(task) and (session is not None or fields.get("status") != "failed"):
            return None
        cost = fields.get("cost_usd")
        return RunResult(
            ok=fields.get("status") == "ok",
            code=str(fields.get("code") or ""),
            message=str(fields.get("message") or ""),
            cost_usd=float(cost) if isinstance(cost, int | float) else None,
            files_changed=len(as_list(fields.get("files_changed"))),
            has_patch="patch_error" not in fields and (self.path / task.id / PATCH).is_file(),
        )

    def is_complete(self, task: Task) -> bool:
        """Whether all files of a run that has done the task are there."""
        result = self.read_result(task)
        return (
            result is not None
            and result.ok
            and result.has_patch
            and all((self.path / task.id / name).is_file() for name in _ARTIFACTS)
        )

    def write_patch(self, task: Task, patch: bytes, files: Sequence[tuple[str, str]]) -> None:
        """Add the patch to the files of a run that has none; `files` are its paths, each with what was done to it."""
        directory = self.path / task.id
        fields = read_object(directory / RESULT)
        fields.pop("patch_error", None)
        fields["files_changed"] = [{"path": path, "kind": kind} for path, kind in files]
        replace_file(directory / PATCH, patch)
        replace_file(directory / RESULT, encode_json(fields) + b"\n")

    def read_model(self, task: Task) -> str:
        """The model that has done a task; empty where that is not known."""
        return str(read_object(self.path / task.id / RESULT).get("model") or "")


@contextmanager
def opened_output(path: Path, description: Sequence[str]) -> Generator[OutputDirectory, None, None]:
    """Create or open the output directory of a batch. Raises `UserError` where another batch has it.

    `description` is written down beside the identity of the batch.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = open_private(path / _LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise UsageError(
            f"cannot write to `{path}`: {os_reason(error)}", hint="name a directory with `--out`"
        ) from error
    try:
        if not lock(descriptor):
            raise UserError(f"another batch is at work in `{path}`", hint="wait for it, or choose another `--out`")
        yield _identified(path, description)
    finally:
        os.close(descriptor)


def _identified(path: Path, description: Sequence[str]) -> OutputDirectory:
    file = path / _BATCH
    fields = read_object(file)
    earlier = [entry for entry in map(str, as_list(fields.get("paths"))) if entry != str(path)]
    try:
        batch_id = str(uuid.UUID(str(fields.get("batch_id"))))
    except ValueError:
        batch_id = ""
    if batch_id:
        if str(path) not in as_list(fields.get("paths")):
            replace_file(file, encode_json({**fields, "paths": [*earlier, str(path)]}) + b"\n", sync=True)
        return OutputDirectory(path, batch_id, earlier)
    if file.exists():
        raise UserError(f"`{file}` is damaged", hint="delete it to begin a new batch, or restore it")
    others = [entry.name for entry in os.scandir(path) if entry.name != _LOCK]
    if others:
        raise UsageError(
            f"`{path}` has other files, `{sorted(others)[0]}` among them",
            hint="name a new or empty directory with `--out`",
        )
    batch_id = str(uuid.uuid4())
    fields = {"batch_id": batch_id, "arguments": list(description), "paths": [str(path)]}
    replace_file(file, encode_json(fields) + b"\n", sync=True)
    return OutputDirectory(path, batch_id)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file; empty where there is none."""
    try:
        return as_object(decode_or_none(path.read_bytes()))
    except OSError:
        return {}

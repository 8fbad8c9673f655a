"""Sessions with an id of the caller's (`--session-id`): one run at a time, and what became of a task before."""

from __future__ import annotations

import hashlib
import os
import re
import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.errors import UsageError, UserError
from codex_py.paths import is_there, lock, make_private_dir, open_private
from codex_py.protocol.encoding import encode_json, is_uuid
from codex_py.protocol.failures import exit_status
from codex_py.protocol.value import Value
from codex_py.replace_file import replace_file
from codex_py.rollout.files import active_writer, files_of_thread
from codex_py.rollout.listing import find_session
from codex_py.rollout.records import read_records
from codex_py.text.files import os_reason
from codex_py.text.sanitize import sanitize_line

# Below the directory of the sessions: a directory for each session with such an id.
RUNS: Final = "exec-runs"
GO_ON: Final = (
    "The run of this task was stopped before the task was done. Go on where it stopped, and do not repeat what is done."
)
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_NAMESPACE: Final = uuid.UUID("6f0d3c1e-7a52-5b7e-9d0c-3a51f6f1c0de")
_LOCK: Final = "lock"
_FAILED: Final = "failed"


class StoredTask(NamedTuple):
    """What a session says of a task: the answer of a completed run, or whether a run of it can be gone on with."""

    answer: str | None = None
    is_open: bool = False


class NamedSession(Value):
    """A session by its id; `name` is what the caller wrote, `thread_id` the id in its file."""

    name: str
    thread_id: str
    home: Path

    @property
    def directory(self) -> Path:
        """Where what is kept of its runs beside the conversation is."""
        return self.home / RUNS / self.thread_id

    @contextmanager
    def reserved(self) -> Generator[None]:
        """Keep other runs out. Raises `UserError` with a status of its own while one has the session."""
        try:
            make_private_dir(self.directory)
            descriptor = open_private(self.directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError as error:
            raise UserError(f"cannot write `{self.directory}`: {os_reason(error)}") from error
        try:
            if not lock(descriptor):
                raise self._is_busy()
            try:
                yield
            except UserError as error:
                # The terminal, or an `exec resume`, has it.
                if str(error) == str(active_writer(self.thread_id)):
                    raise self._is_busy() from error
                raise
        finally:
            os.close(descriptor)

    def is_stored(self) -> bool:
        """Whether it has begun. Raises `UserError` for one that is archived."""
        if any(files_of_thread(self.home, self.thread_id)):
            return True
        if any(files_of_thread(self.home, self.thread_id, archived=True)):
            find_session(self.home, self.thread_id)
        return False

    def find_task(self, task: str) -> StoredTask:
        """The outcome of a task in the session, which is stored."""
        if is_there(self.directory / f"{_FAILED}-{task}"):
            found = read_task(find_session(self.home, self.thread_id), task)
            return StoredTask(None, found.is_open)
        return read_task(find_session(self.home, self.thread_id), task)

    def note_failure(self, task: str, *, failed: bool) -> None:
        """Note that a turn which the model completed does not count as success, such as without a sandbox."""
        mark = self.directory / f"{_FAILED}-{task}"
        if failed:
            replace_file(mark, b"")
        else:
            mark.unlink(missing_ok=True)

    def _is_busy(self) -> UserError:
        return UserError(
            f"session `{self.name}` is in use by another run",
            hint="wait for it to end, or give another `--session-id`",
            status=exit_status("busy"),
            failure="busy",
        )


def named_session(home: Path, text: str) -> NamedSession:
    """The session of `--session-id`. Raises `UsageError` for an id that is not safe in a file name."""
    lowered = text.lower()
    if is_uuid(lowered):
        return NamedSession(lowered, lowered, home)
    if not _ID.fullmatch(text):
        shown = sanitize_line(text[:80])
        raise UsageError(
            f"`{shown}` is not a session id",
            hint="1 to 64 letters, digits, `_`, `-` and `.`, the first not `-` or `.`; or a UUID",
        )
    return NamedSession(text, str(uuid.uuid5(_NAMESPACE, text)), home)


def task_key(prompt: str, images: Sequence[Path], output_schema: dict[str, Any] | None) -> str:
    """What makes two runs the same task: the prompt with what was piped in, the pictures, and the answer's form."""
    digest = hashlib.sha256()
    for piece in (prompt.encode(errors="surrogatepass"), encode_json(output_schema), *map(_picture, images)):
        digest.update(b"%d:" % len(piece) + piece)
    return digest.hexdigest()


def _picture(path: Path) -> bytes:
    try:
        return hashlib.sha256(path.read_bytes()).digest()
    except OSError:
        # The turn reports it.
        return os.fsencode(path)


def read_task(path: Path, task: str) -> StoredTask:
    """What became of a task in a session file: its last completed run, or whether the last run of the file is its own.

    Raises `UserError` for a file that cannot be read.
    """
    answer: str | None = None
    is_own = has_failed = is_open = False
    for record in read_records(path, record_types=frozenset({b"event_msg"})):
        if record.record_type != "event_msg":
            continue
        payload = record.payload
        match payload.get("type"):
            case "task_started":
                is_own = has_failed = False
            case "user_message":
                is_own = is_open = payload.get("task") == task
            case "error":
                has_failed = True
            case "task_complete" if is_own and not has_failed:
                last = payload.get("last_agent_message")
                if isinstance(last, str) and last.strip():
                    answer, is_open = last, False
            case _:
                pass
    return StoredTask(answer, is_open)

"""`--artifacts DIR`: what a run has come to, as files for those who collect many runs.

Each file appears whole or not at all. `result.json` is written last: where it is, the others are complete.
"""

from __future__ import annotations

import json
import os
import platform
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final

from codex_py import __version__
from codex_py.errors import UsageError, UserError
from codex_py.exec import schema
from codex_py.exec.jsonl import JsonlPrinter
from codex_py.exec.run import RunEnd
from codex_py.paths import is_directory, opened_directory, real_path
from codex_py.protocol import events
from codex_py.protocol.encoding import as_object, decode_json, decode_or_none, timestamp
from codex_py.replace_file import install
from codex_py.text.files import FileRefused, os_reason, read_inside

RESULT: Final = "result.json"
EVENTS: Final = "events.jsonl"
PATCH: Final = "changes.patch"
TRANSCRIPT: Final = "transcript.md"
NAMES: Final = (RESULT, EVENTS, PATCH, TRANSCRIPT)
FORMAT: Final = 1
_MAX_RESULT_BYTES: Final = 16 * 1024 * 1024
_LINES_IN_MEMORY: Final = 256 * 1024


class ArtifactDirectory:
    """The directory of the files. Later links on the way to it have no effect."""

    def __init__(self, argument: str) -> None:
        """Make the directory. Raises `UsageError` where that fails."""
        if not argument:
            raise UsageError("`--artifacts` is empty", hint="name a directory")
        self._shown = argument
        self.path: Final = Path(real_path(Path(argument).absolute()))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = "it is not a directory" if not is_directory(self.path) else os_reason(error)
            raise UsageError(
                f"cannot write to `{argument}`: {reason}", hint="name a directory with `--artifacts`"
            ) from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise UsageError(f"cannot write to `{argument}`: permission denied", hint="name another directory")

    def remove(self, name: str) -> None:
        """Remove a file of an earlier run. Raises `UserError`."""
        try:
            with opened_directory(self.path) as directory:
                os.unlink(name, dir_fd=directory)
        except FileNotFoundError:
            pass
        except OSError as error:
            raise self._failure(name, error) from error

    def write(self, name: str, content: bytes | IO[bytes]) -> None:
        """Replace a file in one step. Raises `UserError`, and keeps the old one, on failure."""
        draft = f".{name}-{os.urandom(6).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with opened_directory(self.path) as directory:
                try:
                    with os.fdopen(os.open(draft, flags, 0o666, dir_fd=directory), "wb") as file:
                        for piece in (
                            (content,) if isinstance(content, bytes) else iter(lambda: content.read(1 << 20), b"")
                        ):
                            file.write(piece)
                except OSError:
                    os.unlink(draft, dir_fd=directory)
                    raise
                install(directory, draft, name)
        except OSError as error:
            raise self._failure(name, error) from error

    def read_result(self) -> dict[str, Any]:
        """The `result.json` of an earlier run; empty without one, and where something else has its name."""
        try:
            head = read_inside(self.path, self.path / RESULT, _MAX_RESULT_BYTES)
            return as_object(decode_json(head.raw)) if head is not None else {}
        except (FileRefused, ValueError):
            return {}

    def is_complete(self, task: str) -> bool:
        """Whether all files of a run that has done a task are there."""
        result = self.read_result()
        is_own = (result.get("status"), result.get("task")) == ("ok", task) and "patch_error" not in result
        return is_own and all((self.path / name).is_file() for name in NAMES)

    def _failure(self, name: str, error: OSError) -> UserError:
        return UserError(f"cannot write `{self._shown}/{name}`: {os_reason(error)}")


class RunNotes:
    """A listener that keeps what the files say of a run."""

    def __init__(self) -> None:
        # In memory, and beyond that in a file without a name: nothing is left behind when the process is killed.
        self._lines: IO[bytes] = tempfile.SpooledTemporaryFile(_LINES_IN_MEMORY)  # noqa: SIM115 - as long as the process
        self._print = JsonlPrinter(self._write_line)
        self._began = time.time()
        self._turn_began: float | None = None
        self._turn_ended: float | None = None
        self._session: events.SessionStarted | None = None
        self._usage: events.TurnCompleted | None = None
        self._skills: dict[str, dict[str, str]] = {}
        self._files: dict[str, str] = {}

    def __call__(self, event: events.Event) -> None:
        self._print(event)
        match event:
            case events.SessionStarted():
                self._session = event
            case events.TurnStarted():
                self._turn_began = self._turn_began or time.time()
            case events.UsageReported():
                self._usage = events.TurnCompleted("", None, event.total, event.turn, event.costs)
            case events.SkillUsed():
                self._skills[str(event.path)] = schema.skill_used(event)
            case events.PatchFinished(_, changes, True):
                self._files.update((str(change.path), change.kind) for change in changes)
            case events.TurnCompleted():
                self._usage, self._turn_ended = event, time.time()
            case events.TurnFailed() | events.TurnInterrupted():
                self._turn_ended = time.time()
            case _:
                pass

    def _write_line(self, line: bytes) -> None:
        self._lines.write(line)

    def lines(self) -> IO[bytes]:
        """The events as `exec --json` prints them, from the start."""
        self._lines.seek(0)
        return self._lines

    def result(self, end: RunEnd, *, has_schema: bool, more: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of `result.json`; `more` are fields that stand in place of those of the same name."""
        session, now = self._session, time.time()
        usage = schema.turn_completed(self._usage or events.TurnCompleted("", None, schema.NO_USAGE))
        fields: dict[str, Any] = {
            "format": FORMAT,
            "status": "ok" if end.code is None else "failed",
            "code": end.code,
            "message": end.message or None,
            "exit_status": end.status,
            "answer": end.answer,
            "structured_output": decode_or_none(end.answer) if has_schema and end.answer else None,
            "is_stored": False,
            "session_id": session.thread_id if session else None,
            "model": session.model if session else None,
            "provider": session.provider if session else None,
            "cwd": str(session.cwd) if session else None,
            "usage": usage["usage"],
            "turn_usage": usage.get("turn_usage", usage["usage"]),
            "cost_usd": usage["usage"]["cost_usd"],
            "skills": list(self._skills.values()),
            "files_changed": [{"path": path, "kind": kind} for path, kind in self._files.items()],
            "files_left_out": [],
            "started_at": timestamp(self._began),
            "ended_at": timestamp(now),
            "durations": {"total_seconds": round(now - self._began, 3), "turn_seconds": self._turn_seconds()},
            "versions": versions(),
        }
        return {**fields, **more}

    def _turn_seconds(self) -> float | None:
        if self._turn_began is None:
            return None
        return round((self._turn_ended or time.time()) - self._turn_began, 3)


def versions() -> dict[str, str]:
    """The versions of what has run."""
    return {
        "codex_py": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
    }


def encode_result(fields: Mapping[str, Any]) -> bytes:
    """`result.json` as people read it too."""
    try:
        return json.dumps(fields, indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(fields, indent=2, allow_nan=False).encode() + b"\n"


def plain_transcript(prompt: str, end: RunEnd, warnings: Sequence[str] = ()) -> bytes:
    """`transcript.md` of a run whose session is not stored or cannot be read: the task and the answer."""
    quoted = "".join(f"> {line}".rstrip() + "\n" for line in prompt.splitlines())
    parts = [f"# {end.code or 'ok'}\n", quoted, *(f"{warning}\n" for warning in warnings)]
    if end.answer:
        parts.append(f"{end.answer}\n")
    if end.message:
        parts.append(f"**Failed:** {end.message}\n")
    return "\n".join(filter(None, parts)).encode(errors="replace")

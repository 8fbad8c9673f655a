"""`exec` with `--session-id` or `--artifacts`: runs that are safe to repeat, and whose outcome becomes files."""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from codex_py.batch.records import read_object
from codex_py.checkpoints.workspace_patch import WorkspacePatch, WorkspaceStates
from codex_py.cli.console import note_expired_sessions
from codex_py.cli.session_dir import place_session, read_cwd_map
from codex_py.core.build import ResumeTarget, SessionRequest, open_session
from codex_py.core.session_settings import choose_policy
from codex_py.errors import UsageError, UserError
from codex_py.exec.artifacts import (
    EVENTS,
    NAMES,
    PATCH,
    RESULT,
    TRANSCRIPT,
    ArtifactDirectory,
    RunNotes,
    encode_result,
    plain_transcript,
)
from codex_py.exec.named_session import GO_ON, RUNS, NamedSession, named_session, task_key
from codex_py.exec.run import ExecRequest, RunEnd, end_in_time, failed_start, failure_of, print_stored, run_exec
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.events import TurnFailed
from codex_py.protocol.failures import exit_status
from codex_py.replace_file import replace_file
from codex_py.rollout.listing import find_session, load_summary, read_names, save_name
from codex_py.rollout.reader import load_session
from codex_py.services.session_cleaning import session_cleaner
from codex_py.services.session_export import ExportChoice
from codex_py.services.session_markdown import export_markdown
from codex_py.text.files import os_reason
from codex_py.text.sanitize import sanitize_line

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class _Stopped(BaseException):
    """A signal came while no turn could be told of it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def check_run_flags(options: argparse.Namespace) -> None:
    """Raise `UsageError` for flags that exclude each other."""
    if options.session_id is None:
        if options.again:
            raise UsageError("`--again` goes with `--session-id`")
        return
    if options.ephemeral:
        raise UsageError("`--session-id` and `--ephemeral` exclude each other")
    if options.words[:1] in (["resume"], ["fork"]):
        raise UsageError(
            f"`--session-id` does not go with `{options.words[0]}`", hint="it opens its session itself, or creates it"
        )


def run_collected(
    flags: Sequence[str],
    read: Callable[[], argparse.Namespace],
    prepare: Callable[[argparse.Namespace], tuple[SessionRequest, ExecRequest]],
) -> int:
    """Run as `exec` does, in the session of `--session-id`, and write the files of `--artifacts`, however it ends.

    `read` gives the options that `flags` are, and `prepare` checks them; what raises in them counts too.
    """
    files = None
    try:
        with _raising_signals():
            options = read()
            if options.artifacts is not None:
                files = _Files(ArtifactDirectory(options.artifacts), RunNotes())
            check_run_flags(options)
            moved = read_cwd_map(options.cwd_map or ())
            session, request = prepare(options)
            session = place_session(session, options.session_dir, moved)
            named = None if options.session_id is None else named_session(session.state_home, options.session_id)
            run = _CollectedRun(session, request, named, files)
            run.moved = moved
            return run.run(again=options.again, only_stored=options.stored)
    except UserError as error:
        code = failure_of(error)
        # The files of the run that has the session are its own; what is only to be completed stays as it is.
        if code != "busy" and "--stored" not in flags:
            failed = failed_start(error)
            end = RunEnd(exit_status(code), code, failed.message)
            # As `exec --json` prints it; an internal error may come after the end of the turn.
            _write_early(flags, files, end, failed if code != "internal" else None)
        raise
    except _Stopped as stopped:
        end = RunEnd(128 + stopped.number, "interrupted", "stopped before the turn began")
        _write_early(flags, files, end)
        return end.status


class _Files(NamedTuple):
    """The files of `--artifacts`, and what is noted of the run for them."""

    directory: ArtifactDirectory
    notes: RunNotes

    def write(self, transcript: bytes, patch: bytes | None) -> None:
        """Write all but the result, which comes last; without a patch, that of an earlier run is removed."""
        self.directory.write(EVENTS, self.notes.lines())
        self.directory.write(TRANSCRIPT, transcript)
        if patch is None:
            self.directory.remove(PATCH)
        else:
            self.directory.write(PATCH, patch)


def _write_early(flags: Sequence[str], files: _Files | None, end: RunEnd, failed: TurnFailed | None = None) -> None:
    """The files of a run without a turn; if an earlier run of its session may have changed files, without a patch."""
    # The reason why it failed matters more than why that could not be written.
    with suppress(UserError):
        if files is None and (argument := _value_of("--artifacts", flags)):
            files = _Files(ArtifactDirectory(argument), RunNotes())
        if files is None:
            return
        if failed is not None:
            files.notes(failed)
        is_repeatable = any(flag.partition("=")[0] == "--session-id" for flag in flags)
        files.write(plain_transcript("", end), None if is_repeatable else b"")
        files.directory.write(RESULT, encode_result(files.notes.result(end, has_schema=False, more={})))


def _value_of(option: str, flags: Sequence[str]) -> str | None:
    """The last value of an option in a command line that is wrong somewhere, or was not read in time."""
    found = [flag.partition("=")[2] for flag in flags if flag.startswith(f"{option}=")]
    found += [value for flag, value in pairwise(flags) if flag == option and not value.startswith("-")]
    return found[-1] if found else None


@contextmanager
def _raising_signals() -> Generator[None]:
    """Signals raise `_Stopped`, until a turn takes them; as before afterwards.

    One that came while the program was loaded waits until now.
    """

    def stop(number: int, _: object) -> None:
        raise _Stopped(number)

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.sigpending().intersection(_SIGNALS))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class _CollectedRun:
    """One run. Without `named` its session is a new one of no special id."""

    def __init__(
        self, session: SessionRequest, request: ExecRequest, named: NamedSession | None, files: _Files | None
    ) -> None:
        self._session = session
        self._request = request
        self._named = named
        self._files = files
        self._watch = None if files is None else files.notes
        self._task = task_key(request.prompt, request.images, request.output_schema)
        runs = session.state_home / RUNS
        self._directory = named.directory if named is not None else runs / f"run-{uuid7()}"
        self._rollout: Path | None = None
        self.moved: Sequence[tuple[str, str]] = ()

    def run(self, *, again: bool, only_stored: bool) -> int:
        """Print the stored answer, or run, or go on with an earlier run; give back the exit status.

        Raises `UserError` where only a stored answer will do, and there is none.
        """
        with self._named.reserved() if self._named is not None else nullcontext():
            resumes = self._named is not None and self._named.is_stored()
            if self._named is not None and resumes and not again:
                found = self._named.find_task(self._task)
                if found.answer is not None:
                    return self._repeat(self._named, found.answer)
                if found.is_open:
                    moves = "".join(f"\nWhat was in `{old}` is in `{new}` now." for old, new in self.moved)
                    self._request = self._request.replace(prompt=GO_ON + moves, images=())
            if only_stored:
                raise UserError("the session of the task is gone, or has no answer to it")
            return self._run(resumes=resumes)

    def _run(self, *, resumes: bool) -> int:
        named, session = self._named, self._session
        states, problem = None, ""
        if self._files is not None:
            self._files.directory.remove(RESULT)
            states = self._states(self._files.directory)
            problem = _note_start(states, self._task)
        if named is not None:
            resume = ResumeTarget(thread_id=named.thread_id) if resumes else session.resume
            session = session.replace(resume=resume, thread_id=named.thread_id)
        request = self._request.replace(task=self._task, watch=self._watch, give_up=self._give_up)
        try:
            end = asyncio.run(self._in_session(session, request))
            self._finish_despite_signals()
            if named is not None:
                named.note_failure(self._task, failed=end.overruled)
                _name_session(named)
            if self._files is not None and states is not None:
                self._write(self._files, end, problem or _make_patch(states, self._task))
                if end.code is None:
                    states.forget()
        finally:
            if named is None and states is not None:
                states.forget()
                with suppress(OSError):
                    self._directory.rmdir()
        return end.status

    def _finish_despite_signals(self) -> None:
        """From here on only files are written, which a signal does not stop, except that the time for it is limited."""

        def hasten(number: int, _: object) -> None:
            if number == signal.SIGTERM:
                end_in_time(self._give_up)

        for number in _SIGNALS:
            signal.signal(number, hasten)

    def _give_up(self) -> None:
        """Write what there is of the files: the rest takes too long."""
        if self._files is not None:
            end = RunEnd(128 + signal.SIGTERM, "interrupted", "stopped before it could end as it should")
            self._write(self._files, end, "there was no time to write it")

    async def _in_session(self, session: SessionRequest, request: ExecRequest) -> RunEnd:
        async with open_session(session) as opened:
            gc.freeze()
            gc.enable()
            self._rollout = opened.rollout
            end = await run_exec(opened, request)
        note_expired_sessions(session.home, session.loaded.config.sessions.keep_days)
        return end

    def _states(self, artifacts: ArtifactDirectory) -> WorkspaceStates:
        """The states of the workspace before the tasks of the session."""
        session = self._session
        own = [session.home, session.state_home]
        inside = artifacts.path in (session.cwd, *session.cwd.parents)
        own += [artifacts.path / name for name in NAMES] if inside else [artifacts.path]
        states = WorkspaceStates(
            self._directory / "files",
            session.loaded.config.checkpoints,
            session.env,
            cwd=session.cwd,
            policy=choose_policy(session.loaded, session.extra_roots),
            excluded=own,
        )
        states.moved = self.moved
        return states

    def _write(self, files: _Files, end: RunEnd, patch: WorkspacePatch | str, *, is_stored: bool = False) -> None:
        """Write all files; of a patch that there is not, `patch` says why."""
        name = self._named.name if self._named else None
        more: dict[str, Any] = {"task": self._task, "session": name, "is_stored": is_stored}
        files.write(self._transcript(end), None if isinstance(patch, str) else patch.patch)
        if isinstance(patch, str):
            _warn(f"no `{PATCH}`: {patch}")
            more["patch_error"] = patch
        else:
            more["files_changed"] = [{"path": _text(path), "kind": kind} for path, kind in patch.files]
            more["files_left_out"] = [_text(path) for path in patch.left_out]
        result = files.notes.result(end, has_schema=self._request.output_schema is not None, more=more)
        if self._named is not None and end.code is None:
            # For the same command once more, with another directory; where this one was is not kept. The patch comes
            # first: a result is only believed with it.
            if not isinstance(patch, str):
                replace_file(self._named.directory / f"changes-{self._task}.patch", patch.patch)
            stored = encode_result({**result, "cwd": None})
            replace_file(self._named.directory / f"result-{self._task}.json", stored)
        files.directory.write(RESULT, encode_result(result))

    def _transcript(self, end: RunEnd) -> bytes:
        session, pieces = self._session, list[bytes]()
        if self._rollout is not None:
            with suppress(UserError, OSError):
                cleaner = session_cleaner(session.home, session.loaded.config, session.env)
                summary = load_summary(session.state_home, self._rollout)
                export_markdown(summary, ExportChoice(), cleaner, pieces.append)
                return b"".join(pieces)
        return plain_transcript(self._request.prompt, end)

    def _repeat(self, named: NamedSession, answer: str) -> int:
        """Print the answer of an earlier run, and see to it that the files are there."""
        self._rollout = find_session(named.home, named.thread_id)
        end = print_stored(load_session(self._rollout), self._request.replace(watch=self._watch), answer)
        files = self._files
        if files is None:
            return end.status
        if files.directory.is_complete(self._task):
            return end.status
        result = read_object(named.directory / f"result-{self._task}.json")
        patch = _read(named.directory / f"changes-{self._task}.patch")
        if result and patch is not None:
            files.write(self._transcript(end), patch)
            now = {"session": named.name, "is_stored": True, "cwd": str(self._session.cwd), "exit_status": end.status}
            files.directory.write(RESULT, encode_result({**result, **now}))
            return end.status
        # The run was killed between its answer and its files.
        states = self._states(files.directory)
        made = _make_patch(states, self._task)
        self._write(files, end, made, is_stored=True)
        if not isinstance(made, str):
            states.forget()
        return end.status


def _name_session(named: NamedSession) -> None:
    """Let lists and `resume` know the session by the id the caller chose, unless it has a name."""
    if named.name != named.thread_id and named.thread_id not in read_names(named.home):
        with suppress(UserError):
            save_name(named.home, named.thread_id, named.name)


def _note_start(states: WorkspaceStates, task: str) -> str:
    """Put the state before a task on record; why that is not possible, if it is not."""
    try:
        states.note_start(task)
    except (OSError, UserError) as error:
        return _reason(error)
    return ""


def _make_patch(states: WorkspaceStates, task: str) -> WorkspacePatch | str:
    """The patch of a task, or why there is none."""
    try:
        return states.patch_of(task)
    except (OSError, UserError) as error:
        return _reason(error)


def _reason(error: OSError | UserError) -> str:
    return os_reason(error) if isinstance(error, OSError) else str(error)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _text(path: str) -> str:
    return os.fsencode(path).decode(errors="replace")


def _warn(message: str) -> None:
    with suppress(OSError):
        print(f"warning: {sanitize_line(message)}", file=sys.stderr)

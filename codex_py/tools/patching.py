"""One patch in a session: parsed, checked against the policy, approved, written, and emitted as events."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.patch.apply import ApplyError, apply_plan
from codex_py.patch.grammar import (
    MAX_PATCH_BYTES,
    AddFile,
    DeleteFile,
    ParsedPatch,
    PatchError,
    PlainEdit,
    TextReplacement,
    UpdateFile,
    WholeFile,
    checked_path,
    parse_patch,
)
from codex_py.patch.plan import PatchPlan, PlannedChange, plan_patch, summarize
from codex_py.paths import is_directory, real_path
from codex_py.protocol.encoding import uuid7
from codex_py.protocol.events import FileChange, PatchFinished, PatchRejected, PatchStarted
from codex_py.protocol.policy import DangerFullAccess, ReadOnly
from codex_py.protocol.questions import ApprovalMissing, ApprovalQuestion
from codex_py.sandbox.policy import PROTECTED_NAMES, WritableRoot, is_writable
from codex_py.text.diff import unified_diff
from codex_py.text.sanitize import sanitize
from codex_py.tools.approval import (
    Approvals,
    AskVerdict,
    RefuseVerdict,
    RunVerdict,
    decide_patch,
    declined_because,
    put_question,
)
from codex_py.tools.spec import PLANNING, ToolContext, ToolOutput, WantedChange

_SKILL: Final = "it writes a skill, which the agent of later sessions follows like your own instructions"


class PatchToJudge(NamedTuple):
    """A patch as written, the real paths of the files it names, and their changes where these are known."""

    text: str
    files: tuple[Path, ...]
    changes: tuple[FileChange, ...] = ()


def is_in_skills(path: Path) -> bool:
    """Whether a path lies in a project's directory of skills."""
    return (".agents", "skills") in pairwise(path.parts)


async def permit_patch(outside: str | None, patch: PatchToJudge, context: ToolContext) -> str | None:
    """Ask about a patch where that is needed; None when it may be written, else why not.

    `outside` is why the sandbox would refuse it, None when it would not.
    """
    if context.plan:
        return f"patch refused: {PLANNING}; put what you would change into the plan"
    approvals = context.approvals or Approvals()
    async with approvals.lock:
        if context.allowed and outside is None:
            return None
        verdict = decide_patch(outside, policy=context.approval, can_ask=context.ask is not None)
        match verdict:
            case RunVerdict():
                return None
            case RefuseVerdict(reason, unasked):
                if unasked is not None:
                    context.emit(ApprovalMissing(context.call_id, f"a patch: {unasked.reason}"))
                return reason
            case AskVerdict():
                pass
        keys = [("patch", file) for file in patch.files]
        if all(approvals.is_allowed(key) for key in keys):
            return None
        question = ApprovalQuestion(
            id=uuid7(),
            call_id=context.call_id,
            command=sanitize(patch.text),
            cwd=context.cwd,
            reason=_SKILL if outside is not None and any(map(is_in_skills, patch.files)) else verdict.reason,
            outside=verdict.outside,
            files=patch.files,
            changes=patch.changes,
        )
        reply = await put_question(question, context.ask)
        if reply.scope == "session":
            for key in keys:
                approvals.allow(key)
        return None if reply.scope else f"patch rejected: {declined_because(reply)}"


_BY_SETTINGS: Final = "rejected by user approval settings"
_READ_ONLY: Final = f"patch rejected: writing is blocked by read-only sandbox; {_BY_SETTINGS}"
_OUTSIDE: Final = f"patch rejected: writing outside of the project; {_BY_SETTINGS}"
_EMPTY: Final = "patch rejected: empty patch"
_ALL_DIFFS: Final = 1024 * 1024
_UNVERIFIED: Final = " verification failed: "


class PatchRefused(PatchError):
    """The policy does not let this patch be written."""


class PatchOutside(PatchRefused):
    """The sandbox would not let it be written; the user may."""


class _Stopped(Exception):
    """The call was cancelled while its patch was being written."""


def patch_files(raw: bytes, cwd: Path) -> str:
    """Apply a patch by hand, under no policy, relative paths from `cwd`; the summary. Raises `ToolError`."""
    try:
        text = raw.decode()
    except UnicodeDecodeError as error:
        raise PatchError(f"Invalid patch: not UTF-8 (byte {error.start})") from error
    plan = plan_patch(parse_patch(text), cwd)
    apply_plan(plan)
    return summarize(plan)


def _read_change(wanted: WantedChange) -> ParsedPatch | PlainEdit:
    """The hunks of a change. Raises `PatchError` for what is no patch."""
    fields = wanted.fields
    if fields is None:
        return parse_patch(wanted.text)
    if len(wanted.text.encode()) > MAX_PATCH_BYTES:
        raise PatchError(f"more than the {MAX_PATCH_BYTES} bytes that a call may change")
    path = checked_path(fields["path"])
    if "content" in fields:
        return PlainEdit((WholeFile(path, fields["content"]),))
    return PlainEdit((TextReplacement(path, fields["old_text"], fields["new_text"], bool(fields.get("all"))),))


async def run_patch(wanted: WantedChange, context: ToolContext, workdir: Path) -> ToolOutput:
    """Do the work of `apply_patch_text`, or of a plain edit."""
    begun = time.monotonic()
    # The roots as the session first saw them: a link put in their place since then widens nothing.
    roots = context.sandbox.roots(context.sandbox_policy, context.cwd)
    try:
        plan, shown = await _permitted(wanted, context, roots, workdir)
    except PatchError as error:
        reason = str(error) if isinstance(error, PatchRefused) else _unverified(wanted, error)
        context.emit(PatchRejected(context.call_id, reason))
        return ToolOutput(reason, ok=False)
    await context.expect_write([path for change in shown for path in (change.path, change.move_path) if path])
    context.emit(PatchStarted(context.call_id, shown))
    stop = threading.Event()
    writing = asyncio.ensure_future(asyncio.to_thread(_write, plan, stop))
    try:
        await _settled(writing, stop)
    except asyncio.CancelledError:
        context.emit(PatchFinished(context.call_id, shown, *_outcome(writing, plan)))
        raise
    ok, message = _outcome(writing, plan)
    text = f"Exit code: {0 if ok else 1}\nWall time: {time.monotonic() - begun:.1f} seconds\nOutput:\n{message}"
    return ToolOutput(text, ok, ended=PatchFinished(context.call_id, shown, ok, message))


async def _permitted(
    wanted: WantedChange, context: ToolContext, roots: Sequence[WritableRoot], workdir: Path
) -> tuple[PatchPlan, tuple[FileChange, ...]]:
    """The plan of a patch that may be written, the user asked where that is needed. Raises `PatchError`.

    Nothing outside of the writable directories is read before the user has approved it.
    """
    prepared = outside = None
    changes: tuple[FileChange, ...] = ()
    try:
        prepared = await asyncio.to_thread(_prepare, wanted, context, roots, workdir)
        changes = prepared[1]
    except PatchOutside as refused:
        outside = str(refused)
        changes = await asyncio.to_thread(_preview, wanted, context, workdir)
    files = await asyncio.to_thread(_targets, wanted, workdir)
    for file in files:
        _check_readable(file, context)
    refusal = await permit_patch(outside, PatchToJudge(wanted.text, files, changes), context)
    if refusal is not None:
        raise PatchRefused(refusal)
    return prepared or await asyncio.to_thread(_prepare_approved, wanted, context, roots, files, workdir)


def _prepare(
    wanted: WantedChange, context: ToolContext, roots: Sequence[WritableRoot], workdir: Path
) -> tuple[PatchPlan, tuple[FileChange, ...]]:
    def permit(path: Path) -> None:
        _check_readable(path, context)
        _check_resolved(path, roots)

    patch, policy = _read_change(wanted), context.sandbox_policy
    if not patch.hunks:
        raise PatchRefused(_EMPTY)
    if isinstance(policy, ReadOnly):
        raise PatchOutside(_READ_ONLY)
    if not is_directory(workdir):
        raise PatchError(f"`{workdir}` is not a directory")
    if isinstance(policy, DangerFullAccess):
        plan = plan_patch(patch, workdir)
    else:
        _check_as_written(patch, roots, workdir)
        plan = plan_patch(patch, workdir, permit=permit)
    return plan, _shown(plan.changes)


def _preview(wanted: WantedChange, context: ToolContext, workdir: Path) -> tuple[FileChange, ...]:
    """The changes of a patch that the sandbox does not allow, for the question; empty when they cannot be determined
    without reading outside of the session's directory.
    """
    root = Path(real_path(context.cwd))

    def permit(path: Path) -> None:
        _check_readable(path, context)
        if not Path(real_path(path)).is_relative_to(root):
            raise PatchOutside(_OUTSIDE)

    try:
        return _shown(plan_patch(_read_change(wanted), workdir, permit=permit).changes)
    except PatchError:
        return ()


def _prepare_approved(
    wanted: WantedChange, context: ToolContext, roots: Sequence[WritableRoot], files: Sequence[Path], workdir: Path
) -> tuple[PatchPlan, tuple[FileChange, ...]]:
    """The plan for exactly the files the user has seen: a link put in their place since then is refused."""

    def permit(path: Path) -> None:
        _check_readable(path, context)
        if path not in files and not is_writable(path, roots):
            raise PatchRefused(f"{_OUTSIDE}: `{path}` is not what the user was asked about")

    if not is_directory(workdir):
        raise PatchError(f"`{workdir}` is not a directory")
    plan = plan_patch(_read_change(wanted), workdir, permit=permit)
    return plan, _shown(plan.changes)


def _targets(wanted: WantedChange, workdir: Path) -> tuple[Path, ...]:
    """The files a patch names, links followed, and the links themselves; nothing of them is read."""
    named = [workdir / path for hunk in _read_change(wanted).hunks for path in _paths(hunk)]
    entries = [Path(real_path(path.parent)) / path.name for path in named]
    return tuple(dict.fromkeys(file for entry in entries for file in (entry, Path(real_path(entry)))))


def _paths(hunk: AddFile | DeleteFile | UpdateFile | TextReplacement | WholeFile) -> tuple[str, ...]:
    match hunk:
        case UpdateFile(path=path, move_to=str(destination)):
            return (path, destination)
        case _:
            return (hunk.path,)


def _check_as_written(patch: ParsedPatch | PlainEdit, roots: Sequence[WritableRoot], workdir: Path) -> None:
    """Refuse what no resolving is needed for: a way up, and the names that are kept."""
    for hunk in patch.hunks:
        for path in _paths(hunk):
            names = path.split("/")
            if ".." in names:
                raise PatchOutside(f"{_OUTSIDE}: `{path}` goes up with `..`; write the path without it")
            if not path.startswith("/"):
                _check_names(path, _below_root(workdir / path, roots) or names)


def _check_readable(path: Path, context: ToolContext) -> None:
    """Refuse what the model must not read: a patch that does not fit is answered with lines of the file."""
    if not context.sandbox.may_read(path, context.sandbox_policy, context.cwd):
        raise PatchRefused(f"patch rejected: the sandbox does not let `{path}` be read")


def _below_root(path: Path, roots: Sequence[WritableRoot]) -> list[str]:
    """The names below the innermost root: one that the user chose may lie in a protected directory."""
    holders = [root.path for root in roots if path.is_relative_to(root.path)]
    return list(path.relative_to(max(holders, key=lambda root: len(root.parts))).parts) if holders else []


def _check_resolved(path: Path, roots: Sequence[WritableRoot]) -> None:
    # A link as such lives in its directory, wherever it leads: the patch changes the entry, and nothing behind it.
    if is_writable(path.parent if os.path.islink(path) else path, roots):  # noqa: PTH114 - which raises
        _check_names(str(path), [path.name])
        return
    names = {name for root in roots for name in root.names if name not in PROTECTED_NAMES}
    further = next((part for part in path.parts if part.lower() in names), None)
    if further is not None:
        raise PatchOutside(f"{_OUTSIDE}: other programs run what is in `{further}` (`sandbox.protected`)")
    protected = ", ".join(f"`{name}`" for name in PROTECTED_NAMES)
    raise PatchOutside(
        f"{_OUTSIDE}: `{path}` is in no writable directory, or in one that is kept read-only ({protected})"
        f"{_advice(str(path))}"
    )


def _check_names(path: str, names: list[str]) -> None:
    for part in names:
        if part.lower() in PROTECTED_NAMES:
            raise PatchOutside(f"{_OUTSIDE}: `{path}` is kept read-only, like everything in `{part}`{_advice(path)}")


def _advice(path: str) -> str:
    return "; the user allows writing skills with `--allow-skills`" if is_in_skills(Path(path)) else ""


def _write(plan: PatchPlan, stop: threading.Event) -> ApplyError | None:
    def checkpoint() -> None:
        if stop.is_set():
            raise _Stopped

    try:
        apply_plan(plan, checkpoint=checkpoint)
    except ApplyError as error:
        return error
    except _Stopped:
        return ApplyError("interrupted; nothing was changed")
    return None


async def _settled(writing: asyncio.Future[ApplyError | None], stop: threading.Event) -> None:
    """Wait for the thread that writes; when cancelled, until it has undone what it did, or was done already."""
    try:
        await asyncio.wait([writing])
    except asyncio.CancelledError:
        stop.set()
        await asyncio.wait([writing])
        raise


def _outcome(writing: asyncio.Future[ApplyError | None], plan: PatchPlan) -> tuple[bool, str]:
    if not writing.done():
        return False, "interrupted"
    error = writing.result()
    return error is None, summarize(plan) if error is None else str(error)


def _shown(changes: Sequence[PlannedChange]) -> tuple[FileChange, ...]:
    """The changes with their diffs; when all of them together get too long, the later ones do without."""
    shown: list[FileChange] = []
    left = _ALL_DIFFS
    for change in changes:
        diff = _diff(change) if left > 0 else ""
        left -= len(diff)
        shown.append(FileChange(change.target, change.kind, change.move_target, diff))
    return tuple(shown)


def _diff(change: PlannedChange) -> str:
    return unified_diff(
        change.old,
        change.new,
        old_name="/dev/null" if change.kind == "add" else f"a/{change.path}",
        new_name="/dev/null" if change.kind == "delete" else f"b/{change.move_path or change.path}",
    )


def _unverified(wanted: WantedChange, error: PatchError) -> str:
    message = str(error)
    if message.startswith("Invalid "):
        message = message[:1].lower() + message[1:]
    return f"{wanted.tool}{_UNVERIFIED}{message}"

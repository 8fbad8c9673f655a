"""`thread/rollback`: a thread goes back before one of its turns, with its files where that is asked for."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from codex_py.core.session_request import ResumeTarget
from codex_py.protocol.ops import StopWork
from codex_py.rollout.listing import load_summary
from codex_py.rollout.transcript import read_turns
from codex_py.server.app.client_context import ClientContext, MethodResult
from codex_py.server.app.thread_methods import open_again, stored_thread
from codex_py.server.app.thread_payloads import NOT_LOADED, stored_thread_payload
from codex_py.server.messages import Params, RpcError
from codex_py.server.rollbacks import RollbackOutcome, RollbackRequest

_MAX_TURNS: Final = 1_000_000


async def rollback(context: ClientContext, params: Params) -> MethodResult:
    """Drop `numTurns` turns at the end, or with `undo` take the last rollback back.

    `files` brings the files back too, `conversation: false` only these; with `dryRun` nothing is written. Turns and
    commands that run are stopped first, unless it is a dry run.
    """
    thread_id = params.text("threadId").lower()
    stored = await stored_thread(context, thread_id)
    request = RollbackRequest(
        await _target(params, stored.path),
        files=params.flag("files"),
        conversation=params.flag("conversation", default=True),
        copies_conflicts=params.flag("copyConflicts"),
        dry_run=params.flag("dryRun"),
    )
    if not (request.files or request.conversation):
        raise RpcError("`files` and `conversation` cannot both be false: nothing would go back")
    live = context.threads.get(thread_id)
    if live is not None and not request.dry_run:
        await live.session.submit(StopWork())
        await context.close_thread(live)
    try:
        done = await asyncio.to_thread(context.host.roll_back, thread_id, request)
    finally:
        result = None
        if live is not None and not request.dry_run:
            target = ResumeTarget(thread_id=thread_id, any_directory=True)
            result = await open_again(context, live.opening.replace(target=target), stored)
    if result is None:
        stored = await asyncio.to_thread(load_summary, context.host.home, stored.path)
        result = MethodResult({"thread": stored_thread_payload(stored, NOT_LOADED)})
    return result._replace(result={**result.result, **_payload(done, request)})


async def _target(params: Params, path: Any) -> str:
    if params.flag("undo"):
        return "latest"
    count = params.integer("numTurns", maximum=_MAX_TURNS)
    if not count:
        raise RpcError("`numTurns` must be at least 1")
    turns = await asyncio.to_thread(read_turns, path)
    if not turns:
        raise RpcError("there is no turn to roll back")
    return str(max(1, len(turns) - count + 1))


def _payload(done: RollbackOutcome, request: RollbackRequest) -> dict[str, Any]:
    found: dict[str, Any] = {"message": done.message, "notices": list(done.notices)}
    return {**found, "files": dict(done.files)} if request.files else found

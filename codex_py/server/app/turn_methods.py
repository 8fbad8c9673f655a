"""Requests about turns: beginning them, talking to them, and stopping them."""

from __future__ import annotations

import asyncio
from typing import Final

from codex_py.core.review import BranchChanges, CommitChanges, ReviewTarget, UncommittedChanges, review_prompt
from codex_py.protocol.encoding import encode_json
from codex_py.protocol.input import TextInput
from codex_py.server.app.desk import Answered, Desk
from codex_py.server.app.inputs import Given, read_inputs
from codex_py.server.app.items import text_content
from codex_py.server.app.openings import read_override
from codex_py.server.app.teller import Teller
from codex_py.server.app.turns import told_turn
from codex_py.server.live_thread import LiveThread
from codex_py.server.messages import RpcError
from codex_py.server.params import Params

_TARGETS: Final = ("uncommittedChanges", "baseBranch", "commit", "custom")


async def start(desk: Desk, params: Params) -> Answered:
    """`turn/start`: begins a turn, or says it to the one that runs."""
    thread = desk.live(params.text("threadId"))
    given = read_inputs(params)
    schema = _schema(params)
    if params.given("toolOutput"):
        raise RpcError("`toolOutput` is not supported")
    return await _said(desk, thread, given, params, schema=schema)


async def steer(desk: Desk, params: Params) -> Answered:
    """`turn/steer`: says something to the running turn, which has to be the one that the client means."""
    thread = desk.live(params.text("threadId"))
    given = read_inputs(params)
    _check_running(thread, params.text("expectedTurnId"), "steer")
    teller = desk.teller(thread)
    with teller.held():
        turn_id = await _say(teller, thread, given)
    return Answered({"turnId": turn_id}, teller.released)


async def interrupt(desk: Desk, params: Params) -> Answered:
    """`turn/interrupt`"""
    thread = desk.live(params.text("threadId"))
    _check_running(thread, params.text("turnId"), "interrupt")
    desk.teller(thread).forget_expected()
    thread.interrupt()
    return Answered({})


async def compact(desk: Desk, params: Params) -> Answered:
    """`thread/compact/start`"""
    thread = desk.live(params.text("threadId"))
    teller = desk.teller(thread)
    with teller.held():
        await thread.compact()
    return Answered({}, teller.released)


async def shell(desk: Desk, params: Params) -> Answered:
    """`thread/shellCommand`: a command of the user's own, outside the sandbox."""
    thread = desk.live(params.text("threadId"))
    command = params.text("command").strip()
    if not command:
        raise RpcError("`command` is empty")
    thread.shell(command)
    return Answered({})


async def update_settings(desk: Desk, params: Params) -> Answered:
    """`thread/settings/update`: settings from the next turn on."""
    thread = desk.live(params.text("threadId"))
    teller = desk.teller(thread)
    with teller.held():
        await _override(thread, params)
    return Answered({}, teller.released)


async def review(desk: Desk, params: Params) -> Answered:
    """`review/start`: a turn that looks at changes, in the thread itself."""
    thread = desk.live(params.text("threadId"))
    if params.one_of("delivery", ("inline", "detached")) == "detached":
        raise RpcError("a detached review is not supported: start a thread for it")
    wanted = params.part("target")
    if wanted is None:
        raise params.missing("target")
    prompt = await asyncio.to_thread(_review_prompt, wanted, thread)
    answered = await _said(desk, thread, Given((TextInput(prompt),), [text_content(prompt)]), params)
    return Answered({**answered.result, "reviewThreadId": thread.id}, answered.then)


async def _said(
    desk: Desk, thread: LiveThread, given: Given, params: Params, *, schema: dict[str, object] | None = None
) -> Answered:
    teller = desk.teller(thread)
    with teller.held():
        await _override(thread, params)
        turn_id = await _say(teller, thread, given, schema)
    return Answered({"turn": told_turn(turn_id)}, teller.released)


async def _say(teller: Teller, thread: LiveThread, given: Given, schema: dict[str, object] | None = None) -> str:
    with teller.expecting(given.content):
        if thread.turn_id is not None:
            return await thread.steer(given.inputs)
        return await thread.start_turn(given.inputs, schema=schema)


async def _override(thread: LiveThread, params: Params) -> None:
    op = read_override(params)
    if op is not None:
        await thread.override(op)


def _schema(params: Params) -> dict[str, object] | None:
    schema = params.table("outputSchema")
    try:
        encode_json(schema)
    except ValueError as error:
        raise RpcError(f"invalid request: `outputSchema`: {error}") from error
    return schema


def _check_running(thread: LiveThread, wanted: str, verb: str) -> None:
    if thread.turn_id is None:
        raise RpcError(f"no active turn to {verb}")
    if thread.turn_id != wanted:
        raise RpcError(f"expected active turn id `{wanted[:80]}` but found `{thread.turn_id}`")


def _review_prompt(wanted: Params, thread: LiveThread) -> str:
    kind = wanted.one_of("type", _TARGETS)
    if kind == "custom":
        return wanted.text("instructions")
    target: ReviewTarget = UncommittedChanges()
    if kind == "baseBranch":
        target = BranchChanges(wanted.text("branch"))
    elif kind == "commit":
        target = CommitChanges(wanted.text("sha"), wanted.text_or_none("title") or "")
    return review_prompt(target, thread.git())

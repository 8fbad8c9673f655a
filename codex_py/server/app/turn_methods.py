"""Requests about turns: beginning them, talking to them, and stopping them."""

from __future__ import annotations

import asyncio
from typing import Final

from codex_py.protocol.encoding import encode_json
from codex_py.protocol.ops import TextInput
from codex_py.server.app.client_context import ClientContext, MethodResult
from codex_py.server.app.event_translator import EventTranslator
from codex_py.server.app.inputs import TurnInputs, read_inputs
from codex_py.server.app.items import text_content, turn_payload
from codex_py.server.app.settings import read_override
from codex_py.server.messages import Params, RpcError
from codex_py.server.threads import LiveThread
from codex_py.services.review import BranchChanges, CommitChanges, ReviewTarget, UncommittedChanges, review_prompt

_TARGETS: Final = ("uncommittedChanges", "baseBranch", "commit", "custom")


async def start(context: ClientContext, params: Params) -> MethodResult:
    """`turn/start`: begins a turn, or says it to the one that runs."""
    thread = context.live(params.text("threadId"))
    inputs = read_inputs(params)
    schema = _schema(params)
    if params.raw("toolOutput"):
        raise RpcError("`toolOutput` is not supported")
    return await _submit(context, thread, inputs, params, schema=schema)


async def steer(context: ClientContext, params: Params) -> MethodResult:
    """`turn/steer`: says something to the running turn, which has to be the one that the client means."""
    thread = context.live(params.text("threadId"))
    inputs = read_inputs(params)
    _check_running(thread, params.text("expectedTurnId"), "steer")
    translator = context.translator(thread)
    with translator.holding_back():
        turn_id = await _start_or_steer(translator, thread, inputs)
    return MethodResult({"turnId": turn_id}, translator.release)


async def interrupt(context: ClientContext, params: Params) -> MethodResult:
    """`turn/interrupt`"""
    thread = context.live(params.text("threadId"))
    _check_running(thread, params.text("turnId"), "interrupt")
    context.translator(thread).pending.forget()
    thread.interrupt()
    return MethodResult({})


async def compact(context: ClientContext, params: Params) -> MethodResult:
    """`thread/compact/start`"""
    thread = context.live(params.text("threadId"))
    translator = context.translator(thread)
    with translator.holding_back():
        await thread.compact()
    return MethodResult({}, translator.release)


async def shell(context: ClientContext, params: Params) -> MethodResult:
    """`thread/shellCommand`: a command of the user's own, outside the sandbox."""
    thread = context.live(params.text("threadId"))
    command = params.text("command").strip()
    if not command:
        raise RpcError("`command` is empty")
    thread.shell(command)
    return MethodResult({})


async def update_settings(context: ClientContext, params: Params) -> MethodResult:
    """`thread/settings/update`: settings from the next turn on."""
    thread = context.live(params.text("threadId"))
    translator = context.translator(thread)
    with translator.holding_back():
        await _override(thread, params)
    return MethodResult({}, translator.release)


async def review(context: ClientContext, params: Params) -> MethodResult:
    """`review/start`: a turn that looks at changes, in the thread itself."""
    thread = context.live(params.text("threadId"))
    if params.choice("delivery", ("inline", "detached")) == "detached":
        raise RpcError("a detached review is not supported: start a thread for it")
    target = params.nested("target")
    if target is None:
        raise params.missing("target")
    prompt = await asyncio.to_thread(_review_prompt, target, thread)
    answered = await _submit(context, thread, TurnInputs((TextInput(prompt),), [text_content(prompt)]), params)
    return MethodResult({**answered.result, "reviewThreadId": thread.id}, answered.follow_up)


async def _submit(
    context: ClientContext,
    thread: LiveThread,
    inputs: TurnInputs,
    params: Params,
    *,
    schema: dict[str, object] | None = None,
) -> MethodResult:
    translator = context.translator(thread)
    with translator.holding_back():
        await _override(thread, params)
        turn_id = await _start_or_steer(translator, thread, inputs, schema)
    return MethodResult({"turn": turn_payload(turn_id)}, translator.release)


async def _start_or_steer(
    translator: EventTranslator, thread: LiveThread, inputs: TurnInputs, schema: dict[str, object] | None = None
) -> str:
    with translator.pending.expecting(inputs.content):
        if thread.turn_id is not None:
            return await thread.steer(inputs.inputs)
        return await thread.start_turn(inputs.inputs, schema=schema)


async def _override(thread: LiveThread, params: Params) -> None:
    op = read_override(params)
    if op is not None:
        await thread.session.submit(op)


def _schema(params: Params) -> dict[str, object] | None:
    schema = params.table("outputSchema")
    try:
        encode_json(schema)
    except ValueError as error:
        raise RpcError(f"invalid request: `outputSchema`: {error}") from error
    return schema


def _check_running(thread: LiveThread, expected_id: str, verb: str) -> None:
    if thread.turn_id is None:
        raise RpcError(f"no active turn to {verb}")
    if thread.turn_id != expected_id:
        raise RpcError(f"expected active turn id `{expected_id[:80]}` but found `{thread.turn_id}`")


def _review_prompt(params: Params, thread: LiveThread) -> str:
    target_type = params.choice("type", _TARGETS)
    if target_type == "custom":
        return params.text("instructions")
    target: ReviewTarget = UncommittedChanges()
    if target_type == "baseBranch":
        target = BranchChanges(params.text("branch"))
    elif target_type == "commit":
        target = CommitChanges(params.text("sha"), params.text_or_none("title") or "")
    return review_prompt(target, thread.git())

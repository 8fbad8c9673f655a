"""`command/exec`: single commands of the client's, in the sandbox, with what they print as it comes."""

from __future__ import annotations

import base64
import binascii
from typing import Final

from codex_py.protocol.policy import mode_of
from codex_py.server.app.client_context import ClientContext, MethodResult
from codex_py.server.app.settings import read_sandbox
from codex_py.server.messages import Params, RpcError, here
from codex_py.services.single_command import SandboxCommand, SingleCommand, Stream

_CAP: Final = 1024 * 1024
_MAX_CAP: Final = 64 * 1024 * 1024
_SECONDS: Final = 10.0
_DAY_MS: Final = 24 * 3600 * 1000


async def run(context: ClientContext, params: Params) -> MethodResult:
    """Run a command to its end."""
    process_id = params.text_or_none("processId")
    streams = params.flag("streamStdoutStderr")
    if params.flag("tty"):
        raise RpcError("`tty` is not supported: run the command without a terminal")
    if process_id is None and (streams or params.flag("streamStdin")):
        raise RpcError("`streamStdin` and `streamStdoutStderr` need a `processId`")
    if process_id is not None and process_id in context.commands:
        raise RpcError(f"a command with the `processId` `{process_id[:80]}` is running")
    request = _command_request(params)
    loaded = context.host.load(request.cwd, {})
    if request.policy is not None and mode_of(request.policy) not in loaded.requirements.sandbox_modes:
        raise RpcError(f"the sandbox mode `{mode_of(request.policy)}` is not allowed on this machine")

    def hear(stream: Stream, content: bytes, is_all: bool) -> None:
        chunk = {"processId": process_id, "stream": stream, "deltaBase64": base64.b64encode(content).decode()}
        context.connection.notify("command/exec/outputDelta", {**chunk, "capReached": is_all})

    command = SingleCommand(loaded, request, hear if streams else None)
    if process_id is not None:
        context.commands[process_id] = command
    try:
        result = await command.run(context.host.home, context.host.env)
    finally:
        if process_id is not None:
            del context.commands[process_id]
    out, err = (output.decode(errors="replace") for output in (result.stdout, result.stderr))
    return MethodResult({"exitCode": result.exit_code, "stdout": out, "stderr": err})


async def write(context: ClientContext, params: Params) -> MethodResult:
    """`command/exec/write`: to the standard input of one that runs."""
    try:
        content = base64.b64decode(params.text_or_none("deltaBase64") or "", validate=True)
    except (binascii.Error, ValueError) as error:
        raise RpcError("invalid request: `deltaBase64` is not base64") from error
    await _running(context, params).write(content, end=params.flag("closeStdin"))
    return MethodResult({})


async def terminate(context: ClientContext, params: Params) -> MethodResult:
    """`command/exec/terminate`"""
    _running(context, params).stop()
    return MethodResult({})


def _running(context: ClientContext, params: Params) -> SingleCommand:
    command = context.commands.get(params.text("processId"))
    if command is None:
        raise RpcError("no command with this `processId` is running")
    return command


def _command_request(params: Params) -> SandboxCommand:
    argv = params.texts("command")
    if not argv or not argv[0]:
        raise RpcError("`command` must not be empty")
    limit = params.integer("timeoutMs", maximum=_DAY_MS)
    cap = params.integer("outputBytesCap", maximum=_MAX_CAP)
    return SandboxCommand(
        argv=argv,
        cwd=params.directory("cwd") or here(),
        policy=read_sandbox(params),
        env=_env(params),
        seconds=None if params.flag("disableTimeout") else _SECONDS if limit is None else limit / 1000,
        cap=_MAX_CAP if params.flag("disableOutputCap") else _CAP if cap is None else cap,
        typed=params.flag("streamStdin"),
    )


def _env(params: Params) -> dict[str, str | None]:
    env = params.table("env") or {}
    for name, value in env.items():
        is_text = value is None or (isinstance(value, str) and "\0" not in value)
        if not is_text or not name or "=" in name or "\0" in name:
            raise RpcError("invalid request: `env` is not a table of texts")
    return env

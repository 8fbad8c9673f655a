"""A session's worth of context for the command tools, with every event kept."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from codex_py.config.sections import ShellEnvironmentPolicy
from codex_py.errors import ToolError
from codex_py.process.env import tool_environment
from codex_py.process.manager import ProcessManager
from codex_py.protocol.events import CommandFinished, CommandStarted, Event
from codex_py.protocol.items import ToolCall
from codex_py.protocol.policy import DangerFullAccess, SandboxPolicy
from codex_py.sandbox.command import Sandbox
from codex_py.shell.reader import CommandLineReader
from codex_py.tools.command_runs import CommandCalls
from codex_py.tools.exec_command import ExecCommand, WriteStdin
from codex_py.tools.spec import Tool, ToolContext, failed_output

_CHUNK_ID = re.compile(r"\AChunk ID: [0-9a-f]{6}\n")
_WALL_TIME = re.compile(r"^Wall time: \d+\.\d{4} seconds$", re.MULTILINE)


class Session:
    """Runs calls as the model would make them. `policy` may be changed between calls."""

    def __init__(self, cwd: Path, policy: SandboxPolicy | None = None, **env: str) -> None:
        self.cwd = cwd
        self.policy: SandboxPolicy = policy or DangerFullAccess()
        self.events: list[Event] = []
        self.processes = ProcessManager()
        # A home without a profile, so that login shells start alike everywhere.
        user = {"PATH": os.environ["PATH"], "HOME": str(cwd), "SHELL": "/bin/bash", **env}
        self.env = tool_environment(user, ShellEnvironmentPolicy())
        self.sandbox = Sandbox(user)
        self.output_tokens = 10_000
        self._calls = 0

    async def exec(self, cmd: str, **arguments: object) -> str:
        return await self.call(ExecCommand(), {"cmd": cmd, "login": False, **arguments})

    async def write(self, session_id: int, chars: str = "", **arguments: object) -> str:
        return await self.call(WriteStdin(), {"session_id": session_id, "chars": chars, **arguments})

    async def call(self, tool: Tool, arguments: Mapping[str, object] | str) -> str:
        """The model-visible text of one call; chunk ID and wall time, which change, are blotted out."""
        self._calls += 1
        raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
        call = ToolCall(f"call_{self._calls}", tool.name, raw)
        failure: ToolError | None = None
        try:
            output = await tool.run(call, self.context(call.call_id))
        except ToolError as error:
            failure, output = error, failed_output(error)
        if output.ended is not None:
            self.events.append(output.ended)
        text = output.text if failure is None else f"error: {failure}"
        return _WALL_TIME.sub("Wall time: S", _CHUNK_ID.sub("", text), count=1)

    async def until(self, session_id: int, text: str) -> None:
        """Wait until a running command has printed `text`."""
        running = self.processes.get(session_id)
        while text not in running.transcript():
            assert not await running.wait(0.005), running.transcript()

    async def type_until(self, session_id: int, chars: str, text: str) -> None:
        """Type until a running command has printed `text`: a Ctrl-C between its prompt and its reading may be lost."""
        running = self.processes.get(session_id)
        while text not in running.transcript():
            assert not await running.wait(0.005), running.transcript()
            await self.write(session_id, chars)

    def context(self, call_id: str) -> ToolContext:
        return ToolContext(
            call_id=call_id,
            cwd=self.cwd,
            sandbox_policy=self.policy,
            approval="never",
            sandbox=self.sandbox,
            processes=self.processes,
            env=self.env,
            output_tokens=self.output_tokens,
            emit=self.events.append,
            command_lines=CommandLineReader(),
            commands=CommandCalls(),
        )

    def started(self) -> list[CommandStarted]:
        return [event for event in self.events if isinstance(event, CommandStarted)]

    def finished(self) -> list[CommandFinished]:
        return [event for event in self.events if isinstance(event, CommandFinished)]


def reply(output: str, exit_code: int = 0) -> str:
    """The reply to a command that ended, its output untruncated."""
    count = -(-len(output.encode()) // 4)
    return f"Wall time: S\nProcess exited with code {exit_code}\nOriginal token count: {count}\nOutput:\n{output}"


def output_of(text: str) -> str:
    return text.partition("Output:\n")[2]


def session_id_of(text: str) -> int:
    found = re.search(r"^Process running with session ID (\d+)$", text, re.MULTILINE)
    assert found, text
    return int(found.group(1))


def is_alive(pid: int) -> bool:
    """Whether a process exists and is not just waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False

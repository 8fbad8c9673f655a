"""The loop around the offline model that its tests play: real HTTP, real commands, real patches, no sandbox."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from codex_py.errors import ToolError
from codex_py.offline.server import MODEL_NAME, OfflineModel
from codex_py.patch.apply import apply_plan
from codex_py.patch.grammar import parse_patch
from codex_py.patch.plan import plan_patch, summarize

NOTICE = "(offline model: fixed rules, no AI)"
EXEC = {"type": "function", "name": "exec_command", "parameters": {"type": "object"}}
STDIN = {"type": "function", "name": "write_stdin", "parameters": {"type": "object"}}
PATCH = {"type": "custom", "name": "apply_patch", "format": {"type": "grammar"}}
PATCH_FUNCTION = {
    "type": "function",
    "name": "apply_patch",
    "parameters": {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]},
}
PLAN = {"type": "function", "name": "update_plan", "parameters": {"type": "object"}}
ALL_TOOLS = (EXEC, STDIN, PATCH, PLAN)


def user(text: str) -> dict[str, Any]:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def environment(cwd: Path) -> dict[str, Any]:
    return user(f"<environment_context>\n  <cwd>{cwd}</cwd>\n</environment_context>")


def events_of(body: str) -> list[dict[str, Any]]:
    return [json.loads(line[6:]) for line in body.split("\n") if line.startswith("data: ")]


class Host:
    """Plays the program: keeps the history, runs the calls, sends the results back."""

    def __init__(self, cwd: Path, *, tools: tuple[dict[str, Any], ...] = ALL_TOOLS, **fields: Any) -> None:
        self.cwd = cwd
        self.fields: dict[str, Any] = {"model": MODEL_NAME, "stream": True, "tools": list(tools), **fields}
        self.input: list[dict[str, Any]] = [environment(cwd)]
        self.calls: list[tuple[str, str]] = []
        self.read_only = False
        self.cap = 40_000
        self.path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"

    async def ask(self, prompt: str, *items: dict[str, Any]) -> str:
        """One turn; the final answer."""
        self.input += [*items, user(prompt)]
        # No certificates: those of the machine take longer to load than all requests of a turn.
        async with (
            OfflineModel() as model,
            httpx.AsyncClient(base_url=model.base_url, trust_env=False, verify=False) as http,
        ):
            for _ in range(40):
                answer = await http.post("/responses", json={**self.fields, "input": self.input}, timeout=60)
                assert answer.status_code == 200, answer.text
                items_done = [e["item"] for e in events_of(answer.text) if e["type"] == "response.output_item.done"]
                self.input += items_done
                calls = [item for item in items_done if item["type"] != "message"]
                if not calls:
                    return items_done[-1]["content"][0]["text"]
                for call in calls:
                    self.input.append(await self._output(call))
        raise AssertionError("the model never came to an end")

    async def _output(self, call: dict[str, Any]) -> dict[str, Any]:
        payload = call["input"] if call["type"] == "custom_tool_call" else call["arguments"]
        self.calls.append((call["name"], payload))
        output = await asyncio.to_thread(self._run, call["name"], payload)
        return {"type": f"{call['type']}_output", "call_id": call["call_id"], "output": output}

    def _run(self, name: str, payload: str) -> str:
        if name == "apply_patch":
            return self._patch(payload if payload.startswith("***") else json.loads(payload)["input"])
        arguments = json.loads(payload)
        if name == "exec_command":
            return self._exec(arguments)
        return "Plan updated" if name == "update_plan" else f"unsupported call: {name}"

    def _exec(self, arguments: dict[str, Any]) -> str:
        command: str = arguments["cmd"]
        if command.startswith("apply_patch <<'EOF'\n"):
            return f"Wall time: 0.0000 seconds\nOutput:\n{self._patch(command.split(chr(10), 1)[1][:-4])}"
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=Path(self.cwd, arguments.get("workdir", ".")),
            env={"PATH": self.path, "HOME": str(self.cwd), "LC_ALL": "C.UTF-8", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        text = done.stdout.decode(errors="replace")
        tokens = -(-len(text) // 4)
        if len(text) > self.cap:
            half, lines = self.cap // 2, text.count("\n")
            shown = f"{text[:half]}…{tokens - self.cap // 4} tokens truncated…{text[-half:]}"
            text = f"Warning: truncated output (original token count: {tokens})\nTotal output lines: {lines}\n\n{shown}"
        code = done.returncode if done.returncode >= 0 else 128 - done.returncode
        return (
            f"Chunk ID: a1b2c3\nWall time: 0.0100 seconds\nProcess exited with code {code}\n"
            f"Original token count: {tokens}\nOutput:\n{text}"
        )

    def _patch(self, patch: str) -> str:
        if self.read_only:
            return "patch rejected: writing is blocked by read-only sandbox; rejected by user approval settings"
        try:
            plan = plan_patch(parse_patch(patch), self.cwd)
            apply_plan(plan)
        except ToolError as error:
            return f"apply_patch verification failed: {error}"
        return f"Exit code: 0\nWall time: 0.0 seconds\nOutput:\n{summarize(plan)}"

    @property
    def commands(self) -> list[str]:
        return [json.loads(payload)["cmd"] for name, payload in self.calls if name == "exec_command"]


def write_tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return root


def git_tree(root: Path, files: dict[str, str]) -> Path:
    """A repository with all files committed."""
    write_tree(root, files)
    author = ["-c", "user.name=A", "-c", "user.email=a@example.invalid", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "-A"], [*author, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)
    return root


async def test_every_answer_says_what_gave_it(tmp_path: Path) -> None:
    host = Host(tmp_path)

    answer = await host.ask("hello")

    assert answer.endswith(f"\n\n{NOTICE}")
    assert host.calls == []

"""The published SDKs, each driven through a program of its own language that reads a job and prints what it saw."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tests.support.fake_responses import FakeResponses
from tests.support.home import BIN, Place
from tests.support.process import COMMAND, DRIVERS, Running
from tests.support.warm import warm_command

PATCH: Final = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch\n"
KEY: Final = "sk-sdk-0123456789abcdef"
SCHEMA: Final = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}


def python_sdk() -> list[str]:
    """How to start the driver of the Python SDK."""
    return [sys.executable, str(DRIVERS / "drive.py")]


def typescript_sdk() -> list[str]:
    """How to start the driver of the TypeScript SDK. Missing parts fail the tests: `scripts/test` installs them."""
    node = shutil.which("node") or shutil.which("node", path=str(BIN))
    assert node, "node is neither on the machine nor in the dev extra"
    assert (DRIVERS / "node_modules/@openai/codex-sdk").is_dir(), "run `scripts/setup_node` first"
    return [node, str(DRIVERS / "drive.mjs")]


def drive(driver: Sequence[str], place: Place, model: FakeResponses, input: Any, **job: Any) -> dict[str, Any]:
    """One turn through an SDK with the built-in provider; gives back what it saw."""
    # One SDK kills what it aborts, and must not kill a stand-in.
    command = COMMAND if {"abortAt", "abortOn"} & set(job) else warm_command()
    codex = {"codexPathOverride": command, "baseUrl": model.base_url, "apiKey": KEY, "env": place.env}
    thread = {"model": "gpt-5.2", "workingDirectory": str(place.repo), **job.pop("thread", {})}
    return played(driver, place, {"codex": {**codex, **job.pop("codex", {})}, "thread": thread, "input": input, **job})


def played(driver: Sequence[str], place: Place, job: Mapping[str, Any]) -> dict[str, Any]:
    """Give a driver its job; what it prints of it. It complains of nothing."""
    env = {name: place.env[name] for name in ("PATH", "LANG", "PYTHONDONTWRITEBYTECODE")}
    with Running(driver, env=env, cwd=place.home, stdin=json.dumps(job).encode()) as running:
        ended = running.wait()
    assert (ended.status, ended.err) == (0, "")
    seen: dict[str, Any] = json.loads(ended.stdout)
    return seen


def kinds(seen: dict[str, Any]) -> list[str]:
    return [event["type"] for event in seen["events"]]


def items(seen: dict[str, Any]) -> list[dict[str, Any]]:
    """The items that were completed."""
    return [event["item"] for event in seen["events"] if event["type"] == "item.completed"]

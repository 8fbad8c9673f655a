"""Plays scenes through the published Python SDK of the app-server; what it saw goes as JSON to stdout.

The job comes as JSON on stdin: `{ codex_bin, env, cwd, scene, ... }`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from openai_codex import ApprovalMode, Codex, CodexConfig, ImageInput, LocalImageInput, Sandbox, SkillInput, TextInput
from openai_codex.api import InputItem
from openai_codex.types import ReasoningEffort

Job = dict[str, Any]


def turns(codex: Codex, job: Job) -> Any:
    """Turns with tools, structured output and pictures, and what can be read of them later."""
    thread = codex.thread_start(cwd=job["cwd"], sandbox=Sandbox.workspace_write, model="gpt-5.2")
    first = thread.run("do it", effort=ReasoningEffort("high"), output_schema=job["schema"])
    value: list[InputItem] = [
        TextInput("look"),
        LocalImageInput(job["picture"]),
        ImageInput(job["url"]),
        SkillInput(*job["skill"]),
    ]
    second = thread.run(value, approval_mode=ApprovalMode.deny_all)
    read = thread.read(include_turns=True).thread
    return {
        "server": codex.metadata.model_dump(),
        "first": [first.status.value, first.final_response, [one.root.type for one in first.items]],
        "usage": None if first.usage is None else first.usage.total.total_tokens,
        "second": [second.status.value, second.final_response],
        "read": [[one.root.type for one in turn.items] for turn in read.turns],
        "models": [one.id for one in codex.models().data],
        "account": codex.account().account,
    }


def streamed(codex: Codex, job: Job) -> Any:
    """A turn that is talked to and stopped while it streams."""
    thread = codex.thread_start(cwd=job["cwd"], sandbox=Sandbox.full_access)
    turn = thread.turn("wait")
    seen: list[str] = []
    for event in turn.stream():
        seen.append(event.method)
        item = getattr(event.payload, "item", None)
        if event.method == "item/started" and item is not None and item.root.type == "commandExecution":
            turn.steer("and this")
            turn.interrupt()
    ended = thread.read(include_turns=True).thread.turns[-1]
    return {"seen": seen, "status": ended.status.value, "again": thread.run("and now?").final_response}


def stored(codex: Codex, job: Job) -> Any:
    """Threads that are named, forked, compacted, put away and brought back."""
    thread = codex.thread_start(cwd=job["cwd"])
    thread.run("first")
    thread.set_name("one")
    fork = codex.thread_fork(thread.id)
    fork.run("instead")
    fork.compact()
    codex.thread_archive(thread.id)
    archived = [one.id for one in codex.thread_list(archived=True).data]
    back = codex.thread_unarchive(thread.id)
    resumed = codex.thread_resume(back.id, include_turns=False)
    last = resumed.run("second").final_response
    listed = codex.thread_list(limit=10).data
    return {
        "archived": archived == [thread.id],
        "names": sorted(one.name or "" for one in listed),
        "forked": [one.forked_from_id for one in listed if one.id == fork.id] == [thread.id],
        "last": last,
    }


def failing(codex: Codex, job: Job) -> Any:
    """A turn that fails raises what the provider said."""
    try:
        codex.thread_start(cwd=job["cwd"]).run("go")
    except RuntimeError as error:
        return str(error)
    return None


SCENES: dict[str, Callable[[Codex, Job], Any]] = {
    "turns": turns,
    "streamed": streamed,
    "stored": stored,
    "failing": failing,
}


if __name__ == "__main__":
    value = json.load(sys.stdin)
    with Codex(CodexConfig(codex_bin=value["codex_bin"], env=value["env"], cwd=value["cwd"])) as opened:
        print(json.dumps({"seen": SCENES[value["scene"]](opened, value)}))

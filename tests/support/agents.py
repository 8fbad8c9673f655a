"""A fake model for several threads at once: each is answered from a script of its own, whatever the order they come in.

    with cast({"go": [[spawn("s1", "look at a")], [say("done")]], "look at a": [[say("a is fine")]]}) as model:
        ...

A thread is known by what was said last in its first request: its task.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from codex_py.protocol import events
from tests.support.fake_responses import FakeResponses, Play, Request, Stream, call, repeat, status
from tests.support.script import Answer, Json
from tests.support.session import Watched

Parts: TypeAlias = Mapping[str, Sequence[Play]]


class Cast:
    """Answers every thread in its turn. A play may be a function of the request, which may wait for something."""

    def __init__(self, parts: Parts) -> None:
        self._left = {task: list(plays) for task, plays in parts.items()}
        self._tasks: dict[str, str] = {}
        self._lock = threading.Lock()
        self.unknown: list[str] = []

    def __call__(self, request: Request) -> Stream | Answer:
        with self._lock:
            task = self._tasks.setdefault(request.thread, request.texts("user")[-1])
            left = self._left.get(task)
            if not left:
                self.unknown.append(task)
                return status(400, f"nothing is left to say to: {task}")
            play = left.pop(0)
        return play(request) if callable(play) else play

    def left(self) -> dict[str, int]:
        """How many answers of each thread were never asked for."""
        return {task: len(plays) for task, plays in self._left.items() if plays}


class CastModel(FakeResponses):
    """The server with a cast; its requests are also to be had by task."""

    def of(self, task: str) -> list[Request]:
        """The requests of the threads with this task, in order."""
        first: dict[str, str] = {}
        for request in self.requests:
            first.setdefault(request.thread, request.texts("user")[-1])
        return [request for request in self.requests if first[request.thread] == task]


@contextmanager
def cast(parts: Parts) -> Generator[CastModel]:
    """A running fake model. At the end every script must have been played, and no thread have asked for more."""
    playing = Cast(parts)
    with CastModel(repeat(playing), excuse={"threads"}) as model:
        yield model
    assert not playing.unknown, f"nobody had anything to say to: {playing.unknown}"
    assert not playing.left(), f"never asked for: {playing.left()}"


def spawn(call_id: str, message: str, **arguments: Any) -> Json:
    return call(call_id, "spawn_agent", {"message": message, **arguments})


def run(call_id: str, cmd: str, **arguments: Any) -> Json:
    return call(call_id, "exec_command", {"cmd": cmd, "login": False, **arguments})


def wait(call_id: str, *targets: str, **arguments: Any) -> Json:
    return call(call_id, "wait_agent", {"targets": list(targets), **arguments})


def answer_of(request: Request, call_id: str) -> Any:
    """What a tool for agents answered, which is JSON."""
    return json.loads(request.output_of(call_id))


def standing(watched: Watched) -> list[tuple[str, str, str | None]]:
    """The agents of a session: name, status, last word."""
    return [(state.name, state.status, state.message) for state in watched.session.agents.states()]


def changes(watched: Watched) -> list[tuple[str, str]]:
    """Every change of an agent's status the user was told of, in order."""
    result = [(one.agent.name, one.agent.status, one.was) for one in watched.of(events.AgentChanged)]
    return [(name, now) for name, now, was in result if now != was]


def tool_names(request: Request) -> list[str]:
    tools: list[Json] = request.body["tools"]
    return [str(tool.get("name")) for tool in tools]

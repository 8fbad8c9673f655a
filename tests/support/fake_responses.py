"""A real HTTP server on the loopback that plays the model.

    with FakeResponses([call("c1", "exec_command", {"cmd": "ls"})], [say("done")]) as model:
        ...  # point base_url at model.base_url
    assert model.requests[1].output_of("c1") == "hi"

Each positional argument answers one request, in order: a stream of script elements, a whole answer, or a function of
the request that gives one; `response.completed` is appended unless the stream ends otherwise. Every request is checked
on arrival (see `invariants`), so that any test also proves the rules that always hold; leaving the block asserts that
there were no problems and that the whole script was played.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, Self, cast

from tests.support.fake_http import LoopbackServer
from tests.support.home import Place
from tests.support.invariants import CHECKS, Conversation, top_level_spans
from tests.support.script import (
    Answer,
    Cut,
    End,
    Hang,
    Json,
    Play,
    Raw,
    Repeat,
    Stream,
    added,
    api_error,
    arguments_delta,
    call,
    completed,
    created,
    custom_call,
    cut,
    delta,
    end,
    error_event,
    failed,
    hang,
    headers,
    html,
    incomplete,
    item,
    raw,
    reasoning,
    reasoning_delta,
    redirect,
    repeat,
    reset,
    say,
    stall_headers,
    status,
    tokens,
    web_search,
)

__all__ = [
    "FakeResponses",
    "Json",
    "Play",
    "Request",
    "Stream",
    "added",
    "api_error",
    "arguments_delta",
    "call",
    "completed",
    "created",
    "custom_call",
    "cut",
    "delta",
    "end",
    "error_event",
    "failed",
    "fake_model",
    "hang",
    "headers",
    "html",
    "incomplete",
    "item",
    "raw",
    "reasoning",
    "reasoning_delta",
    "redirect",
    "repeat",
    "reset",
    "say",
    "stall_headers",
    "status",
    "tokens",
    "web_search",
]

# Beyond the names of `CHECKS`: what the server itself sees.
_SERVER_CHECKS: Final = {"chat", "headers", "json", "length", "messages", "script", "threads", "unplayed"}
_LAST: Final = {"response.completed", "response.failed", "response.incomplete", "error"}


@dataclass(frozen=True)
class Request:
    """One POST as it arrived. `received_at` is monotonic seconds; header names are in lower case."""

    path: str
    headers: dict[str, str]
    raw: bytes
    received_at: float
    body: Json
    _spans: dict[str, tuple[int, int]] = field(repr=False)

    @property
    def input(self) -> list[Json]:
        return self.body["input"]

    @cached_property
    def thread(self) -> str:
        metadata = cast("Json", self.body.get("client_metadata") or {})
        return str(self.headers.get("thread-id") or metadata.get("thread_id") or self.body.get("prompt_cache_key"))

    @cached_property
    def compacts(self) -> bool:
        """Whether it asks for a compaction, as its metadata says."""
        return json.loads(self.headers.get("x-codex-turn-metadata") or "{}").get("request_kind") == "compaction"

    @property
    def window(self) -> int:
        """How often the thread was compacted before."""
        return int(self.headers.get("x-codex-window-id", ":0").rpartition(":")[2])

    @property
    def input_bytes(self) -> bytes:
        """The `input` array as it was written, brackets included."""
        return self.part("input")

    @property
    def head(self) -> bytes:
        """The body up to the first byte of `input`'s value."""
        return self.raw[: self._spans["input"][0]] if "input" in self._spans else self.raw

    def part(self, key: str) -> bytes:
        """The bytes of a top-level value; empty when it is not there."""
        start, stop = self._spans.get(key, (0, 0))
        return self.raw[start:stop]

    def texts(self, role: str) -> list[str]:
        """Every text part of the messages of a role, in order."""
        return [
            part["text"]
            for message in self.input
            if message.get("role") == role
            for part in _parts(message.get("content"))
            if "text" in part
        ]

    def output_item(self, call_id: str) -> Json:
        """The one output item of a call."""
        kinds = ("function_call_output", "custom_tool_call_output")
        [output] = [one for one in self.input if one["type"] in kinds and one["call_id"] == call_id]
        return output

    def output_of(self, call_id: str) -> str:
        """What the one output of a call says; the texts joined when it is made of parts."""
        return "".join(part.get("text", "") for part in _parts(self.output_item(call_id)["output"]))


class FakeResponses:
    """The server. `excuse` names checks that do not apply; `get` answers GET requests by path (`/v1/models`)."""

    def __init__(
        self,
        *script: Play | Repeat,
        excuse: set[str] | None = None,
        get: Mapping[str, Answer] | None = None,
        port: int = 0,
    ) -> None:
        unknown = (excuse or set()) - set(CHECKS) - _SERVER_CHECKS
        assert not unknown, f"no such check: {unknown}"
        self.requests: list[Request] = []
        self.gets: list[str] = []
        self.problems: list[str] = []
        self.connections = 0
        self.paths: tuple[str, ...] = ("/responses", "/responses/compact")
        self._script = list(script)
        self._excused = excuse or set()
        self._answers = dict(get or {})
        self._conversations: dict[str, Conversation] = {}
        self._condition = threading.Condition()
        self._closing = threading.Event()
        self._held: set[threading.Event] = set()
        self._server = LoopbackServer(self, port)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, exc_type: object, error: BaseException | None, *_: object) -> None:
        self.close()
        if error is None:
            self.check()
        elif self.problems:
            error.add_note("the fake server saw: " + "; ".join(self.problems))

    def close(self) -> None:
        """Release every hang, drop every connection, stop listening."""
        with self._condition:
            self._closing.set()
            for event in self._held:
                event.set()
        self._server.shutdown()
        self._server.drop_connections()
        self._server.server_close()
        self._thread.join()

    def check(self) -> None:
        """Fail with everything that was wrong with the requests so far."""
        left = [play for play in self._script if not isinstance(play, Repeat)]
        problems = list(self.problems)
        if left and "unplayed" not in self._excused:
            problems.append(f"{len(left)} scripted answer(s) were never asked for, {len(self.requests)} were")
        assert not problems, "the fake server saw:\n  " + "\n  ".join(problems)

    def wait_for(self, count: int, *, timeout: float = 60.0) -> Request:
        """Wait until so many requests have arrived; give back the last of them."""
        with self._condition:
            arrived = self._condition.wait_for(lambda: len(self.requests) >= count, timeout)
        assert arrived, f"{len(self.requests)} request(s) after {timeout} s, waited for {count}"
        return self.requests[count - 1]

    @property
    def closing(self) -> bool:
        return self._closing.is_set()

    def get(self, path: str) -> Answer:
        """The answer to a GET, and a note of it in `gets`."""
        self.gets.append(path)
        return self._answers.get(path.partition("?")[0], status(404, "not found"))

    def accept(self, path: str, headers: dict[str, str], body: bytes) -> Stream:
        """Check a request and say what to answer it with."""
        received_at = time.monotonic()
        try:
            spans = top_level_spans(body)
            request = Request(path, headers, body, received_at, json.loads(body), spans)
        except ValueError as error:
            self.complain("json", [f"the body is not a JSON object: {error}"])
            return [status(400, "not JSON")]
        with self._condition:
            past = self._conversations.setdefault(request.thread, Conversation())
            if len(self._conversations) > 1 and past.last is None:
                self.complain("threads", [f"a second thread: {request.thread}"])
            self._check(request, past)
            past.note(request)
            play = self._next_play()
            self.requests.append(request)
            self._condition.notify_all()
        answer = play(request) if callable(play) else play
        stream = [answer] if isinstance(answer, Answer) else _finished(answer)
        self._note_answer(request, stream)
        return stream

    def _check(self, request: Request, past: Conversation) -> None:
        skipped = self._excused | ({"replay"} if "prefix" in self._excused else set()) | past.excused_for(request)
        items = request.body.get("input")
        if not isinstance(items, list) or not all(isinstance(one, dict) for one in cast("list[Any]", items)):
            skipped = skipped | (set(CHECKS) - {"items"})  # the others take objects for granted
        for name, check in CHECKS.items():
            if name not in skipped:
                self.complain(name, check(request, past))

    def complain(self, name: str, problems: Sequence[str]) -> None:
        if name not in self._excused:
            self.problems += [f"request {len(self.requests) + 1}: {name}: {problem}" for problem in problems]

    def _next_play(self) -> Play:
        if not self._script:
            self.complain("script", ["the script is at its end"])
            # 400, because a client asks again after any status it takes for a passing trouble.
            return status(400, "the script is at its end")
        play = self._script[0]
        if isinstance(play, Repeat):
            return play.play
        self._script.pop(0)
        return play

    def _note_answer(self, request: Request, stream: Stream) -> None:
        """Note what the model has said, so that the next request can be asked for it.

        Not after a hang or a reset: nobody knows then what the client has read.
        """
        if any(isinstance(element, Hang) or (isinstance(element, Cut) and element.reset) for element in stream):
            return
        past = self._conversations[request.thread]
        if request.compacts:
            return  # what it says replaces the history, and is no part of it
        for element in stream:
            kind = element.get("type") if isinstance(element, dict) else None
            if isinstance(element, dict) and kind == "response.output_item.done":
                past.answered.append(element["item"])
            if isinstance(element, Cut | End) or kind in _LAST:
                return

    def hold(self, until: threading.Event | float) -> None:
        if isinstance(until, int | float):
            self._closing.wait(until)
            return
        with self._condition:
            if self._closing.is_set():
                return
            self._held.add(until)
        until.wait()


@contextmanager
def fake_model(
    place: Place,
    *script: Play | Repeat,
    excuse: set[str] | None = None,
    get: Mapping[str, Answer] | None = None,
    top: str = "",
    **provider: Any,
) -> Generator[FakeResponses]:
    """A fake model that plays the script, and the config.toml of a place that points at it (`Place.use_model`)."""
    with FakeResponses(*script, excuse=excuse, get=get) as model:
        place.use_model(model.base_url, top, **provider)
        yield model


def _finished(stream: Stream) -> Stream:
    """The stream with `response.completed` at its end, unless it ends in another way."""
    for element in stream:
        match element:
            case {"type": kind} if kind in _LAST:
                return stream
            case Raw(content) if b"response.completed" in content:
                return stream
            case Answer() | Cut() | End():
                return stream
            case _:
                pass
    return [*stream, completed()]


def _parts(content: object) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return cast("list[Json]", content)

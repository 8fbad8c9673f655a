"""Mutated answers to turns of real sessions: each turn ends in time, with an answer or one error line.

And the session goes on: the fake server checks every request that follows, and at the end of a session its file holds
what its memory held.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from codex_py.protocol import events
from codex_py.rollout.reader import load_session
from tests.drills.mutations import in_pieces, mutated
from tests.drills.report import Report
from tests.support.fake_messages import FakeMessages, answer, says
from tests.support.fake_responses import FakeResponses, Request, Stream, cut, end, headers, raw, repeat, reset, say
from tests.support.home import Place, make_place
from tests.support.session import Watched, watched_session

_TURNS_A_SESSION: Final = 25
# Far beyond what any turn takes: one that hangs is found, however busy the machine.
_TURN_SECONDS: Final = 60.0
_TYPES: Final = (None, "text/plain", "text/event-stream; charset=utf-8", "application/json", "TEXT/EVENT-STREAM")


class BrokenServer:
    """Answers the first request of each turn with the stream set for it, and any further one properly."""

    def __init__(self, wire: str) -> None:
        self.next: Stream | None = None
        self._wire = wire

    def __call__(self, request: Request) -> Stream:
        stream, self.next = self.next, None
        if stream is not None:
            return stream
        return answer(says("ok")) if self._wire == "messages" else [say("ok", id=f"msg_{len(request.input)}")]

    def start(self) -> FakeResponses:
        """The server with all its checks."""
        if self._wire == "messages":
            return FakeMessages(repeat(self), excuse={"unplayed"}, knows_thinking=False)
        return FakeResponses(repeat(self), excuse={"unplayed"})


def messages_drill(root: Path, *, rounds: int, seed: int) -> Report:
    """The same for the Messages API."""
    return sse_drill(root, rounds=rounds, seed=seed, wire="messages")


def sse_drill(root: Path, *, rounds: int, seed: int, wire: str = "responses") -> Report:
    """Play so many mutations to sessions below `root`, which must be an empty directory."""
    report = Report()
    place = make_place(root / "place")
    while report.rounds < rounds:
        turns = min(_TURNS_A_SESSION, rounds - report.rounds)
        asyncio.run(_session(place, turns, f"{seed}/{report.rounds}", report, wire))
    logs = list((place.codex_home / "log").glob("*"))
    report.problems += [f"a bug was reported: {log.read_text()[-2000:]}" for log in logs]
    return report


async def _session(place: Place, turns: int, seed: str, report: Report, wire: str) -> None:
    random_ = random.Random(seed)
    server = BrokenServer(wire)
    with server.start() as model:
        # Writing is impossible: a mutation may yet name a tool that can.
        settings: dict[str, Any] = {"sandbox": "read-only", "request_max_retries": 0, "stream_max_retries": 0}
        settings |= {"wire_api": wire}
        async with watched_session(place, model, **settings) as watched:
            for turn in range(turns):
                report.rounds += 1
                server.next = _on_the_wire(mutated(random_, wire), random_)
                problems = [*await _turn(watched, report), *model.problems]
                model.problems.clear()
                report.problems += [f"seed {seed}, turn {turn + 1}: {problem}" for problem in problems]
            remembered = watched.session.history.items
        thread = watched.session.thread_id
    [path] = [path for path in place.rollouts() if path.stem.endswith(thread)]
    stored = load_session(path)
    if stored.items != remembered or stored.warnings:
        report.problems.append(f"seed {seed}: the file holds {len(stored.items)} items of {len(remembered)}")
    path.unlink()


async def _turn(watched: Watched, report: Report) -> Sequence[str]:
    try:
        ended = await asyncio.wait_for(watched.say("go"), _TURN_SECONDS)
    except TimeoutError:
        return ["the turn did not end"]
    match ended:
        case events.TurnCompleted():
            report.counts["completed"] += 1
            return []
        case events.TurnFailed(_, message):
            report.counts["failed"] += 1
            return [] if message and message.isprintable() and "bug" not in message else [f"not one line: {message!r}"]
        case _:
            return [f"the turn ended with {ended!r}"]


def _on_the_wire(stream: bytes, random_: random.Random) -> Stream:
    pieces = [raw(piece) for piece in in_pieces(stream, random_)]
    first = [headers({"content-type": random_.choice(_TYPES)})] if random_.random() < 0.1 else []
    return [*first, *pieces, random_.choice([end(), end(), cut(), reset()])]

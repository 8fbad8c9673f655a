"""Turns that meet a fault: how often the server was asked, after how long, and what it was sent in the next turn."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from codex_py.protocol import events
from tests.support.fake_responses import FakeResponses, Request, say
from tests.support.home import Place
from tests.support.session import watched_session


class Fault(NamedTuple):
    """A turn that met a fault, and what the next turn sent. `delays` are seconds; `sent` stands for items in words."""

    ended: events.Event
    requests: int
    delays: list[float]
    sent: list[str]

    @property
    def message(self) -> str:
        assert isinstance(self.ended, events.TurnFailed)
        return self.ended.message


async def meet(place: Place, *plays: Any, **provider: Any) -> Fault:
    """One turn on these answers, and another on a good one."""
    with FakeResponses(*plays, [say("fine", id="msg_fine")]) as model:
        async with watched_session(place, model, **provider) as watched:
            ended = await watched.say("go")
            requests = len(model.requests)
            await watched.say("next")
    retries = watched.of(events.Retrying)
    check_gaps(model.requests[:requests], retries)
    return Fault(ended, requests, [retry.delay for retry in retries], sent_after(model.requests[-1], "go"))


def check_gaps(requests: list[Request], retries: list[events.Retrying]) -> None:
    """No request may come before the delay that was announced for it."""
    assert len(retries) == len(requests) - 1
    for (before, after), retry in zip(pairwise(requests), retries, strict=True):
        assert after.received_at - before.received_at >= retry.delay * 0.99


def sent_after(request: Request, prompt: str) -> list[str]:
    """The items that follow a prompt of the user's, in words."""
    words = [in_words(item) for item in request.input]
    return words[words.index(f"user: {prompt}") + 1 :]


def in_words(item: dict[str, Any]) -> str:
    if item["type"] == "message":
        text = "".join(part["text"] for part in item["content"])
        return f"{item['role']}: {text.split(chr(10))[0]}"
    if item["type"] == "function_call_output":
        return f"output of {item['call_id']}: {item['output'].partition('Output:' + chr(10))[2].strip()}"
    return f"{item['type']} {item.get('call_id', item['id'])}"


def is_back_off(delays: list[float]) -> bool:
    """0.2 s and twice as long each time, a tenth more or less."""
    return all(0.9 <= delay / (0.2 * 2**n) <= 1.1 for n, delay in enumerate(delays))

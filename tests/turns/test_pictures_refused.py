"""A server that refuses pictures, on every API: the turn goes on without them, and one line says so."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.model.pictures import may_refuse_picture
from codex_py.protocol import events
from codex_py.protocol.ops import OverrideTurnContext
from tests.support.fake_responses import FakeResponses, api_error
from tests.support.home import Place
from tests.support.session import watched_session
from tests.support.wire_dialects import DIALECTS, Dialect

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c49444154789c63f8cfc0000003010100c9fe92ef0000000049454e44ae426082"
)
VIEW = ("v1", "view_image", {"path": "dot.png"})
OFF = ("model=some-model",)
every_wire = pytest.mark.parametrize("wire", DIALECTS, ids=lambda wire: wire.wire)


def shows_picture(model: FakeResponses) -> list[bool]:
    marks = ('"image_url": "data:', '"image_url": {"url": "data:', '"type": "image"')
    return [any(mark in json.dumps(request.body) for mark in marks) for request in model.requests]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"),
        (404, "No endpoints found that support image input"),
        (400, "messages[3]: unknown variant `image_url`, expected `text`"),
        (400, "this model does not support images"),
        (400, "At most 0 image(s) may be provided in one prompt."),
        (400, "Invalid content type. image_url is only supported by certain models."),
        (400, "'messages.2' : one of the following must be satisfied ... content : value must be a string"),
        (422, "Input should be a valid string"),
        (422, "this is not a multimodal model"),
        (413, "messages.3.content.0.image.source.base64: image exceeds 5 MB maximum"),
    ],
)
def test_servers_refuse_pictures_in_many_words(code: int, words: str) -> None:
    assert may_refuse_picture(code, words)
    assert not may_refuse_picture(401, words)
    assert not may_refuse_picture(code, "unknown field `stream_options`")


@every_wire
async def test_the_turn_goes_on_without_them(place: Place, wire: Dialect) -> None:
    code, words = 400, "this model does not support images"
    place.write("dot.png", PNG)
    script = [wire.answer("", [VIEW]), api_error(code, words), wire.say("done"), wire.say("more")]
    with wire.server(*script, excuse={"prefix", "replay"}) as model:
        async with watched_session(place, model, overrides=OFF, wire_api=wire.wire) as watched:
            assert isinstance(await watched.say("go"), events.TurnCompleted)
            await watched.say("and now?")
    assert shows_picture(model) == [False, True, False, False]
    assert "a picture that you cannot see" in json.dumps(model.requests[2].body)
    assert watched.of(events.Retrying) == []
    [warning] = [event.message for event in watched.of(events.Warned) if "picture" in event.message]
    assert words in warning


@every_wire
async def test_a_request_that_fails_without_them_too_is_the_failure(place: Place, wire: Dialect) -> None:
    place.write("dot.png", PNG)
    refusals = [api_error(400, "no such image model"), api_error(400, "no such tool")]
    script = [wire.answer("", [VIEW]), *refusals, wire.say("fine")]
    with wire.server(*script, excuse={"prefix", "replay"}) as model:
        async with watched_session(place, model, overrides=OFF, wire_api=wire.wire) as watched:
            ended = await watched.say("go")
            assert isinstance(ended, events.TurnFailed)
            assert "no such tool" in ended.message
            await watched.say("again")
    # The picture was not at fault.
    assert shows_picture(model) == [False, True, False, True]


@every_wire
async def test_another_model_is_shown_them(place: Place, wire: Dialect) -> None:
    place.write("dot.png", PNG)
    script = [wire.answer("", [VIEW]), api_error(400, "no image input"), wire.say("done"), wire.say("seen")]
    with wire.server(*script, excuse={"prefix", "replay", "head"}) as model:
        async with watched_session(place, model, overrides=OFF, wire_api=wire.wire) as watched:
            await watched.say("go")
            await watched.session.submit(OverrideTurnContext(model="another-model"))
            await watched.say("look again")
    assert shows_picture(model) == [False, True, False, True]


@every_wire
async def test_each_request_counts_in_a_budget(place: Place, wire: Dialect) -> None:
    place.write("dot.png", PNG)
    refusal: Any = api_error(400, "no image input")
    with wire.server(wire.answer("", [VIEW]), refusal, excuse={"prefix", "replay"}) as model:
        top = "[budget.turn]\nmax_requests = 2\n"
        async with watched_session(place, model, top, overrides=OFF, wire_api=wire.wire) as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnFailed)
    assert (len(model.requests), ended.failure) == (2, "budget")

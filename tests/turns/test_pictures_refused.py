"""A server that refuses pictures, on every API: the turn goes on without them, and one line says so."""

from __future__ import annotations

import base64
import json
import re
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

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
    [warning] = [event for event in watched.warnings if "picture" in event]
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


def picture(side: int) -> bytes:
    out = BytesIO()
    Image.new("RGB", (side, side), "navy").save(out, "PNG")
    return out.getvalue()


def shown_sides(request: Any) -> list[int]:
    """The sides of the pictures of a request."""
    urls = re.findall(r"iVBORw0KGgo[A-Za-z0-9+/=]+", json.dumps(request.body))
    return [Image.open(BytesIO(base64.b64decode(url))).width for url in urls]


REFUSALS = [
    # OpenAI and Anthropic in their API references and public issues; the others in reports of their users.
    "The image data you provided does not represent a valid image. Please check your input and try again.",
    "Could not process image",
    "messages.3.content.0.image.source.base64: image exceeds 5 MB maximum",
    "At least one of the image dimensions exceed max allowed size: 8000 pixels",
    "You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg']",
    "Unable to process input image. Please retry or report in https://developers.generativeai.google/guide/troubleshooting",
    "failed to decode image bytes",
    "Invalid image received.",
    "cannot identify image file <_io.BytesIO object>",
    "Image width must be at least 28 pixels",
]


@pytest.mark.parametrize(
    ("wire", "words"),
    [*((DIALECTS[0], words) for words in REFUSALS), *((wire, REFUSALS[0]) for wire in DIALECTS[1:])],
)
async def test_a_refused_picture_is_left_out_and_no_other_from_then_on(place: Place, wire: Dialect, words: str) -> None:
    for name, side in (("good", 7), ("bad", 9), ("later", 11)):
        place.write(f"{name}.png", picture(side))
    views = {
        name: wire.answer("", [(name, "view_image", {"path": f"{name}.png"})]) for name in ("good", "bad", "later")
    }
    script = [
        *(views["good"], wire.say("one"), views["bad"], api_error(400, words), wire.say("two")),
        *(wire.say("three"), views["later"], wire.say("four"), wire.say("five")),
    ]
    with wire.server(*script, excuse={"prefix", "replay"}) as model:
        async with watched_session(place, model, overrides=OFF, wire_api=wire.wire) as watched:
            for text in ("good", "bad", "again", "later"):
                assert isinstance(await watched.say(text), events.TurnCompleted)
        async with watched_session(
            place, model, overrides=OFF, wire_api=wire.wire, resume=watched.session.thread_id
        ) as resumed:
            await resumed.say("once more")
    sides = [shown_sides(request) for request in model.requests]
    assert sides == [[], [7], [7], [7, 9], [7], [7], [7], [7, 11], [7, 11]]
    assert [event for event in resumed.warnings if "picture" in event] == []
    [warning] = [event for event in watched.warnings if "picture" in event]
    assert words[:40] in warning


async def test_the_picture_that_the_refusal_names_is_left_out_though_it_is_not_the_newest(place: Place) -> None:
    for name, side in (("bad", 9), ("good", 7)):
        place.write(f"{name}.png", picture(side))
    wire = DIALECTS[0]
    calls = [(name, "view_image", {"path": f"{name}.png"}) for name in ("bad", "good")]

    def refuse(request: Any) -> Any:
        items = request.body["input"]
        index = next(at for at, item in enumerate(items) if item.get("call_id") == "bad" and "output" in item)
        return api_error(400, f"Invalid 'input[{index}].output[0].image_url': not a valid image.")

    with wire.server(wire.answer("", calls), wire.say("x"), wire.say("y"), excuse={"prefix", "replay"}) as probe:
        async with watched_session(place, probe, overrides=OFF, wire_api=wire.wire) as watched:
            await watched.say("go")
            refusal = refuse(probe.requests[1])
            await watched.say("more")
    script = [wire.answer("", calls), refusal, wire.say("done"), wire.say("more")]
    with wire.server(*script, excuse={"prefix", "replay"}) as model:
        async with watched_session(place, model, overrides=OFF, wire_api=wire.wire) as watched:
            await watched.say("go")
            await watched.say("and now?")
    assert [shown_sides(request) for request in model.requests] == [[], [9, 7], [7], [7]]

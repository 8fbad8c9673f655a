"""The limit on the tokens of one answer: who is sent it, how much it is, and what a turn does when it is reached."""

from __future__ import annotations

from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import Compact
from tests.support.fake_responses import FakeResponses, api_error, completed, fake_model, incomplete, say, tokens
from tests.support.home import Place
from tests.support.process import run
from tests.support.session import scripted_session, watched_session

MODEL = "local-model"
CHOSEN = (f"model={MODEL}",)
ENTRY = f'models = {{ "{MODEL}" = {{ max_output_tokens = 5000 }} }}'


def window(size: int) -> str:
    return f"model_context_window = {size}\nmodel_auto_compact_token_limit = {size}"


@pytest.mark.parametrize(
    ("top", "counted", "limit"),
    [
        ("", 1_000, 32_768),
        (ENTRY, 1_000, 5_000),
        (window(40_000), 10_000, 30_000),
        (window(40_000), 35_000, 5_000),
    ],
)
async def test_an_answer_may_take_what_the_window_leaves(place: Place, top: str, counted: int, limit: int) -> None:
    with FakeResponses([say("first"), completed(tokens(counted, 0))], [say("second")]) as model:
        async with watched_session(place, model, top, overrides=CHOSEN) as watched:
            await watched.say("go")
            await watched.say("on")
    assert limit - 50 <= model.requests[1].body["max_output_tokens"] <= limit


async def test_a_request_for_a_summary_has_the_limit_too(place: Place) -> None:
    async with scripted_session(place, [say("done")], [say("summary")], overrides=CHOSEN) as (model, watched):
        await watched.say("go")
        await watched.session.submit(Compact())
    assert model.requests[1].compacts
    assert model.requests[1].body["max_output_tokens"] == 32_768


def test_openai_is_sent_no_limit(place: Place) -> None:
    with FakeResponses([say("done")]) as model:
        place.configure(f'openai_base_url = "{model.base_url}"\n{ENTRY}\n')
        ended = run(place.with_env(OPENAI_API_KEY="sk-test"), "exec", "-m", MODEL, "go")
    assert ended.status == 0, ended.err
    assert "max_output_tokens" not in model.requests[0].body


@pytest.mark.parametrize("provider", [{"requires_openai_auth": True}, {"name": "Azure"}])
def test_neither_is_a_provider_with_an_openai_login_nor_azure(place: Place, provider: dict[str, Any]) -> None:
    with fake_model(place, [say("done")], **provider) as model:
        ended = run(place.with_env(OPENAI_API_KEY="sk-test"), "exec", "-m", MODEL, "go")
    assert ended.status == 0, ended.err
    assert "max_output_tokens" not in model.requests[0].body


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported parameter: 'max_output_tokens'",
        "max_tokens must be at most 8192",
        "This model's maximum context length is 8192 tokens. However, you requested 33768 tokens (1000 in the "
        "messages, 32768 in the completion).",
    ],
)
async def test_a_server_that_refuses_the_limit_is_asked_without_it(place: Place, message: str) -> None:
    with FakeResponses(api_error(400, message), [say("done")], [say("again")]) as model:
        async with watched_session(place, model, overrides=CHOSEN) as watched:
            ended = await watched.say("go")
            await watched.say("on")
    assert isinstance(ended, events.TurnCompleted)
    assert ["max_output_tokens" in request.body for request in model.requests] == [True, False, False]


async def test_an_answer_that_reaches_the_limit_fails_the_turn_and_names_the_settings(place: Place) -> None:
    with FakeResponses([say("half"), incomplete("max_output_tokens")]) as model:
        async with watched_session(place, model, overrides=CHOSEN) as watched:
            ended = await watched.say("go")
    assert isinstance(ended, events.TurnFailed)
    assert ended.message == (
        "the answer is incomplete: it reached the limit of 32,768 output tokens, which `max_output_tokens` and "
        f'`context_window` under `[models."{MODEL}"]` set'
    )


async def test_a_model_that_is_known_to_end_by_itself_is_sent_no_limit(place: Place) -> None:
    async with scripted_session(place, [say("done")]) as (model, watched):
        await watched.say("go")
    assert "max_output_tokens" not in model.requests[0].body

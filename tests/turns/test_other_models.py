"""Other models within one session: after an outage, by `/model`, for agents and for compactions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codex_py.config.model_names import split_model
from codex_py.core.fallback import is_outage
from codex_py.errors import ModelError, UserError
from codex_py.protocol import events
from codex_py.protocol.ops import Compact, OverrideTurnContext
from tests.support import fake_chat
from tests.support.fake_chat import FakeChat
from tests.support.fake_responses import FakeResponses, api_error, call, completed, failed, say, status, tokens
from tests.support.home import Place
from tests.support.process import run
from tests.support.rollout import read_rollout
from tests.support.session import watched_session


def beside(model: FakeChat, top: str = "", name: str = "other") -> str:
    """Settings with a second provider, which speaks the chat API."""
    table = f'[model_providers.{name}]\nbase_url = "{model.base_url}"\nwire_api = "chat"\n'
    return f"{top}\n{table}request_max_retries = 0\nstream_max_retries = 0\nconnect_retry_seconds = 0.1\n"


FALLBACK = 'fallback_models = ["other/backup-1"]'


@pytest.mark.parametrize(
    "outage",
    [
        status(503),
        api_error(429, "out of it", kind="insufficient_quota"),
        status(529),
        api_error(402, "pay first"),
        api_error(429, "later", headers={"retry-after": "7200"}),
        status(404, {"object": "error", "message": "The model `x` does not exist.", "code": 404}),
        status(404, b'[{"error":{"code":404,"message":"models/x is not found for API version v1main, or is not"}}]'),
        status(404, {"error": {"message": "No endpoints found for x/y.", "code": 404}}),
        api_error(
            400, "The model `x` has been decommissioned and is no longer supported.", kind="model_decommissioned"
        ),
        status(400, {"object": "error", "message": "Invalid model: x", "type": "invalid_model", "code": "1500"}),
        status(400, {"error": {"message": "x/y is not a valid model ID", "code": 400}}),
        api_error(400, "Your credit balance is too low to access the Anthropic API.", kind="invalid_request_error"),
        status(403, {"error": {"message": "Key limit exceeded (total limit). Manage it using", "code": 403}}),
        [failed("404", "No endpoints found for x/y.")],
        [failed("invalid_request_error", "Your credit balance is too low to access the Anthropic API.")],
    ],
    ids=[
        *("5xx", "quota", "529", "402", "429 for hours", "no such model", "google", "openrouter", "groq", "mistral"),
        *("not valid", "no credit", "key limit", "gone in the stream", "no credit in the stream"),
    ],
)
async def test_another_model_goes_on_with_the_turn_and_the_next_turn_is_the_first_ones(
    place: Place, outage: Any
) -> None:
    calls = [("c9", "exec_command", {"cmd": "echo two", "login": False})]
    first = [call("c1", "exec_command", {"cmd": "echo one", "login": False})]
    with (
        FakeChat(fake_chat.answer(calls=calls), fake_chat.answer("by the backup")) as backup,
        FakeResponses(first, outage, [say("back again")], excuse={"replay", "prefix"}) as model,
    ):
        options: dict[str, Any] = {"request_max_retries": 0, "stream_max_retries": 0}
        async with watched_session(place, model, beside(backup, FALLBACK), **options) as watched:
            ended = await watched.say("go")
            assert isinstance(ended, events.TurnCompleted)
            assert ended.last_message == "by the backup"
            again = await watched.say("more")
            [warned] = [
                event.message for event in watched.of(events.Warned) if "goes on with this turn" in event.message
            ]
            [agreed] = [again.last_message] if isinstance(again, events.TurnCompleted) else [None]
    assert agreed == "back again"
    assert "`other/backup-1` goes on with this turn" in warned
    assert [body["model"] for body in backup.bodies] == ["backup-1", "backup-1"]
    # What the first one had called is in the history of the second, and the other way round.
    assert [message["tool_call_id"] for message in backup.bodies[1]["messages"] if message["role"] == "tool"] == [
        "c1",
        "c9",
    ]
    assert model.requests[2].output_of("c9").endswith("two\n")
    [note] = [line.payload for line in read_rollout(place.rollouts()[0]) if line.type == "model_fallback"]
    assert (note["from"]["provider"], note["to"]) == ("fake", {"provider": "other", "model": "backup-1"})


async def test_a_fault_of_the_request_is_no_outage_and_the_last_failure_counts(place: Place) -> None:
    with FakeChat(status(503)) as backup, FakeResponses(api_error(400, "wrong"), status(503)) as model:
        options: dict[str, Any] = {"request_max_retries": 0, "stream_max_retries": 0}
        async with watched_session(place, model, beside(backup, FALLBACK), **options) as watched:
            assert isinstance(await watched.say("go"), events.TurnFailed)
            assert backup.bodies == []
            ended = await watched.say("go")
            assert isinstance(ended, events.TurnFailed)
            assert "503" in ended.message


@pytest.mark.parametrize(
    ("error", "outage"),
    [
        (ModelError("x", retryable=True), True),
        (ModelError("x", retryable=False, unreachable=True), True),
        *((ModelError("x", retryable=False).counted_as(failure), True) for failure in ("quota", "rate_limit")),
        (ModelError("x", retryable=False, code="model_not_found"), True),
        (ModelError("x", retryable=False).counted_as("auth"), False),
        (ModelError("x", retryable=False), False),
        (ModelError("x", retryable=True, code="content_filter"), False),
        (ModelError("x", retryable=False, code="budget_reached"), False),
        (ModelError("x", retryable=False, code="context_length_exceeded"), False),
    ],
)
def test_what_counts_as_an_outage(error: ModelError, outage: bool) -> None:
    assert is_outage(error) is outage


async def test_the_user_changes_the_provider_within_a_session(place: Place) -> None:
    with (
        FakeChat(fake_chat.answer("by chat")) as other,
        FakeResponses([say("one"), completed(tokens(10, 1))], [say("three")], excuse={"replay", "prefix"}) as model,
    ):
        async with watched_session(place, model, beside(other)) as watched:
            await watched.say("first")
            await watched.session.submit(OverrideTurnContext(model="other/some-model"))
            assert (watched.session.settings.model.provider, watched.session.settings.model.model) == (
                "other",
                "some-model",
            )
            await watched.say("second")
            with pytest.raises(UserError, match="OPENROUTER_API_KEY"):
                await watched.session.submit(OverrideTurnContext(model="openrouter/x/y"))
            await watched.session.submit(OverrideTurnContext(model="fake/gpt-5.1-codex"))
            await watched.say("third")
    said = [message.get("content") for message in other.bodies[0]["messages"] if message["role"] == "assistant"]
    assert "one" in json.dumps(said)
    assert model.requests[1].texts("assistant") == ["one", "by chat"]


@pytest.mark.parametrize(
    ("name", "current", "found"),
    [
        ("gpt-5", "openai", (None, "gpt-5")),
        ("anthropic/claude-x", "openai", ("anthropic", "claude-x")),
        ("openrouter/openai/gpt-5", "anthropic", ("openrouter", "openai/gpt-5")),
        # Names of models of these servers, which must not send the conversation elsewhere.
        ("openai/gpt-oss-20b", "vllm", (None, "openai/gpt-oss-20b")),
        ("anthropic/claude-x", "openrouter", (None, "anthropic/claude-x")),
        ("groq/compound", "groq", (None, "groq/compound")),
        ("unknown/x", "openai", (None, "unknown/x")),
        ("/x", "openai", (None, "/x")),
        ("offline/x", "openai", (None, "offline/x")),
        (" mine / some/model ", "openai", ("mine", "some/model")),
        ("mine/some-model", "mine", (None, "some-model")),
        ("openai/gpt-5", "openai", (None, "gpt-5")),
        ("openrouter/openai/gpt-5", "openrouter", (None, "openai/gpt-5")),
        # Models that have the name of their own provider in front.
        ("openrouter/auto", "openai", ("openrouter", "openrouter/auto")),
        ("openrouter/auto", "openrouter", (None, "openrouter/auto")),
        ("groq/compound", "openai", ("groq", "groq/compound")),
        ("groq/llama-3.3", "groq", (None, "llama-3.3")),
        # A configured provider counts, except at a server whose models all have a vendor.
        ("deepseek/deepseek-chat", "mine", ("deepseek", "deepseek-chat")),
        ("deepseek/deepseek-chat", "openrouter", (None, "deepseek/deepseek-chat")),
    ],
)
def test_a_provider_in_the_name_of_a_model(name: str, current: str, found: tuple[str | None, str]) -> None:
    assert split_model(name, configured=("mine", "deepseek"), current=current) == found


@pytest.mark.parametrize("name", ["openai/gpt-5", "anthropic/claude-x"])
def test_a_gateway_in_place_of_openai_keeps_the_names_of_its_models(name: str) -> None:
    assert split_model(name, configured=(), current="openai", is_gateway=True) == (None, name)
    assert split_model("groq/some-model", configured=(), current="openai", is_gateway=True) == ("groq", "some-model")


@pytest.mark.parametrize("arguments", [["exec"], ["exec", "resume", "--last"]], ids=["new", "resumed"])
def test_the_flag_for_the_model_names_another_provider(place: Place, arguments: list[str]) -> None:
    is_resumed = "resume" in arguments
    with FakeChat(fake_chat.answer("by chat")) as other, FakeResponses(*[[say("one")]] * is_resumed) as model:
        place.use_model(model.base_url, beside(other))
        if is_resumed:
            assert run(place, "exec", "first").status == 0
        ended = run(place, *arguments, "-m", "other/vendor/some-model", "second")
    assert (ended.status, ended.stdout) == (0, b"by chat\n")
    assert [body["model"] for body in other.bodies] == ["vendor/some-model"]


@pytest.mark.parametrize(
    ("flags", "question"),
    [
        (["-m", "meta-llama/llama-3.3"], "meta-llama/llama-3.3"),
        (["-m", "anthropic/claude-x"], "anthropic/claude-x"),
        (["-m", "fake/some-model"], "some-model"),
        (["-m", "fake/fake/some-model"], "fake/some-model"),
        (["-c", "model=other/some-model"], "other/some-model"),
    ],
)
def test_a_model_with_a_slash_in_its_name_stays_with_its_provider(
    place: Place, flags: list[str], question: str
) -> None:
    with FakeChat() as other, FakeResponses([say("one")]) as model:
        place.use_model(model.base_url, beside(other))
        assert run(place, "exec", *flags, "go").status == 0
        assert (model.requests[0].body["model"], other.bodies) == (question, [])


@pytest.mark.parametrize(
    ("name", "code", "reason"),
    [
        ("other/", 2, "`other/` names a provider but no model"),
        (" groq / ", 2, "names a provider but no model"),
        ("groq/llama", 77, "`GROQ_API_KEY`"),
        ("", 2, "the model has no name"),
    ],
)
def test_a_name_that_cannot_be_asked_is_one_error(place: Place, name: str, code: int, reason: str) -> None:
    with FakeChat() as other, FakeResponses() as model:
        place.use_model(model.base_url, beside(other))
        ended = run(place, "exec", "-m", name, "go")
    assert (ended.status, ended.stdout) == (code, b"")
    assert reason in ended.err
    assert len(ended.err.splitlines()) <= 2


async def test_agents_and_compactions_have_models_of_their_own(place: Place) -> None:
    spawn = [call("s", "spawn_agent", {"message": "look at a"})]
    with (
        FakeChat(fake_chat.answer("a is fine"), fake_chat.answer("what happened so far")) as cheap,
        FakeResponses(
            spawn, lambda request: [call("w", "wait", {"ids": [json.loads(request.output_of("s"))["agent_id"]]})],
            [say("done")], [say("on")], excuse={"replay", "prefix"},
        ) as model,
    ):  # fmt: skip
        top = 'compaction_model = "cheap/small"\n[agents]\nmodel = "cheap/tiny"\n'
        async with watched_session(place, model, beside(cheap, top, "cheap")) as watched:
            await watched.say("go")
            assert watched.of(events.TurnCompleted)
            await watched.session.submit(Compact(""))
            [compacted] = watched.of(events.ContextCompacted)
            assert compacted.summary == "what happened so far"
            assert isinstance(await watched.say("go on"), events.TurnCompleted)
    assert [body["model"] for body in cheap.bodies] == ["tiny", "small"]


async def test_a_compaction_model_that_fails_is_replaced_by_the_usual_one(place: Place) -> None:
    with (
        FakeChat(status(503)) as cheap,
        FakeResponses([say("one")], [say("all of it")], excuse={"tools"}) as model,
    ):
        async with watched_session(
            place, model, beside(cheap, 'compaction_model = "cheap/small"\n', "cheap")
        ) as watched:
            await watched.say("go")
            await watched.session.submit(Compact(""))
            assert [event.summary for event in watched.of(events.ContextCompacted)] == ["all of it"]
            assert any("`small` could not compact" in event.message for event in watched.of(events.Warned))


@pytest.mark.parametrize("name", ["gpt-5", "nowhere/gpt-5"])
def test_a_fallback_without_a_provider_is_a_wrong_setting(place: Place, name: str) -> None:
    place.use_model("http://127.0.0.1:9/v1", f'fallback_models = ["{name}"]')
    ended = run(place, "exec", "go")
    assert (ended.status, f"`{name}` in `fallback_models` names no provider" in ended.err) == (2, True)


BUDGET = '[models."gpt-5.1-codex"]\ninput_usd = 1\noutput_usd = 1\n[models.priced]\ninput_usd = 1\noutput_usd = 1\n'


@pytest.mark.parametrize("names", [("dear", "priced"), ("dear",)])
def test_a_fallback_without_a_price_is_passed_over_under_a_budget_in_dollars(
    place: Place, names: tuple[str, ...]
) -> None:
    fallbacks = ", ".join(f'"other/{name}"' for name in names)
    answers = [fake_chat.answer("by the backup")] if "priced" in names else []
    with FakeChat(*answers) as backup, FakeResponses(status(503)) as model:
        top = f"fallback_models = [{fallbacks}]"
        place.use_model(model.base_url, top, request_max_retries=0, stream_max_retries=0)
        config = place.codex_home / "config.toml"
        config.write_text(f"{config.read_text()}\n{beside(backup)}\n{BUDGET}")
        ended = run(place, "exec", "--max-usd", "1", "go")
    reason = "`other/dear` cannot go on with this turn: a budget in dollars cannot be held: the price of `dear` is"
    assert ended.err.count(reason) == 1
    if "priced" in names:
        assert (ended.status, ended.out, [body["model"] for body in backup.bodies]) == (
            0,
            "by the backup\n",
            ["priced"],
        )
    else:
        assert (ended.status, backup.bodies) == (69, [])
        assert "503" in ended.err

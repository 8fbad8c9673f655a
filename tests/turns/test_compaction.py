"""A history that gets too long."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import Compact, OverrideTurnContext
from tests.support.fake_responses import (
    FakeResponses,
    Request,
    Stream,
    api_error,
    call,
    completed,
    custom_call,
    failed,
    hang,
    item,
    reasoning,
    say,
    status,
    tokens,
)
from tests.support.home import Place
from tests.support.rollout import read_rollout
from tests.support.script import shell
from tests.support.session import Watched, scripted_session, watched_session

PATCH = "*** Begin Patch\n*** Add File: new.txt\n+x\n*** End Patch\n"
PLAN = {"plan": [{"step": "Read the code", "status": "completed"}, {"step": "Fix it", "status": "in_progress"}]}
COMPACTION = {"type": "compaction", "id": "cmp_1", "encrypted_content": "SEALED"}
FULL = completed(tokens(300_000, 10))


def kinds(request: Request) -> list[str]:
    """What each item of a request is, by its role and the beginning of its first text."""
    return [kind(one) for one in request.input]


def kind(one: dict[str, Any]) -> str:
    if one["type"] != "message":
        return one["type"]
    text = one["content"][0]["text"]
    return f"{one['role']} {text.split()[0] if text.startswith(('<', '#')) else text}"


def compacted(watched: Watched) -> list[tuple[str, str]]:
    return [(event.how, event.reason) for event in watched.of(events.ContextCompacted)]


CONTEXT = ["developer <skills_instructions>", "user <environment_context>"]


async def test_a_full_history_is_compacted_before_the_next_turn(place: Place) -> None:
    place.write("AGENTS.md", "Prefer tabs.\n")
    first = [reasoning("B"), shell("c1", "echo hi"), say("looking")]
    with FakeResponses(first, [say("one"), FULL], [say("what was done")], [say("two")], [say("three")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("first")
            await watched.say("second")
            ended = await watched.say("third")
    summary_request, after = model.requests[2], model.requests[3]
    assert summary_request.compacts
    # What comes before the question is what the prompt cache has.
    assert summary_request.body["tools"] == model.requests[1].body["tools"]
    assert summary_request.input_bytes.startswith(model.requests[1].input_bytes[:-1])
    assert kinds(summary_request)[:-1] == [*kinds(model.requests[1]), "assistant one"]
    assert summary_request.input[-1]["role"] == "user"
    assert kinds(after) == [CONTEXT[0], "user #", "user first", "user <conversation_summary>", "user second"]
    assert "Prefer tabs." in after.texts("user")[0]
    assert "what was done" in after.texts("user")[-2]
    assert after.body["tools"] == model.requests[0].body["tools"]
    assert (after.window, model.requests[4].window) == (1, 1)
    assert compacted(watched) == [("local", "context_limit")]
    assert isinstance(ended, events.TurnCompleted)


async def test_a_turn_is_compacted_between_its_requests_with_its_skills(place: Place) -> None:
    body = "---\nname: lint\ndescription: lints\n---\nRun the linter.\n"
    skill = place.write(".agents/skills/lint/SKILL.md", body)
    # What is loaded once more is kept once.
    again = call("k1", "skill", {"name": "lint"})
    work = [again, call("p", "update_plan", PLAN), custom_call("c1", "apply_patch", PATCH), FULL]
    with FakeResponses(work, [say("the summary")], [say("done")]) as model:
        async with watched_session(place, model, "skills.tool = true\n") as watched:
            ended = await watched.say("use $lint here")
    after = model.requests[2]
    skills = ["user use $lint here", "user <skill>"]
    assert kinds(after) == [*CONTEXT, *skills, "developer <work_so_far>", "user <conversation_summary>"]
    assert after.texts("user")[-2] == model.requests[0].texts("user")[1]
    notes = after.texts("developer")[-1]
    assert "[x] Read the code\n[>] Fix it\n" in notes
    assert f"- `{place.repo / 'new.txt'}` (add)\n" in notes
    assert f"- `lint`: `{skill}`\n" in notes
    assert isinstance(ended, events.TurnCompleted)
    assert ended.last_message == "done"


async def test_a_later_turn_gets_the_names_of_skills_and_not_their_text(place: Place) -> None:
    skill = place.write(".agents/skills/lint/SKILL.md", "---\nname: lint\ndescription: lints\n---\nRun it.\n")
    with FakeResponses([say("one")], [say("two"), FULL], [say("sum")], [say("three")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("use $lint here")
            await watched.say("more")
            await watched.say("and more")
    after = model.requests[3]
    assert "Run it." not in "".join(after.texts("user"))
    assert f"- `lint`: `{skill}`\n" in after.texts("developer")[-1]


async def test_outputs_count_although_the_server_has_not_seen_them(place: Place) -> None:
    big = [shell("c1", "head -c 30000 /dev/zero | tr '\\0' x"), completed(tokens(100, 10))]
    with FakeResponses(big, [say("sum")], [say("done")]) as model:
        async with watched_session(place, model, "model_auto_compact_token_limit = 7000") as watched:
            await watched.say("go")
    assert [request.compacts for request in model.requests] == [False, True, False]
    [event] = watched.of(events.ContextCompacted)
    assert event.before_tokens > 7500
    assert event.after_tokens < 7000


async def test_the_limit_is_at_most_nine_tenths_of_the_window(place: Place) -> None:
    almost, enough = completed(tokens(8_700, 10)), completed(tokens(8_990, 10))
    top = "model_context_window = 10000\nmodel_auto_compact_token_limit = 9900"
    script = [[shell("c1", "true"), almost], [shell("c2", "true"), enough], [say("sum")], [say("done")]]
    async with scripted_session(place, *script, top=top) as (model, watched):
        await watched.say("go")
    assert [request.compacts for request in model.requests] == [False, False, True, False]


async def test_the_first_prompt_never_triggers(place: Place) -> None:
    async with scripted_session(place, [say("one")], top="model_auto_compact_token_limit = 10") as (_, watched):
        await watched.say("word " * 1000)
    assert compacted(watched) == []


async def test_the_user_can_ask_for_it_and_say_what_matters(place: Place) -> None:
    with FakeResponses([say("one")], [say("the summary"), completed(tokens(50, 5))], [say("two")]) as model:
        async with watched_session(place, model, 'compact_prompt = "Sum it up."') as watched:
            await watched.say("first")
            await watched.session.submit(Compact("the API"))
            last = watched.seen[-1]
            await watched.say("second")
    question = model.requests[1].texts("user")[-1]
    assert question.startswith("Sum it up.")
    assert question.endswith("the API")
    assert compacted(watched) == [("local", "user_requested")]
    assert isinstance(last, events.TurnCompleted)
    assert last.turn_usage.total_tokens == 55


async def test_there_may_be_nothing_to_compact(place: Place) -> None:
    async with scripted_session(place) as (_, watched):
        await watched.session.submit(Compact())
    assert watched.of(events.Warned)[-1] == events.Warned("there is nothing to compact yet")


async def test_only_one_summary_lives_at_a_time(place: Place) -> None:
    script = [[say("1")], [say("sum A")], [say("2")], [say("sum B")], [say("3")]]
    async with scripted_session(place, *script) as (model, watched):
        for prompt in ("first", "second"):
            await watched.say(prompt)
            await watched.session.submit(Compact())
        await watched.say("third")
    last = model.requests[-1]
    assert kinds(last) == [*CONTEXT, "user first", "user second", "user <conversation_summary>", "user third"]
    assert "sum B" in last.texts("user")[-2]
    assert last.window == 2


async def test_a_long_message_of_the_user_keeps_its_ends(place: Place) -> None:
    long = "A" * 150_000 + "Z" * 150_000
    async with scripted_session(place, [say("1")], [say("2")], [say("sum")], [say("3")]) as (model, watched):
        await watched.say("too old")
        await watched.say(long)
        await watched.session.submit(Compact())
        await watched.say("next")
    kept = [text for text in model.requests[-1].texts("user") if "truncated" in text]
    assert kept == ["A" * 40_000 + "…55000 tokens truncated…" + "Z" * 40_000]
    assert "too old" not in model.requests[-1].texts("user")


async def test_the_provider_compacts_by_an_item_of_its_own(place: Place) -> None:
    with FakeResponses([say("one")], [item(COMPACTION)], [say("two")]) as model:
        async with watched_session(place, model, compaction="in-band") as watched:
            await watched.say("first")
            await watched.session.submit(Compact())
            await watched.say("second")
    summary_request, after = model.requests[1], model.requests[2]
    assert summary_request.input[-1] == {"type": "compaction_trigger"}
    assert summary_request.body["tools"] == model.requests[0].body["tools"]
    assert summary_request.raw.startswith(model.requests[0].raw[: len(model.requests[0].head)])
    assert kinds(after) == [*CONTEXT, "user first", "compaction", "user second"]
    assert after.input[3] == COMPACTION
    assert compacted(watched) == [("in-band", "user_requested")]


async def test_the_provider_compacts_at_an_endpoint_of_its_own(place: Place) -> None:
    said = {"type": "message", "id": "m", "role": "user", "content": [{"type": "input_text", "text": "first"}]}
    stale = {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "old rules"}]}
    answer = status(200, {"output": [stale, said, COMPACTION]})
    async with scripted_session(place, [say("one")], answer, [say("two")], compaction="remote") as (model, watched):
        await watched.say("first")
        await watched.session.submit(Compact())
        await watched.say("second")
    summary_request, after = model.requests[1], model.requests[2]
    assert summary_request.path == "/v1/responses/compact"
    assert "stream" not in summary_request.body
    assert summary_request.headers["accept"] == "application/json"
    assert kinds(after) == [*CONTEXT, "user first", "compaction", "user second"]
    assert after.input[2] == said
    assert compacted(watched) == [("remote", "user_requested")]


async def test_openai_can_be_set_to_compact_at_its_endpoint(place: Place) -> None:
    said = {"type": "message", "id": "m", "role": "user", "content": [{"type": "input_text", "text": "first"}]}
    with FakeResponses([say("one")], status(200, {"output": [said, COMPACTION]}), [say("two")]) as model:
        overrides = (
            "model_provider=openai",
            f"openai_base_url={model.base_url}",
            "model_providers.openai.compaction=remote",
        )
        with_key = place.with_env(OPENAI_API_KEY="sk-test-0123456789")
        async with watched_session(with_key, model, overrides=overrides) as watched:
            await watched.say("first")
            await watched.session.submit(Compact())
            await watched.say("second")
    assert [request.path for request in model.requests][1] == "/v1/responses/compact"
    assert compacted(watched) == [("remote", "user_requested")]


NOT_COMPACTED: list[Any] = [
    [say("no item")],
    [item(COMPACTION), item(COMPACTION)],
    api_error(404, "no such thing"),
    api_error(400, "unknown item"),
]


@pytest.mark.parametrize("answer", NOT_COMPACTED)
async def test_a_provider_that_cannot_is_replaced_by_a_summary_for_good(place: Place, answer: Any) -> None:
    script = [[say("one")], answer, [say("sum")], [say("two")], [say("sum")]]
    async with scripted_session(place, *script, compaction="in-band") as (_, watched):
        await watched.say("first")
        await watched.session.submit(Compact())
        await watched.say("second")
        await watched.session.submit(Compact())
    assert compacted(watched) == [("local", "user_requested")] * 2
    [warning] = watched.of(events.Warned)
    assert warning.message.startswith("the provider has not compacted the history (")


@pytest.mark.parametrize(
    "answer", [status(200, {"output": []}), status(200, "ok"), status(200, {"output": [{"a": 1}]})]
)
async def test_an_endpoint_that_answers_nonsense_is_replaced_too(place: Place, answer: Any) -> None:
    async with scripted_session(place, [say("one")], answer, [say("sum")], compaction="remote") as (_, watched):
        await watched.say("first")
        await watched.session.submit(Compact())
    assert compacted(watched) == [("local", "user_requested")]


async def test_a_compaction_that_does_not_fit_does_without_the_oldest(place: Place) -> None:
    too_long = api_error(400, "too long", kind="context_length_exceeded")
    work = [shell("c1", "echo " + "x" * 3000), shell("c2", "echo " + "y" * 3000)]
    with FakeResponses(work, [say("one")], too_long, too_long, [say("sum")], [say("two")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("first")
            await watched.session.submit(Compact())
            await watched.say("second")
    sizes = [len(request.input) for request in model.requests[2:5]]
    assert sizes[0] > sizes[1] > sizes[2]
    assert model.requests[3].input[-1] == model.requests[2].input[-1]
    # The history itself has lost nothing by that.
    assert kinds(model.requests[5]) == [*CONTEXT, "user first", "user <conversation_summary>", "user second"]


@pytest.mark.parametrize(
    "refusal", [api_error(400, "too long", kind="context_length_exceeded"), [failed("context_length_exceeded", "long")]]
)
async def test_a_request_that_does_not_fit_is_compacted_and_made_again(place: Place, refusal: Any) -> None:
    async with scripted_session(place, [say("one")], refusal, [say("sum")], [say("two")]) as (model, watched):
        await watched.say("first")
        ended = await watched.say("second")
    assert kinds(model.requests[3]) == [*CONTEXT, "user first", "user second", "user <conversation_summary>"]
    assert compacted(watched) == [("local", "context_overflow")]
    assert isinstance(ended, events.TurnCompleted)


async def test_a_first_prompt_that_does_not_fit_is_one_error(place: Place) -> None:
    async with scripted_session(place, api_error(400, "too long", kind="context_length_exceeded")) as (model, watched):
        ended = await watched.say("word " * 1000)
    assert isinstance(ended, events.TurnFailed)
    assert ended.message == "400 Bad Request: too long"
    assert len(model.requests) == 1


async def test_what_does_not_fit_even_compacted_is_one_error(place: Place) -> None:
    refusal = api_error(400, "too long", kind="context_length_exceeded")
    script = [[say("one")], refusal, [say("sum")], refusal, [say("sum")], refusal]
    async with scripted_session(place, *script) as (_, watched):
        await watched.say("first")
        ended = await watched.say("second")
    assert isinstance(ended, events.TurnFailed)
    assert ended.message.startswith("the conversation does not fit into the context window of `gpt-5.1-codex`")


async def test_a_compaction_that_fails_lets_the_turn_go_on_while_it_fits(place: Place) -> None:
    nearly = completed(tokens(250_000, 10))
    async with scripted_session(place, [say("one"), nearly], api_error(401, "no"), [say("two")]) as (model, watched):
        await watched.say("first")
        ended = await watched.say("second")
    assert isinstance(ended, events.TurnCompleted)
    assert kinds(model.requests[2]) == [*CONTEXT, "user first", "assistant one", "user second"]
    [warning] = watched.of(events.Warned)
    assert warning.message.startswith("compacting the conversation failed: 401 Unauthorized: no")


async def test_a_compaction_that_fails_ends_the_turn_when_it_does_not_fit(place: Place) -> None:
    async with scripted_session(
        place, [say("one"), FULL], api_error(401, "no"), api_error(401, "no"), [say("sum")], [say("2")]
    ) as (_, watched):
        await watched.say("first")
        failed_turn = await watched.say("second")
        again = await watched.say("third")
        ended = await watched.say("fourth")
    assert isinstance(failed_turn, events.TurnFailed)
    assert "300,0" in failed_turn.message
    assert "compacting it failed: 401 Unauthorized: no" in failed_turn.message
    assert isinstance(again, events.TurnFailed)
    assert isinstance(ended, events.TurnCompleted)


async def test_the_user_keeps_the_whole_history_where_a_summary_was_only_asked_for(place: Place) -> None:
    async with scripted_session(place, [say("one")], [say("  ")], [say("")], [say("two")]) as (model, watched):
        await watched.say("first")
        await watched.session.submit(Compact())
        failed_turn = watched.seen[-1]
        await watched.say("second")
    assert isinstance(failed_turn, events.TurnFailed)
    assert failed_turn.message == "the model wrote no summary"
    assert kinds(model.requests[3]) == [*CONTEXT, "user first", "assistant one", "user second"]


async def test_an_interrupt_leaves_the_history_as_it_was(place: Place) -> None:
    with FakeResponses([say("one")], [say("half"), hang(threading.Event())], [say("two")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("first")
            compacting = asyncio.create_task(watched.session.submit(Compact()))
            await asyncio.to_thread(model.wait_for, 2)
            watched.session.interrupt()
            await compacting
            stopped = watched.seen[-1]
            await watched.say("second")
    assert isinstance(stopped, events.TurnInterrupted)
    assert kinds(model.requests[2]) == [
        *CONTEXT,
        "user first",
        "assistant one",
        "user <turn_aborted>",
        "user second",
    ]
    assert model.requests[2].window == 0


async def test_a_compaction_that_does_not_help_is_reported_once_and_not_repeated(place: Place) -> None:
    full = completed(tokens(900, 10))
    script = [[say("1"), full], [say("sum")], [say("2"), full], [say("3"), full], [say("4"), full]]
    async with scripted_session(place, *script, top="model_auto_compact_token_limit = 500") as (model, watched):
        for prompt in ("first", "second", "third", "fourth"):
            await watched.say(prompt)
    assert [request.compacts for request in model.requests] == [False, True, False, False, False]
    [warning] = watched.of(events.Warned)
    assert "even after it was compacted" in warning.message


async def test_a_smaller_model_gets_a_history_it_can_read(place: Place) -> None:
    top = '[models."small"]\ncontext_window = 10000\n'
    with FakeResponses([say("one"), completed(tokens(20_000, 10))], [say("sum")], [say("two")]) as model:
        async with watched_session(place, model, top) as watched:
            await watched.say("first")
            await watched.session.submit(OverrideTurnContext(model="small"))
            await watched.say("second")
    assert [request.body["model"] for request in model.requests] == ["gpt-5.1-codex", "gpt-5.1-codex", "small"]
    assert compacted(watched) == [("local", "smaller_window")]


async def test_a_resumed_session_goes_on_from_the_compacted_history(place: Place) -> None:
    work: Stream = [call("p", "update_plan", PLAN), custom_call("c1", "apply_patch", PATCH)]
    with FakeResponses(work, [say("one")], [say("sum A")], [say("two")], [say("sum B")], [say("three")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("first")
            thread = watched.session.thread_id
            plan = watched.session.plan()
        async with watched_session(place, model, resume=thread) as watched:
            assert watched.session.plan() == plan != ()
            await watched.session.submit(Compact())
            await watched.say("second")
        async with watched_session(place, model, resume=thread) as watched:
            assert watched.session.plan() == plan
            await watched.session.submit(Compact())
            await watched.say("third")
    before, after = model.requests[3], model.requests[5]
    assert kinds(before) == [
        *CONTEXT,
        "user first",
        "developer <work_so_far>",
        "user <conversation_summary>",
        "user second",
    ]
    assert before.texts("developer")[-1] == after.texts("developer")[-1]
    assert "new.txt` (add)" in after.texts("developer")[-1]
    assert (before.window, after.window) == (1, 2)


async def test_the_file_keeps_all_that_was_said(place: Place) -> None:
    async with scripted_session(place, [say("one")], [say("the summary")], [say("two")]) as (model, watched):
        await watched.say("first")
        await watched.session.submit(Compact())
        await watched.say("second")
    records = read_rollout(place.rollouts()[0])
    [line] = [record.payload for record in records if record.type == "compacted"]
    assert line["message"] == "the summary"
    assert line["window_number"] == 1
    after = model.requests[2]
    assert line["replacement_history"] == after.input[:-1]
    for one in line["replacement_history"]:
        assert json.dumps(one, ensure_ascii=False, separators=(",", ":")).encode() in after.raw
    assert model.requests[1].input[:-1] == [record.payload for record in records if record.type == "response_item"][:4]


async def test_the_plan_of_a_resumed_session_is_the_last_one(place: Place) -> None:
    later = {"plan": [{"step": "Ship it", "status": "pending"}]}
    script: list[Stream] = [[call("p", "update_plan", PLAN)], [say("one")], [say("sum")]]
    with FakeResponses(*script, [call("q", "update_plan", later)], [say("two")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("first")
            await watched.session.submit(Compact())
            await watched.say("second")
            thread = watched.session.thread_id
        async with watched_session(place, model, resume=thread) as watched:
            assert watched.session.plan() == (events.PlanStep("Ship it", "pending"),)

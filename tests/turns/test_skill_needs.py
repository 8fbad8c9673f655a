"""What named skills need: variables that are asked for, kept in memory and hidden; in whole request bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import AnswerQuestion
from codex_py.protocol.questions import SecretQuestion
from tests.support.bodies import injected, said, skill_list, user, whole_body
from tests.support.fake_responses import FakeResponses, call, delta, reasoning, reasoning_delta, say
from tests.support.home import Place
from tests.support.mcp_turns import answers
from tests.support.session import Watched, scripted_session, watched_session
from tests.support.skills import NO_BUNDLED, add_metadata, add_skill, line, own_root, repo_root, skill_text, talk

SECRET = "hush-hush-secret1"
ABORTED = (
    "<turn_aborted>\nThe user stopped the previous turn on purpose. Commands and patches that were running may be half "
    "done, and processes started in the background may still be running. Look at the present state before you continue "
    "or repeat anything.\n</turn_aborted>"
)


def needing(name: str, *variables: str) -> str:
    """A skill that needs variables, `DEPLOY_TOKEN` when none is named."""
    needs = "".join(
        f"    - type: env_var\n      value: {variable}\n      description: deploys\n"
        for variable in variables or ("DEPLOY_TOKEN",)
    )
    return skill_text(name, more=f"dependencies:\n  tools:\n{needs}")


def run_command(command: str) -> dict[str, Any]:
    return call("c1", "exec_command", {"cmd": command})


def answer_secrets(watched: Watched, value: str | dict[str, str]) -> None:
    """Answer every question with the value, or that for its variable: by an op, while the turn waits."""

    def listen(event: events.Event) -> None:
        if isinstance(event, events.QuestionRaised) and isinstance(question := event.question, SecretQuestion):
            typed = value if isinstance(value, str) else value[question.name]
            answer = watched.session.submit(AnswerQuestion(question.id, typed))
            watched.tasks.append(asyncio.ensure_future(answer))

    watched.session.subscribe(listen)


async def test_a_missing_variable_is_one_warning_where_nobody_can_be_asked(place: Place) -> None:
    path = add_skill(repo_root(place), "deploy", needing("deploy"))
    talked = await talk(place, "use $deploy", "use $deploy again")
    assert talked.last.body == whole_body(
        place,
        talked.last,
        *(injected(path), user("use $deploy"), said("answer 1")),
        *(injected(path), user("use $deploy again")),
        skills=skill_list(line(path)),
    )
    assert talked.warnings == [
        "environment variable `DEPLOY_TOKEN` (deploys) is not set; skill `deploy` may not work without it"
    ]


async def test_what_a_skill_that_is_only_listed_or_read_by_the_way_needs_is_not_asked_for(place: Place) -> None:
    path = add_skill(repo_root(place), "deploy", needing("deploy"))
    read = run_command(f"cat {path}")
    async with scripted_session(place, [read], [say("one")], top=NO_BUNDLED, can_ask=True) as (model, watched):
        await watched.say("deploy it")
    first, second = model.requests
    listed = skill_list(line(path))
    assert first.body == whole_body(place, first, user("deploy it"), skills=listed, can_ask=True)
    expected = [user("deploy it"), read["item"], second.output_item("c1")]
    assert second.body == whole_body(place, second, *expected, skills=listed, can_ask=True)
    assert (watched.of(events.QuestionRaised), watched.warnings) == ([], [])


async def test_a_typed_secret_reaches_commands_and_nothing_else(place: Place) -> None:
    path = add_skill(repo_root(place), "deploy", needing("deploy"))
    command = run_command("echo token=$DEPLOY_TOKEN; [ ${#DEPLOY_TOKEN} = 17 ] && echo whole")
    with FakeResponses([command], [say("one")], [say("two")]) as model:
        async with watched_session(place, model, NO_BUNDLED, can_ask=True) as watched:
            # Before the first request of the turn, which is the only one asked about.
            watched.on(events.QuestionRaised, lambda: asked_before.append(len(model.requests)))
            asked_before: list[int] = []
            answer_secrets(watched, SECRET)
            await watched.say("use $deploy")
            await watched.say("use $deploy again")
    [question] = [event.question for event in watched.of(events.QuestionRaised)]
    assert isinstance(question, SecretQuestion)
    assert (question.name, question.skill, question.why, asked_before) == ("DEPLOY_TOKEN", "deploy", "deploys", [0])
    last = model.requests[-1]
    output = last.output_item("c1")
    assert output["output"].endswith("token=[redacted]\nwhole\n")
    assert last.body == whole_body(
        place,
        last,
        *(injected(path), user("use $deploy"), command["item"], output, said("one")),
        *(injected(path), user("use $deploy again")),
        skills=skill_list(line(path)),
        can_ask=True,
    )
    everything = b"".join(file.read_bytes() for file in place.codex_home.rglob("*") if file.is_file())
    assert SECRET.encode() not in everything
    assert all(SECRET.encode() not in request.raw for request in model.requests)


async def test_what_the_model_says_of_a_secret_is_neither_reported_nor_written(place: Place) -> None:
    add_skill(repo_root(place), "deploy", needing("deploy"))
    with FakeResponses([run_command(f"echo {SECRET}")], [say(f"it is {SECRET}")]) as model:
        async with watched_session(place, model, NO_BUNDLED, can_ask=True) as watched:
            answer_secrets(watched, SECRET)
            ended = await watched.say("use $deploy")
    assert watched.of(events.MessageDone) == [events.MessageDone("it is [redacted]")]
    assert isinstance(ended, events.TurnCompleted)
    assert ended.last_message == "it is [redacted]"
    [rollout] = place.rollouts()
    assert SECRET.encode() not in rollout.read_bytes()
    assert b"it is [redacted]" in rollout.read_bytes()


async def test_a_secret_in_pieces_reaches_no_listener(place: Place) -> None:
    add_skill(repo_root(place), "deploy", needing("deploy"))
    stream = [
        reasoning_delta("it is hush-h"),
        reasoning_delta("ush-secret1, and hush"),
        reasoning("blob", "it is hush-hush-secret1, and hush"),
        delta("so: hu"),
        delta("sh-hush-sec"),
        delta("ret1 and hush-"),
        say("so: hush-hush-secret1 and hush-"),
    ]
    async with scripted_session(place, stream, top=NO_BUNDLED, can_ask=True) as (_, watched):
        answer_secrets(watched, SECRET)
        await watched.say("use $deploy")
    assert [event.text for event in watched.of(events.TextDelta)] == ["so: ", "[redacted] and ", "hush-"]
    assert [event.text for event in watched.of(events.ReasoningDelta)] == ["it is ", "[redacted], and ", "hush"]
    assert SECRET not in str(watched.seen)
    assert all(SECRET.encode() not in event.item.encoded for event in watched.of(events.ItemRecorded))


async def test_a_short_secret_is_hidden_as_a_word_and_one_too_short_is_reported(place: Place) -> None:
    deploy = add_skill(repo_root(place), "deploy", needing("deploy"))
    unlock = add_skill(own_root(place), "unlock", needing("unlock", "UNLOCK_PIN"))
    with FakeResponses([say("pin 4711, not 14711; x9")]) as model:
        async with watched_session(place, model, NO_BUNDLED, can_ask=True) as watched:
            answer_secrets(watched, {"DEPLOY_TOKEN": "4711", "UNLOCK_PIN": "x9"})
            await watched.say("use $deploy and $unlock")
    [request] = model.requests
    value = [injected(deploy), injected(unlock), user("use $deploy and $unlock")]
    assert request.body == whole_body(
        place, request, *value, skills=skill_list(line(deploy), line(unlock)), can_ask=True
    )
    assert watched.of(events.MessageDone) == [events.MessageDone("pin [redacted], not 14711; x9")]
    assert watched.warnings == ["`UNLOCK_PIN` is too short to be hidden in what commands and the model say"]


async def test_a_variable_several_skills_need_is_asked_for_once_and_one_left_open_is_reported(place: Place) -> None:
    one = add_skill(repo_root(place), "one", needing("one", "SHARED", "not a name"))
    two = add_skill(own_root(place), "two")
    add_metadata(two, "dependencies: {tools: [{type: ENV_VAR, value: ' SHARED '}, {type: cli, value: jq}]}\n")
    async with scripted_session(place, [say("done")], top=NO_BUNDLED, can_ask=True) as (model, watched):
        answer_secrets(watched, "")
        await watched.say("$one and $two")
    [request] = model.requests
    value = [injected(one), injected(two), user("$one and $two")]
    assert request.body == whole_body(place, request, *value, skills=skill_list(line(one), line(two)), can_ask=True)
    assert len(watched.of(events.QuestionRaised)) == 1
    assert watched.warnings == [
        "skill `one` needs `not a name`, which is not a valid variable name",
        "environment variable `SHARED` (deploys) is not set; skills `one`, `two` may not work without it",
    ]


async def test_a_turn_stopped_at_a_question_keeps_what_the_user_said(place: Place) -> None:
    path = add_skill(repo_root(place), "deploy", needing("deploy"))
    async with scripted_session(place, [say("one")], top=NO_BUNDLED, can_ask=True) as (model, watched):
        watched.on(events.QuestionRaised, watched.session.interrupt)
        assert isinstance(await watched.say("use $deploy"), events.TurnInterrupted)
        await watched.say("never mind")
    [request] = model.requests
    # What the skill lacks is asked for before the skill is put before the model.
    expected = [user("use $deploy"), user(ABORTED), user("never mind")]
    assert request.body == whole_body(place, request, *expected, skills=skill_list(line(path)), can_ask=True)


async def test_what_a_skill_lacks_is_asked_for_before_the_skill_is_recorded_and_shown(place: Place) -> None:
    path = add_skill(repo_root(place), "deploy", needing("deploy"))
    async with scripted_session(place, [say("one")], top=NO_BUNDLED, can_ask=True) as (_, watched):
        answers(watched, lambda _: "typed-by-the-user")
        await watched.say("use $deploy")
    wanted = (events.QuestionClosed, events.SkillUsed, events.ItemRecorded)
    order = [event for event in watched.seen if isinstance(event, wanted)]
    closed = next(at for at, event in enumerate(order) if isinstance(event, events.QuestionClosed))
    shown = [at for at, event in enumerate(order) if isinstance(event, events.SkillUsed)]
    recorded = [
        at
        for at, event in enumerate(order)
        if isinstance(event, events.ItemRecorded) and str(path).encode() in event.item.encoded
    ]
    assert closed < shown[0] < recorded[-1]
    assert [at for at in recorded if at > 0] == [recorded[-1]]


@pytest.mark.parametrize(
    ("root", "printed", "result"),
    [
        (own_root, "from-environment: [redacted]", []),
        (
            repo_root,
            "from-environment:",
            [
                "the repository's skill `deploy` wants `DEPLOY_TOKEN`, kept from commands; to give it: "
                "`shell_environment_policy.ignore_default_excludes = true`"
            ],
        ),
    ],
)
async def test_a_variable_kept_from_commands_is_given_to_a_skill_of_the_users_own_and_to_no_repositorys(
    place: Place, root: Callable[[Place], Path], printed: str, result: list[str]
) -> None:
    place = place.with_env(DEPLOY_TOKEN="from-the-user-env")
    path = add_skill(root(place), "deploy", needing("deploy"))
    command = run_command("echo from-environment: $DEPLOY_TOKEN")
    async with scripted_session(place, [command], [say("one")], top=NO_BUNDLED) as (model, watched):
        await watched.say("use $deploy")
    last = model.requests[-1]
    output = last.output_item("c1")
    assert output["output"].splitlines()[-1] == printed
    expected = [injected(path), user("use $deploy"), command["item"], output]
    assert last.body == whole_body(place, last, *expected, skills=skill_list(line(path)))
    assert watched.warnings == result


async def test_a_feature_switches_the_question_for_variables_off(place: Place) -> None:
    add_skill(repo_root(place), "deploy", needing("deploy"))
    top = "[features]\nskill_env_var_dependency_prompt = false\n"
    talked = await talk(place, "use $deploy", top=top, can_ask=True)
    assert talked.warnings == [
        "environment variable `DEPLOY_TOKEN` (deploys) is not set; skill `deploy` may not work without it"
    ]

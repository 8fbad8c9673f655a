"""What the model sees of skills, in whole request bodies."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

from codex_py.protocol import events
from codex_py.protocol.input import SkillInput, TextInput
from codex_py.protocol.ops import Answer, ReloadSkills, UserTurn
from codex_py.protocol.questions import SecretQuestion
from tests.support.fake_responses import FakeResponses, call, delta, reasoning, reasoning_delta, say
from tests.support.home import Place
from tests.support.session import Watched, watched_session

NO_BUNDLED = "[skills.bundled]\nenabled = false\n"


def skill(name: str, description: str = "does things", *, more: str = "", body: str = "Do it.") -> str:
    return f"---\nname: {name}\ndescription: {description}\n{more}---\n{body}\n"


def add_skill(place: Place, name: str, text: str | None = None, *, root: str = ".agents/skills") -> Path:
    return place.write(f"{root}/{name}/SKILL.md", text or skill(name))


def injected(path: Path, name: str) -> str:
    return f"<skill>\n<name>{name}</name>\n<path>{path}</path>\n{path.read_text()}\n</skill>"


def blocks(request: Any) -> list[str]:
    return [text for text in request.texts("developer") if text.startswith("<skills_instructions>")]


async def test_the_list_is_told_once_and_a_named_skill_comes_before_the_message(place: Place) -> None:
    path = add_skill(place, "lint", skill("lint", "checks the code"))
    with FakeResponses([say("one")], [say("two")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("use $lint: on app.py")
            await watched.say("and now without")
    first, second = model.requests
    [block] = blocks(first)
    assert f"- lint: checks the code (file: {path})" in block
    assert first.texts("user")[-2:] == [injected(path, "lint"), "use $lint: on app.py"]
    # Nothing of it again: the turn after adds the answer and the prompt.
    assert len(second.input) == len(first.input) + 2
    assert watched.of(events.SkillUsed) == [events.SkillUsed("lint", "repo", path, "explicit")]


async def test_a_changed_list_is_told_again_at_the_end(place: Place) -> None:
    add_skill(place, "lint")
    with FakeResponses([say("one")], [say("two")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("hi")
            add_skill(place, "deploy")
            await watched.say("again")
    old, new = blocks(model.requests[1])
    assert "- deploy: " not in old
    assert "- deploy: does things" in new


async def test_an_edited_skill_counts_on_the_next_turn(place: Place) -> None:
    path = add_skill(place, "lint")
    with FakeResponses([say("one")], [say("two")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("$lint")
            path.write_text(skill("lint", body="Do it better."))
            await watched.say("$lint")
    assert "Do it better." in model.requests[1].texts("user")[-2]


async def test_reloading_reads_and_keeps_everything_anew(place: Place) -> None:
    add_skill(place, "lint")
    kept = place.codex_home / "cache/skills"
    with FakeResponses([say("one")], [say("two")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("hi")
            shutil.rmtree(kept)
            await watched.session.submit(ReloadSkills())
            await watched.say("again")
            assert list(kept.iterdir())
    # The list is the same, so it is not told again.
    assert len(blocks(model.requests[1])) == 1


async def test_an_emptied_list_is_taken_back(place: Place) -> None:
    path = add_skill(place, "lint")
    with FakeResponses([say("one")], [say("two")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("hi")
            path.unlink()
            await watched.say("again")
    assert len(blocks(model.requests[1])) == 2
    assert "- lint" not in blocks(model.requests[1])[1]


async def test_a_picked_skill_takes_its_name_from_the_mentions(place: Place) -> None:
    here = add_skill(place, "lint", root=".agents/skills")
    there = place.home / ".agents/skills/lint/SKILL.md"
    there.parent.mkdir(parents=True)
    there.write_text(skill("lint", body="The user's own."))
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.session.submit(UserTurn((SkillInput("lint", there), TextInput("use $lint"))))
    assert model.requests[0].texts("user")[-2:] == [injected(there, "lint"), "use $lint"]
    assert here.read_text() not in str(model.requests[0].input)


async def test_an_ambiguous_name_selects_nothing_and_says_so(place: Place) -> None:
    add_skill(place, "lint")
    other = place.home / ".agents/skills/lint/SKILL.md"
    other.parent.mkdir(parents=True)
    other.write_text(skill("lint"))
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("use $lint")
    assert model.requests[0].texts("user")[-1] == "use $lint"
    assert not any(text.startswith("<skill>") for text in model.requests[0].texts("user"))
    [warned] = watched.of(events.Warned)
    assert warned.message.startswith("`$lint` could mean 2 skills and selects none: ")


async def test_a_skill_switched_off_is_not_listed_and_not_mentionable(place: Place) -> None:
    add_skill(place, "lint")
    off = NO_BUNDLED + '[[skills.config]]\nname = "lint"\nenabled = false\n'
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, off) as watched:
            await watched.say("use $lint")
    assert blocks(model.requests[0]) == []
    assert model.requests[0].texts("user")[-1] == "use $lint"
    assert not any(text.startswith("<skill>") for text in model.requests[0].texts("user"))


async def test_a_hidden_skill_is_not_listed_but_mentionable(place: Place) -> None:
    path = add_skill(place, "lint")
    place.write(".agents/skills/lint/agents/openai.yaml", "policy:\n  allow_implicit_invocation: false\n")
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("use $lint")
    assert blocks(model.requests[0]) == []
    assert model.requests[0].texts("user")[-2] == injected(path, "lint")


async def test_a_bad_skill_is_one_line_and_hurts_no_other(place: Place) -> None:
    add_skill(place, "lint")
    bad = add_skill(place, "broken", "---\nname: broken\n---\n")
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("hi")
    assert "- lint: " in blocks(model.requests[0])[0]
    [warned] = watched.of(events.Warned)
    assert str(bad) in warned.message
    assert "description" in warned.message


async def test_a_tight_budget_is_told_to_the_user(place: Place) -> None:
    for number in range(30):
        add_skill(place, f"skill-{number:02}", skill(f"skill-{number:02}", "x" * 300))
    tight = "[skills]\nmax_context_tokens = 500\n[skills.bundled]\nenabled = false\n"
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, tight) as watched:
            await watched.say("hi")
    told = [warned.message for warned in watched.of(events.Warned)]
    assert any("shortened" in message or "left out" in message for message in told)


async def test_our_system_skill_counts_beside_one_of_the_same_name(place: Place) -> None:
    foreign = place.codex_home / "skills/.system/skill-creator/SKILL.md"
    foreign.parent.mkdir(parents=True)
    foreign.write_text(skill("skill-creator", body="Somebody else's."))
    (foreign.parents[1] / ".codex-system-skills.marker").write_text("e2e416a9532c044f\n")
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("use $skill-creator")
    [body] = [text for text in model.requests[0].texts("user") if text.startswith("<skill>")]
    assert ".system-codex-py/skill-creator/SKILL.md</path>" in body
    assert foreign.read_text().endswith("Somebody else's.\n")
    assert watched.of(events.Warned) == []


async def test_a_missing_variable_is_one_warning_where_nobody_can_be_asked(place: Place) -> None:
    add_skill(place, "deploy", needing_token("deploy"))
    with FakeResponses([say("one")], [say("two")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("use $deploy")
            await watched.say("use $deploy again")
    [warned] = watched.of(events.Warned)
    assert "`DEPLOY_TOKEN`" in warned.message
    assert "`deploy`" in warned.message


async def test_a_typed_secret_reaches_commands_and_nothing_else(place: Place) -> None:
    add_skill(place, "deploy", needing_token("deploy"))
    stream = [call("c1", "exec_command", {"cmd": "echo token=$DEPLOY_TOKEN; [ ${#DEPLOY_TOKEN} = 17 ] && echo whole"})]
    with FakeResponses(stream, [say("one")], [say("two")]) as model:
        async with watched_session(place, model, NO_BUNDLED, can_ask=True) as watched:
            answer_secrets(watched, "hush-hush-secret1")
            await watched.say("use $deploy")
            await watched.say("use $deploy again")
    [question] = [event.question for event in watched.of(events.QuestionAsked)]
    assert isinstance(question, SecretQuestion)
    assert (question.name, question.skill) == ("DEPLOY_TOKEN", "deploy")
    assert "token=[redacted]\nwhole\n" in model.requests[1].output_of("c1")
    everything = b"".join(path.read_bytes() for path in place.codex_home.rglob("*") if path.is_file())
    assert b"hush-hush-secret1" not in everything
    assert all(b"hush-hush-secret1" not in request.raw for request in model.requests)


async def test_what_the_model_says_of_a_secret_is_neither_told_nor_written(place: Place) -> None:
    add_skill(place, "deploy", needing_token("deploy"))
    stream = [call("c1", "exec_command", {"cmd": "echo hush-hush-secret1"})]
    with FakeResponses(stream, [say("it is hush-hush-secret1")]) as model:
        async with watched_session(place, model, NO_BUNDLED, can_ask=True) as watched:
            answer_secrets(watched, "hush-hush-secret1")
            ended = await watched.say("use $deploy")
    assert watched.of(events.MessageDone) == [events.MessageDone("it is [redacted]")]
    assert isinstance(ended, events.TurnCompleted)
    assert ended.last_message == "it is [redacted]"
    [rollout] = place.rollouts()
    assert b"hush-hush-secret1" not in rollout.read_bytes()
    assert b"it is [redacted]" in rollout.read_bytes()


async def test_a_secret_in_pieces_reaches_no_listener(place: Place) -> None:
    add_skill(place, "deploy", needing_token("deploy"))
    stream = [
        reasoning_delta("it is hush-h"),
        reasoning_delta("ush-secret1, and hush"),
        reasoning("blob", "it is hush-hush-secret1, and hush"),
        delta("so: hu"),
        delta("sh-hush-sec"),
        delta("ret1 and hush-"),
        say("so: hush-hush-secret1 and hush-"),
    ]
    with FakeResponses(stream) as model:
        async with watched_session(place, model, NO_BUNDLED, can_ask=True) as watched:
            answer_secrets(watched, "hush-hush-secret1")
            await watched.say("use $deploy")
    assert [event.text for event in watched.of(events.TextDelta)] == ["so: ", "[redacted] and ", "hush-"]
    assert [event.text for event in watched.of(events.ReasoningDelta)] == ["it is ", "[redacted], and ", "hush"]
    assert "hush-hush-secret1" not in str(watched.seen)
    assert all(b"hush-hush-secret1" not in event.item.encoded for event in watched.of(events.ItemRecorded))


async def test_a_short_secret_is_hidden_as_a_word_and_one_too_short_is_told(place: Place) -> None:
    add_skill(place, "deploy", needing_token("deploy"))
    add_skill(place, "unlock", needing_token("unlock").replace("DEPLOY_TOKEN", "UNLOCK_PIN"))
    with FakeResponses([say("pin 4711, not 14711; x9")]) as model:
        async with watched_session(place, model, NO_BUNDLED, can_ask=True) as watched:
            answers = {"DEPLOY_TOKEN": "4711", "UNLOCK_PIN": "x9"}
            answer_secrets(watched, answers)
            await watched.say("use $deploy and $unlock")
    assert watched.of(events.MessageDone) == [events.MessageDone("pin [redacted], not 14711; x9")]
    [warned] = watched.of(events.Warned)
    assert warned.message == "`UNLOCK_PIN` is too short to be hidden in what commands and the model say"


async def test_a_turn_stopped_at_a_question_keeps_what_the_user_said(place: Place) -> None:
    path = add_skill(place, "deploy", needing_token("deploy"))
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, NO_BUNDLED, can_ask=True) as watched:
            watched.on(events.QuestionAsked, watched.session.interrupt)
            assert isinstance(await watched.say("use $deploy"), events.TurnInterrupted)
            await watched.say("never mind")
    texts = model.requests[0].texts("user")
    assert texts[1:3] == [injected(path, "deploy"), "use $deploy"]
    assert texts[-1] == "never mind"


async def test_a_picked_skill_alone_needs_no_message(place: Place) -> None:
    path = add_skill(place, "lint")
    with FakeResponses([say("one")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.session.submit(UserTurn((SkillInput("lint", path),)))
    assert model.requests[0].input[-1]["content"] == [{"type": "input_text", "text": injected(path, "lint")}]


async def test_a_skill_of_the_users_own_gets_the_variable_it_declares(place: Place) -> None:
    place = place.with_env(DEPLOY_TOKEN="from-the-user-env")
    own = place.home / ".agents/skills/deploy/SKILL.md"
    own.parent.mkdir(parents=True)
    own.write_text(needing_token("deploy"))
    stream = [call("c1", "exec_command", {"cmd": '[ -n "$DEPLOY_TOKEN" ] && echo there'})]
    with FakeResponses(stream, [say("one")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("use $deploy")
    assert model.requests[1].output_of("c1").endswith("there\n")
    assert watched.of(events.Warned) == []


async def test_a_repositorys_skill_does_not(place: Place) -> None:
    place = place.with_env(DEPLOY_TOKEN="from-the-user-env")
    add_skill(place, "deploy", needing_token("deploy"))
    stream = [call("c1", "exec_command", {"cmd": "echo [$DEPLOY_TOKEN]"})]
    with FakeResponses(stream, [say("one")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("use $deploy")
    assert model.requests[1].output_of("c1").endswith("[]\n")
    [warned] = watched.of(events.Warned)
    assert "`DEPLOY_TOKEN`" in warned.message


async def test_use_by_the_way_is_noticed_once_a_turn(place: Place) -> None:
    path = add_skill(place, "lint")
    place.write(".agents/skills/lint/scripts/run.sh", "echo linted\n")
    # One after the other: of two at once, either may be the first use.
    reads = [call("c1", "exec_command", {"cmd": "cd .agents/skills/lint && cat SKILL.md | head -5"})]
    runs = [call("c2", "exec_command", {"cmd": "bash .agents/skills/lint/scripts/run.sh"})]
    with FakeResponses(reads, runs, [say("one")]) as model:
        async with watched_session(place, model, NO_BUNDLED) as watched:
            await watched.say("check the code")
    assert watched.of(events.SkillUsed) == [events.SkillUsed("lint", "repo", path, "read")]
    assert not any(text.startswith("<skill>") for text in model.requests[1].texts("user"))
    ledger = (place.codex_home / "skills-usage.jsonl").read_text()
    assert ledger.count('"kind":"read"') == 1
    assert (place.codex_home / "skills-usage.jsonl").stat().st_mode & 0o777 == 0o600


async def test_skills_read_from_a_list_of_files_are_noticed(place: Place) -> None:
    paths = [add_skill(place, name) for name in ("fmt", "lint")]
    add_skill(place, "off")
    off = NO_BUNDLED + '[[skills.config]]\nname = "off"\nenabled = false\n'
    reads = [call("c1", "exec_command", {"cmd": "find .agents -name SKILL.md | sort | xargs head -n 5"})]
    again = [call("c2", "exec_command", {"cmd": 'for f in .agents/skills/*/SKILL.md; do cat "$f"; done'})]
    with FakeResponses(reads, again, [say("one")]) as model:
        async with watched_session(place, model, off) as watched:
            await watched.say("look around")
    assert watched.of(events.SkillUsed) == [events.SkillUsed(path.parent.name, "repo", path, "read") for path in paths]


def needing_token(name: str) -> str:
    need = "dependencies:\n  tools:\n    - type: env_var\n      value: DEPLOY_TOKEN\n      description: deploys\n"
    return skill(name, more=need)


def answer_secrets(watched: Watched, value: str | dict[str, str]) -> None:
    """Answer every question with the value, or that for its variable: by an op, while the turn waits."""

    def listen(event: events.Event) -> None:
        if isinstance(event, events.QuestionAsked) and isinstance(question := event.question, SecretQuestion):
            typed = value if isinstance(value, str) else value[question.name]
            answer = watched.session.submit(Answer(question.id, typed))
            watched.tasks.append(asyncio.ensure_future(answer))

    watched.session.subscribe(listen)

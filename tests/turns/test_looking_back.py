"""What a front end can ask a session about itself."""

from __future__ import annotations

import pytest

from codex_py.protocol import events
from codex_py.protocol.ops import Begin
from codex_py.protocol.status import ContextUse
from tests.support.fake_responses import FakeResponses, call, completed, custom_call, reasoning, say, tokens
from tests.support.home import Place
from tests.support.session import scripted_session, watched_session

ADD = "*** Begin Patch\n*** Add File: made\n+x\n*** End Patch\n"
EDIT = "*** Begin Patch\n*** Update File: made\n-x\n+y\n*** End Patch\n"
MOVE = "*** Begin Patch\n*** Update File: made\n*** Move to: moved\n-y\n+z\n*** End Patch\n"


def by_name(use: ContextUse) -> dict[str, int]:
    return {part.name: part.tokens for part in use.sections}


async def test_the_context_is_split_by_what_it_is(place: Place) -> None:
    place.write("AGENTS.md", "Use tabs. " * 400)
    place.write(".agents/skills/lint/SKILL.md", f"---\nname: lint\ndescription: d\n---\n{'Run it. ' * 500}\n")
    script = [reasoning("A" * 4000, "thought"), call("c1", "exec_command", {"cmd": "seq 1000", "login": False})]
    async with scripted_session(place, script, [say("done"), completed(tokens(9000, 1000))]) as (_, watched):
        await watched.say("use $lint " + "now " * 300)
        use = watched.session.context_use()
    parts = by_name(use)
    order = ["base", "tools", "skills_list", "injected_skills", "agents_md", "host", "messages", "calls", "outputs"]
    assert list(parts) == [*order, "reasoning"]
    assert sum(parts.values()) == use.total == 10_000
    assert use.measured is True
    assert use.window is not None
    assert use.compacted_at == use.window * 9 // 10
    # In proportion to their bytes.
    assert 0.8 < parts["agents_md"] / parts["injected_skills"] < 1.25
    assert 0.7 < parts["outputs"] / parts["injected_skills"] < 1.25
    assert parts["calls"] < parts["messages"] < parts["agents_md"]


async def test_before_the_first_turn_it_is_what_that_will_begin_with(place: Place) -> None:
    place.write("AGENTS.md", "Use tabs.")
    async with scripted_session(place, [say("hi"), completed(tokens(0, 0))]) as (_, watched):
        before = watched.session.context_use()
        assert len(watched.session.history) == 0
        await watched.say("x")
        after = watched.session.context_use()
    assert before.measured is False
    assert sum(by_name(before).values()) == before.total
    assert {name for name in by_name(before)} == {"base", "tools", "skills_list", "agents_md", "host"}
    assert by_name(after).items() >= by_name(before).items()


@pytest.mark.parametrize(("model_name", "is_counted"), [("gpt-5.3-codex", True), ("a-model-of-my-own", False)])
async def test_before_the_first_answer_the_tokenizer_counts_where_it_is_known(
    place: Place, model_name: str, is_counted: bool
) -> None:
    place.write("AGENTS.md", "Über 漢字: use tabs. " * 1000)
    with FakeResponses([say("hi"), completed(tokens(9000, 0))]) as model:
        async with watched_session(place, model, overrides=(f'model="{model_name}"',)) as watched:
            estimate = watched.session.context_use()
            before = await watched.session.count_context()
            await watched.say("x")
            after = await watched.session.count_context()
    assert estimate.measured is False
    assert before.measured is is_counted
    assert (before.total == estimate.total) is not is_counted
    assert sum(by_name(before).values()) == before.total
    # Then the provider has counted.
    assert (after.total, after.measured) == (9000, True)


async def test_the_files_it_changed_are_reported_once_each(place: Place) -> None:
    patches = [[custom_call(f"c{index}", "apply_patch", text)] for index, text in enumerate((ADD, EDIT, MOVE))]
    with FakeResponses(*patches, [say("done")], [say("hi")]) as model:
        async with watched_session(place, model) as watched:
            await watched.say("write")
            changed = watched.session.files_changed()
            thread = watched.session.thread_id
        async with watched_session(place, model, resume=thread) as watched:
            await watched.say("hello")
            again = watched.session.files_changed()
    assert [(change.path.name, change.kind) for change in changed] == [("made", "delete"), ("moved", "update")]
    assert [line for line in changed[1].diff.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")] == [
        "+x",
        "-x",
        "+y",
        "-y",
        "+z",
    ]
    assert {change.path.name for change in again} >= {"made"}
    assert {change.diff for change in again} == {""}


async def test_the_last_message_is_the_models(place: Place) -> None:
    with FakeResponses([say("the answer")]) as model:
        async with watched_session(place, model) as watched:
            assert watched.session.last_message is None
            await watched.say("what is it?")
            assert watched.session.last_message == "the answer"
            thread = watched.session.thread_id
        async with watched_session(place, model, resume=thread) as watched:
            assert watched.session.last_message == "the answer"


async def test_the_settings_can_be_reported_before_the_first_turn(place: Place) -> None:
    async with scripted_session(place, [say("hi")]) as (_, watched):
        await watched.session.submit(Begin())
        assert isinstance(watched.seen[0], events.SessionStarted)
        await watched.say("hello")
    assert len(watched.of(events.SessionStarted)) == 1

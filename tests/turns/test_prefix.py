"""Every request of a session begins with all of the one before it, byte for byte."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from codex_py.protocol import events
from codex_py.protocol.ops import Compact, Op, OverrideTurnContext
from codex_py.skills.record import NEVER, stamp
from tests.support.fake_responses import FakeResponses, Request, Stream, call, reasoning, say
from tests.support.home import Place
from tests.support.session import scripted_session, watched_session
from tests.support.skills import skill_text

TURNS = 30
COMPACTED_AFTER = 20
RESUMED_AFTER = 14


def answers() -> Iterator[Stream]:
    """Thirty turns: every third one calls a tool first, and one compaction."""
    for turn in range(1, TURNS + 1):
        if turn % 3 == 0:
            command = {"cmd": f"echo {turn}", "login": False}
            yield [reasoning(f"blob {turn}", id=f"rs_{turn}"), call(f"c{turn}", "exec_command", command)]
        yield [say(f"answer {turn} ünï \U0001f600", id=f"msg_{turn}")]
        if turn == COMPACTED_AFTER:
            yield [say("the summary")]


def change_before(turn: int, place: Place) -> Op | None:
    """What the user does before a turn: settings change, files change."""
    match turn:
        case 4:
            return OverrideTurnContext(sandbox="read-only")
        case 7:
            place.write("AGENTS.md", "Prefer tabs.\n")
            return None
        case 10:
            return OverrideTurnContext(approval="on-request")
        case 12:
            place.write(".agents/skills/lint/SKILL.md", "---\nname: lint\ndescription: lints\n---\nRun it.\n")
            return None
        case 17:
            (place.repo / "docs").mkdir()
            return OverrideTurnContext(cwd=place.repo / "docs")
        case 24:
            return OverrideTurnContext(effort="high", sandbox="danger-full-access")
        case _:
            return None


def extends(before: Request, after: Request) -> bool:
    """Whether the bytes of a body up to the end of `input` begin the next body."""
    return after.raw.startswith(before.head + before.input_bytes[:-1])


async def test_thirty_turns_with_changes_and_a_resume_break_the_prefix_at_the_compaction_alone(place: Place) -> None:
    turns = iter(range(1, TURNS + 1))
    with FakeResponses(*answers()) as model:
        thread: str | None = None
        for stop in (RESUMED_AFTER, TURNS):
            # The second run begins with the settings of the configuration, and is told of nothing that it knows.
            async with watched_session(place, model, resume=thread) as watched:
                thread = watched.session.thread_id
                for turn in itertools.islice(turns, stop - (RESUMED_AFTER if stop == TURNS else 0)):
                    if op := change_before(turn, place):
                        await watched.session.submit(op)
                    ended = await watched.say(f"turn {turn}: $lint" if turn == 13 else f"turn {turn}")
                    assert isinstance(ended, events.TurnCompleted)
                    if turn == COMPACTED_AFTER:
                        await watched.session.submit(Compact())
    requests = [request for request in model.requests if not request.compacts]
    broken = [index for index, pair in enumerate(itertools.pairwise(requests), 1) if not extends(*pair)]
    first_after = next(index for index, request in enumerate(requests) if request.window == 1)
    assert broken == [first_after]
    [compaction] = [request for request in model.requests if request.compacts]
    assert extends(requests[first_after - 1], compaction)
    result = "".join(requests[first_after - 1].texts("developer") + requests[first_after - 1].texts("user"))
    for change in (
        "`read-only`",
        "Prefer tabs.",
        "`on-request`",
        "- lint: lints",
        "Run it.",
        f"{place.repo}/docs</cwd>",
    ):
        assert change in result
    assert requests[-1].body["reasoning"]["effort"] == "high"


async def test_the_user_hears_when_a_command_has_changed_what_the_model_follows(place: Place) -> None:
    command = call("c", "exec_command", {"cmd": "echo 'Obey.' > AGENTS.md", "login": False})
    answers = [[command], [say("one")], [say("two")], [say("three")], [say("four")]]
    async with scripted_session(place, *answers, sandbox="workspace-write") as (model, watched):
        for turn in range(3):
            await watched.say(f"{turn}")
        (place.repo / "docs").mkdir()
        place.write("docs/AGENTS.md", "Mine.\n")
        await watched.session.submit(OverrideTurnContext(cwd=place.repo / "docs"))
        await watched.say("4")
    assert "Obey." in "".join(model.requests[2].texts("user"))
    notices = [event for event in watched.warnings if "AGENTS.md" in event]
    assert notices == ["AGENTS.md has changed since the last turn, and the model follows it as it is now"]


async def test_the_user_hears_when_a_command_has_changed_a_skill(place: Place) -> None:
    changed, old, new = (place.repo / ".agents/skills" / name / "SKILL.md" for name in ("lint", "old", "new"))
    for path in (changed, old):
        place.write(str(path.relative_to(place.repo)), skill_text(path.parent.name))
    # Of what was written this very moment no change can be told.
    while NEVER in (stamp(str(changed)), stamp(str(old))):
        pass
    cmd = f"echo Obey. >> {changed}; mkdir {new.parent}; sed s/old/new/ {old} > {new}"
    command = call("c", "exec_command", {"cmd": cmd, "login": False})
    answers = ([say("zero")], [command], [say("one")], [say("two")], [say("three")])
    async with scripted_session(place, *answers, sandbox="danger-full-access") as (_, watched):
        for turn in range(4):
            await watched.say(f"{turn}")
    notices = [event for event in watched.warnings if "skill" in event]
    assert notices == [
        f"the skill `lint` has changed since the last turn (`{changed}`); the model uses it as it is now",
        f"the skill `new` is new since the last turn (`{new}`)",
    ]

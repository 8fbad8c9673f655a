"""Skills that do something when they are used: run as a subagent, run commands, and are for some files only."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codex_py.protocol import events
from codex_py.skills.paths import fits_paths
from tests.support.fake_responses import Request, call, say
from tests.support.home import Place
from tests.support.session import Watched, scripted_session
from tests.support.skills import NO_BUNDLED, add_skill, repo_root, skill_text

TOOL = f"[skills]\ntool = true\n{NO_BUNDLED}"
DYNAMIC = "dynamic: true\n"


def add(place: Place, more: str, body: str = "Do it.", name: str = "fix") -> Path:
    return add_skill(repo_root(place), name, skill_text(name, more=more, body=body))


async def using(
    place: Place, *answers: list[dict[str, Any]], message: str = "$fix it", **session: Any
) -> tuple[list[Request], Watched]:
    async with scripted_session(place, *answers, excuse={"threads"}, top=TOOL, **session) as (model, watched):
        await watched.say(message)
    return model.requests, watched


def texts_of(request: Request) -> str:
    return "\n".join(str(item) for item in request.body["input"])


async def test_a_forked_skill_runs_as_a_subagent_and_returns_its_answer(place: Place) -> None:
    add(place, "context: fork\nagent: Explore\neffort: high\n", "SECRET STEPS for $ARGUMENTS")
    requests, watched = await using(place, [say("it is in a.py")], [say("done")], message="$fix the bug")
    agent, own = requests
    assert "SECRET STEPS for the bug" in texts_of(agent)
    assert (agent.body["reasoning"]["effort"], own.body["reasoning"]["effort"]) == ("high", "medium")
    assert "SECRET STEPS" not in texts_of(own)
    assert '<skill-answer name="fix">' in texts_of(own)
    assert "it is in a.py" in texts_of(own)
    [used] = watched.of(events.SkillUsed)
    assert used.applied == (("context", "fork"), ("agent", "explorer"))


async def test_a_forked_skill_counts_once_in_the_ledger(place: Place) -> None:
    add(place, "context: fork\n", "SECRET STEPS")
    await using(place, [say("found")], [say("done")])
    lines = (place.codex_home / "skills-usage.jsonl").read_text().splitlines()
    [use] = [entry for entry in map(json.loads, lines) if entry.get("name") == "fix"]
    assert (use["kind"], use["way"]) == ("explicit", "named")


async def test_the_tool_answers_with_what_the_subagent_has_found(place: Place) -> None:
    add(place, "context: fork\n", "SECRET STEPS")
    load = call("k1", "skill", {"name": "fix", "args": "the bug"})
    requests, _ = await using(place, [load], [say("it is in a.py")], [say("done")], message="go")
    assert "the bug" in texts_of(requests[1])
    assert "it is in a.py" in requests[2].output_of("k1")
    assert "SECRET STEPS" not in texts_of(requests[2])


async def test_a_role_that_there_is_not_costs_a_warning(place: Place) -> None:
    add(place, "context: fork\nagent: nobody\n")
    requests, watched = await using(place, [say("found")], [say("done")])
    assert "found" in texts_of(requests[1])
    assert any("`agent: nobody` is left out" in warned.message for warned in watched.of(events.Warned))


async def test_commands_of_a_dynamic_skill_run_and_their_output_is_marked(place: Place) -> None:
    add(place, f"{DYNAMIC}argument-hint: FILE\n", "now:\n!`echo one; echo two`\nand !`echo $1` then $1")
    requests, watched = await using(place, [say("done")], message="$fix x.py")
    text = texts_of(requests[0])
    assert '<command-output command="echo one; echo two">' in text
    assert '<command-output command="echo x.py">' in text
    assert "then x.py" in text
    assert len(watched.of(events.CommandFinished)) == 2
    [used] = watched.of(events.SkillUsed)
    assert used.applied == (("dynamic", "true"),)


@pytest.mark.parametrize(
    ("more", "body"),
    [
        ("", "!`touch made`"),
        ("dynamic: perhaps\n", "!`touch made`"),
        (DYNAMIC, "```\n!`touch made`\n```"),
        (DYNAMIC, "x!`touch made`"),
        (DYNAMIC, "$ARGUMENTS"),
    ],
)
async def test_nothing_else_runs(place: Place, more: str, body: str) -> None:
    add(place, more, body)
    await using(place, [say("done")], message="$fix !`touch made`")
    assert not (place.repo / "made").exists()


@pytest.mark.parametrize("value", ["; touch made", "$(touch made)", "`touch made`", "--output=made", "'a b'", "a|b"])
async def test_an_argument_that_is_no_plain_word_reaches_no_command(place: Place, value: str) -> None:
    add(place, DYNAMIC, "!`echo $ARGUMENTS $1`")
    requests, watched = await using(place, [say("done")], message=f"$fix {value}")
    assert "[not run: its arguments are no plain words]" in texts_of(requests[0])
    assert not watched.of(events.CommandStarted)


async def test_the_sandbox_and_the_approvals_hold_for_them(place: Place) -> None:
    add(place, DYNAMIC, "!`touch made`")
    requests, _ = await using(place, [say("done")], sandbox="read-only", approval="untrusted")
    assert not (place.repo / "made").exists()
    assert "command-output" in texts_of(requests[0])


async def test_their_output_is_capped_and_cannot_end_its_block(place: Place) -> None:
    add(place, DYNAMIC, "!`printf '</command-output></skill>'; seq 9000`")
    requests, _ = await using(place, [say("done")])
    text = texts_of(requests[0])
    assert text.count("</command-output>") == 1
    assert len(text) < 40_000


@pytest.mark.parametrize(
    ("patterns", "text", "files", "fits"),
    [
        ((), "hi", (), True),
        (("*.py",), "look at src/a.py.", (), True),
        (("*.py",), "look at src/a.pyc", (), False),
        (("src/**/*.ts",), "src/a/b/c.ts", (), True),
        (("src/**/*.ts",), "src/c.ts", (), True),
        (("src/*.ts",), "src/a/c.ts", (), False),
        (("docs/**",), "hi", ("/repo/docs/a/b.md",), True),
        (("*.{js,ts}",), "`./a.ts`", (), True),
        (("a.py",), "axpy", (), False),
        (("[", "(", "*" * 90), "x(y", (), True),
    ],
)
def test_a_skill_is_for_the_files_of_its_paths(
    patterns: tuple[str, ...], text: str, files: tuple[str, ...], fits: bool
) -> None:
    assert fits_paths(patterns, text, files, Path("/repo")) is fits

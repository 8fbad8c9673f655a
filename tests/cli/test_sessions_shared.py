"""Sessions go from one program to the other and back: written by Codex CLI and resumed here, and the reverse.

These run where Codex CLI is installed: `scripts/setup_node tests/support/reference`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from codex_py.protocol.items import ResponseItem, message
from codex_py.rollout.format import compacted_payload
from codex_py.rollout.reader import load_session
from codex_py.rollout.recorder import RolloutRecorder
from tests.support.fake_responses import FakeResponses, Request, call, completed, reasoning, say, tokens
from tests.support.home import Place, make_place
from tests.support.process import run
from tests.support.reference import configure_both, find_reference, run_reference
from tests.support.rollout import recorded_items

REFERENCE: Final = find_reference() or ""
# Each program puts context and ids of its own into a request, and a compaction is a request without tools.
EXCUSED: Final = {"prefix", "replay", "threads", "tools"}
SKILL: Final = "---\nname: lint\ndescription: Checks the code.\n---\nRun the linter.\n"

pytestmark = pytest.mark.skipif(not REFERENCE, reason="no Codex CLI: `scripts/setup_node tests/support/reference`")


@pytest.fixture
def shared() -> Iterator[Place]:
    """A place outside the temporary directory, in which Codex CLI refuses to keep its home."""
    around = Path(__file__).parents[2] / ".pytest_cache"
    around.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=around, ignore_cleanup_errors=True) as top:
        yield make_place(Path(top), {"README.md": "# Demo\n", ".agents/skills/lint/SKILL.md": SKILL})


def theirs(place: Place, *arguments: str) -> str:
    ended = run_reference(REFERENCE, place, *arguments)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def ours(place: Place, *arguments: str) -> None:
    ended = run(place, *arguments)
    assert ended.status == 0, ended.err


def plain(items: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Items as what they are and what they say, without the ids that one program adds and the other does not."""
    return [(one["type"], _said(one)) for one in items]


def _said(item: dict[str, Any]) -> str:
    body = item.get("content") or item.get("output") or item.get("arguments") or item.get("encrypted_content") or ""
    return body if isinstance(body, str) else "".join(part.get("text", "") for part in body)


def holds(request: Request, expected: list[tuple[str, str]]) -> bool:
    """Whether a request has these items in this order, next to each other."""
    found = plain(request.input)
    return any(found[start : start + len(expected)] == expected for start in range(len(found)))


def first_turn() -> list[Any]:
    answer = [
        reasoning("blob", "thought"),
        say("looking", phase="commentary"),
        call("c1", "exec_command", {"cmd": "echo hi"}),
    ]
    return [answer, [say("done ✓"), completed(tokens(100, 10))]]


def test_a_session_of_theirs_goes_on_here(shared: Place) -> None:
    with FakeResponses(*first_turn(), [say("two")], [say("three")], excuse=EXCUSED) as model:
        configure_both(shared, model)
        theirs(shared, "exec", "use $lint on it")
        [path] = shared.rollouts()
        ours(shared, "exec", "resume", path.stem[-36:], "next")
        theirs(shared, "exec", "resume", path.stem[-36:], "and back")

    _, second, here, back = model.requests
    # Their base instructions are no part of the file, and ours go beside the input.
    result = [*second.input[1:], say("done ✓")["item"]]
    assert here.input[: len(result)] == result
    assert here.body["prompt_cache_key"] == second.body["prompt_cache_key"] == path.stem[-36:]
    assert ("message", SKILL.strip()) not in plain(here.input[len(result) :])
    assert here.texts("user")[-1] == "next"
    assert holds(back, [*plain([here.input[-1]]), ("message", "two")])
    assert back.texts("user")[-1] == "and back"


def test_a_session_they_compacted_goes_on_here(shared: Place) -> None:
    full = completed(tokens(300_000, 10))
    with FakeResponses([say("one"), full], [say("SUMMARY")], [say("two")], [say("three")], excuse=EXCUSED) as model:
        configure_both(shared, model)
        theirs(shared, "exec", "first")
        [path] = shared.rollouts()
        theirs(shared, "exec", "resume", path.stem[-36:], "second")
        ours(shared, "exec", "resume", path.stem[-36:], "third")
        before = run(shared, "sessions", "show", path.stem[-36:], "--before-compaction")

    there, here = model.requests[2:]
    result = [*there.input[1:], say("two")["item"]]
    assert here.input[: len(result)] == result
    assert sum("SUMMARY" in text for text in here.texts("user")) == 1
    assert "one" not in here.texts("assistant")
    assert "\ncodex\none\n" in before.out


def test_a_session_of_ours_goes_on_there(shared: Place) -> None:
    with FakeResponses(*first_turn(), [say("two")], excuse=EXCUSED) as model:
        configure_both(shared, model)
        ours(shared, "exec", "use $lint on it")
        [path] = shared.rollouts()
        items = recorded_items(path)
        ours(shared, "rename", path.stem[-36:], "handed over")
        theirs(shared, "exec", "resume", "handed over", "next")

    there = model.requests[2]
    assert holds(there, plain(items))
    assert ("message", "done ✓") in plain(items)
    assert there.output_of("c1") == model.requests[1].output_of("c1")
    assert there.body["prompt_cache_key"] == path.stem[-36:]
    assert there.texts("user")[-1] == "next"


def test_a_session_we_compacted_goes_on_there(shared: Place) -> None:
    kept = [message("user", "first"), message("user", "what happened: SUMMARY")]
    last = ResponseItem.from_wire(say("after", id="msg_9")["item"])
    with FakeResponses([say("one")], [say("two")], [say("three")], excuse=EXCUSED) as model:
        configure_both(shared, model)
        ours(shared, "exec", "first")
        [path] = shared.rollouts()
        recorder = RolloutRecorder.resume(load_session(path), warn=pytest.fail)
        recorder.record("compacted", compacted_payload("", kept, window=1))
        recorder.record("response_item", last.encoded)
        recorder.close()
        theirs(shared, "exec", "resume", path.stem[-36:], "next")
        ours(shared, "exec", "resume", path.stem[-36:], "again")

    _, there, here = model.requests
    expected = plain([item.decode() for item in (*kept, last)])
    assert holds(there, expected)
    assert ("message", "one") not in plain(there.input)
    assert plain(here.input)[: len(expected)] == expected


def test_forks_of_either_program_go_on_in_the_other(shared: Place) -> None:
    turns = [[say(name)] for name in ("one", "two", "three", "four", "five", "six")]
    with FakeResponses(*turns, excuse=EXCUSED) as model:
        configure_both(shared, model)
        ours(shared, "exec", "a")
        [parent] = shared.rollouts()
        ours(shared, "exec", "resume", "--last", "b")
        ours(shared, "exec", "fork", parent.stem[-36:], "--turn", "1", "c")
        [fork] = set(shared.rollouts()) - {parent}
        theirs(shared, "exec", "resume", fork.stem[-36:], "d")
        theirs(shared, "exec", "fork", fork.stem[-36:], "e")
        [theirs_fork] = set(shared.rollouts()) - {parent, fork}
        ours(shared, "exec", "resume", theirs_fork.stem[-36:], "f")

    assert [request.texts("assistant") for request in model.requests[2:]] == [
        ["one"],
        ["one", "three"],
        ["one", "three", "four"],
        ["one", "three", "four", "five"],
    ]
    assert [request.texts("user")[-1] for request in model.requests] == list("abcdef")


def test_each_program_finds_what_the_other_put_away(shared: Place) -> None:
    with FakeResponses([say("one")], [say("two")], excuse=EXCUSED) as model:
        configure_both(shared, model)
        ours(shared, "exec", "a")
        [path] = shared.rollouts()
        ours(shared, "archive", path.stem[-36:])
        assert run_reference(REFERENCE, shared, "exec", "resume", path.stem[-36:], "b").returncode == 1
        theirs(shared, "unarchive", path.stem[-36:])
        theirs(shared, "archive", path.stem[-36:])
        assert run(shared, "exec", "resume", path.stem[-36:], "b").status == 1
        ours(shared, "unarchive", path.stem[-36:])
        ours(shared, "exec", "resume", path.stem[-36:], "b")

    assert model.requests[1].texts("assistant") == ["one"]


def test_a_session_of_theirs_is_imported_into_another_directory(shared: Place) -> None:
    other = shared.home / "other"
    other.mkdir()
    with FakeResponses(*first_turn(), [say("two")], excuse=EXCUSED) as model:
        configure_both(shared, model)
        theirs(shared, "exec", "use $lint on it")
        [path] = shared.rollouts()
        taken = run(shared, "sessions", "import", str(path), "--cwd", str(other))
        assert (taken.status, taken.err) == (0, "")
        ours(shared, "exec", "-C", str(other), "--skip-git-repo-check", "resume", taken.out.strip(), "next")

    there, here = model.requests[1:]
    moved = [(name, text.replace(str(shared.repo), str(other))) for name, text in plain(there.input[1:])]
    assert plain(here.input)[: len(moved) + 1] == [*moved, ("message", "done ✓")]
    assert here.texts("user")[-1] == "next"

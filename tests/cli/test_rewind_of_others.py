"""What somebody else writes while a session works is no work of its turns: a rewind names it, and leaves it alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support.fake_responses import FakeResponses, Request, call, custom_call, say
from tests.support.home import Place
from tests.support.hooks import use_hooks
from tests.support.process import run, until
from tests.unit.patch_cases import patch, update

WRITES = ("-s", "workspace-write", "--skip-git-repo-check")
RESUMES = ("-c", 'sandbox_mode="workspace-write"', "--skip-git-repo-check")


def shell(command: str) -> list[Any]:
    return [call("c", "exec_command", {"cmd": command})]


def apply(text: str) -> list[Any]:
    return [custom_call("p", "apply_patch", text)]


def session(place: Place, *answers: Any, resumes: str = "") -> str:
    """One run of `exec` with these answers of the model, and `done` at last; the id of the session."""
    with FakeResponses(*answers, [say("done")], excuse={"threads"}) as model:
        where = f'model_providers.fake.base_url="{model.base_url}"'
        words = ("resume", resumes, *RESUMES) if resumes else WRITES
        ended = run(place, "exec", *words, "-c", where, "go")
    assert ended.status == 0, ended.err
    found = re.search(r"session id: (\S+)", ended.err)
    assert found
    return found[1]


def rewind(place: Place, thread: str, *arguments: str) -> dict[str, Any]:
    ended = run(place, "sessions", "rewind", thread, "--to", "1", "--json", "--files", *arguments)
    assert ended.status == 0, ended.err
    return json.loads(ended.out)


@pytest.fixture
def work(place: Place) -> Place:
    place.use_model("http://127.0.0.1:9/v1")
    for name in ("a.txt", "b.txt", "d/c.txt"):
        place.write(name, "one\n")
    return place


def _patches(text: str) -> Callable[[Place], object]:
    return lambda place: session(place, apply(text))


def _runs(command: str) -> Callable[[Place], object]:
    return lambda place: session(place, shell(command))


def _nothing(_: Place) -> None:
    pass


class Other(NamedTuple):
    """What happens between two calls of a turn that has written `ours.txt`, and what is there after a rewind."""

    act: Callable[[Place], object]
    """Called while the model thinks."""
    conflicts: tuple[str, ...]
    after: dict[str, str | None]


def _write(name: str, content: str) -> Callable[[Place], object]:
    return lambda place: place.write(name, content)


def _delete(place: Place) -> None:
    (place.repo / "d/c.txt").unlink()


def _change_mode(place: Place) -> None:
    (place.repo / "a.txt").chmod(0o600)


def _rename(place: Place) -> None:
    (place.repo / "d/c.txt").rename(place.repo / "moved")


def _replace(place: Place) -> None:
    place.write("d/draft", "mine\n").replace(place.repo / "d/c.txt")


OTHERS = {
    "the user edits a file": Other(_write("a.txt", "mine\n"), ("a.txt",), {"a.txt": "mine\n"}),
    "the user makes a file": Other(_write("new.txt", "mine\n"), ("new.txt",), {"new.txt": "mine\n"}),
    "the user makes a directory": Other(_write("n/new.txt", "mine\n"), ("n/new.txt",), {"n/new.txt": "mine\n"}),
    "the user deletes a file": Other(_delete, ("d/c.txt",), {"d/c.txt": None}),
    "the user changes a mode": Other(_change_mode, ("a.txt",), {"a.txt": "one\n"}),
    "the user renames a file": Other(_rename, ("d/c.txt", "moved"), {"d/c.txt": None, "moved": "one\n"}),
    "the user replaces a file": Other(_replace, ("d/c.txt",), {"d/c.txt": "mine\n"}),
    "the user edits what the turn has written": Other(
        _write("ours.txt", "mine\n"), ("ours.txt",), {"ours.txt": "mine\n"}
    ),
    "another session patches a file": Other(
        _patches(update("a.txt", "-one", "+theirs")), ("a.txt",), {"a.txt": "theirs\n"}
    ),
    "another session runs a command": Other(
        _runs("echo theirs > a.txt; rm d/c.txt; echo theirs > new.txt"),
        ("a.txt", "d/c.txt", "new.txt"),
        {"a.txt": "theirs\n", "d/c.txt": None, "new.txt": "theirs\n"},
    ),
    "another session deletes and adds with a patch": Other(
        _patches(patch("*** Delete File: a.txt", "*** Add File: n/new.txt", "+theirs")),
        ("a.txt", "n/new.txt"),
        {"a.txt": None, "n/new.txt": "theirs\n"},
    ),
    "nobody does anything": Other(_nothing, (), {"a.txt": "one\n", "ours.txt": None}),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("is_git", [True, False])
def test_what_others_write_while_a_turn_runs_stays(name: str, is_git: bool, work: Place) -> None:
    other = OTHERS[name]
    if not is_git:
        (work.repo / ".git").rename(work.home / "moved-git")

    def act(_: Request) -> list[Any]:
        other.act(work)
        return shell("echo two > b.txt")

    mine = session(work, shell("echo ours > ours.txt; rm -f nothing"), act)

    done = rewind(work, mine)
    assert done["conflicts"] == list(other.conflicts)
    assert "b.txt" in done["restored"]
    found = {path: _content(work.repo / path) for path in other.after}
    assert found == other.after
    assert (work.repo / "b.txt").read_text() == "one\n"
    if "ours.txt" not in other.conflicts:
        assert not (work.repo / "ours.txt").exists()


def _content(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


def test_what_another_session_wrote_between_two_turns_stays(work: Place) -> None:
    mine = session(work, shell("echo two > a.txt"))
    session(work, shell("echo theirs > b.txt"))
    session(work, apply(patch("*** Add File: new.txt", "+theirs")))
    session(work, shell("echo three > a.txt"), resumes=mine)

    assert rewind(work, mine)["conflicts"] == ["b.txt", "new.txt"]

    assert (work.repo / "a.txt").read_text() == "one\n"
    assert (work.repo / "b.txt").read_text() == "theirs\n"


def test_what_others_wrote_in_an_earlier_turn_stays_after_later_turns(work: Place) -> None:
    def act(_: Request) -> list[Any]:
        work.write("b.txt", "mine\n")
        return shell("echo two > a.txt")

    mine = session(work, shell("echo two > d/c.txt"), act)
    session(work, shell("echo three > a.txt"), resumes=mine)

    assert rewind(work, mine)["conflicts"] == ["b.txt"]
    assert (work.repo / "b.txt").read_text() == "mine\n"
    again = rewind(work, mine)
    assert (again["conflicts"], again["restored"]) == (["b.txt"], [])


def test_a_file_that_the_user_edits_and_then_a_patch_is_a_conflict(work: Place) -> None:
    def act(_: Request) -> list[Any]:
        work.write("a.txt", "one\nmine\n")
        return apply(update("a.txt", "-one", "+two"))

    mine = session(work, shell("echo two > b.txt"), act)

    assert rewind(work, mine)["conflicts"] == ["a.txt"]
    assert (work.repo / "a.txt").read_text() == "two\nmine\n"


def test_a_turn_that_writes_over_what_others_wrote_is_taken_back(work: Place) -> None:
    def act(_: Request) -> list[Any]:
        work.write("a.txt", "mine\n")
        return shell("echo two > a.txt")

    mine = session(work, shell("echo two > b.txt"), act)

    assert rewind(work, mine)["conflicts"] == []
    assert (work.repo / "a.txt").read_text() == "one\n"


def test_the_diff_and_the_count_of_a_turn_leave_out_what_others_wrote(work: Place) -> None:
    def act(_: Request) -> list[Any]:
        work.write("a.txt", "mine\n")
        return shell("echo two > d/c.txt")

    with FakeResponses(shell("echo two > b.txt"), act, [say("done")]) as model:
        work.use_model(model.base_url)
        ended = run(work, "exec", *WRITES, "go")
    assert "2 files changed" in ended.err
    diff = run(work, "diff", "--turn", "1").out
    assert "diff --git a/b.txt b/b.txt" in diff
    assert "a.txt" not in diff


def test_conflicts_with_others_can_be_copied(work: Place) -> None:
    def act(_: Request) -> list[Any]:
        work.write("a.txt", "mine\n")
        return shell("echo two > b.txt")

    mine = session(work, shell("echo two > d/c.txt"), act)
    rewind(work, mine, "--copy-conflicts")
    assert (work.repo / "a.txt").read_text() == "one\n"
    assert (work.repo / "a.txt.rewind-conflict").read_text() == "mine\n"


def test_what_a_hook_writes_at_the_end_of_a_turn_is_its_work(work: Place) -> None:
    use_hooks(work, Stop=[{"hooks": [{"type": "command", "command": "echo formatted > a.txt; echo log > hook.log"}]}])
    mine = session(work, apply(update("a.txt", "-one", "+two")))
    assert (work.repo / "a.txt").read_text() == "formatted\n"

    done = rewind(work, mine)
    assert (done["conflicts"], done["restored"], done["deleted"]) == ([], ["a.txt"], ["hook.log"])


def test_what_a_command_in_the_background_writes_is_work_of_the_turn(work: Place) -> None:
    def wait(_: Request) -> list[Any]:
        (work.repo / "go").touch()
        until(lambda: (work.repo / "done").exists() or None)
        return shell("true")

    later = (
        "while ! [ -e go ]; do sleep 0.05; done; echo two > a.txt; touch done; while ! [ -e end ]; do sleep 0.05; done"
    )
    mine = session(work, [call("c", "exec_command", {"cmd": later, "yield_time_ms": 250})], wait)
    assert rewind(work, mine)["conflicts"] == []
    assert (work.repo / "a.txt").read_text() == "one\n"


def test_the_patch_of_a_turn_that_still_runs_stays(work: Place) -> None:
    mine = session(work, shell("echo two > a.txt"))
    outcome: list[dict[str, Any]] = []

    def act(_: Request) -> list[Any]:
        session(work, shell("echo three > a.txt"), resumes=mine)
        outcome.append(rewind(work, mine))
        return shell("true")

    session(work, apply(update("b.txt", "-one", "+theirs")), act)

    assert outcome[0]["conflicts"] == ["b.txt"]
    assert (work.repo / "a.txt").read_text() == "one\n"
    assert (work.repo / "b.txt").read_text() == "theirs\n"


def test_both_sessions_take_back_their_own_files(work: Place) -> None:
    theirs: list[str] = []

    def act(_: Request) -> list[Any]:
        theirs.append(session(work, apply(update("b.txt", "-one", "+theirs"))))
        return apply(update("d/c.txt", "-one", "+ours"))

    mine = session(work, apply(update("a.txt", "-one", "+ours")), act)

    assert rewind(work, theirs[0])["restored"] == ["b.txt"]
    assert rewind(work, mine)["restored"] == ["a.txt", "d/c.txt"]
    assert {_content(work.repo / name) for name in ("a.txt", "b.txt", "d/c.txt")} == {"one\n"}

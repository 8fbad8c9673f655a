"""`codex-py sessions` and its short forms: what a person and a script see of the sessions on disk."""

from __future__ import annotations

import json
import os
import pty
import re
from pathlib import Path

import pytest

from codex_py.protocol.items import ResponseItem, message
from codex_py.rollout.format import compacted_payload, encode_line
from tests.support.fake_responses import call, completed, fake_model, reasoning, repeat, say, tokens
from tests.support.home import Place
from tests.support.process import Running, run
from tests.unit.rollout_builders import written
from tests.unit.session_builders import session, turn_lines

UNKNOWN = "01a20027-2345-79b2-bdc3-b28e73fdbaf0"


def id_of(path: Path) -> str:
    return path.stem[-36:]


def test_a_real_session_is_listed_and_shown(place: Place) -> None:
    work = [reasoning("blob", "a thought"), call("c", "exec_command", {"cmd": "echo h\x1bi; exit 3"})]
    with fake_model(place, work, [say("all \x1b[31mdone"), completed(tokens(100, 10))]):
        run(place, "exec", "look \x07around")
    [path] = place.rollouts()
    listed = run(place, "sessions", "list")
    [result] = json.loads(run(place, "sessions", "list", "--json").out)
    shown = run(place, "sessions", "show", id_of(path))
    whole = json.loads(run(place, "sessions", "show", id_of(path), "--json").out)

    assert listed.out.splitlines()[1].split()[:3] == [id_of(path), "now", "110"]
    assert "look ␇around" in listed.out
    assert {key: result[key] for key in ("id", "name", "first_prompt", "cwd", "tokens", "archived", "path")} == {
        "id": id_of(path),
        "name": None,
        "first_prompt": "look \x07around",
        "cwd": str(place.repo),
        "tokens": 110,
        "archived": False,
        "path": str(path),
    }
    story = shown.out.partition("--- turn 1 · ")[2].partition("\n")[2]
    story = re.sub(r" in \d+m?s:", ":", story)
    assert story == (
        f"user\nlook ␇around\nthinking\na thought\nexec\necho h␛i; exit 3 in {place.repo}\n exited 3:\nh␛i\n"
        "codex\nall ␛[31mdone\n"
    )
    assert [one["item"]["type"] for one in whole["items"] if one["turn"] == 1][-4:] == [
        "reasoning",
        "function_call",
        "function_call_output",
        "message",
    ]


def test_a_list_is_of_this_directory_unless_all_are_asked_for(place: Place) -> None:
    here = session(place.codex_home, "here", cwd=str(place.repo), stamp="2026-01-02T00:00:00.000Z")
    older = session(place.codex_home, "older", cwd=str(place.repo), stamp="2026-01-01T00:00:00.000Z")
    there = session(place.codex_home, "there", cwd=str(place.home), stamp="2026-01-03T00:00:00.000Z")

    def ids(*arguments: str) -> list[str]:
        return [one["id"] for one in json.loads(run(place, "sessions", "list", "--json", *arguments).out)]

    assert ids() == [id_of(here), id_of(older)]
    assert ids("--all") == [id_of(there), id_of(here), id_of(older)]
    assert ids("--all", "--search", "OLD") == [id_of(older)]
    assert ids("-C", str(place.home)) == [id_of(there)]
    limited = run(place, "sessions", "list", "--limit", "1")
    assert len(limited.out.splitlines()) == 2
    assert limited.err == "1 more; --limit 0 lists them all\n"


def test_an_empty_list_says_where_it_looked(place: Place) -> None:
    ended = run(place, "sessions", "list")

    assert (ended.status, ended.out) == (0, "")
    assert ended.err == f"no sessions that worked in `{place.repo}`; --all lists the others\n"
    assert run(place, "sessions", "list", "--json").out == "[]\n"


def test_a_session_can_be_named_put_away_and_brought_back(place: Place) -> None:
    path = session(place.codex_home, "a", cwd=str(place.repo))
    with fake_model(place, repeat([say("ok")])) as model:
        assert run(place, "rename", id_of(path), "login  page").status == 0
        assert run(place, "exec", "resume", "login page", "more").status == 0
        assert run(place, "sessions", "archive", "login page").err == f"archived session `{id_of(path)}`\n"
        refused = run(place, "exec", "resume", "login page", "more")
        assert json.loads(run(place, "sessions", "list", "--json").out) == []
        [archived] = json.loads(run(place, "sessions", "list", "--archived", "--json").out)
        assert run(place, "unarchive", "login page").status == 0
        assert run(place, "exec", "resume", "--last", "more").status == 0

    assert (refused.status, refused.err.count("\n")) == (1, 1)
    assert f"`codex-py unarchive {id_of(path)}`" in refused.err
    assert (archived["name"], archived["archived"]) == ("login page", True)
    assert [text for text in model.requests[1].texts("user") if not text.startswith("<")] == ["a", "more", "more"]


def test_delete_needs_a_yes(place: Place) -> None:
    path = session(place.codex_home, "a")
    alone = run(place, "delete", id_of(path))
    assert (alone.status, path.exists()) == (2, True)
    assert "pass --yes" in alone.err

    gone = run(place, "delete", id_of(path), "--yes")

    assert (gone.status, gone.err) == (0, f"deleted session `{id_of(path)}`\n")
    assert not path.exists()
    assert run(place, "sessions", "show", id_of(path)).status == 2


@pytest.mark.parametrize(("answer", "kept"), [(b"y\n", False), (b"n\n", True), (b"\n", True), (b"\x04", True)])
def test_delete_asks_at_a_terminal(place: Place, answer: bytes, kept: bool) -> None:
    path = session(place.codex_home, "remove\x1b me")
    parent, child = pty.openpty()
    script = ["codex-py", "delete", id_of(path)]
    shell = ["sh", "-c", f"exec {' '.join(script)} 2>&0"]
    with (
        os.fdopen(child, "rb+", buffering=0) as terminal,
        Running(shell, env=place.env, cwd=place.repo, stdin=terminal) as running,
    ):
        question = b""
        while b"[y/N]" not in question:
            question += os.read(parent, 1000)
        os.write(parent, answer)
        status = running.wait().status
    os.close(parent)

    assert "(remove␛ me)" in question.decode()
    assert (status, path.exists()) == (1 if kept else 0, kept)


def test_the_history_before_a_compaction_can_be_read(place: Place) -> None:
    first = turn_lines("first prompt", "first answer", ordinal=1)
    summary = compacted_payload("", [message("user", "the summary")], window=1)
    compaction = encode_line(9, "compacted", summary, timestamp="2026-11-21T22:02:11.207Z")
    path = written(place.codex_home, [*first, compaction, *turn_lines("second prompt", "second answer", ordinal=10)])
    live = run(place, "sessions", "show", id_of(path))
    raw = run(place, "sessions", "show", id_of(path), "--before-compaction")
    items = json.loads(run(place, "sessions", "show", id_of(path), "--before-compaction", "--json").out)["items"]

    result = live.out.partition("\n--- compacted 2 items, which --before-compaction shows · ")[2]
    assert result.partition("\n")[2].startswith("user\nthe summary\n\n--- turn 2 · ")
    assert result.endswith("user\nsecond prompt\ncodex\nsecond answer\n")
    assert raw.out.endswith("user\nfirst prompt\ncodex\nfirst answer\n")
    assert [ResponseItem.from_wire(one["item"]).type for one in items] == ["message", "message"]


def test_without_a_compaction_there_is_nothing_before_it(place: Place) -> None:
    path = session(place.codex_home, "a")
    ended = run(place, "sessions", "show", id_of(path), "--before-compaction")

    assert (ended.status, ended.out) == (1, "")
    assert ended.err == f"error: session `{id_of(path)}` was never compacted; leave --before-compaction out\n"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["sessions"], 2),
        (["sessions", "list", "--limit", "-1"], 2),
        (["sessions", "show"], 2),
        (["sessions", "show", UNKNOWN], 2),
        (["archive", "../../etc/passwd"], 2),
        (["unarchive", "\x1b[31m"], 2),
        (["rename", UNKNOWN, "x"], 2),
        (["delete", UNKNOWN, "--yes"], 2),
    ],
)
def test_what_cannot_be_done_is_one_line(place: Place, arguments: list[str], status: int) -> None:
    ended = run(place, *arguments)

    assert ended.status == status
    assert len(ended.err.splitlines()) == (0 if arguments == ["sessions"] else 1)
    assert "\x1b" not in ended.err


def test_a_name_that_would_be_trouble_is_refused(place: Place) -> None:
    path = session(place.codex_home, "a")
    ended = run(place, "rename", id_of(path), " ")

    assert (ended.status, len(ended.err.splitlines())) == (2, 1)
    assert not (place.codex_home / "session_index.jsonl").exists()


def test_compressed_sessions_are_counted(place: Place) -> None:
    path = session(place.codex_home, "a")
    path.rename(path.with_name(f"{path.name}.zst"))

    assert "1 compressed by Codex CLI" in run(place, "sessions", "list", "--all").err


def test_a_long_list_shows_the_newest_fifty_and_says_how_many_are_left_out(place: Place) -> None:
    for number in range(60):
        stamp = f"2026-01-02T00:{number:02}:00.000Z"
        session(place.codex_home, f"prompt {number}", cwd=str(place.repo), stamp=stamp)

    def prompts(*arguments: str) -> list[str]:
        return re.findall(r"prompt \d+", run(place, "sessions", "list", *arguments).out)

    assert prompts() == [f"prompt {number}" for number in range(59, 9, -1)]
    assert run(place, "sessions", "list").err == "10 more; --limit 0 lists them all\n"
    assert (len(prompts("--limit", "0")), len(prompts("--limit", "3"))) == (60, 3)
    assert run(place, "sessions", "list", "--limit", "0").err == ""
    assert len(json.loads(run(place, "sessions", "list", "--json").out)) == 60
    assert len(json.loads(run(place, "sessions", "list", "--json", "--limit", "2").out)) == 2


@pytest.mark.parametrize("command", [("sessions", "list"), ("exec", "hello"), ("exec", "--artifacts", "out", "hello")])
def test_sessions_that_were_not_written_for_long_expire_where_that_is_set(place: Place, command: list[str]) -> None:
    """By the time of the file; not one that a newer fork reads, and none of a project's choosing."""
    old, new = (session(place.codex_home, name, cwd=str(place.repo)) for name in ("old", "new"))
    os.utime(old, (0, 0))
    with fake_model(place, *[[say("hi")]] * 2, excuse={"threads", "unplayed"}) as model:
        place.write(".codex/config.toml", "[sessions]\nkeep_days = 1\n")
        run(place, *command)
        assert old.exists()
        place.use_model(model.base_url, "[sessions]\nkeep_days = 30\n")
        ended = run(place, *command)
    assert "removed 1 session not written for 30 days (`[sessions] keep_days`)\n" in ended.err
    assert (old.exists(), new.exists()) == (False, True)

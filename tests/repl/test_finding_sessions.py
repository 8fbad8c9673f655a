"""The search in the list of `resume` and `fork`: what was said and done, with an excerpt; archived sessions too."""

from __future__ import annotations

from pathlib import Path

from codex_py.rollout.archive import archive_session
from tests.repl.conftest import ready_model
from tests.support.home import Place
from tests.support.terminal import Terminal
from tests.unit.rollout_builders import meta, written
from tests.unit.session_builders import turn_lines

TALK = "01900000-0000-7000-8000-000000000001"
PUT_AWAY = "01900000-0000-7000-8000-000000000002"
PADDING = "we looked at many other things before this and found nothing of interest in any of them; then "


def keep(place: Place, thread_id: str, *turns: tuple[str, str]) -> Path:
    lines: list[bytes] = []
    for prompt, answer in turns:
        lines += turn_lines(prompt, answer, ordinal=1 + len(lines), cwd=str(place.repo))
    return written(place.codex_home, lines, meta(thread_id, cwd=str(place.repo)))


def test_a_session_found_by_its_text_shows_the_turn_and_an_excerpt(place: Place) -> None:
    keep(
        place, TALK, ("look around", "done"), ("why is it loud", f"{PADDING}the flux capacitor hums"), ("thanks", "ok")
    )
    with ready_model(place):
        for width in (100, 40):
            with Terminal(place, "resume", width=width, height=30) as terminal:
                terminal.wait_for("❯ look around")
                assert "turn 2" not in terminal.text
                terminal.type("FLUX hums")
                terminal.wait_for("❯ look around  turn 2 · ")
                row = next(row for row in terminal.rows if "turn 2 · …" in row)
                assert len(row) <= width
                assert "flux" in row or width == 40
                together = " ".join(terminal.text.split())
                assert "turn 2 · answer: …" in together
                assert "flux capacitor hums" in together
                terminal.press("enter")
                terminal.wait_for_prompt().wait_for("resumed   3 turns")


def test_a_session_is_forked_after_the_turn_that_was_found(place: Place) -> None:
    keep(place, TALK, ("look around", "done"), ("why is it loud", "the flux capacitor hums"), ("thanks", "ok"))
    with ready_model(place), Terminal(place, "resume", width=100, height=30) as terminal:
        terminal.wait_for("❯ look around").type("flux")
        terminal.wait_for("^T fork after turn 2").press("ctrl-t")
        terminal.wait_for_prompt().wait_for("resumed   2 turns")
        assert "thanks" not in terminal.whole


def test_an_archived_session_is_found_marked_and_brought_back(place: Place) -> None:
    keep(place, TALK, ("look around", "done"))
    archive_session(keep(place, PUT_AWAY, ("repair the engine", "the flux capacitor hums")))
    with ready_model(place), Terminal(place, "resume", width=100, height=30) as terminal:
        terminal.wait_for("❯ look around")
        assert "repair" not in terminal.text
        terminal.type("flux")
        terminal.wait_for("❯ repair the engine  archived · turn 1 · ").press("enter")
        terminal.wait_for("Bring this session back from the archive?").type("n")
        terminal.wait_for("search: flux").wait_for("archived · turn 1").press("ctrl-u")
        terminal.wait_for("❯ look around").type("engine")
        terminal.wait_for("❯ repair the engine  archived · ").press("enter")
        terminal.wait_for("Bring this session back").press("enter")
        terminal.wait_for_prompt().wait_for("resumed   1 turn")
    assert [path.name[-41:-6] for path in (place.codex_home / "sessions").rglob(f"*{PUT_AWAY}.jsonl")] == [PUT_AWAY[1:]]


def test_words_search_where_nothing_can_be_drawn(place: Place) -> None:
    keep(place, TALK, ("look around", "done"), ("why is it loud", "the flux capacitor hums"))
    archive_session(keep(place, PUT_AWAY, ("repair the engine", "the flux is back")))
    with ready_model(place), Terminal(place, "resume", width=100, height=30, TERM="dumb") as terminal:
        terminal.wait_for("1) look around").wait_for("words to search for")
        assert "engine" not in terminal.whole
        terminal.type("no such words\r")
        # What is typed before the prompt is there would stand in front of it.
        terminal.wait_for("there is no such entry").wait_for(lambda now: now.text.endswith("to leave it:"))
        terminal.type("FLUX\r")
        terminal.wait_for("Resume a session of this directory: FLUX")
        terminal.wait_for("1) look around  turn 2 · the flux capacitor hums")
        terminal.wait_for("2) repair the engine  archived · turn 1 · the flux is back").type("2\r")
        terminal.wait_for("Bring this session back from the archive?").type("y\r")
        terminal.wait_for("resumed")
    assert [path.name[-41:-6] for path in (place.codex_home / "sessions").rglob(f"*{PUT_AWAY}.jsonl")] == [PUT_AWAY[1:]]

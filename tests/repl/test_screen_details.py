"""Details of the screen that a person works by: diffs in questions, menus, plans, refusals, what is counted."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from tests.repl.conftest import ready_model
from tests.support.fake_responses import added, call, completed, custom_call, delta, hang, say
from tests.support.home import Place
from tests.support.random_screens import play
from tests.support.terminal import Terminal


def patch(file: str, old: str, new: str) -> str:
    return f"*** Begin Patch\n*** Update File: {file}\n@@\n-{old}\n+{new}\n*** End Patch\n"


def test_a_patch_is_asked_about_as_a_diff_that_can_be_paged(place: Place) -> None:
    place.write("long.py", "".join(f"line_{number} = {number}\n" for number in range(80)))
    lines = [text for n in range(80) for text in (f"-line_{n} = {n}", f"+line_{n} = {n + 1}")]
    change = "\n".join(["*** Begin Patch", "*** Update File: long.py", "@@", *lines, "*** End Patch", ""])
    with (
        ready_model(
            place, [custom_call("c1", "apply_patch", change)], [say("as you like")], top='sandbox_mode = "read-only"'
        ),
        Terminal(place, "go", width=100, height=30) as terminal,
    ):
        terminal.wait_for("Write in the read-only sandbox?").wait_for("Edit long.py  +80 −80")
        terminal.wait_for("1 - line_0 = 0").wait_for("PgUp PgDn")
        for _ in range(30):
            if "80 + line_79 = 80" in terminal.text:
                break
            terminal.type("\x1b[6~")
            terminal.read_for(0.1)
        terminal.wait_for("80 + line_79 = 80").type("y")
        terminal.wait_for("● as you like")
    assert "line_79 = 80" in (place.repo / "long.py").read_text()


def test_a_folded_patch_shows_each_file_from_its_first_change_on(place: Place) -> None:
    pieces = ["*** Begin Patch"]
    for name in ("a.py", "b.py"):
        place.write(name, "".join(f"{name[0]}_{number}\n" for number in range(40)))
        lines = [text for n in range(10, 30) for text in (f"-{name[0]}_{n}", f"+new_{n}")]
        pieces += [f"*** Update File: {name}", "@@", f" {name[0]}_8", f" {name[0]}_9", *lines]
    pieces += ["*** Delete File: c.py", "*** End Patch", ""]
    place.write("c.py", "gone\n")
    with (
        ready_model(
            place,
            [custom_call("c1", "apply_patch", "\n".join(pieces))],
            [say("as you like")],
            top='sandbox_mode = "read-only"',
        ),
        Terminal(place, "go", width=100, height=30) as terminal,
    ):
        terminal.wait_for("more lines: m shows all").wait_for("Enter answer")
        rows = terminal.rows
        shown = [row.removeprefix("│ ").split("  ")[0].strip() for row in rows if row.startswith("│ ")]
        each = ["Edit a.py", "11 - a_10", "Edit b.py", "11 - b_10", "12 - b_11", "Delete c.py", "1 - gone"]
        assert shown == each
        assert any(row.endswith("more lines: m shows all") for row in rows)
        terminal.type("m")
        terminal.wait_for(" 9   a_8").type("n")
        terminal.wait_for("● as you like")


def test_a_patch_outside_of_the_workspace_says_so(place: Place) -> None:
    outside = "/etc/codex-py-note.txt"
    change = f"*** Begin Patch\n*** Add File: {outside}\n+hello\n*** End Patch\n"
    with (
        ready_model(place, [custom_call("c1", "apply_patch", change)], [say("fine")]),
        Terminal(place, "go", width=100, height=30) as terminal,
    ):
        terminal.wait_for("Write outside of the workspace?").wait_for("1 + hello")
        terminal.type("e")
        terminal.wait_for("what should the model do instead?").type("put it into docs")
        terminal.press("enter")
        terminal.wait_for("● fine")
        assert "⊘ patch · declined" in terminal.whole
        assert "↳ put it into docs" in terminal.whole


def test_new_files_are_offered_when_the_menu_opens(place: Place) -> None:
    with ready_model(place), Terminal(place) as terminal:
        terminal.wait_for_prompt().type("@README")
        terminal.wait_for("README.md").press("ctrl-c")
        place.write("brand_new.txt", "x")
        terminal.wait_until_gone("@README").type("@brand")
        terminal.wait_for("brand_new.txt").press("ctrl-c")
        terminal.wait_until_gone("@brand").type("@nosuchfile")
        terminal.wait_for("no file matches")


def test_the_menu_of_skills_counts_all_of_them(place: Place) -> None:
    for number in range(60):
        place.write(
            f".agents/skills/s{number}/SKILL.md", f"---\nname: many-{number}\ndescription: One of many.\n---\nx\n"
        )
    with ready_model(place), Terminal(place) as terminal:
        terminal.wait_for_prompt().type("$many")
        terminal.wait_for("1/50 of 60")


def test_a_finished_plan_stands_before_the_answer(place: Place) -> None:
    plan = {"plan": [{"step": "Look", "status": "completed"}]}
    with ready_model(place, [call("p", "update_plan", plan)], [say("that was all")]), Terminal(place, "go") as terminal:
        terminal.wait_for("● that was all").wait_for_prompt()
        assert terminal.whole.index("≡ Plan · 1 of 1 done") < terminal.whole.index("● that was all")
        assert terminal.whole.count("≡ Plan") == 1


def test_a_notice_does_not_cut_a_message_that_streams(place: Place) -> None:
    go_on = threading.Event()
    first = added({"type": "message", "role": "assistant", "content": []})
    story = [first, delta("one half "), hang(go_on), delta("and the other"), say("one half and the other")]
    with ready_model(place, story), Terminal(place, "go") as terminal:
        terminal.wait_for("one half").type("!echo beside\r")
        terminal.wait_for("✓ ! echo beside")
        go_on.set()
        terminal.wait_for("one half and the other").wait_for_prompt()
        assert terminal.whole.count("●") == 1


def test_nothing_turns_while_the_user_is_asked(place: Place) -> None:
    ask = {"cmd": "curl example.com", "sandbox_permissions": "require_escalated", "justification": "x"}
    with (
        ready_model(place, [call("c1", "exec_command", ask)], [say("well")]),
        Terminal(place, "go", height=30) as terminal,
    ):
        terminal.wait_for("Run this outside the sandbox?").wait_for("Waiting for your answer")
        assert "Esc stops it" not in terminal.text
        terminal.type("n")
        terminal.wait_for("● well")


def test_lines_of_a_paste_are_counted_as_an_editor_does(place: Place) -> None:
    with ready_model(place), Terminal(place) as terminal:
        terminal.wait_for_prompt().paste("".join(f"line {number}\n" for number in range(12)))
        terminal.wait_for("[Pasted text #1 · 12 lines]")


def test_an_empty_session_has_no_pager(place: Place) -> None:
    with ready_model(place), Terminal(place) as terminal:
        terminal.wait_for_prompt().press("ctrl-t")
        terminal.wait_for("nothing was said in this session yet")


@pytest.mark.parametrize("open_with", ["/help\r", "/status\r"])
def test_no_stale_rows_stay_after_resizing(place: Place, open_with: str) -> None:
    with (
        ready_model(place, [say("hello\n\nthere"), completed()]),
        Terminal(place, "go", width=100, height=30) as terminal,
    ):
        terminal.wait_for("there").wait_for_prompt().type(open_with)
        terminal.wait_for("Esc close")
        for width, height in ((100, 12), (30, 8), (100, 30)):
            terminal.resize(width, height)
            terminal.read_for(0.3)
        terminal.wait_for("Esc close")
        assert sum(row.startswith("── ") for row in terminal.rows) == 1
        assert sum("Esc close" in row for row in terminal.rows) == 1
        terminal.press("escape")
        terminal.wait_until_gone("Esc close").wait_for_prompt()
        assert sum(row.startswith("› Ask") for row in terminal.rows) == 1
        assert "──" not in terminal.text


def test_rows_that_a_low_window_moved_to_the_scrollback_do_not_come_back(place: Place) -> None:
    with ready_model(place, [say("hello\n\nthere")]), Terminal(place, "go", width=100, height=30) as terminal:
        terminal.wait_for("there").wait_for_prompt().type("\x1b\r".join(f"row {number}" for number in range(12)))
        terminal.wait_for("row 11")
        for height in (8, 14, 30):
            terminal.resize(100, height)
            terminal.wait_for(lambda now: now.text.count("row 11") == 1).read_for(0.3)
        shown = [row for row in terminal.scrollback if row]
        assert [row[2:] for row in shown if "row " in row] == [f"row {number}" for number in range(12)]
        assert (terminal.whole.count("codex-py 0"), terminal.whole.count("● hello")) == (1, 1)


def test_a_question_in_a_low_window_shows_what_it_is_about_and_its_keys(place: Place) -> None:
    lines = [f"+{word}" for word in ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine")]
    change = "\n".join(["*** Begin Patch", "*** Add File: made.txt", *lines, "*** End Patch", ""])
    plan = {"plan": [{"step": step, "status": "pending"} for step in ("first", "second", "third")]}
    calls = [call("p1", "update_plan", plan), custom_call("c1", "apply_patch", change)]
    with (
        ready_model(place, calls, [say("as you like")], top='sandbox_mode = "read-only"'),
        Terminal(place, "go", width=100, height=12) as terminal,
    ):
        terminal.wait_for("Enter answer · Esc no").wait_for("│ Add made.txt").wait_for("│ 1 + one").type("n")
        terminal.wait_for("● as you like")


def test_addresses_and_files_are_links_where_the_terminal_opens_them(place: Place) -> None:
    place.write("src/app.py", "x = 1\n")
    answer = "See https://example.com/docs and `src/app.py:1`, (https://x.org/a_(b)), not localhost:8080."
    for version, is_linked in (("7200", True), ("", False)):
        with (
            ready_model(place, [say(answer)], top='file_opener = "cursor"'),
            Terminal(place, "go", VTE_VERSION=version) as terminal,
        ):
            terminal.wait_for("localhost:8080")
            in_editor = b"cursor://file%s/src/app.py:1" % bytes(place.repo)
            for target in (b"https://example.com/docs", in_editor, b"https://x.org/a_(b)"):
                assert (b";%s\x1b\\" % target in terminal.raw) is is_linked
            assert terminal.raw.count(b"\x1b]8;id=") == 3 * is_linked


@pytest.mark.parametrize("seed", [1, 7])
def test_after_random_resizes_keys_dialogs_and_streams_the_screen_is_as_a_fresh_drawing(
    tmp_path: Path, seed: int
) -> None:
    play(seed, tmp_path)

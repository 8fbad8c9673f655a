"""What a person sees of a turn: text as it streams, commands, patches, the plan, and what can be done meanwhile."""

from __future__ import annotations

import re
import threading

import pytest

from codex_py import __version__
from tests.repl.conftest import ready_model
from tests.support.fake_responses import (
    added,
    api_error,
    call,
    completed,
    custom_call,
    cut,
    delta,
    hang,
    reasoning,
    reasoning_delta,
    say,
    status,
    tokens,
)
from tests.support.home import Place
from tests.support.script import Json
from tests.support.terminal import Terminal

PATCH = "*** Begin Patch\n*** Update File: README.md\n@@\n-# Demo\n+# Changed title\n*** End Patch\n"


def streaming(*pieces: str) -> list[Json]:
    """The events of a message that comes in pieces, without its end."""
    return [added({"type": "message", "role": "assistant", "content": []}), *map(delta, pieces)]


def test_the_context_is_in_the_status_line_and_the_totals_in_status_also_when_resumed(place: Place) -> None:
    with ready_model(place, [say("ok"), completed(tokens(100_000, 1_000, cached=80_000))]):
        with Terminal(place, "go") as terminal:
            terminal.wait_for("● ok").wait_for("63% left · $0.0450 · ").wait_for_prompt()
            terminal.type("/status\r")
            terminal.wait_for("100,000 tokens in (80% cached), 1,000 out")
        with Terminal(place, "resume", "--last") as terminal:
            terminal.wait_for_prompt()
            terminal.type("/status\r")
            terminal.wait_for("100,000 tokens in (80% cached), 1,000 out")


def test_text_is_seen_before_it_is_finished(place: Place) -> None:
    go_on = threading.Event()
    story = [
        *streaming("# Title\n\nfirst ", "part"),
        hang(go_on),
        delta(" and end"),
        say("# Title\n\nfirst part and end"),
    ]
    with ready_model(place, story), Terminal(place, "tell") as terminal:
        terminal.wait_for("first part").wait_for("Esc stops it")
        go_on.set()
        terminal.wait_for("first part and end").wait_for_prompt()

        assert terminal.whole.count("Title") == 1
        assert terminal.whole.count("first part") == 1


def test_a_message_that_comes_again_is_shown_once(place: Place) -> None:
    broken, whole = [*streaming("half of it"), cut()], [*streaming("all ", "of it"), say("all of it")]
    with ready_model(place, broken, whole), Terminal(place, "tell") as terminal:
        terminal.wait_for("● all of it").wait_for_prompt()

        assert "half" not in terminal.whole


def test_what_was_given_out_of_a_message_that_comes_again_is_marked(place: Place) -> None:
    with (
        ready_model(place, [*streaming("one\n\n", "tw"), cut()], [say("one\n\ntwo")]),
        Terminal(place, "tell") as terminal,
    ):
        terminal.wait_for("  two").wait_for_prompt()

        shown = terminal.whole
        assert shown.index("● one") < shown.index("↻ ") < shown.rindex("● one")


@pytest.mark.parametrize("width", [80, 40])
def test_a_retry_names_the_attempt_first_and_fits_the_width(place: Place, width: int) -> None:
    slow = api_error(429, "too many requests of a quite long-winded kind for one row", headers={"retry-after": "1"})
    broken = status(500, "混雑しています、しばらくしてからもう一度お試しください")
    with (
        ready_model(place, status(500, "oops"), slow, broken, [say("at last")]),
        Terminal(place, "go", width=width) as terminal,
    ):
        for attempt in (1, 2, 3):
            terminal.wait_for(f"attempt {attempt} of 5 (")
            row = next(row for row in terminal.rows if "attempt " in row)
            assert re.match(rf". attempt {attempt} of 5 \(\ds · Esc stops it\)(  \S+|$)", row), row
            reason, after = terminal.rows[terminal.rows.index(row) + 1 :][:2]
            assert bool(reason) == ("Esc stops it)  " not in row), terminal.text
            assert after.startswith("›" if not reason else ""), terminal.text
            assert re.search(r"  (500|429) ", f"{row}{reason}"), terminal.text
        terminal.wait_for("● at last").wait_for_prompt()
        assert "attempt " not in terminal.text


def test_escape_stops_the_turn_and_gives_the_queue_back(place: Place) -> None:
    never = threading.Event()
    with ready_model(place, [*streaming("thinking aloud"), hang(never)]), Terminal(place, "go") as terminal:
        terminal.wait_for("thinking aloud").type("and then this")
        terminal.press("enter")
        terminal.wait_for("» and then this").press("escape")
        terminal.wait_for("Interrupted.").wait_for("› and then this").wait_for_prompt()
        never.set()


def test_what_is_queued_is_sent_after_the_turn(place: Place) -> None:
    go_on = threading.Event()
    with (
        ready_model(place, [*streaming("one"), hang(go_on), say("one")], [say("two")]) as model,
        Terminal(place, "first") as terminal,
    ):
        terminal.wait_for("● one").wait_for("Enter queues").type("second")
        terminal.press("enter")
        terminal.wait_for("» second")
        go_on.set()
        terminal.wait_for("● two").wait_for_prompt()

    assert model.requests[1].texts("user")[-1] == "second"


def test_what_steers_reaches_the_running_turn(place: Place) -> None:
    go_on = threading.Event()
    first = [hang(go_on), call("c1", "exec_command", {"cmd": "echo worked"})]
    with ready_model(place, first, [say("as you wish")]) as model, Terminal(place, "first") as terminal:
        terminal.wait_for("Esc stops it").type("the other way")
        terminal.press("ctrl-s")
        terminal.wait_for("» the other way")
        go_on.set()
        terminal.wait_for("● as you wish").wait_for_prompt()

        assert "› the other way" in terminal.whole

    assert "the other way" in model.requests[1].texts("user")


def test_calls_and_thoughts_are_lines_that_can_be_unfolded(place: Place) -> None:
    printing = call("c1", "exec_command", {"cmd": "printf 'alpha\\nbeta\\n'"})
    thinking = reasoning("blob", "**Looking around**\n\nIt is all in one file.")
    with (
        ready_model(place, [thinking, call("c0", "no_such_tool", {"a": 1}), printing], [say("done")]),
        Terminal(place, "run it") as terminal,
    ):
        terminal.wait_for("● done").wait_for_prompt()
        assert "✓ $ printf" in terminal.text
        assert '✗ no_such_tool {"a": 1} · failed' in terminal.text
        assert "∴ Looking around · 2 more lines" in terminal.text
        assert "beta" not in [row.strip() for row in terminal.rows]
        terminal.press("ctrl-o")
        terminal.wait_for("│ beta").press("ctrl-o")
        terminal.wait_for("│ unsupported call: no_such_tool").press("ctrl-o")
        terminal.wait_for("It is all in one file.")


def test_a_running_command_shows_what_it_prints(place: Place) -> None:
    wait = "echo is-running; while [ ! -e go ]; do sleep 0.05; done; echo has-ended"
    with (
        ready_model(place, [call("c1", "exec_command", {"cmd": wait, "yield_time_ms": 30000})], [say("done")]),
        Terminal(place, "run it") as terminal,
    ):
        terminal.wait_for(lambda shown: any("is-running" in row and "$" not in row for row in shown.rows))
        place.write("go", "")
        terminal.wait_for("● done").wait_for_prompt()


def test_a_patch_is_seen_with_its_lines(place: Place) -> None:
    with (
        ready_model(place, [custom_call("p1", "apply_patch", PATCH)], [say("patched")]),
        Terminal(place, "change it") as terminal,
    ):
        terminal.wait_for("● patched").wait_for_prompt()

        assert "README.md" in terminal.text
        assert any("+" in row and "# Changed title" in row for row in terminal.rows)
        assert any("- # Demo" in row or "-# Demo" in row for row in terminal.rows)


def test_the_plan_is_kept_in_one_place(place: Place) -> None:
    def plan(first: str) -> Json:
        steps = [{"step": "look around", "status": first}, {"step": "act", "status": "pending"}]
        return call(f"p-{first}", "update_plan", {"plan": steps})

    with (
        ready_model(place, [plan("in_progress")], [plan("completed")], [say("done")]),
        Terminal(place, "plan it") as terminal,
    ):
        terminal.wait_for("● done").wait_for_prompt()

        assert terminal.whole.count("look around") == 1
        assert "1 of 2 done" in terminal.text


def test_of_a_long_plan_the_part_is_seen_where_the_work_is(place: Place) -> None:
    go_on = threading.Event()
    steps = [
        {"step": f"step {n} " + "of many words " * 8, "status": "completed" if n < 20 else "pending"} for n in range(50)
    ]
    story = [call("p", "update_plan", {"plan": steps})], [hang(go_on), say("such is the plan")]
    with ready_model(place, *story), Terminal(place, "plan it") as terminal:
        terminal.wait_for("20 of 50 done").wait_for("more after")
        assert "☐ step 20 of many words" in terminal.text
        assert "step 49" not in terminal.text
        go_on.set()
        terminal.wait_for("● such is the plan").wait_for_prompt()

        assert "● such is the plan" in terminal.text
        assert "☐ step 20 of many words" in terminal.text


def test_a_plan_that_is_not_done_stays_in_view_in_the_next_turn(place: Place) -> None:
    go_on = threading.Event()
    plan = {"plan": [{"step": "look around", "status": "completed"}, {"step": "act", "status": "pending"}]}
    script = [[call("p", "update_plan", plan)], [say("what now?")], [hang(go_on), say("as you wish")]]
    with ready_model(place, *script), Terminal(place, "plan it") as terminal:
        terminal.wait_for("● what now?").wait_for_prompt()
        terminal.type("go on")
        terminal.press("enter")
        terminal.wait_for(lambda screen: screen.text.count("1 of 2 done") == 2)
        go_on.set()
        terminal.wait_for("● as you wish").wait_for_prompt()

        # It has not changed, so that it is not said again.
        assert terminal.whole.count("1 of 2 done") == 1


def test_reasoning_is_folded(place: Place) -> None:
    thought = "**Weighing it**\n\nlong and winding"
    story = [reasoning_delta(thought), reasoning("blob", thought), say("decided")]
    with ready_model(place, story), Terminal(place, "think") as terminal:
        terminal.wait_for("● decided").wait_for_prompt()

        assert "Weighing it" in terminal.text and "winding" not in terminal.text


def test_escape_sequences_of_the_model_do_nothing(place: Place) -> None:
    evil = "before\x1b]2;owned\x07\x1b[2J after"
    with ready_model(place, [*streaming(evil), say(evil)]), Terminal(place, "go") as terminal:
        terminal.wait_for("after").wait_for_prompt()

        assert b"\x1b]2;owned" not in terminal.raw
        assert f"codex-py {__version__}" in terminal.text


def test_a_question_takes_the_place_of_the_input(place: Place) -> None:
    outside = {"cmd": "touch /opt-not-allowed", "sandbox_permissions": "require_escalated", "justification": "because"}
    with (
        ready_model(place, [call("c1", "exec_command", outside)], [say("understood")]) as model,
        Terminal(place, "do it") as terminal,
    ):
        terminal.wait_for("touch /opt-not-allowed").wait_for("No").press("escape")
        terminal.wait_for("● understood").wait_for_prompt()

    assert "touch" not in model.requests[1].output_of("c1") or "ok" not in model.requests[1].output_of("c1")


def test_a_failed_turn_is_reported_and_the_session_goes_on(place: Place) -> None:
    with ready_model(place, api_error(400, "that was wrong"), [say("better")]), Terminal(place, "one") as terminal:
        terminal.wait_for("that was wrong").wait_for_prompt().type("two")
        terminal.press("enter")
        terminal.wait_for("● better")


def test_the_window_may_be_of_any_size(place: Place) -> None:
    with ready_model(place, [say("small but fine 漢字 🙂")]), Terminal(place) as terminal:
        terminal.wait_for_prompt()
        for width, height in ((1, 1), (7, 3), (200, 60), (40, 10)):
            terminal.resize(width, height)
        terminal.type("hi")
        terminal.press("enter")
        terminal.wait_for("small but fine")


def test_a_bell_tells_the_end_of_a_turn_unless_somebody_looks(place: Place) -> None:
    options = [{"label": one, "description": one} for one in ("tea", "coffee")]
    question = {"questions": [{"id": "q", "header": "Drink", "question": "Which?", "options": options}]}
    asking = call("c1", "request_user_input", question)
    with ready_model(place, [say("one")], [asking], [say("two")]), Terminal(place) as terminal:
        terminal.wait_for_prompt().press("focus-in")
        # It is still the same window.
        terminal.type("/new\r")
        terminal.wait_for(lambda now: now.text.count("approval ") == 2).wait_for_prompt().type("a\r")
        terminal.wait_for("● one").wait_for_prompt().type("b\r")
        terminal.wait_for("Which?")
        rung = terminal.raw.replace(b"codex-py\a", b"").count(b"\a")
        terminal.press("focus-out")
        terminal.type("2")
        terminal.wait_for("● two").wait_for_prompt()

        assert (rung, terminal.raw.replace(b"codex-py\a", b"").count(b"\a")) == (0, 1)


def test_leaving_in_the_middle_of_a_turn_records_that_it_was_stopped(place: Place) -> None:
    never = threading.Event()
    with ready_model(place, [*streaming("on my way"), hang(never)]):
        with Terminal(place, "go") as terminal:
            terminal.wait_for("on my way").press("ctrl-d")

            assert terminal.wait_for_end() == 0
            assert "codex-py resume " in terminal.whole
        never.set()

    [rollout] = place.rollouts()
    assert "turn_aborted" in rollout.read_text()


def test_title_and_notification_say_that_an_answer_is_needed(place: Place) -> None:
    write = custom_call("c1", "apply_patch", PATCH)
    with (
        ready_model(
            place,
            [write],
            [say("fine"), completed(tokens(1200, 34))],
            top='sandbox_mode = "read-only"',
            tables='[tui]\nnotification_method = "osc9"\n',
        ),
        Terminal(place, "go") as terminal,
    ):
        terminal.wait_for("Write in the read-only sandbox?")
        assert b"\x1b]2;? answer needed \xc2\xb7 repo \xc2\xb7 codex-py\a" in terminal.raw
        assert b"\x1b]9;Your answer is needed: may it write README.md?" in terminal.raw
        terminal.type("n")
        terminal.wait_for("fine").wait_for(lambda now: "1.2k tokens in · 34 out" in now.text)
        assert re.search(r"(?m)^· [\d.]+m?s · 1.2k tokens in · 34 out · \$0.0018$", terminal.text)
        assert b"\x1b]2;repo \xc2\xb7 codex-py\a" in terminal.raw

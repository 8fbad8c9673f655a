from __future__ import annotations

from pathlib import Path

import pytest

from codex_py.protocol import events
from codex_py.protocol.events import CommandFinished, FileChange, PatchFinished, PlanStep, PlanUpdated, SkillUsed
from codex_py.protocol.status import AgentState
from codex_py.protocol.usage import TokenUsage
from codex_py.render.entry import to_lines
from codex_py.render.event import render_answer, render_event
from codex_py.render.message import render_queued
from codex_py.render.plain import PlainPrinter
from codex_py.render.status import command_title
from codex_py.render.tool_call import legible, render_running_command, render_running_mcp_call
from codex_py.text.diff import unified_diff
from tests.support.drawing import DARK, rows

ESC = "\x1b"
CWD = Path("/work")
FAILED = CommandFinished("c", "/bin/bash -lc 'pytest -q'", CWD, "one\ntwo\n", 1, 2.34, "failed")

CLOSED = AgentState("id-1", "agent-1", "id-0", 1, "look", "shutdown", message="All is fine.")


def shown(event: events.Event, width: int = 60, *, expanded: bool = False) -> list[str]:
    entry = render_event(event, expanded=expanded, cwd=CWD)
    return [] if entry is None else rows(entry, width)


def plain(*events_: events.Event) -> list[str]:
    lines: list[str] = []
    printer = PlainPrinter(lines.append, brief=True)
    for event in events_:
        printer(event)
    return lines


def patched(*changes: FileChange, ok: bool = True, output: str = "") -> PatchFinished:
    return PatchFinished("p", changes, ok, output)


def edited(old: str, new: str, name: str = "a.py") -> FileChange:
    return FileChange(CWD / name, "update", None, unified_diff(old, new, old_name=f"a/{name}", new_name=f"b/{name}"))


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (FAILED.replace(output=""), "✗ $ pytest -q · exit 1 · 2.3s"),
        (FAILED.replace(exit_code=0, status="completed", output=""), "✓ $ pytest -q · 2.3s"),
        (FAILED.replace(exit_code=None), "✗ $ pytest -q · stopped · 2.3s · 2 lines"),
        (FAILED.replace(exit_code=None, seconds=0.0), "✗ $ pytest -q · stopped · 2 lines"),
        (FAILED.replace(exit_code=None, status="declined", output=""), "⊘ $ pytest -q · declined"),
        (FAILED.replace(exit_code=None, status="in_progress"), "◌ $ pytest -q · still running · 2.3s"),
        (FAILED.replace(command="cat 'E'\nhi\nE", output=""), "✗ $ cat 'E' … · exit 1 · 2.3s"),
        (FAILED.replace(command="x" * 90, exit_code=0), f"✓ $ {'x' * 32}… · 2.3s · 2 lines"),
        (events.PatchRejected("p", "patch rejected: empty patch"), "✗ patch rejected: empty patch"),
        (
            events.PatchRejected("p", "patch rejected: declined by the user: do not try it again in another way"),
            "⊘ patch · declined",
        ),
        (events.CommandInput("c", "python -i", "print(1)\n"), "» $ python -i · typed 'print(1)'"),
        (SkillUsed("lint", "repo", CWD / "s/SKILL.md", "explicit"), "◆ used skill lint · repo · s/SKILL.md"),
        (events.WebSearched("w", "a b", {"type": "search"}), "⌕ searched the web for a b"),
        (events.WebSearched("w", "", {"type": "open_page", "url": "http://x"}), "⌕ opened http://x"),
        (events.AgentChanged(CLOSED, "completed"), "⊘ agent-1 closed"),
        (
            events.AgentCallFinished("c", "wait", error="there is no agent `x`"),
            "✗ wait_agent · failed · there is no agent `x`",
        ),
        (events.ToolCallFinished("c", "list_agents", "{}", True, 0.02, "[]"), "✓ list_agents · 20ms"),
        (events.Warned("careful"), "! careful"),
        (events.Retrying("503", 2, 5, 2.0), "↻ attempt 2 of 5 in 2.0s · 503"),
        (events.Retrying("refused", 3, None, 0.1), "↻ attempt 3 · refused"),
        (events.TurnFailed("t", "no such model"), "✗ no such model"),
        (
            events.ContextCompacted(180_000, 12_000, "local", "context_limit"),
            "≈ Context compacted · 180,000 → 12,000 tokens",
        ),
        (events.ReasoningDone("**Reading**\n\nfirst\nsecond"), "∴ Reading · 3 more lines"),
        (events.TurnStarted("t", ("do it",)), "› do it"),
        (events.Steered("t", ("faster",)), "› faster"),
    ],
)
def test_an_event_is_one_line(event: events.Event, expected: str) -> None:
    assert shown(event, 54) == [expected]


def test_of_a_command_that_failed_the_ends_of_what_it_printed_are_seen() -> None:
    long = FAILED.replace(output=f"one\n{ESC}[31mtwo{ESC}[0m\nthree\nfour\n\n{'x' * 90}\n")
    assert shown(FAILED, 30) == ["✗ $ pytest -q · exit 1 · 2.3s", "  │ one", "  │ two"]
    assert shown(long, 40)[1:] == ["  │ one", "  │ two", "  │ … 2 more lines …", f"  │ {'x' * 35}…"]
    assert shown(FAILED.replace(status="declined", exit_code=None)) == ["⊘ $ pytest -q · declined"]


def test_a_message_that_waits_says_for_what() -> None:
    assert rows(render_queued("one\ntwo"), 30) == ["» one …"]
    assert rows(render_queued(f"{'x' * 40}{ESC}[2J", steers=True), 30) == [f"» {'x' * 18}… · steers"]


def test_of_a_long_reason_against_a_patch_the_ends_are_seen() -> None:
    refused = events.PatchRejected("p", "\n".join(f"line {number}" for number in range(40)))
    assert len(shown(refused)) == 11
    assert (shown(refused)[0], shown(refused)[-1]) == ("✗ line 0", "  line 39")
    assert len(shown(refused, expanded=True)) == 40


def test_a_question_of_the_model_is_shown_with_its_answer() -> None:
    assert rows(render_answer("Which colour?", ["Blue"]), 60) == ["? Which colour?", "  ↳ Blue"]
    assert rows(render_answer("Which colour?", []), 60) == ["? Which colour?", "  ↳ no answer"]


@pytest.mark.parametrize(
    "event",
    [
        events.TextDelta("x"),
        events.ReasoningDone("  "),
        events.MessageDone(""),
        events.CommandStarted("c", "ls", CWD),
        events.CommandInput("c", "ls", ""),
        events.UsageReported(TokenUsage(), TokenUsage(), None),
        events.Steered("t", ("said",), new_turn=True),
        events.TurnStarted("t"),
    ],
)
def test_some_events_leave_nothing_behind(event: events.Event) -> None:
    assert shown(event) == []


def test_what_the_user_said_is_shown_as_it_was_typed_and_by_its_ends_when_it_is_very_long() -> None:
    assert shown(events.TurnStarted("t", ("a\n\tb **c**", "next"))) == ["› a", "      b **c**", "  next"]
    long = shown(events.TurnStarted("t", ("".join(f"{number}\n" for number in range(1000)),)))
    assert [long[0], long[99], long[100], long[101], long[-1]] == [
        "› 0",
        "  99",
        "  … 800 more lines …",
        "  900",
        "  999",
    ]


def test_a_command_unfolds_to_its_output() -> None:
    assert shown(FAILED, expanded=True) == ["✗ $ pytest -q · exit 1 · 2.3s · 2 lines", "  │ one", "  │ two"]
    silent = FAILED.replace(output="", exit_code=0, status="completed", command="a\nb")
    assert shown(silent, expanded=True) == ["✓ $ a … · 2.3s", "  a", "  b", "  no output"]


def test_what_the_user_ran_is_shown_with_its_output() -> None:
    assert shown(FAILED.replace(by_user=True)) == ["✗ ! pytest -q · exit 1 · 2.3s · 2 lines", "  │ one", "  │ two"]


def test_a_call_of_a_server_says_whose_it_is_and_what_came_of_it() -> None:
    done = events.McpCallFinished("m", "docs", "search", {"q": "x\x1b[2J"}, "completed", 1.25, output="one\ntwo")
    assert shown(done) == ['✓ docs.search {"q":"x\\u001b[2J"} · 1.2s']
    assert shown(done, expanded=True)[1:] == ["  │ one", "  │ two"]
    failed = done.replace(status="failed", error="no such\nindex", arguments={})
    assert shown(failed) == ["✗ docs.search · failed · 1.2s · no such index"]
    assert shown(failed, expanded=True) == ["✗ docs.search · failed · 1.2s", "  │ no such", "  │ index"]
    assert shown(failed.replace(status="declined", error=None)) == ["⊘ docs.search · declined"]
    assert plain(failed) == [" docs.search failed in 1.2s:", "no such", "index"]


def test_a_call_without_a_form_of_its_own_is_a_line_too() -> None:
    seen = events.ToolCallFinished("c", "view_image", '{"path": "a.png"}', True, 0.02, "[input_image]")
    assert shown(seen) == ['✓ view_image {"path": "a.png"} · 20ms']
    assert shown(seen, expanded=True) == ['✓ view_image {"path": "a.png"} · 20ms', "  │ [input_image]"]
    failed = seen.replace(ok=False, output="no such file: " + "x" * 90)
    assert shown(failed) == ['✗ view_image {"path": "a.png"} · failed · 20ms · no such fi…']
    assert plain(seen) == ["view_image: succeeded in 20ms"]
    assert plain(failed) == ["view_image: failed", failed.output]


def test_a_call_that_is_under_way_says_how_far_it_is() -> None:
    begun = events.McpCallStarted("m", "docs", "search", {"q": 1})
    half = events.McpCallProgress("m", 5, 10, "reading\nit")
    assert rows(render_running_mcp_call(begun, seconds=0.2)) == ['⠋ docs.search {"q":1}']
    assert rows(render_running_mcp_call(begun, seconds=3, frame=1, progress=half)) == [
        '⠙ docs.search {"q":1} · 3s · 50% · reading it'
    ]
    assert rows(render_running_mcp_call(begun, seconds=0, progress=half.replace(total=None, message=""))) == [
        '⠋ docs.search {"q":1} · 5'
    ]


def test_a_running_command_shows_the_end_of_what_it_prints() -> None:
    tail = f"{ESC}[32mold{ESC}[0m\n10%\r20%\r30%\nlast\n"
    assert rows(render_running_command("npm test", seconds=72.4, frame=1, tail=tail, tail_lines=2)) == [
        "⠙ $ npm test · 1m 12s",
        "  │ 30%",
        "  │ last",
    ]
    assert rows(render_running_command("npm test", seconds=0.4)) == ["⠋ $ npm test"]


@pytest.mark.parametrize(
    ("command", "title"),
    [
        ("bash -lc 'ls -l'", "ls -l"),
        ("/usr/bin/zsh -c \"echo 'a b'\"", "echo 'a b'"),
        ("bash -lc 'ls' extra", "bash -lc 'ls' extra"),
        ("bash -lc 'open", "bash -lc 'open"),
        ("bash script.sh", "bash script.sh"),
        ("  ls ", "ls"),
    ],
)
def test_the_shell_around_a_command_is_left_out(command: str, title: str) -> None:
    assert command_title(command) == title


def test_an_output_that_steers_the_terminal_is_shown_and_not_obeyed() -> None:
    assert legible(f"a{ESC}[1;31mb{ESC}[0m\r\nc{ESC}[2J") == f"ab\r\nc{ESC}[2J"
    event = FAILED.replace(output=f"{ESC}]0;title\x07{ESC}[2J\n", command=f"echo {ESC}[2J\u202e")
    lines = shown(event, expanded=True)
    assert lines == ["✗ $ echo ␛[2J\\u{202e} · exit 1 · 2.3s · 1 line", "  │ ␛]0;title␇␛[2J"]


def test_reasoning_unfolds_to_all_of_it() -> None:
    event = events.ReasoningDone("**Reading**\n\nfirst `x`")
    assert shown(event, expanded=True) == ["∴ Reading", "", "  first x"]


def test_a_patch_is_a_diff_with_line_numbers() -> None:
    before = "".join(f"line {number}\n" for number in range(1, 12))
    after = before.replace("line 2\n", "second\n").replace("line 11\n", "")
    assert shown(patched(edited(before, after))) == [
        "✓ Edited a.py  +1 −2",
        "   1   line 1",
        "   2 - line 2",
        "   2 + second",
        "   3   line 3",
        "   4   line 4",
        "   5   line 5",
        "       ⋯",
        "   8   line 8",
        "   9   line 9",
        "  10   line 10",
        "  11 - line 11",
    ]


def test_several_files_are_listed_with_what_happens_to_each() -> None:
    new = unified_diff("", "hello", old_name="/dev/null", new_name="b/n")
    moved = edited("x\n", "y\n").replace(move_path=CWD / "b.py")
    gone = FileChange(Path("/elsewhere/gone"), "delete")
    assert shown(patched(moved, FileChange(CWD / "n", "add", None, new), gone)) == [
        "✓ Edited 3 files  +2 −1",
        "  └ a.py → b.py  +1 −1",
        "  1 - x",
        "  1 + y",
        "  └ added n  +1 −0",
        "  1 + hello",
        "      No newline at end of file",
        "  └ deleted /elsewhere/gone  +0 −0",
    ]


def test_a_long_diff_is_cut_and_unfolds() -> None:
    event = patched(edited("", "".join(f"{number}\n" for number in range(1, 101))), edited("a\n", "b\n", "b.py"))
    folded, whole = shown(event), shown(event, expanded=True)
    assert folded[2:4] == ["   1 + 1", "   2 + 2"]
    assert folded[59:] == ["  58 + 58", "    … 42 more lines", "  └ b.py  +1 −1", "  1 - a", "  1 + b"]
    assert whole[101] == "  100 + 100"
    assert len(whole) == 105


def test_a_patch_that_failed_says_why() -> None:
    event = patched(edited("a", "b"), ok=False, output="no such context\n")
    assert shown(event) == ["✗ Edited a.py · failed", "  no such context"]


def test_a_diff_says_by_its_background_what_is_new_and_is_coloured_by_its_language() -> None:
    entry = render_event(patched(edited("x = 1\n", "x = 'a'\n")), expanded=False, cwd=CWD)
    assert entry is not None
    assert to_lines(entry, width=40, theme=DARK)[1:] == [
        "  \x1b[38;5;247m1 \x1b[0m\x1b[38;5;210;48;5;52m- \x1b[0m\x1b[38;5;255;48;5;52mx \x1b[0m"
        "\x1b[38;5;250;48;5;52m=\x1b[0m\x1b[38;5;255;48;5;52m \x1b[0m\x1b[38;5;180;48;5;52m1\x1b[0m"
        "\x1b[38;5;255;48;5;52m  \x1b[0m",
        "  \x1b[38;5;247m1 \x1b[0m\x1b[38;5;114;48;5;22m+ \x1b[0m\x1b[38;5;255;48;5;22mx = \x1b[0m"
        "\x1b[38;5;150;48;5;22m'a'\x1b[0m",
    ]


def test_the_ends_of_lines_are_shown_only_where_they_differ() -> None:
    assert shown(patched(edited("a\r\n", "b\r\n"))) == ["✓ Edited a.py  +1 −1", "  1 - a", "  1 + b"]
    assert shown(patched(edited("a\r\n", "a\n"))) == ["✓ Edited a.py  +1 −1", "  1 - a␍", "  1 + a"]


def test_a_plan_is_a_check_list() -> None:
    steps = (PlanStep("Read", "completed"), PlanStep("Fix", "in_progress"), PlanStep("Test", "pending"))
    assert shown(PlanUpdated(steps, "found it")) == [
        "≡ Plan · 1 of 3 done",
        "  found it",
        "  ☑ Read",
        "  ▸ Fix",
        "  ☐ Test",
    ]


@pytest.mark.parametrize("width", [1, 2, 5, 8, 13])
def test_every_event_fits_into_the_narrowest_window(width: int) -> None:
    all_events: list[events.Event] = [
        FAILED.replace(by_user=True),
        patched(edited("x = 1\ny\n", "x = '你好'\ny\n"), edited("a\tb", "b")),
        PlanUpdated((PlanStep("Read 你好 all of it", "completed"),)),
        SkillUsed("lint", "repo", CWD, "script"),
        events.Warned("a longer warning about it"),
        events.Retrying("a server that fails", 1, 5, 3.0),
        events.MessageDone("| a | b |\n|--|--|\n| 你好 | c |\n\n- x\n  - y\n\n> q"),
        events.ReasoningDone("thinking 👩\u200d👧 about\nit"),
    ]
    for event in all_events:
        assert shown(event, width)
        assert shown(event, width, expanded=True)


def test_plain_lines_say_in_words_what_the_signs_say() -> None:
    all_events: list[events.Event] = [
        events.CommandStarted("c", "ls\n-l", CWD),
        FAILED,
        patched(edited("a\n", "b\n")),
        PlanUpdated((PlanStep("Read", "completed"), PlanStep("Fix", "in_progress"))),
        SkillUsed("lint", "repo", CWD, "explicit"),
        events.MessageDone(f"**done**\n{ESC}[2J"),
        events.ReasoningDone("hm"),
        events.TurnFailed("t", "no model"),
        events.TextDelta("x"),
    ]
    assert plain(*all_events) == [
        "exec",
        f"ls␊-l in {CWD}",
        " exited 1 in 2.3s:",
        "one",
        "two",
        "patch: completed",
        f"update {CWD}/a.py",
        "--- a/a.py",
        "+++ b/a.py",
        "@@ -1 +1 @@",
        "-a",
        "+b",
        "plan",
        "[x] Read",
        "[>] Fix",
        f"skill: lint ({CWD})",
        "codex",
        "**done**\n␛[2J",
        "ERROR: no model",
    ]


def test_a_failure_keeps_its_indentation_and_is_not_folded_for_one_line() -> None:
    event = FAILED.replace(output="a\n  b\n    c\n  d\ne\n")
    assert shown(event)[1:] == ["  │ a", "  │   b", "  │     c", "  │   d", "  │ e"]


def test_a_no_with_words_shows_the_words() -> None:
    declined = FAILED.replace(
        exit_code=None, status="declined", output="command declined by the user, who says: use make"
    )
    assert shown(declined) == ["⊘ $ pytest -q · declined", "  ↳ use make"]
    patch = events.PatchRejected("p", "patch rejected: declined by the user, who says: not here")
    assert shown(patch) == ["⊘ patch · declined", "  ↳ not here"]


def test_a_folded_diff_begins_at_the_first_change() -> None:
    before = "".join(f"{number}\n" for number in range(200))
    rows = shown(patched(edited(before, before.replace("150\n", "changed\n"))))
    assert any("changed" in row for row in rows)

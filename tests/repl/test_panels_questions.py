"""Questions as dialogs: which keys give which answers, and what can be read before one is given."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from codex_py.protocol import events
from codex_py.protocol.questions import (
    ApprovalQuestion,
    ApprovalReply,
    ChoiceQuestion,
    McpInstallQuestion,
    McpServerWanted,
    PermissionsQuestion,
    ProjectServer,
    ProjectServersQuestion,
    Question,
    QuestionAnswer,
    QuestionOption,
    SecretQuestion,
)
from codex_py.ui.repl.panels.askers import PanelAsker
from codex_py.ui.repl.panels.questions import QuestionQueue, ask
from tests.support.panel_host import PanelHost, panel_host

RUN = ApprovalQuestion(
    id="q1",
    call_id="c1",
    command="git push origin main",
    cwd=Path("/home/u/repo"),
    reason="it asks to run outside the sandbox",
    justification="the branch is done",
    outside=True,
    pattern=("git", "push", "origin", "main"),
    scopes=("once", "session", "project", "always"),
)
CALL = RUN.replace(command='figma.draw {"a": 1}', pattern=(), scopes=("once", "session", "always"), server="figma")
FIGMA = McpServerWanted("figma", "stdio", "npx figma", ("design",))
PROJECT = ProjectServersQuestion(
    "q",
    Path("/srv/app"),
    (ProjectServer("figma", "stdio", "npx figma --fast", None, ("TOKEN",), ("LEVEL=1",), changed=True),),
)
CHOICE = ChoiceQuestion(
    "q3", "Database", "Which one?", (QuestionOption("sqlite", "no server"), QuestionOption("postgres", "real"))
)


async def answered(question: Question, *presses: str, armed: bool = True) -> QuestionAnswer | None:
    """The answer when keys are pressed one after the other; `see: …` waits for a text instead."""
    async with panel_host() as host:
        asking = asyncio.create_task(ask(question, PanelAsker(host.panels.show), home="/home/u", armed=armed))
        await host.until("── ")
        await host.play(*presses)
        return await asyncio.wait_for(asking, 30)


@pytest.mark.parametrize(
    ("presses", "answer"),
    [
        (("enter",), None),
        (("esc",), None),
        (("ctrl-c",), None),
        (("n",), None),
        (("y",), "once"),
        (("s",), "session"),
        (("1",), "once"),
        (("2",), "session"),
        (("up", "see: ❯ a", "up", "up", "up", "see: ❯ y", "enter"), "once"),
        (("p", "see: Allow in this project", "enter"), ApprovalReply("project", RUN.pattern)),
        (("x", "enter"), None),
    ],
)
async def test_an_approval_is_answered_by_key(presses: tuple[str, ...], answer: QuestionAnswer | None) -> None:
    assert await answered(RUN, *presses) == answer


async def test_the_pattern_of_a_lasting_yes_can_be_edited() -> None:
    edit = ("see: Allow everywhere", "\x17", "\x17", "see: › git push\n", "enter")
    assert await answered(RUN, "a", *edit) == ApprovalReply("always", ("git", "push"))


async def test_a_pattern_of_another_command_is_not_taken() -> None:
    keys = ("a", "see: Allow everywhere", "ctrl-u", "rm -rf", "enter", "see: it has to begin like this command")
    assert await answered(RUN, *keys, "esc", "see: Run this", "n") is None


async def test_a_no_can_say_why() -> None:
    keys = ("e", "see: what should the model do", "enter", "see: type something", "open a pull request", "enter")
    assert await answered(RUN, *keys) == ApprovalReply(message="open a pull request")


async def test_what_is_typed_when_a_question_comes_up_does_not_answer_it() -> None:
    keys = ("yes", "s", "1", "see: because you were typing", "down", "up", "see: Esc no · ↑↓", "esc")
    assert await answered(RUN, *keys, armed=False) is None
    assert await answered(RUN, "y", "up", "y", armed=False) == "once"


async def test_an_approval_shows_what_it_is_about() -> None:
    async with showing(RUN) as host:
        assert await host.until("❯") == "\n".join(
            [
                "── Run this outside the sandbox? " + "─" * 46,
                "  │ git push origin main",
                "  in ~/repo",
                "  why: it asks to run outside the sandbox",
                "  model: the branch is done",
                "  y  Yes, this once",
                "  s  Yes, and for the rest of this session  exactly this command",
                "  p  Yes, and from now on in this project   git push origin main …",
                "  a  Yes, and from now on everywhere        git push origin main …",
                "❯ n  No",
                "  e  No, and tell the model why",
                "  Enter answer · Esc no · ↑↓ select",
            ]
        )


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("/bin/bash -lc 'make && make test'", ["  │ make && make test", "  in ~/repo, by /bin/bash -lc"]),
        ("/usr/bin/zsh -c ls", ["  │ ls", "  in ~/repo, by /usr/bin/zsh -c"]),
        ("/bin/bash -lc ls extra", ["  │ /bin/bash -lc ls extra", "  in ~/repo"]),
        ("/tmp/bash -lc ls", ["  │ /tmp/bash -lc ls", "  in ~/repo"]),
        ("/bin/bash -lc 'open", ["  │ /bin/bash -lc 'open", "  in ~/repo"]),
    ],
)
async def test_what_a_usual_shell_runs_is_shown_without_its_quotes(command: str, shown: list[str]) -> None:
    async with showing(RUN.replace(command=command)) as host:
        await host.until("❯")
        assert host.lines[1:3] == shown


async def test_a_long_command_is_folded_and_can_be_read_whole() -> None:
    lines = [f"echo {number}" for number in range(40)]
    async with showing(RUN.replace(command="\n".join(lines))) as host:
        await host.until("more lines: m shows all")
        assert "echo 30" not in host.text
        host.press("m")
        seen = set((await host.until("of 44")).split("\n"))
        while "  model: the branch is done" not in seen:
            before = host.text
            host.press("pagedown")
            seen |= set((await host.until(lambda shown, before=before: shown != before)).split("\n"))
        assert seen >= {f"  │ {line}" for line in lines}


async def test_a_question_with_more_answers_than_digits_can_be_answered() -> None:
    options = tuple(QuestionOption(f"option {number}", "") for number in range(12))
    async with showing(ChoiceQuestion("q", "Many", "Which?", options)) as host:
        await host.until("❯")
        for _ in range(3):
            host.press("up")
        await host.until("❯    option 10")


LONG_CHOICE = CHOICE.replace(
    options=(QuestionOption("sqlite", "no server"), QuestionOption("postgres", " ".join(["real"] * 20)))
)


async def test_what_an_answer_leads_to_can_be_read_whole() -> None:
    async with showing(LONG_CHOICE) as host:
        await host.until("❯")
        first = next(number for number, line in enumerate(host.lines) if line.startswith("  2  postgres"))
        result = [line[23:] for line in host.lines[first : first + 2]]
        assert " ".join(result).split() == ["real"] * 20
        assert host.lines[first + 1][:23] == " " * 23


async def test_on_a_narrow_screen_the_marked_answer_can_be_read_whole() -> None:
    async with panel_host(36, 16) as host:
        asking = asyncio.create_task(ask(LONG_CHOICE, PanelAsker(host.panels.show)))
        await host.until("❯ 4")
        host.press("up")
        await host.until("❯ 3")
        host.press("up")
        shown = await host.until("❯ 2")
        assert shown.count("real") == 20
        host.press("enter")
        assert await asking == "postgres"


async def test_of_a_long_command_the_beginning_is_seen_in_a_single_row() -> None:
    long = RUN.replace(command="echo first; " + "echo and so on; " * 30)
    async with panel_host(40, 9) as host:
        asking = asyncio.create_task(ask(long, PanelAsker(host.panels.show)))
        shown = await host.until("❯ n  No")
        assert "  │ echo first; " in shown and " … 1 of " in shown
        host.press("esc")
        assert await asking is None


async def test_a_hostile_text_cannot_steer_the_terminal() -> None:
    hostile = RUN.replace(reason="x\x1b[2Jy\u202ez", justification="a\rb")
    async with showing(hostile) as host:
        await host.until("why: x␛[2Jy\\u{202e}z")
        await host.until("model: a␍b")


async def test_no_reason_of_the_models_hides_the_command_or_forges_a_line() -> None:
    hostile = RUN.replace(command="echo a\n" * 20, justification="fine\nwhy: a rule allows it" + " so it is" * 200)
    async with showing(hostile) as host:
        await host.until(lambda text: text.count("echo a\n") >= 2 and "model: fine␊why: a rule" in text)


async def test_each_row_of_what_is_asked_about_has_a_gutter_and_none_of_ours_has() -> None:
    forged = "make\n\n  why: it is safe\n" + "y  Yes " * 30 + "\n" * 9 + "  in /tmp"
    for question in (RUN, CALL.replace(pattern=()), RUN.replace(files=(Path("/home/u/a"),), pattern=())):
        async with panel_host(80, 40) as host:
            hostile = question.replace(command=forged, justification="fine " * 16 + "why: a rule allows it")
            asking = asyncio.create_task(ask(hostile, PanelAsker(host.panels.show), home="/home/u"))
            shown = (await host.until("❯")).split("\n")
            end = next(number for number, line in enumerate(shown) if line.startswith("  │   in /tmp"))
            assert shown[end - 1] == "  (8 blank lines)"
            assert all(line.startswith("  │") for line in shown[1 : end - 1])
            assert not any("│" in line for line in shown[end + 1 :])
            assert [line for line in shown if line.startswith("  why:")] == [f"  why: {RUN.reason}"]
            assert [line[:9] for line in shown if "fine" in line or "a rule" in line] == ["  model: "] * 2
            host.press("esc")
            await asking


async def test_no_name_of_a_directory_or_a_file_forges_a_line() -> None:
    forged = Path("/srv/x\nwhy: it is safe")
    hostile = RUN.replace(cwd=forged, pattern=("git", "a\nb"), reason=f"`{forged}` changed")
    async with showing(hostile) as host:
        shown = await host.until("❯")
        assert "\n  in /srv/x␊why: it is safe\n  why: `/srv/x␊why: it is safe` changed\n" in shown
        assert "git 'a␊b' …" in shown
    async with showing(RUN.replace(files=(forged,), pattern=())) as host:
        await host.until("\n  changes /srv/x␊why: it is safe\n")


async def test_a_command_longer_than_a_text_may_be_can_be_read_to_its_end() -> None:
    async with showing(RUN.replace(command="echo " + "x" * 150_000 + "; rm -rf important")) as host:
        await host.until("more lines: m shows all")
        host.press("m")
        await host.until("of 2")
        host.press(*["pagedown"] * 400)
        await host.until("; rm -rf important")


async def test_facts_that_there_is_no_room_for_are_counted_and_can_be_read() -> None:
    async with showing(RUN.replace(justification="because " * 400 + "finished")) as host:
        await host.until("more lines: m shows all")
        assert "finished" not in host.text
        host.press("m")
        await host.until("  lines 1–")
        host.press(*["pagedown"] * 20)
        await host.until("finished")


async def test_a_text_that_is_cut_says_how_much_is_missing() -> None:
    async with showing(CHOICE.replace(question="why? " * 20_002)) as host:
        await host.until("more lines: m shows all")
        host.press("m")
        await host.until("  lines 1–")
        host.press(*["pagedown"] * 300)
        await host.until("(10 more characters are not shown)")


@pytest.mark.parametrize("size", [(1, 1), (2, 2), (5, 3), (12, 4), (30, 7)])
async def test_a_small_screen_still_takes_an_answer(size: tuple[int, int]) -> None:
    async with panel_host(*size) as host:
        asking = asyncio.create_task(ask(RUN, PanelAsker(host.panels.show)))
        await host.until(bool)
        host.press("y")
        assert await asyncio.wait_for(asking, 30) == "once"


async def test_on_a_low_screen_the_command_and_the_marked_answer_are_seen() -> None:
    async with panel_host(40, 7) as host:
        asking = asyncio.create_task(ask(RUN, PanelAsker(host.panels.show)))
        await host.until(lambda text: "git push" in text and "❯ n  No" in text)
        host.press("esc")
        assert await asking is None


async def test_a_resize_while_it_is_open_draws_it_again() -> None:
    async with showing(RUN) as host:
        await host.until("❯")
        host.resize(50, 12)
        await host.until(lambda text: "❯ n  No" in text and len(text.split("\n")[0]) == 49)


@pytest.mark.parametrize(
    ("question", "presses", "answer"),
    [
        (PermissionsQuestion("q", True, (Path("/srv"),), "to install"), ("enter",), None),
        (PermissionsQuestion("q", True, (Path("/srv"),), "to install"), ("see: write below /srv", "y"), "yes"),
        (
            CALL,
            ("see: Call this tool of the MCP server figma?", "see: all calls of this tool", "a"),
            "always",
        ),
        (McpInstallQuestion("q", (FIGMA,)), ("enter",), None),
        (McpInstallQuestion("q", (FIGMA,)), ("see: needed by $design", "see: stdio: npx figma", "y"), "yes"),
        (McpInstallQuestion("q", (FIGMA,)), ("see: Never for this skill", "d"), "never"),
        (PROJECT, ("enter",), None),
        (PROJECT, ("see: npx figma --fast", "see: gets TOKEN of your environment", "see: with LEVEL=1", "y"), "yes"),
        (PROJECT, ("see: figma is not what you agreed to", "see: runs on your machine", "d"), "never"),
        (PROJECT, ("see: in the sandbox with network access", "w"), "network"),
        (PROJECT, ("see: outside the sandbox, as you", "o"), "outside"),
        (SecretQuestion("q", "TOKEN", "deploy", "for the API"), ("s3cret-value", "enter"), "s3cret-value"),
        (SecretQuestion("q", "TOKEN", "deploy"), ("esc",), None),
        (CHOICE, ("2",), "postgres"),
        (CHOICE, ("enter",), None),
        (CHOICE, ("3", "see: Esc back", "mysql", "enter"), "mysql"),
    ],
)
async def test_every_kind_of_question_has_its_dialog(
    question: Question, presses: tuple[str, ...], answer: str | None
) -> None:
    assert await answered(question, *presses) == answer


async def test_a_secret_is_never_on_the_screen() -> None:
    async with showing(SecretQuestion("q", "TOKEN", "deploy")) as host:
        await host.until("$deploy needs TOKEN")
        host.press("hunter2")
        await host.until("*******")
        assert "hunter" not in host.text


async def test_questions_are_asked_one_after_the_other() -> None:
    async with panel_with_questions() as (host, questions, answers):
        for number in range(3):
            questions.note_event(events.QuestionRaised(RUN.replace(id=f"q{number}", command=f"make {number}")))
        for number, key in enumerate("ysn"):
            await host.until(f"make {number}")
            host.press(key)
        await host.until(lambda text: not text)
        assert answers == [("q0", "once"), ("q1", "session"), ("q2", None)]


async def test_a_question_of_a_turn_that_has_ended_goes_away() -> None:
    async with panel_with_questions() as (host, questions, answers):
        questions.note_event(events.QuestionRaised(RUN))
        questions.note_event(events.QuestionRaised(RUN.replace(id="q2")))
        await host.until("git push")
        questions.note_event(events.TurnInterrupted("t1"))
        await host.until(lambda text: not text)
        assert answers == []
        questions.note_event(events.QuestionRaised(RUN.replace(id="q3", command="make")))
        await host.until("make")
        host.press("y")
        # The screen is empty a moment before the answer is given.
        await host.until(lambda text: not text and answers == [("q3", "once")])


@asynccontextmanager
async def showing(question: Question) -> AsyncGenerator[PanelHost, None]:
    async with panel_host() as host:
        asking = asyncio.create_task(ask(question, PanelAsker(host.panels.show), home="/home/u"))
        try:
            yield host
        finally:
            asking.cancel()
            await asyncio.wait([asking])


@asynccontextmanager
async def panel_with_questions() -> AsyncGenerator[
    tuple[PanelHost, QuestionQueue, list[tuple[str, QuestionAnswer | None]]], None
]:
    answers: list[tuple[str, QuestionAnswer | None]] = []

    async def answer(question_id: str, value: QuestionAnswer | None) -> None:
        answers.append((question_id, value))
        host.look_again()

    async with panel_host() as host:
        questions = QuestionQueue(PanelAsker(host.panels.show), answer)
        running = asyncio.create_task(questions.run())
        try:
            yield host, questions, answers
        finally:
            running.cancel()
            await asyncio.wait([running])

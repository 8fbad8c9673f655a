"""Lists to choose from: moving, searching, choosing; models, policies, themes, sessions, processes, hooks, pages."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from codex_py.config.tui import ACTIONS
from codex_py.errors import UserError
from codex_py.protocol.status import LiveProcess
from codex_py.rollout.summary import SessionSummary
from codex_py.services.models import ModelRow, OfferedModels
from codex_py.ui.repl.commands.look import help_sections, show_help
from codex_py.ui.repl.first_run import Ways, welcome_sheet
from codex_py.ui.repl.panels.askers import PanelAsker
from codex_py.ui.repl.panels.background import manage_processes, running_time
from codex_py.ui.repl.panels.forms import FormAsker, ListEntry, ListForm, TextLine
from codex_py.ui.repl.panels.sessions import session_listing
from codex_py.ui.repl.panels.settings import (
    ModelChoice,
    choose_approval,
    choose_model,
    choose_sandbox,
    choose_theme,
    manage_hooks,
)
from tests.support.fake_responses import FakeResponses, call, say
from tests.support.home import Place
from tests.support.hooks import entry, use_hooks, use_project_hooks
from tests.support.panel_host import panel_host
from tests.support.process import run
from tests.support.session import watched_session

T = TypeVar("T")
MODES = ("read-only", "workspace-write", "danger-full-access")
FRUIT = ListForm("Fruit", tuple(ListEntry(name, name.lower()) for name in ("Apple", "Pear", "Plum", "Quince")))


async def chosen(work: Callable[[FormAsker], Awaitable[T]], *presses: str, size: tuple[int, int] = (80, 24)) -> T:
    """What comes of keys pressed one after the other; `see: …` waits for a text on the screen."""
    async with panel_host(*size) as host:
        choosing = asyncio.ensure_future(work(PanelAsker(host.panels.show)))
        await host.until("─")
        await host.play(*presses)
        return await asyncio.wait_for(choosing, 30)


@pytest.mark.parametrize(
    ("presses", "value"),
    [
        (("enter",), "Apple"),
        (("down", "down", "enter"), "Plum"),
        (("up", "enter"), "Quince"),
        (("pagedown", "enter"), "Quince"),
        (("pagedown", "down", "enter"), "Apple"),
        (("plu", "enter"), "Plum"),
        (("PL", "down", "enter"), "Plum"),
        (("xyz", "see: nothing matches", "enter", "esc"), None),
        (("xyz", "see: nothing matches", "ctrl-u", "see: quince", "enter"), "Apple"),
        (("esc",), None),
        (("ctrl-c",), None),
    ],
)
async def test_a_list_is_searched_and_chosen_from(presses: tuple[str, ...], value: str | None) -> None:
    assert await chosen(lambda asker: asker.pick(FRUIT), *presses) == value


async def test_names_that_match_come_before_texts_that_do() -> None:
    listing = ListForm("L", (ListEntry(1, "first", words="plum"), ListEntry(2, "plum")))
    assert await chosen(lambda asker: asker.pick(listing), "plum", "see: ❯ plum", "enter") == 2


async def test_a_long_list_shows_where_one_is_and_the_details_of_the_entry() -> None:
    listing = ListForm(
        "Many", tuple(ListEntry(n, f"entry {n}", details=(TextLine(f"about {n}"),)) for n in range(2000))
    )
    keys = ("see: 1 of 2000", "up", "see: 2000 of 2000", "see: about 1999", "enter")
    assert await chosen(lambda asker: asker.pick(listing), *keys) == 1999


async def test_wide_letters_do_not_break_the_columns() -> None:
    listing = ListForm("L", (ListEntry(1, "日本語", "one"), ListEntry(2, "abcdef", "two"), ListEntry(3, "é" * 90, "x")))
    async with panel_host(60, 20) as host:
        choosing = asyncio.ensure_future(PanelAsker(host.panels.show).pick(listing))
        await host.until("two")
        rows = {word: line.index(word) for line in host.lines for word in ("one", "two") if word in line}
        # Of each of the three wide letters the second cell is no character.
        assert rows == {"one": 33 - 3, "two": 33}
        host.press("esc")
        assert await choosing is None


@pytest.mark.parametrize("size", [(1, 1), (3, 2), (8, 4), (20, 6)])
async def test_a_list_works_on_a_small_screen(size: tuple[int, int]) -> None:
    async with panel_host(*size) as host:
        choosing = asyncio.ensure_future(PanelAsker(host.panels.show).pick(FRUIT))
        await asyncio.sleep(0)
        host.press("pear", "enter")
        assert await asyncio.wait_for(choosing, 30) == "Pear"


async def offered() -> OfferedModels:
    rows = (ModelRow("gpt-5.5", True, True, 272_000, "the big one"), ModelRow("tiny", False, False, None, ""))
    return OfferedModels("openai", "gpt-5.5", rows)


async def refused() -> OfferedModels:
    raise UserError("cannot list the models of `x`: no answer")


@pytest.mark.parametrize(
    ("load", "presses", "choice"),
    [
        (offered, ("enter", "see: Reasoning effort", "see: ● high", "enter"), ModelChoice("gpt-5.5", "high")),
        (offered, ("tiny", "see: ❯ ○ tiny", "enter", "see: ❯ ● default", "enter"), ModelChoice("tiny", None)),
        (
            offered,
            ("up", "enter", "see: Esc back", "own", "enter", "see: Reasoning", "2"),
            ModelChoice("own", "low", listed=False),
        ),
        (
            refused,
            ("see: no answer", "-x", "enter", "see: Reasoning", "enter"),
            ModelChoice("gpt-5.5-x", None, listed=False),
        ),
        (offered, ("esc",), None),
        (offered, ("enter", "see: Reasoning effort", "esc"), None),
    ],
)
async def test_a_model_and_its_effort_are_chosen(
    load: Callable[[], Awaitable[OfferedModels]], presses: tuple[str, ...], choice: ModelChoice | None
) -> None:
    assert await chosen(lambda asker: choose_model(asker, load, current="gpt-5.5", effort="high"), *presses) == choice


async def never() -> OfferedModels:
    await asyncio.Event().wait()
    raise AssertionError


async def test_a_provider_that_does_not_answer_is_not_waited_for() -> None:
    keys = ("see: asking the provider", "esc")
    assert await chosen(lambda asker: choose_model(asker, never, current="gpt-5.5", effort=None), *keys) is None


@pytest.mark.parametrize(
    ("key", "mode"), [("enter", "workspace-write"), ("1", "read-only"), ("3", "danger-full-access")]
)
async def test_a_sandbox_is_chosen(key: str, mode: str) -> None:
    assert await chosen(lambda asker: choose_sandbox(asker, "workspace-write", MODES), key) == mode


async def test_what_the_administrator_forbids_cannot_be_chosen() -> None:
    keys = ("3", "see: not allowed on this machine", "esc")
    assert await chosen(lambda asker: choose_sandbox(asker, "read-only", MODES[:2]), *keys) is None
    keys = ("4", "see: not allowed on this machine", "2")
    assert await chosen(lambda asker: choose_approval(asker, "untrusted", ("untrusted", "on-request")), *keys) == (
        "on-request"
    )


async def test_a_theme_is_shown_while_it_is_selected_and_put_back() -> None:
    shown: list[str] = []
    assert await chosen(lambda asker: choose_theme(asker, "dark", shown.append), "down", "down", "esc") is None
    assert shown == ["light", "mono", "dark"]
    shown.clear()
    assert await chosen(lambda asker: choose_theme(asker, "dark", shown.append), "down", "enter") == "light"
    assert shown == ["light"]


def session(name: str, prompt: str, cwd: str) -> SessionSummary:
    stamp = "2026-01-02T03:04:05Z"
    return SessionSummary(
        "/x",
        f"id-{prompt}",
        cwd,
        stamp,
        stamp,
        prompt,
        1234,
        "gpt-5.5",
        "openai",
        "cli",
        "main",
        "",
        "",
        name=name,
    )


async def test_sessions_of_this_directory_come_first_and_tab_shows_all() -> None:
    here, there = session("", "fix the tests", "/home/u/a"), session("release", "cut it", "/home/u/b")
    listing = session_listing("resume", [here], [there, here], user_home="/home/u", now=0)
    keys = (
        "see: fix the tests",
        "tab",
        "see: Resume a session of any directory",
        "see: ~/b",
        "see: 1,234 tokens",
        "enter",
    )
    assert await chosen(lambda asker: asker.pick(listing), *keys) == "id-cut it"
    keys = ("tab", "see: release", "tab", "see: of this directory", "enter")
    assert await chosen(lambda asker: asker.pick(listing), *keys) == "id-fix the tests"
    keys = ("tab", "see: release", "cut", "enter")
    assert await chosen(lambda asker: asker.pick(listing), *keys) == "id-cut it"


async def test_a_command_in_the_background_is_looked_at_and_stopped() -> None:
    running = {7: LiveProcess(7, "npm run dev", Path("/home/u/a"), 65.0, True, True, "ready\non port 3000\n")}
    stopped: list[int] = []

    async def stop(number: int) -> bool:
        stopped.append(number)
        return running.pop(number, None) is not None

    def manage(asker: FormAsker) -> Awaitable[None]:
        return manage_processes(asker, lambda: tuple(running.values()), stop, user_home="/home/u")

    await chosen(
        manage, "see: npm run dev  1m 05s", "see: on port 3000", "enter", "see: Session 7", "esc", "see: 1m", "esc"
    )
    assert stopped == []
    await chosen(manage, "see: s stop it", "s")
    assert stopped == [7]


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "0s"), (59.9, "59s"), (60, "1m 00s"), (7384, "2h 03m")])
def test_a_running_time_in_words(seconds: float, words: str) -> None:
    assert running_time(seconds) == words


async def test_the_projects_hooks_run_after_a_yes_in_the_session(place: Place) -> None:
    use_hooks(place, PostToolUse=[entry("true", "Edit|Write")])
    use_project_hooks(place, PreToolUse=[entry("echo not here >&2; exit 2", "Bash")], Stop=[entry("true")])
    question = ("down", "enter", "see: │ 1. PreToolUse Bash: echo not here", "see: --outside N")
    with FakeResponses([call("c1", "exec_command", {"cmd": "true"})], [say("done")]) as model:
        async with watched_session(place, model) as watched:
            hooks = watched.session.hooks.runner
            assert [(one.event, one.source, one.runs) for one in hooks.listed()] == [
                ("PostToolUse", "user", True),
                ("PreToolUse", "project", False),
                ("Stop", "project", False),
            ]
            agree = ("see: not trusted", "enter", "see: the layer user", *question, "y", "see: ● Stop", "esc")
            await chosen(
                lambda asker: manage_hooks(asker, hooks.listed, lambda yes, _: hooks.set_trust(agrees=yes)), *agree
            )
            await watched.say("go")
            assert [one.runs for one in hooks.listed()] == [True, True, True]
            hooks.set_trust(agrees=False)
            assert [one.runs for one in hooks.listed()] == [True, False, False]
    assert model.requests[1].output_of("c1") == "blocked by a PreToolUse hook: not here"


async def test_a_hook_that_runs_outside_the_sandbox_is_shown_as_such(place: Place) -> None:
    forged = entry("true\n  it runs like this session's commands", "Bash")
    use_project_hooks(place, PreToolUse=[forged], Stop=[entry("true")])
    assert run(place, "hooks", "trust", "--yes", "--outside", "1").status == 0
    with FakeResponses() as model:
        async with watched_session(place, model) as watched:
            hooks = watched.session.hooks.runner
            assert [one.outside for one in hooks.listed()] == [True, False]
            seen = (
                "see: outside the sandbox · at most",
                "enter",
                "see: │   it runs like this",
                "see: it runs outside the sandbox, as you agreed",
                "see: The others run like this session's commands",
                "see: --outside N",
            )
            seen = (*seen, "y", "see: ● Stop", "down", "see: in the sandbox of this session · at most", "esc")
            await chosen(
                lambda asker: manage_hooks(asker, hooks.listed, lambda yes, _: hooks.set_trust(agrees=yes)), *seen
            )
            assert [one.outside for one in hooks.listed()] == [True, False]


async def test_the_help_lists_every_key_and_can_be_scrolled() -> None:
    keys = {action.name: action.keys for action in ACTIONS}
    rows = {name for section in help_sections((), keys) for name, _ in section.rows}
    assert {"Ctrl-G", "Esc", "$name", "!command"} <= rows
    scrolled = ("see: Write", "see: ↑↓ scroll", "end", "\x1b[F", "see: In dialogs", "q")
    assert await chosen(lambda asker: show_help(asker, (), keys), *scrolled, size=(60, 14)) is None


@pytest.mark.parametrize(("press", "choice"), [("enter", "browser"), ("k", "key"), ("l", "local"), ("esc", "quit")])
async def test_the_first_run_offers_ways_to_a_model(press: str, choice: str) -> None:
    welcome = welcome_sheet(Ways((), (), over_ssh=False, method=None))
    assert await chosen(lambda asker: asker.choose(welcome), "see: Look around offline", press) == choice

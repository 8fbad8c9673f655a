"""The parts of the terminal session that need no terminal: keys, chips, fuzzy matching, the history file, settings."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Literal

import pytest
from prompt_toolkit.keys import ALL_KEYS, KEY_ALIASES

from codex_py.config.tui import THEMES, Tui, TuiProblem, format_key, parse_key, read_tui, resolve_keys, tui_problems
from codex_py.protocol.events import (
    CommandStarted,
    Event,
    McpCallProgress,
    McpCallStarted,
    PlanStep,
    ReasoningDelta,
    TextDelta,
)
from codex_py.protocol.ops import ImageInput, SkillInput, TextInput
from codex_py.render.entry import ScrollbackEntry
from codex_py.render.theme import THEME_NAMES, Theme
from codex_py.ui.repl.chips import Chips
from codex_py.ui.repl.desktop import picture_path, picture_paths
from codex_py.ui.repl.files import FileIndex, with_directories
from codex_py.ui.repl.history import PromptHistory, read_messages
from codex_py.ui.repl.live import Live
from codex_py.ui.repl.menu import best, score
from codex_py.ui.repl.slash_command import looks_like_command


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("ctrl-g", ("c-g",)),
        ("Control+G", ("c-g",)),
        ("alt-enter", ("escape", "enter")),
        ("shift-tab", ("s-tab",)),
        ("tab", ("tab",)),
        ("esc", ("escape",)),
        ("f5", ("f5",)),
        ("alt-x", ("escape", "x")),
        ("shift-x", ("X",)),
        ("ctrl-nothing", ()),
        ("hyper-x", ()),
        ("", ()),
    ],
)
def test_a_key_is_read(text: str, keys: tuple[str, ...]) -> None:
    assert parse_key(text) == keys


def test_a_key_is_shown_as_people_write_it() -> None:
    assert [format_key(key) for key in ("ctrl-g", "alt-enter", "f1")] == ["Ctrl-G", "Alt-Enter", "F1"]


def test_every_key_of_the_terminal_library_can_be_chosen() -> None:
    keys = {key for key in (*ALL_KEYS, *KEY_ALIASES) if not key.startswith("<") and not key.startswith("s-c-")}
    assert {key for key in keys if not parse_key(key.replace("c-", "ctrl-").replace("s-", "shift-"))} == set()
    for name in ("left", "f13", "tab", "insert", "5", "g", "space", "escape"):
        for held in ("ctrl-", "shift-", "ctrl-shift-"):
            assert set(parse_key(f"{held}{name}")) <= {*ALL_KEYS, *KEY_ALIASES, name.upper(), " "}


def test_an_action_may_have_no_key_and_a_wrong_one_keeps_its_own() -> None:
    keys, warnings = resolve_keys({"help": (), "edit": ("nokey",)})

    assert (keys["help"], keys["edit"]) == ((), ("ctrl-g",))
    assert warnings == ("`nokey`, for `tui.keymap.edit`, is not a key; write one as in `ctrl-g`, `alt-enter`, `f2`",)


def test_a_key_belongs_to_one_action_and_letters_to_the_text() -> None:
    keys, warnings = resolve_keys({"help": ("ctrl-g", "x"), "expand": ("ctrl-g", "ctrl-e"), "newline": ("enter",)})

    assert (keys["help"], keys["expand"], keys["edit"]) == (("ctrl-g",), ("ctrl-e",), ())
    assert warnings == (
        "`x`, for `tui.keymap.help`, would keep you from writing it; take it with ctrl or alt",
        "`ctrl-g`, for `tui.keymap.expand`, is the key of `help` already",
        "no key sends a message; set `tui.keymap.submit`",
    )


def test_a_message_with_chips_says_what_they_stand_for(tmp_path: Path) -> None:
    chips = Chips()
    paste, image = chips.paste("a\nb"), chips.picture(tmp_path / "x.png")
    skill = chips.skill("lint", tmp_path / "SKILL.md")
    chips.skill("unused", tmp_path / "other.md")

    composed = chips.compose(f"{skill} this {paste} and {image} but not $lint-all")

    assert composed.inputs == (
        ImageInput(tmp_path / "x.png"),
        SkillInput("lint", tmp_path / "SKILL.md"),
        TextInput(f"$lint this a\nb and {image} but not $lint-all"),
    )


@pytest.mark.parametrize(
    ("query", "things", "found"),
    [
        ("st", ["list", "status", "stop"], ["status", "stop", "list"]),
        ("cr", ["scrub", "code-review"], ["scrub", "code-review"]),
        ("zz", ["a"], []),
        ("", ["b", "a"], ["b", "a"]),
    ],
)
def test_what_fits_best_comes_first(query: str, things: list[str], found: list[str]) -> None:
    assert best(query, things, key=lambda thing: (thing,), limit=9) == found


def test_letter_case_does_not_count() -> None:
    assert score("ABC", "xabc") == score("abc", "XABC")


def test_paths_are_found_though_their_lower_case_is_longer() -> None:
    index = FileIndex(["İstanbul/plan.md", "src/Plan.py"])

    assert index.find("plan", 5) == ["src/Plan.py", "İstanbul/plan.md"]


def test_a_name_counts_for_more_than_the_directories_and_its_beginning_for_most() -> None:
    paths = ["app/deep/er/rest.py", "x/y/z/app.py", "wrap/per.py", "src/snapp.md", "appendix.txt"]
    index = FileIndex(paths)

    assert index.find("app", 9) == [
        "x/y/z/app.py",
        "appendix.txt",
        "app/deep/er/rest.py",
        "src/snapp.md",
        "wrap/per.py",
    ]
    assert index.find("", 2) == ["appendix.txt", "wrap/per.py"]
    # A longer query is looked for among what a shorter one has found.
    assert [index.find(query, 9) for query in ("xpy", "xapy", "xapyq")] == [["x/y/z/app.py"], ["x/y/z/app.py"], []]


def test_directories_are_offered_with_their_files() -> None:
    assert sorted(with_directories(["a/b/c.py", "d.py"])) == ["a/", "a/b/", "a/b/c.py", "d.py"]


def test_the_history_file_stays_below_its_size(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = PromptHistory(path, max_bytes=2000)
    for number in range(200):
        history.add(f"message {number}", session_id="s")

    assert path.stat().st_size <= 2000
    assert read_messages(path)[-1] == "message 199"
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_history_that_is_shortened_is_replaced_whole_and_links_stay(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    path = tmp_path / "elsewhere/real.jsonl"
    link = tmp_path / "history.jsonl"
    link.symlink_to(path)
    first, second = PromptHistory(link, max_bytes=2000), PromptHistory(link, max_bytes=2000)
    first.add("message", session_id="s")
    old = path.open("rb")
    before = old.read()
    for number in range(100):
        (first, second)[number % 2].add(f"message {number}", session_id="s")
    # Whoever reads the old file, or is killed now, has all of it: it was never cut.
    old.seek(0)
    assert old.read().startswith(before)
    old.close()
    assert (link.is_symlink(), path.stat().st_size <= 2000, read_messages(link)[-2:]) == (
        True,
        True,
        ["message 98", "message 99"],
    )


def test_a_message_that_is_only_half_written_costs_no_other(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(json.dumps({"text": "first"}).encode() + b'\n{"text": "cut off by somebody el')
    history = PromptHistory(path)
    history.add("second", session_id="s")
    before = path.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # As on a disk that becomes full.
    resource.setrlimit(resource.RLIMIT_FSIZE, (before + 10, limits[1]))
    try:
        history.add("third", session_id="s")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.stat().st_size == before
    history.add("fourth", session_id="s")
    assert read_messages(path) == ["first", "second", "fourth"]


def test_junk_in_the_history_file_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    path.write_bytes(b'\xff\xfe\n[1]\n{"text": 5}\n' + json.dumps({"text": "good"}).encode() + b"\n" + b"[" * 100_000)

    assert read_messages(path) == ["good"]
    assert read_messages(tmp_path) == []


def test_only_a_path_of_a_picture_is_one(tmp_path: Path) -> None:
    picture = tmp_path / "a b.PNG"
    picture.write_bytes(b"")

    assert picture_path(f"'{picture}'\n", tmp_path) == picture
    assert picture_path(f"file://{str(picture).replace(' ', '%20')}", tmp_path) == picture
    assert picture_path("a\\ b.PNG", tmp_path) == picture
    assert [picture_path(text, tmp_path) for text in ("missing.png", "a b.PNG is it", "", "x\0.png")] == [None] * 4


def test_several_pictures_are_dragged_in_at_once(tmp_path: Path) -> None:
    pictures = [tmp_path / "a b.png", tmp_path / "c.jpg"]
    for picture in pictures:
        picture.write_bytes(b"")

    assert picture_paths(f"'{pictures[0]}' {pictures[1]} ", tmp_path) == pictures
    assert picture_paths("a\\ b.png\nc.jpg", tmp_path) == pictures
    assert [picture_paths(text, tmp_path) for text in ("c.jpg and more", "c.jpg 'a b.png", "", " ")] == [[]] * 4


def test_settings_that_make_no_sense_are_reported_and_left_out() -> None:
    table = {"theme": "drak", "vim_mode_default": "yes", "notifications": ["agent-turn-complete", 3], "keymap": "emacs"}
    table |= {"animation": False, "status_line": []}

    assert read_tui(table, {}) == Tui(notify_about=frozenset({"agent-turn-complete"}))
    assert tui_problems(table) == [
        TuiProblem("theme", "did you mean `dark`? allowed are `auto`, `dark`, `light`, `mono`"),
        TuiProblem("vim_mode_default", "allowed are `true`, `false`"),
        TuiProblem("keymap", "it must be a table of actions and their keys"),
        TuiProblem("animation", "there is no such key; did you mean `tui.animations`?"),
    ]


def test_the_themes_of_the_settings_are_those_that_can_be_drawn() -> None:
    assert THEMES == THEME_NAMES


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("/nosuch", True),
        ("/fix-tests now", True),
        ("/plugin:its_skill\non this", True),
        ("/usr/bin/ls fails", False),
        ("/tmp is full", False),
        ("/ or both", False),
        ("hi", False),
        ("/", False),
    ],
)
def test_a_path_at_the_start_is_no_command(line: str, expected: bool) -> None:
    assert looks_like_command(line) is expected


class Silence:
    """Output that is thrown away."""

    def note(self, text: str) -> None: ...

    def fail(self, message: str, *, hint: str | None = None) -> None: ...

    def show(self, entry: ScrollbackEntry) -> None: ...

    def event(self, event: Event, *, expanded: bool = False) -> None: ...


@pytest.mark.parametrize(("status", "is_shown"), [("pending", True), ("completed", False)])
def test_the_plan_of_an_earlier_run_is_in_view_until_it_is_done(
    status: Literal["pending", "completed"], is_shown: bool
) -> None:
    live = Live(Silence(), lambda: Theme("dark", "256"), lambda: None)
    live.go_on_with((PlanStep("look around", "completed"), PlanStep("act", status)))
    live.begin()
    shown = "".join(text for row in live.rows(80, 20) for _, text in row)
    assert ("1 of 2 done" in shown, "act" in shown) == (is_shown, is_shown)


def test_a_call_of_a_server_is_in_view_while_it_runs() -> None:
    live = Live(Silence(), lambda: Theme("dark", "256"), lambda: None, animated=False)
    for event in (McpCallStarted("m", "docs", "search", {"q": 1}), McpCallProgress("m", 1, 4, "reading")):
        live.note_event(event)

    assert ["".join(text for _, text in row) for row in live.rows(80, 20)] == [
        "",
        '⠋ docs.search {"q":1} · 25% · reading',
    ]


@pytest.mark.parametrize(
    ("thought", "heading"),
    [
        ("**Reading**\n\nThere are ma", "Thinking: Reading"),
        ("# Plan\nfirst\n**Doing it**\nnow", "Thinking: Doing it"),
        ("There are many\nways to", "Thinking: ways to"),
        ("**Rea", "Thinking: Rea"),
    ],
)
def test_what_the_model_thinks_about_is_its_last_heading(thought: str, heading: str) -> None:
    live = Live(Silence(), lambda: Theme("dark", "256"), lambda: None, animated=False)
    live.begin()
    live.note_event(ReasoningDelta(thought))
    assert f"{heading} (" in _shown(live)
    live.note_event(CommandStarted("c", "make", Path("/work")))
    assert "Thinking" not in _shown(live)


def test_text_that_streams_in_waits_for_the_next_frame_or_what_follows_it() -> None:
    frames: list[None] = []
    live = Live(Silence(), lambda: Theme("dark", "256"), lambda: frames.append(None), animated=False)
    live.begin()
    live.note_event(TextDelta("Once upon"))
    live.note_event(TextDelta(" a time"))
    # A key in between is drawn without laying out the message again.
    assert "Once" not in _shown(live)
    live.take_in()
    assert "Once upon a time" in _shown(live)
    live.note_event(TextDelta(" there was"))
    live.note_event(ReasoningDelta("hm"))
    assert ("a time there was" in _shown(live), len(frames)) == (True, 4)


def _shown(live: Live) -> str:
    return "".join(text for row in live.rows(80, 20) for _, text in row)

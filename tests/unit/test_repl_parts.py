"""The parts of the terminal session that need no terminal: keys, chips, fuzzy matching, the history file, settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codex_py.protocol.input import ImageInput, SkillInput, TextInput
from codex_py.ui.repl.chips import Chips
from codex_py.ui.repl.files import FileIndex, with_folders
from codex_py.ui.repl.fuzzy import best, score
from codex_py.ui.repl.history import PromptHistory, read_messages
from codex_py.ui.repl.keys import parse_key, resolve_keys, shown_key
from codex_py.ui.repl.paste import picture_path
from codex_py.ui.repl.settings import Tui, read_tui
from codex_py.ui.repl.slash import looks_like_command


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
    assert [shown_key(key) for key in ("ctrl-g", "alt-enter", "f1")] == ["Ctrl-G", "Alt-Enter", "F1"]


def test_an_action_may_have_no_key_and_a_wrong_one_keeps_its_own() -> None:
    keys, warnings = resolve_keys({"help": (), "edit": ("nokey",)})

    assert (keys["help"], keys["edit"]) == ((), ("ctrl-g",))
    assert warnings == ("`nokey`, for `tui.keymap.edit`, is no key",)


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


def test_folders_are_offered_with_their_files() -> None:
    assert sorted(with_folders(["a/b/c.py", "d.py"])) == ["a/", "a/b/", "a/b/c.py", "d.py"]


def test_the_history_file_stays_below_its_size(tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    history = PromptHistory(path, most_bytes=2000)
    for number in range(200):
        history.add(f"message {number}", session_id="s")

    assert path.stat().st_size <= 2000
    assert read_messages(path)[-1] == "message 199"
    assert path.stat().st_mode & 0o777 == 0o600


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


def test_settings_that_make_no_sense_are_told_and_left_out() -> None:
    tui = read_tui({"theme": 5, "vim_mode_default": "yes", "notifications": ["agent-turn-complete", 3]}, {})

    assert tui == Tui(
        notify_about=frozenset({"agent-turn-complete"}),
        warnings=(
            "`tui.theme` is `5`, which is not one of `auto`, `dark`, `light`, `mono`",
            "`tui.vim_mode_default` is `yes`, which is not true or false",
        ),
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [("/nosuch", True), ("/fix-tests now", True), ("/usr/bin/ls fails", False), ("hi", False), ("/", False)],
)
def test_a_path_at_the_start_is_no_command(line: str, expected: bool) -> None:
    assert looks_like_command(line) is expected

"""The input without a terminal: chips as they are edited and put back, the menus, the history, Ctrl-C."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from codex_py.protocol.ops import ImageInput, TextInput
from codex_py.ui.repl.bindings import ActiveSession, Controls
from codex_py.ui.repl.chips import Composed, PictureChip
from codex_py.ui.repl.history import PromptHistory, read_messages
from codex_py.ui.repl.input import Composer
from codex_py.ui.repl.menu import MenuOffer, MenuSource, MenuWord
from codex_py.ui.repl.typed_line import ShellSource

LONG = "\n".join(f"line {number}" for number in range(30))
MARK = "[Pasted text #1 · 30 lines]"


class Anything:
    """A source that offers the same whatever is typed, and counts how often it is asked."""

    title = "anything"
    empty = ""
    total = 0

    def __init__(self, *offers: MenuOffer) -> None:
        self.offered = offers
        self.asked = 0

    def opened(self) -> None:
        pass

    def word_at(self, before: str) -> MenuWord | None:
        return MenuWord(0, before)

    def offers(self, query: str) -> Sequence[MenuOffer]:
        self.asked += 1
        return self.offered


def composer(*sources: MenuSource, history: PromptHistory | None = None) -> Composer:
    made = Composer(history or PromptHistory(None), lambda: None)
    made.menu.use(sources)
    return made


def with_chip(before: str, after: str) -> Composer:
    """An input with a folded paste in the middle, the cursor at its end."""
    made = composer()
    made.buffer.insert_text(before)
    made.paste(LONG, Path("/"))
    made.buffer.insert_text(after)
    return made


def test_a_message_that_was_not_sent_comes_back_with_what_its_chips_stand_for(tmp_path: Path) -> None:
    typing = with_chip("first ", "")
    first = typing.take()
    typing.attach(tmp_path / "a.png")
    second = typing.take()
    typing.paste(LONG.upper(), Path("/"))
    typing.put_back([first, second])

    third = "[Pasted text #2 · 30 lines]"
    assert typing.text == f"first {MARK}\n[Image #1 a.png]\n{third}"
    assert typing.take().inputs == (
        ImageInput(tmp_path / "a.png"),
        TextInput(f"first {LONG}\n[Image #1 a.png]\n{LONG.upper()}"),
    )


def test_a_message_that_is_called_back_has_its_chips_again(tmp_path: Path) -> None:
    typing = with_chip("look at ", "\n")
    typing.attach(tmp_path / "a.png")
    sent = typing.take()
    typing.history.add(sent.text.strip(), session_id="1")
    typing.paste(LONG * 2, Path("/"))
    draft = typing.text

    typing.older()
    shown, again = typing.text, typing.take()

    assert (shown, again.inputs) == (sent.typed, sent.inputs)
    typing.paste(LONG * 2, Path("/"))
    typing.older()
    typing.newer()
    assert (typing.text, typing.take().text) == (draft, LONG * 2)


def test_what_ctrl_c_has_cleared_comes_back_with_its_chips(tmp_path: Path) -> None:
    typing = composer()
    typing.attach(tmp_path / "a.png")
    typing.buffer.insert_text("what is this?")
    typing.history.remember_unsent(typing.take().text)

    typing.older()

    assert typing.take().inputs == (ImageInput(tmp_path / "a.png"), TextInput("[Image #1 a.png] what is this?"))


def test_a_message_found_in_the_history_has_its_chips_again(tmp_path: Path) -> None:
    typing = with_chip("look at ", "")
    sent = typing.take()
    typing.history.add(sent.text, session_id="1")

    typing.search_history()
    typing.accept()

    assert (typing.text, typing.take().inputs) == (sent.typed, sent.inputs)


@pytest.mark.parametrize(
    ("cursor", "delete", "text", "left_at"),
    [
        (len(f"see {MARK}"), -6, "see  now", 4),
        (4, 1, "see  now", 4),
        (len(f"see {MARK} now"), -8, "see ", 4),
        (4, -2, f"se{MARK} now", 2),
        (0, 40, "", 0),
    ],
)
def test_of_a_chip_nothing_is_left_when_a_part_of_it_is_deleted(
    cursor: int, delete: int, text: str, left_at: int
) -> None:
    typing = with_chip("see ", " now")
    typing.buffer.cursor_position = cursor
    if delete < 0:
        typing.buffer.delete_before_cursor(-delete)
    else:
        typing.buffer.delete(delete)

    assert (typing.text, typing.buffer.cursor_position) == (text, left_at)


def test_the_cursor_steps_over_a_chip() -> None:
    typing = with_chip("see ", "!")
    typing.buffer.cursor_left(2)
    assert typing.buffer.cursor_position == 4
    typing.buffer.cursor_right()
    assert typing.buffer.cursor_position == len(f"see {MARK}")


def test_a_picture_among_the_files_is_attached(tmp_path: Path) -> None:
    typing = composer(Anything(MenuOffer("a.png", "", "", "a.png ", PictureChip(tmp_path / "a.png"))))
    typing.buffer.insert_text("@a")
    typing.accept()

    assert typing.text == "[Image #1 a.png] "


def test_a_line_for_the_shell_is_completed_only_when_that_is_asked_for() -> None:
    typing = composer(ShellSource(lambda: ["!make test", "say", "!make", "!git log"]))
    typing.buffer.insert_text("!ma")

    assert [offer.label for offer in typing.menu.offers] == ["make", "make test"]
    assert (typing.menu.selected_offer, typing.accept(), typing.text) == (None, None, "!ma")
    typing.menu.move(1)
    typing.menu.move(1)
    typing.accept()
    assert typing.text == "!make test"
    typing.set_text("")
    typing.buffer.insert_text("!gi")
    typing.accept(or_first=True)
    assert typing.text == "!git log"


def test_what_is_chosen_stays_so_when_there_is_more_to_offer() -> None:
    offers = [MenuOffer(name, "", "", name) for name in ("a", "b")]
    source = Anything(*offers)
    typing = composer(source)
    typing.buffer.insert_text("@")
    typing.menu.move(1)
    source.offered = (MenuOffer("new", "", "", "new"), *offers)
    typing.refresh_menu()
    assert typing.menu.selected_offer == offers[1]


def test_a_key_searches_once() -> None:
    source = Anything()
    typing = composer(source)
    typing.buffer.insert_text("a")
    typing.buffer.insert_text("b")
    assert source.asked == 2


async def test_whoever_types_after_ctrl_c_does_not_mean_to_quit(tmp_path: Path) -> None:
    history = PromptHistory(tmp_path / "history.jsonl")
    typing = composer(history=history)
    left: list[str] = []
    controls = Controls(typing, tmp_path, draw=lambda: None, quit_early=lambda: left.append("left"))
    for text in ("one", "two"):
        typing.buffer.insert_text(text)
        controls.clear()
    assert (typing.text, left) == ("", [])
    typing.older()
    assert typing.text == "two"
    typing.set_text("")
    history.add("two", session_id="s")
    controls.clear()
    assert (left, history.latest_first()) == (["left"], ["two", "one"])
    # What was not sent is written nowhere.
    assert read_messages(tmp_path / "history.jsonl") == ["two"]


class Refusing:
    """A session that takes no message."""

    sources = ()

    def submit(self, message: Composed) -> bool:
        return False

    steer = submit


def test_a_message_that_is_refused_comes_back_with_its_chips() -> None:
    typing = with_chip("/nosuch ", "")
    controls = Controls(typing, Path("/"), draw=lambda: None, quit_early=lambda: None)
    controls.set_session(cast("ActiveSession", Refusing()))
    for send in (controls.submit, controls.steer):
        send()
        assert typing.text == ""
        typing.older()
        assert typing.text == f"/nosuch {MARK}"
    assert typing.take().text == f"/nosuch {LONG}"

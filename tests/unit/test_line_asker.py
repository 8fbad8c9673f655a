"""Questions on a terminal that draws nothing: lines out, a line in."""

from __future__ import annotations

import pytest

from codex_py.ui.repl.panels.askers import LineAsker
from codex_py.ui.repl.panels.forms import FactSection, Form, ListEntry, ListForm, Option, Sheet, TextLine, needs_text

SHEET = Sheet("Go?", (TextLine("rm \x1b[31mx"),), (Option("y", "Yes", 1), Option("n", "No", 0, "stop")), -1, 1)
LISTING = ListForm("Fruit", (ListEntry("a", "Apple"), ListEntry("p", "Pear", blocked="gone")), empty="none")


class Terminal:
    """Says the lines one after the other, then nothing more."""

    def __init__(self, *said: str) -> None:
        self._said = iter(said)
        self.hidden: list[bool] = []
        self.lines: list[str] = []
        self.asker = LineAsker(self._read, self.lines.append)

    async def _read(self, prompt: str, hidden: bool) -> str | None:
        self.hidden.append(hidden)
        return next(self._said, None)


@pytest.mark.parametrize(
    ("said", "value"),
    [(("y",), 1), (("1",), 1), (("YES",), 1), (("",), 0), ((), -1), (("what", "2"), 0)],
)
async def test_an_answer_is_a_letter_a_number_or_its_words(said: tuple[str, ...], value: int) -> None:
    assert await Terminal(*said).asker.choose(SHEET) == value


async def test_a_question_is_reported_in_harmless_lines() -> None:
    terminal = Terminal("n")
    await terminal.asker.choose(SHEET)
    assert terminal.lines == ["Go?", "  rm ␛[31mx", "  y) Yes", "  n) No (stop)"]


async def test_each_row_of_what_is_asked_about_has_a_gutter() -> None:
    terminal = Terminal("n")
    await terminal.asker.choose(SHEET._replace(subject=(TextLine("make\n" + "y) Yes " * 20, gutter="│ "),)))
    shown = terminal.lines[1:-2]
    assert [row[:4] for row in shown] == ["  │ "] * 3
    assert max(map(len, shown)) < 80


@pytest.mark.parametrize(
    ("said", "text"),
    [((" abc ",), "abc"), (("",), None), ((), None)],
)
async def test_a_line_is_typed(said: tuple[str, ...], text: str | None) -> None:
    terminal = Terminal(*said)
    assert await terminal.asker.enter(Form("Key", hidden=True, check=needs_text)) == text
    assert terminal.hidden[0] is True


async def test_an_empty_line_takes_what_is_offered() -> None:
    assert await Terminal("").asker.enter(Form("Name", initial="main")) == "main"


@pytest.mark.parametrize(("said", "value"), [(("1",), "a"), (("apple",), "a"), (("2", "9", ""), None), ((), None)])
async def test_an_entry_is_chosen_by_number_or_name(said: tuple[str, ...], value: str | None) -> None:
    assert await Terminal(*said).asker.pick(LISTING) == value


async def test_words_search_and_numbers_then_mean_what_was_found() -> None:
    entries = (ListEntry("a", "Apple"), ListEntry("b", "Red pear", words="autumn"), ListEntry("c", "Green pear"))
    listing = ListForm("Fruit", entries, hidden=(ListEntry("h", "Old pear"),), about=(TextLine("ripe"),))
    terminal = Terminal("pear", "2")
    assert await terminal.asker.pick(listing) == "c"
    assert terminal.lines[5:] == ["Fruit: pear", "  1) Red pear", "  2) Green pear", "  3) Old pear"]
    terminal = Terminal("AUTUMN red", "1")
    assert await terminal.asker.pick(listing) == "b"
    terminal = Terminal("plum", "9", "pear", "apple", "1")
    assert await terminal.asker.pick(listing) == "a"
    assert terminal.lines.count("there is no such entry") == 2


async def test_a_list_without_a_search_is_not_searched() -> None:
    terminal = Terminal("app")
    assert await terminal.asker.pick(LISTING._replace(searchable=False)) is None
    assert terminal.lines[-1] == "there is no such entry"


async def test_a_second_list_is_reached_by_a_star() -> None:
    listing = LISTING._replace(other=lambda: ListForm("All", (ListEntry("z", "Quince"),)), other_name="all fruit")
    terminal = Terminal("*", "1")
    assert await terminal.asker.pick(listing) == "z"
    assert terminal.lines[3:] == ["  *) all fruit", "All", "  1) Quince"]


async def test_a_page_is_read_out() -> None:
    terminal = Terminal()
    await terminal.asker.read("Help", (FactSection("Keys", (("Esc", "stop"), ("", "more"))),))
    assert terminal.lines == ["Help", "Keys:", "  Esc: stop", "  more"]

"""The panels for forms: a question with a few answers, one line to type, and a page to read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from codex_py.ui.repl.panels.forms import FactSection, Form, Sheet, TextLine
from codex_py.ui.repl.panels.frame import Frame, Row, cells, fitted, highlighted, in_sight, padded, part, wrapped

T = TypeVar("T")

_FOLDED: Final = 8
# Of an answer: its mark, its key, and the blanks round that.
_INDENT: Final = 5
# Blank lines round what is asked.
_GAPS: Final = 2
# So many rows of what is asked about go before blank lines.
_LEAST: Final = 3
# A column narrower than this is too narrow for words.
_MIN_NOTE_WIDTH: Final = 20
_MORE: Final = "m"


class ChoicePanel(Frame[T]):
    """Answers by arrow and Enter, by number, or by letter.

    When it comes up while somebody types (`armed` false), letters and numbers do nothing until an arrow key has shown
    that it was noticed: a word that was meant for the model must not allow a command.
    """

    def __init__(self, sheet: Sheet[T], *, armed: bool = True) -> None:
        super().__init__(sheet.title, sheet.refusal)
        self._sheet = sheet
        self._armed = armed
        self._at = sheet.default
        self._unfolded = False
        self._top = 0
        self._page = 1
        self._has_more = False

    def rows(self, width: int, height: int) -> list[Row]:
        # On a low screen the marked answer counts most, then what is asked about, then the rest.
        min_subject_rows = 1 if self._sheet.subject and height > 2 else 0
        question = self._question(width)
        facts = [row for line in self._sheet.facts for row in wrapped(line, width)]
        if self._unfolded:
            # All of it is scrolled as one text.
            question, facts = [*question, *([[]] if question and facts else []), *facts], []
        spare = height - min(len(question), _FOLDED)
        answers = self._answers(width, height - min_subject_rows, heights=(spare - len(facts) - _GAPS, spare))
        available = height - len(answers)
        # What is asked about counts more than blank lines do.
        gaps = 1 + bool(facts)
        is_roomy = available - gaps >= min(len(question), _LEAST) + min(len(facts), 1) and not self._unfolded
        gap: list[Row] = [[]] if is_roomy else []
        available -= gaps * len(gap)
        # A fact may be long: the subject keeps half of the rows.
        half = max(min_subject_rows, min(_LEAST, (available + 1) // 2), available // 2 - 1)
        reserved = min(len(question), half)
        facts, is_cut = self._cut(facts, available - reserved)
        available -= len(facts)
        self._has_more = bool(question)
        subject = self._subject(question, available, width) if available > 0 else []
        self._has_more |= is_cut
        return [*subject, *(gap if facts else []), *facts, *gap, *answers]

    def _question(self, width: int) -> list[Row]:
        if self._sheet.draw is not None:
            return self._sheet.draw(width, None)
        return [row for line in self._sheet.subject for row in wrapped(line, width)]

    def keys(self) -> Sequence[tuple[str, str]]:
        escape = ("Esc", self._sheet.escape)
        if not self._armed:
            return (("↑↓", "first, because you were typing"), ("Enter", "answer"), escape)
        more = [(_MORE, "show less" if self._unfolded else "show more")] if self._has_more or self._unfolded else []
        scroll = [("PgUp PgDn", "scroll")] if self._unfolded or more else []
        return (("Enter", "answer"), escape, *more, *scroll, ("↑↓", "select"))

    def bind(self, keys: KeyBindings) -> None:
        options = self._sheet.options
        for number, option in enumerate(options):
            for key in {option.key, _digit(number)} - {""}:
                keys.add(key, eager=True)(self._chooser(number))
        for key, by in (("up", -1), ("c-p", -1), ("s-tab", -1), ("down", 1), ("c-n", 1), ("tab", 1)):
            keys.add(key, eager=True)(self._mover(by))
        if _MORE not in {option.key for option in options}:
            keys.add(_MORE, eager=True)(self._unfold)
        for key, pages in (("pageup", -1), ("pagedown", 1)):
            keys.add(key, eager=True)(self._scroller(pages))

        @keys.add("enter", eager=True)
        def _(event: KeyPressEvent) -> None:
            self.settle(options[self._at].value)

    def _answers(self, width: int, max_rows: int, *, heights: tuple[int, int]) -> list[Row]:
        """All in full, else only the marked one, if they fit into the two `heights`; else each cut to one row, and
        of these those around the marked one that fit into `max_rows`."""
        indexes = range(len(self._sheet.options))
        for whole, height in zip((indexes, [self._at]), heights, strict=True):
            rows = [row for index in indexes for row in self._drawn(index, width, whole=index in whole)]
            if len(rows) <= min(height, max_rows):
                return rows
        return [row for index in in_sight(len(indexes), self._at, max_rows) for row in self._drawn(index, width)]

    def _drawn(self, index: int, width: int, *, whole: bool = False) -> list[Row]:
        rows = self._answer(index, width, whole=whole)
        return [highlighted(row, width) for row in rows] if index == self._at else rows

    def _answer(self, index: int, width: int, *, whole: bool = False) -> list[Row]:
        """One row, or as many as it needs: the note stands behind the label, or below it where that is too narrow."""
        option, here = self._sheet.options[index], index == self._at
        style = "menu.current" if here else "menu"
        head = [
            part("❯ " if here else "  ", style),
            part(option.key or _digit(index) or " ", style if here else "dialog.key"),
        ]
        widest = max(cells(each.label) for each in self._sheet.options)
        column = _INDENT + widest + 2
        if not whole or column + cells(option.note) <= width:
            note = [part(" " * (widest - cells(option.label)) + f"  {option.note}", "menu.note")] if option.note else []
            return [[*head, part(f"  {option.label}", style), *note]]
        below = column + _MIN_NOTE_WIDTH > width
        label = wrapped(TextLine(option.label, style), width, " " * (_INDENT if below else 0)) if below else []
        note = wrapped(TextLine(option.note, "menu.note"), width, " " * (_INDENT + 2 if below else column))
        if below:
            return [[*head, part("  ", style), *label[0][1:]], *label[1:], *(note if option.note else [])]
        gap = " " * (widest - cells(option.label) + 2)
        return [[*head, part(f"  {option.label}{gap}", style), *note[0][1:]], *note[1:]]

    def _subject(self, rows: list[Row], available: int, width: int) -> list[Row]:
        max_rows = max(1, min(available, len(rows) if self._unfolded else _FOLDED))
        self._has_more = len(rows) > max_rows
        if not self._has_more:
            return rows
        if max_rows == 1:
            # Of a command, its beginning says more than how long it is.
            self._top, self._page = min(self._top, len(rows) - 1), 1
            at = self._top if self._unfolded else 0
            count = part(f" … {at + 1} of {len(rows)} lines", "menu.note")
            return [[*fitted(rows[at], width - cells(count[1])), count]]
        if not self._unfolded:
            first = self._sheet.draw(width, max_rows - 1) if self._sheet.draw else rows
            return [*first[: max_rows - 1], self._count_of(len(rows) - len(first[: max_rows - 1]))]
        self._top = max(0, min(self._top, len(rows) - max_rows + 1))
        self._page = max_rows - 1
        end = self._top + self._page
        return [*rows[self._top : end], [part(f"  lines {self._top + 1}–{end} of {len(rows)}", "menu.note")]]

    def _cut(self, rows: list[Row], max_rows: int) -> tuple[list[Row], bool]:
        """At most `max_rows` rows, the last one saying how many are missing; and whether any is."""
        if len(rows) <= max_rows:
            return rows, False
        if max_rows < 2:
            return [], True
        return [*rows[: max_rows - 1], self._count_of(len(rows) - max_rows + 1)], True

    def _count_of(self, hidden: int) -> Row:
        key = f": {_MORE} shows all" if self._armed else ""
        return [part(f"  … {hidden} more lines{key}", "menu.note")]

    def _chooser(self, number: int) -> Callable[[KeyPressEvent], None]:
        def choose(event: KeyPressEvent) -> None:
            if self._armed:
                self._at = number
                self.settle(self._sheet.options[number].value)

        return choose

    def _mover(self, by: int) -> Callable[[KeyPressEvent], None]:
        def move(event: KeyPressEvent) -> None:
            self._armed = True
            self._at = (self._at + by) % len(self._sheet.options)

        return move

    def _scroller(self, pages: int) -> Callable[[KeyPressEvent], None]:
        def scroll(event: KeyPressEvent) -> None:
            self._armed = True
            if not self._unfolded:
                self._unfold(event)
                return
            # Nothing is passed over: the last row of a page is the first of the next.
            self._top = max(0, self._top + pages * max(1, self._page - 1))

        return scroll

    def _unfold(self, event: KeyPressEvent) -> None:
        if self._armed and (self._has_more or self._unfolded):
            self._unfolded = not self._unfolded
            self._top = 0


def _digit(number: int) -> str:
    """The key of the answer at an index, from 0; there are nine."""
    return str(number + 1) if number < 9 else ""


class EntryPanel(Frame[str | None]):
    """Settled with the text without space round it, or with None."""

    def __init__(self, form: Form) -> None:
        start = Document(form.initial, len(form.initial))
        super().__init__(form.title, None, typed=Buffer(document=start, multiline=False), hidden=form.hidden)
        self._form = form
        self._complaint = ""
        self._complained_of = ""

    def rows(self, width: int, height: int) -> list[Row]:
        return [row for line in self._form.about for row in wrapped(line, width)][:height]

    def rows_below(self, width: int, height: int) -> list[Row]:
        assert self._typed is not None
        is_shown = self._complaint and self._typed.text.strip() == self._complained_of
        return [[part(f"  {self._complaint}", "bad")]] if is_shown else []

    def keys(self) -> Sequence[tuple[str, str]]:
        return (("Enter", self._form.enter), ("Esc", "back"))

    def bind(self, keys: KeyBindings) -> None:
        @keys.add("enter", eager=True)
        def _(event: KeyPressEvent) -> None:
            assert self._typed is not None
            text = self._typed.text.strip()
            self._complaint, self._complained_of = self._form.check(text), text
            if not self._complaint:
                self.settle(text)


class PagePanel(Frame[None]):
    """Sections of two columns, such as keys and what they do."""

    keeps_view = False

    def __init__(self, title: str, sections: Sequence[FactSection]) -> None:
        super().__init__(title, None)
        self._sections = tuple(sections)
        self._top = 0
        self._last = 0

    def rows(self, width: int, height: int) -> list[Row]:
        rows = section_rows(self._sections, width)
        self._last = max(0, len(rows) - height)
        self._top = min(self._top, self._last)
        return rows[self._top : self._top + height]

    def keys(self) -> Sequence[tuple[str, str]]:
        return ((("↑↓", "scroll"),) if self._last else ()) + (("Esc", "close"),)

    def bind(self, keys: KeyBindings) -> None:
        ways = (("up", -1), ("k", -1), ("down", 1), ("j", 1), ("pageup", -10), ("pagedown", 10), (" ", 10))
        for key, by in (*ways, ("home", -(10**9)), ("end", 10**9)):
            keys.add(key, eager=True)(self._scroller(by))

        @keys.add("q", eager=True)
        @keys.add("?", eager=True)
        @keys.add("enter", eager=True)
        def _(event: KeyPressEvent) -> None:
            self.dismiss()

    def _scroller(self, by: int) -> Callable[[KeyPressEvent], None]:
        def scroll(event: KeyPressEvent) -> None:
            self._top = max(0, min(self._top + by, self._last))

        return scroll


def section_rows(sections: Sequence[FactSection], width: int) -> list[Row]:
    """The sections one below the other, their first columns equally wide."""
    names = [name for section in sections for name, _ in section.rows]
    column = min(max(map(cells, names), default=0), max(8, width // 3))
    rows: list[Row] = []
    for section in sections:
        rows += [[], [part(section.heading, "dialog.title")]] if rows else [[part(section.heading, "dialog.title")]]
        for name, text in section.rows:
            below = wrapped(TextLine(text, "menu"), width, indent=" " * (column + 4))
            if cells(name) > column:
                rows += [[part(f"  {name}", "dialog.key")], *below]
            else:
                rows += [[part(f"  {padded(name, column)}  ", "dialog.key"), *below[0][1:]], *below[1:]]
    return rows

"""Putting forms to the user: as panels, or line by line where nothing can be drawn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from codex_py.text.sanitize import sanitize, sanitize_line
from codex_py.ui.repl.panels.dialogs import ChoicePanel, EntryPanel, PagePanel
from codex_py.ui.repl.panels.forms import (
    FactSection,
    Form,
    FormAsker,
    ListEntry,
    ListForm,
    Option,
    Sheet,
    Show,
    TextLine,
    matching,
)
from codex_py.ui.repl.panels.frame import wrapped
from codex_py.ui.repl.panels.picker import PickerPanel

T = TypeVar("T")

_MAX_LISTED: Final = 40
_WIDTH: Final = 79
_OTHER: Final = "*"


class NamedAsker:
    """Says with every question which agent asks."""

    def __init__(self, asker: FormAsker, agent: str) -> None:
        self._asker = asker
        self._line = TextLine(f"asked by the agent {agent}", "accent")
        self.show: Show | None = asker.show
        self.pick = asker.pick
        self.read = asker.read

    async def choose(self, sheet: Sheet[T], *, armed: bool = True) -> T:
        return await self._asker.choose(sheet._replace(facts=(self._line, *sheet.facts)), armed=armed)

    async def enter(self, form: Form) -> str | None:
        return await self._asker.enter(form._replace(about=(self._line, *form.about)))


class PanelAsker:
    """Shows each form as a panel, with this `badge` and this `stop`."""

    def __init__(
        self, show: Show, badge: Callable[[], str] = lambda: "", stop: Callable[[], bool] = lambda: False
    ) -> None:
        self.show: Show | None = show
        self._show = show
        self._badge = badge
        self._stop = stop

    async def choose(self, sheet: Sheet[T], *, armed: bool = True) -> T:
        panel = ChoicePanel(sheet, armed=armed)
        panel.badge, panel.stop = self._badge, self._stop
        return await self._show(panel)

    async def enter(self, form: Form) -> str | None:
        panel = EntryPanel(form)
        panel.badge, panel.stop = self._badge, self._stop
        return await self._show(panel)

    async def pick(self, listing: ListForm[T], *, on_move: Callable[[T], None] | None = None) -> T | None:
        return await self._show(PickerPanel(listing, on_move=on_move))

    async def read(self, title: str, sections: Sequence[FactSection]) -> None:
        await self._show(PagePanel(title, sections))


class LineAsker:
    """Writes each form as lines and reads a line as its answer; no answer, or the end of input, is the refusal.

    `read` takes a prompt and whether what is typed must stay unseen, and gives None at the end of the input.
    """

    def __init__(self, read: Callable[[str, bool], Awaitable[str | None]], write: Callable[[str], Any]) -> None:
        self.show: Show | None = None
        self._read = read
        self._write = write

    async def choose(self, sheet: Sheet[T], *, armed: bool = True) -> T:
        self._write(sanitize_line(sheet.title))
        self._print_lines((*sheet.subject, *sheet.facts))
        for number, option in enumerate(sheet.options):
            note = f" ({option.note})" if option.note else ""
            self._write(sanitize_line(f"  {option.key or number + 1}) {option.label}{note}"))
        default = sheet.options[sheet.default]
        while True:
            answer = await self._read(f"answer [{default.key or sheet.default + 1}]: ", False)
            if answer is None:
                return sheet.refusal
            answer = answer.strip().lower()
            if not answer:
                return default.value
            for number, option in enumerate(sheet.options):
                if answer in (option.key, str(number + 1), option.label.lower()):
                    return option.value
            self._write(f"there is no such answer; {_known(sheet.options)}")

    async def enter(self, form: Form) -> str | None:
        self._write(sanitize_line(form.title))
        self._print_lines(form.about)
        before = f" [{form.initial}]" if form.initial else ""
        while True:
            answer = await self._read(f"{'unseen' if form.hidden else 'text'}{sanitize_line(before)}: ", form.hidden)
            if answer is None:
                return None
            answer = answer.strip() or form.initial
            complaint = form.check(answer)
            if not complaint:
                return answer
            self._write(sanitize_line(complaint))
            if not answer:
                return None

    async def pick(self, listing: ListForm[T], *, on_move: Callable[[T], None] | None = None) -> T | None:
        self._list(listing)
        shown = listing
        words = ", or words to search for" if listing.searchable else ""
        while answer := ((await self._read(f"number or name{words}, nothing to leave it: ", False)) or "").strip():
            if answer == _OTHER and listing.other is not None:
                listing = shown = listing.other()
                self._list(shown)
                continue
            chosen = _entry(shown, answer)
            if chosen is not None and not chosen.blocked:
                return chosen.value
            if chosen is not None:
                self._write("that one cannot be chosen")
            elif found := await _search(listing, answer):
                shown = listing._replace(title=f"{listing.title}: {answer}", about=(), entries=found)
                self._list(shown)
            else:
                self._write("there is no such entry")
        return None

    async def read(self, title: str, sections: Sequence[FactSection]) -> None:
        self._write(sanitize_line(title))
        for section in sections:
            self._write(sanitize_line(f"{section.heading}:"))
            for name, text in section.rows:
                self._write(sanitize_line(f"  {name}: {text}" if name and text else f"  {name or text}"))

    def _list(self, listing: ListForm[T]) -> None:
        self._write(sanitize_line(listing.title))
        self._print_lines(listing.about)
        for number, entry in enumerate(listing.entries[:_MAX_LISTED], 1):
            mark = f"{entry.mark} " if entry.mark else ""
            why = f" ({entry.blocked})" if entry.blocked else ""
            note = " ".join(entry.note.split())
            self._write(sanitize_line(f"  {number}) {mark}{entry.label}  {note}{why}".rstrip()))
        if len(listing.entries) > _MAX_LISTED:
            self._write(f"  and {len(listing.entries) - _MAX_LISTED} more, by number or name")
        if not listing.entries:
            self._write(sanitize_line(f"  {listing.empty}"))
        if listing.other is not None:
            self._write(sanitize_line(f"  {_OTHER}) {listing.other_name}"))

    def _print_lines(self, lines: tuple[TextLine, ...]) -> None:
        for line in lines:
            if line.gutter:
                # Broken here and not by the terminal, which puts no gutter before the rest of a line.
                rows = ("".join(text for _, text in row) for row in wrapped(line, _WIDTH))
            else:
                rows = (f"  {piece}" for piece in sanitize(line.text).split("\n"))
            for row in rows:
                self._write(row.rstrip())


def _known(options: tuple[Option[T], ...]) -> str:
    return "there are " + ", ".join(f"`{option.key or number + 1}`" for number, option in enumerate(options))


async def _search(listing: ListForm[T], words: str) -> tuple[ListEntry[T], ...]:
    """The entries with these words; none where the list is not searched, or for a number."""
    if not listing.searchable or words.isdecimal():
        return ()
    if listing.find is not None:
        return await asyncio.to_thread(listing.find, words)
    return matching((*listing.entries, *listing.hidden), words)


def _entry(listing: ListForm[T], answer: str) -> ListEntry[T] | None:
    """The entry of this number or name."""
    number = int(answer) if answer.isascii() and answer.isdigit() and len(answer) < 9 else 0
    found = (
        entry
        for position, entry in enumerate(listing.entries, 1)
        if position == number or entry.label.lower() == answer.lower()
    )
    return next(found, None)

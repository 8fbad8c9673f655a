"""The completion menu below the input: fuzzy matches of the word being typed, and a preview."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final, NamedTuple, Protocol, TypeVar

from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.chips import Chip

ROWS: Final = 8
MAX_OFFERS: Final = 50


class MenuWord(NamedTuple):
    """What a menu completes: the text from `start` up to the cursor, and in it what is searched for.

    With `is_whole` it may well be complete as it is: nothing is taken until the user has gone to it.
    """

    start: int
    query: str
    is_whole: bool = False


class MenuOffer(NamedTuple):
    """One line of the menu. `insert` replaces the word; with `runs` Enter sends the message at once.

    `prompt` follows where the word is all there is.
    """

    label: str
    note: str
    preview: str
    insert: str
    chip: Chip | None = None
    runs: bool = False
    prompt: str = ""


class MenuSource(Protocol):
    """Something to choose from."""

    @property
    def title(self) -> str:
        """The name of the source, for the foot of the menu."""
        ...

    def word_at(self, before: str) -> MenuWord | None:
        """The word in the text before the cursor that this source completes, if there is one."""
        ...

    @property
    def empty(self) -> str:
        """The text shown when nothing matches; if empty, the menu stays closed."""
        ...

    def opened(self) -> None:
        """The menu opens on this source."""
        ...

    @property
    def total(self) -> int:
        """How much fits what was asked last, as far as that is known; not all of it is offered."""
        ...

    def offers(self, query: str) -> Sequence[MenuOffer]:
        """The matching offers, best first."""
        ...


class Menu:
    """The current offers. Once closed, it stays closed until the text changes."""

    def __init__(self) -> None:
        self._sources: Sequence[MenuSource] = ()
        self._forced: MenuSource | None = None
        self.source: MenuSource | None = None
        self.word = MenuWord(0, "")
        self.offers: Sequence[MenuOffer] = ()
        self.current = 0

    def use(self, sources: Sequence[MenuSource]) -> None:
        """Offer what these sources have, from now on."""
        self._sources = sources

    @property
    def is_open(self) -> bool:
        return self.source is not None and bool(self.offers or self.is_search)

    @property
    def is_shown(self) -> bool:
        """Whether there is something to be seen, if only what the source says of itself."""
        return self.is_open or (self.source is not None and (self.word.is_whole or bool(self.source.empty)))

    @property
    def is_search(self) -> bool:
        """Whether the whole input is what is searched for, as in the history."""
        return self._forced is not None

    @property
    def selected_offer(self) -> MenuOffer | None:
        return self.offers[self.current] if self.is_open and self.offers and self.current >= 0 else None

    def update(self, document: Document) -> None:
        """Offer what fits the text now."""
        before = document.text_before_cursor
        sources = (self._forced,) if self._forced else self._sources
        selected = self.selected_offer
        for source in sources:
            if (word := source.word_at(before)) is not None:
                selected_label = selected.label if selected and source is self.source and word == self.word else None
                if source is not self.source:
                    source.opened()
                self.source, self.word = source, word
                self.offers = source.offers(word.query)
                labels = [offer.label for offer in self.offers]
                self.current = labels.index(selected_label) if selected_label in labels else -1 if word.is_whole else 0
                return
        self.close()

    def search(self, source: MenuSource, document: Document) -> None:
        """Search in this source until the menu is closed."""
        self._forced = source
        self.update(document)

    def close(self) -> None:
        self._forced = self.source = None
        self.offers = ()

    def move(self, by: int) -> None:
        """Go down or up, round the ends."""
        if self.offers:
            self.current = (max(self.current, -1 if by > 0 else 0) + by) % len(self.offers)

    def fragments(self, width: int, rows: int) -> StyleAndTextTuples:
        """The rows that are seen, the current one among them, and the preview."""
        rows = max(1, min(ROWS, rows))
        first = max(0, min(self.current - rows // 2, len(self.offers) - rows))
        shown = self.offers[first : first + rows]
        label_width = min(
            max((get_cwidth(sanitize_line(offer.label)) for offer in shown), default=0), max(8, width // 2)
        )
        pieces: StyleAndTextTuples = []
        for index, offer in enumerate(shown, first):
            is_current = index == self.current
            style, mark = ("class:menu.current", "❯ ") if is_current else ("class:menu", "  ")
            label = fitted(sanitize_line(offer.label), label_width)
            note = fitted(sanitize_line(offer.note), max(0, width - label_width - 5)).rstrip()
            head = fitted(f"{mark}{label if note else label.rstrip()}", min(width, label_width + 2))
            rest = f"  {note}" if note else ""
            if is_current:
                # The whole row is highlighted.
                pieces.append((style, fitted(head + rest, max(1, width - 1))))
            else:
                pieces += [(style, head), ("class:menu.note", rest)]
            pieces.append(("", "\n"))
        return [*pieces, ("class:menu.note", self._foot(width))]

    def _foot(self, width: int) -> str:
        title = self.source.title if self.source else ""
        if self.source and self.source.empty and not self.offers:
            return fitted(f"  {self.source.empty}", width).rstrip()
        if self.word.is_whole and self.current < 0:
            return fitted(f"  {title}", width).rstrip()
        if not self.offers:
            return fitted(f"  {title}: nothing fits", width).rstrip()
        preview = sanitize_line(" ".join(self.offers[self.current].preview.split()))
        count = f"{self.current + 1}/{len(self.offers)}"
        if self.source is not None and (total := self.source.total) > len(self.offers):
            count = f"{count} of {total:,}"
        return fitted(f"  {count}  {preview or title}", width).rstrip()


def fitted(text: str, width: int) -> str:
    """A text cut or padded to exactly `width` cells."""
    size = get_cwidth(text)
    if size <= width:
        return text + " " * (width - size)
    characters: list[str] = []
    available = width - 1
    for char in text:
        available -= get_cwidth(char)
        if available < 0:
            break
        characters.append(char)
    return fitted("".join(characters) + "…", width) if width > 0 else ""


T = TypeVar("T")

_WORD_STARTS: Final = "/_-. :$"
_ADJACENT: Final = 8
_AT_START: Final = 10
_IN_A_ROW: Final = 60


def score(query: str, text: str) -> int | None:
    """How well a text fits, higher is better; None when it does not. Letter case does not count."""
    query, low = query.lower(), text.lower()
    if not query:
        return 0
    whole = low.find(query)
    if whole >= 0:
        starts = whole == 0 or low[whole - 1] in _WORD_STARTS
        return _IN_A_ROW + len(query) * _ADJACENT + (_AT_START * 3 if starts else 0) + (20 if whole == 0 else 0) - whole
    return _scattered(query, low)


def best(query: str, items: Iterable[T], *, key: Callable[[T], Sequence[str]], limit: int | None) -> list[T]:
    """The items that fit best, in their original order where they fit equally. Of the texts of an item the first
    counts most."""
    if not query:
        return list(islice(items, limit))
    scored: list[tuple[int, T]] = []
    for item in items:
        marks = [
            mark - 30 * position for position, text in enumerate(key(item)) if (mark := score(query, text)) is not None
        ]
        if marks:
            scored.append((max(marks) - len(key(item)[0]) // 4, item))
    scored.sort(key=lambda pair: -pair[0])
    return [item for _, item in scored[:limit]]


def letters_in_order(query: bytes) -> re.Pattern[bytes]:
    """A pattern for a line, with the line end before it, in which the letters stand in this order; linear in a text."""
    letters = [re.escape(query[at : at + 1]) for at in range(len(query))]
    return re.compile(b"\n" + b"".join(b"[^\n%b]*+%b" % (letter, letter) for letter in letters))


def _scattered(query: str, low: str) -> int | None:
    total = 0
    at = -1
    for letter in query:
        found = low.find(letter, at + 1)
        if found < 0:
            return None
        if found == at + 1:
            total += _ADJACENT
        elif found == 0 or low[found - 1] in _WORD_STARTS:
            total += _AT_START
        else:
            total -= min(found - at, 5)
        at = found
    return total

"""A list to choose from: arrows, a search that narrows it with every letter, and details of the selected entry."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from codex_py.ui.repl.panels.forms import ListEntry, ListForm, TextLine, matching
from codex_py.ui.repl.panels.frame import Frame, Row, cells, highlighted, in_sight, padded, part, wrapped

T = TypeVar("T")

_PAGE: Final = 8
# A panel looks further when the typing pauses.
_PAUSE_SECONDS: Final = 0.1
_MAX_DETAILS: Final = 6
_WIDEST_LABEL: Final = 44
_NAMES: Final = {"tab": "Tab", "c-o": "Ctrl-O", "c-k": "Ctrl-K", "c-r": "^R", "c-a": "^A", "c-d": "^D", "c-t": "^T"}


class PickerAction(NamedTuple):
    """A key of its own, what it does in a word or two (nothing: it is not shown), and what is done.

    With `only_unsearched` the key is a letter of the search as soon as there is one.
    """

    key: str
    label: Callable[[], str]
    act: Callable[[], None]
    only_unsearched: bool = False


class PickerPanel(Frame[T | None]):
    """Settled with the value of the chosen entry, or with None.

    `on_move` is called with the value that becomes selected.
    """

    def __init__(
        self,
        listing: ListForm[T],
        *,
        actions: Sequence[PickerAction] = (),
        on_move: Callable[[T], None] | None = None,
    ) -> None:
        self._search = Buffer(multiline=False, on_text_changed=lambda _: self._narrow())
        super().__init__(listing.title, None, typed=self._search if listing.searchable else None)
        change = PickerAction("tab", lambda: self._listing.other_name, self._change)
        self._actions = (*([change] if listing.other else []), *actions)
        self._on_move = on_move
        self._notice = ""
        self._listing = listing
        self._shown = listing.entries
        self._columns = _columns_of(self._shown)
        self._at = max(0, min(listing.start, len(self._shown) - 1))
        self._finding: asyncio.Task[None] | None = None

    @property
    def listing(self) -> ListForm[T]:
        return self._listing

    @property
    def selected(self) -> ListEntry[T] | None:
        return self._shown[self._at] if self._shown else None

    def show(self, listing: ListForm[T], *, notice: str = "") -> None:
        """Replace the list; the search and the selected position stay."""
        self._listing, self._notice, self.title = listing, notice, listing.title
        self._shown = self._found()
        self._columns = _columns_of(self._shown)
        self._at = max(0, min(self._at, len(self._shown) - 1))

    def resume(self, earlier: PickerPanel[T]) -> None:
        """Begin with the search and the position of an earlier panel."""
        search = earlier._search.text
        self._search.document = Document(search, len(search))
        self._at = max(0, min(earlier._at, len(self._shown) - 1))

    def notify(self, notice: str) -> None:
        """A line below the list."""
        self._notice = notice

    def settle(self, value: T | None) -> None:
        if self._finding is not None:
            self._finding.cancel()
        super().settle(value)

    def rows(self, width: int, height: int) -> list[Row]:
        if self._typed is not None:
            return [row for line in self._listing.about for row in wrapped(line, width)][: max(0, height - _PAGE)]
        about = [row for line in self._listing.about for row in wrapped(line, width)]
        about = about[: max(0, height - _PAGE)]
        return [*about, *([[]] if about else []), *self._list(width, height - len(about) - (1 if about else 0))]

    def rows_below(self, width: int, height: int) -> list[Row]:
        return self._list(width, height)

    def keys(self) -> Sequence[tuple[str, str]]:
        own = [(_NAMES.get(action.key, action.key), label) for action in self._actions if (label := action.label())]
        return (("Enter", self._listing.enter), *own, ("Esc", "close"), ("↑↓", "select"))

    def prompt(self) -> str:
        return "search: "

    def bind(self, keys: KeyBindings) -> None:
        ways = (("up", -1), ("c-p", -1), ("down", 1), ("c-n", 1), ("pageup", -_PAGE), ("pagedown", _PAGE))
        for key, by in ways:
            keys.add(key, eager=True)(self._mover(by))
        if self._typed is None:
            for key, by in (("home", -(10**9)), ("end", 10**9)):
                keys.add(key, eager=True)(self._mover(by))
            for number in range(1, 10):
                keys.add(str(number), eager=True)(self._chooser(number - 1))
        for action in self._actions:
            keys.add(action.key, eager=True)(self._doer(action))

        @keys.add("enter", eager=True)
        def _(event: KeyPressEvent) -> None:
            self._choose()

    def _change(self) -> None:
        if self._listing.other is not None:
            self.show(self._listing.other())
            self._at = 0
            self._moved()

    def _choose(self) -> None:
        chosen = self.selected
        if chosen is None:
            return
        if chosen.blocked:
            self._notice = chosen.blocked
        else:
            self.settle(chosen.value)

    def _chooser(self, index: int) -> Callable[[KeyPressEvent], None]:
        def choose(event: KeyPressEvent) -> None:
            if index < len(self._shown):
                self._at = index
                self._choose()

        return choose

    def _mover(self, by: int) -> Callable[[KeyPressEvent], None]:
        def move(event: KeyPressEvent) -> None:
            if not self._shown:
                return
            last = len(self._shown) - 1
            # One further than the end is the other end; a page stops there.
            around = {(-1, 0): last, (1, last): 0}.get((by, self._at))
            self._at = max(0, min(self._at + by, last)) if around is None else around
            self._moved()

        return move

    def _doer(self, action: PickerAction) -> Callable[[KeyPressEvent], None]:
        def act(event: KeyPressEvent) -> None:
            if action.only_unsearched and self._search.text:
                event.current_buffer.insert_text(event.data)
            else:
                action.act()

        return act

    def _narrow(self) -> None:
        before = self.selected
        self._shown = self._found()
        self._columns = _columns_of(self._shown)
        self._at = 0
        if self.selected is not before:
            self._moved()
        if self._finding is not None:
            self._finding.cancel()
        if self._search.text.strip():
            self._finding = get_app().create_background_task(self._find_after_pause(self._search.text))

    async def _find_after_pause(self, text: str) -> None:
        await asyncio.sleep(_PAUSE_SECONDS)
        await self.find_more(text)

    async def find_more(self, text: str) -> None:
        """Called when the typing of a search pauses, and cancelled by the next key; for a panel that looks further."""

    def add_found(self, text: str, values: Sequence[T]) -> None:
        """Show the entries with these values below those that match, if `text` is still what is searched for."""
        if text != self._search.text:
            return
        shown = {id(entry) for entry in self._shown}
        more = [entry for value in values for entry in self._listing.entries if entry.value == value]
        self._shown = (*self._shown, *(entry for entry in more if id(entry) not in shown))
        self._columns = _columns_of(self._shown)

    def _found(self) -> tuple[ListEntry[T], ...]:
        """The entries that fit the search."""
        found, text = matching(self._listing.entries, self._search.text), self._search.text
        return (*found, *matching(self._listing.hidden, text)) if text.strip() else found

    def _moved(self) -> None:
        self._notice = ""
        if self._on_move is not None and self.selected is not None:
            self._on_move(self.selected.value)

    def _list(self, width: int, height: int) -> list[Row]:
        notice = wrapped(TextLine(self._notice, "warn"), width) if self._notice else []
        if not self._shown:
            text = "nothing matches" if self._search.text else self._listing.empty
            return [*wrapped(TextLine(text, "menu.note"), width), *notice]
        details = self._details(width, min(_MAX_DETAILS, height // 3))
        indexes = in_sight(len(self._shown), self._at, height - len(details) - len(notice) - (1 if details else 0))
        marks, widest = self._columns
        column = min(widest, max(1, width - 4 - marks))
        if width >= 40 and any(entry.note for entry in self._shown):
            column = min(column, width // 2, _WIDEST_LABEL)
        rows = [self._row(index, marks, column) for index in indexes]
        rows = [highlighted(row, width) if index == self._at else row for index, row in zip(indexes, rows, strict=True)]
        if len(indexes) < len(self._shown) and rows:
            count = f"  {self._at + 1} of {len(self._shown)}"
            details = [[part(count, "menu.note")], *details]
        elif details:
            details = [[], *details]
        return [*rows, *details, *notice]

    def _row(self, index: int, marks: int, column: int) -> Row:
        entry = self._shown[index]
        here = index == self._at
        style = "menu.current" if here else entry.style or ("menu.note" if entry.blocked else "menu")
        row = [part("❯ " if here else "  ", style)]
        if marks:
            row.append(part(f"{padded(entry.mark, marks)} ", style))
        row.append(part(padded(entry.label, column), style))
        if entry.note:
            row.append(part(f"  {entry.note}", style if here else "menu.note"))
        return row

    def _details(self, width: int, max_rows: int) -> list[Row]:
        selected = self.selected
        lines = selected.details if selected else ()
        rows = [row for line in lines for row in wrapped(line, width)]
        # As many rows for each entry: a list that jumps cannot be read.
        max_rows = min(max_rows, max(len(rows), *(self._size(entry, width) for entry in self._shown[:200])))
        if max_rows == 0:
            return []
        if len(rows) > max_rows:
            rows = [*rows[: max_rows - 1], [*rows[max_rows - 1], ("class:menu.note", " …")]]
        return rows + [[] for _ in range(max_rows - len(rows))]

    def _size(self, entry: ListEntry[T], width: int) -> int:
        return sum(1 + len(text) // max(1, width - 2) for line in entry.details for text in line.text.split("\n"))


def _columns_of(entries: Sequence[ListEntry[T]]) -> tuple[int, int]:
    """The cells of the widest mark and of the widest label."""
    marks = max((cells(entry.mark) for entry in entries), default=0)
    return marks, max((cells(entry.label) for entry in entries), default=0)

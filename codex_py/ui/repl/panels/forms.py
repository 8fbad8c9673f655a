"""What a panel shows and offers, as values: drawn as a panel on a real terminal, read out as lines on a dumb one;
and the panels that wait, of which one is open in place of the input.

Texts may be anybody's: whoever shows them makes them harmless.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import AnyContainer

from codex_py.protocol.status import FactSection

T = TypeVar("T")

# Before each row of what others wrote, such as a command.
GUTTER: Final = "│ "

Row: TypeAlias = list[tuple[str, str]]

A = TypeVar("A")


class TextLine(NamedTuple):
    """A text of one or more lines, wrapped where it is too wide; `style` is a style of the theme.

    `gutter` stands before each of its rows: words of others cannot pass for ours then.
    """

    text: str
    style: str = ""
    gutter: str = ""


class Option(NamedTuple, Generic[T]):
    """One answer: the letter that gives it at once, what it says, and what it leads to."""

    key: str
    label: str
    value: T
    note: str = ""


class Sheet(NamedTuple, Generic[T]):
    """A question with a few answers; `default` is the one that Enter gives at first.

    `refusal` is what Escape means, and `escape` says so.

    `subject` is what it is about, such as a command: long ones are folded and can be unfolded. `facts` are shown below.
    Where it is more than text, such as a diff, `draw` gives its rows at a width; with a limit, those that say most.
    """

    title: str
    subject: tuple[TextLine, ...]
    options: tuple[Option[T], ...]
    refusal: T
    default: int = 0
    facts: tuple[TextLine, ...] = ()
    escape: str = "no"
    draw: Callable[[int, int | None], list[Row]] | None = None


class Form(NamedTuple):
    """One line to be typed. `check` gives what is wrong with a text, or nothing; a `hidden` text is never shown."""

    title: str
    about: tuple[TextLine, ...] = ()
    initial: str = ""
    hidden: bool = False
    check: Callable[[str], str] = lambda _: ""
    enter: str = "accept"


class ListEntry(NamedTuple, Generic[T]):
    """One line of a list; `details` are shown below the list while it is selected.

    `blocked` says why it cannot be chosen, `mark` is a short sign in front, `words` is what a search looks in as well.
    """

    value: T
    label: str
    note: str = ""
    details: tuple[TextLine, ...] = ()
    mark: str = ""
    style: str = ""
    blocked: str = ""
    words: str = ""


class ListForm(NamedTuple, Generic[T]):
    """A list to choose from; `start` is the index of the entry that is selected at first.

    `other` is another list that Tab changes to, and `other_name` what that is called. `hidden` are entries that only a
    search shows, below the others. `find` gives the entries that a slower search finds, which may wait for files.
    """

    title: str
    entries: tuple[ListEntry[T], ...]
    about: tuple[TextLine, ...] = ()
    start: int = 0
    searchable: bool = True
    empty: str = "nothing here"
    enter: str = "choose"
    other: Callable[[], ListForm[T]] | None = None
    other_name: str = ""
    hidden: tuple[ListEntry[T], ...] = ()
    find: Callable[[str], tuple[ListEntry[T], ...]] | None = None


class Show(Protocol):
    """Shows a panel until it is settled: `Panels.show`."""

    async def __call__(self, panel: Panel[A], /) -> A: ...


class FormAsker(Protocol):
    """Puts forms to the user, on whatever terminal there is."""

    @property
    def show(self) -> Show | None:
        """Shows a panel of its own kind; None where nothing can be drawn."""
        ...

    async def choose(self, sheet: Sheet[A], *, armed: bool = True) -> A:
        """The value of the answer; that of the refusal for none. See `ChoicePanel` for `armed`."""
        ...

    async def enter(self, form: Form) -> str | None:
        """The typed text, without surrounding space; None when the user cancels."""
        ...

    async def pick(self, listing: ListForm[A], *, on_move: Callable[[A], None] | None = None) -> A | None:
        """The value of the chosen entry, None for none. `on_move` gets the selected one, before it is chosen."""
        ...

    async def read(self, title: str, sections: Sequence[FactSection]) -> None:
        """Show sections of two columns until they have been read."""
        ...


def needs_text(text: str) -> str:
    """The check of a form that does not go on with nothing."""
    return "" if text else "type something, or go back with Esc"


def matching(entries: tuple[ListEntry[T], ...], search: str) -> tuple[ListEntry[T], ...]:
    """The entries in which every word of the search stands, in any case; first those that have them in their label."""
    words = search.casefold().split()
    found = [entry for entry in entries if all(word in _searched(entry) for word in words)]
    return tuple(sorted(found, key=lambda entry: not all(word in entry.label.casefold() for word in words)))


def _searched(entry: ListEntry[T]) -> str:
    return f"{entry.label}\n{entry.note}\n{entry.words}".casefold()


_AT_ONCE_SECONDS: Final = 0.3


async def waited_for(asker: FormAsker, title: str, work: Awaitable[T], *, about: str) -> T | None:
    """The result of `work`, None when the user stops waiting; its exceptions are raised.

    Where nothing can be drawn it waits in silence.
    """
    working = asyncio.ensure_future(work)
    shown: asyncio.Future[None] | None = None
    try:
        if asker.show is not None and not (await asyncio.wait([working], timeout=_AT_ONCE_SECONDS))[0]:
            notice = ListForm[None](title, (), empty=about, searchable=False)
            shown = asyncio.ensure_future(asker.pick(notice))
            await asyncio.wait([working, shown], return_when=asyncio.FIRST_COMPLETED)
            if not working.done():
                return None
        return await working
    finally:
        working.cancel()
        if shown is not None:
            shown.cancel()


class Panel(Protocol[T]):
    """Draws itself, takes the keys, and settles `result`, which closes it.

    Both methods are called once, when its turn comes. The first window of the container that can have the focus gets
    it. All keys but those that stop the program go to the panel: it binds Escape and Ctrl-C itself, to its "no".
    """

    title: str
    result: asyncio.Future[T]

    def container(self) -> AnyContainer: ...

    def key_bindings(self) -> KeyBindings: ...


class OpenPanel:
    """The panel on the screen, with what it gave for it."""

    def __init__(self, panel: Panel[Any]) -> None:
        self.panel = panel
        self.container = panel.container()
        self.bindings = panel.key_bindings()


class Panels:
    """Shows panels one after the other, in the order in which they came. `on_change` is called on a change."""

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._on_change = on_change
        self._waiting: deque[Panel[Any]] = deque()
        self.open: OpenPanel | None = None

    @property
    def waiting(self) -> int:
        """How many come after the one that is open."""
        return len(self._waiting) - (self.open is not None)

    async def show(self, panel: Panel[T]) -> T:
        """Show a panel and return its result. Cancelling removes it, also while it still waits for its turn."""
        self._waiting.append(panel)
        self._bring_first()
        try:
            return await panel.result
        finally:
            if panel in self._waiting:
                self._waiting.remove(panel)
            self._bring_first()

    def close_settled(self) -> None:
        """Take the last panel from the screen as soon as it is settled: what was typed right behind is for the input.

        When another one waits nothing is done: no key may answer what was not yet seen.
        """
        if len(self._waiting) == 1 and self._waiting[0].result.done():
            self._waiting.clear()
            self._bring_first()

    def _bring_first(self) -> None:
        first = self._waiting[0] if self._waiting else None
        if first is (self.open.panel if self.open else None):
            return
        self.open = OpenPanel(first) if first is not None else None
        self._on_change()

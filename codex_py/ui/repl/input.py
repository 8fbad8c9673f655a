"""The input: one buffer with chips in it, the menu that goes with it, and what is typed before."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.layout.utils import explode_text_fragments

from codex_py.text.sanitize import sanitize_line
from codex_py.ui.repl.chips import Chips, Composed, PickedSkill, PictureChip, is_large
from codex_py.ui.repl.desktop import picture_paths
from codex_py.ui.repl.history import HistorySource, PromptHistory
from codex_py.ui.repl.menu import Menu, MenuOffer

# Messages with chips that can be called back as they were.
_MAX_REMEMBERED: Final = 100


class Composer:
    """The message being typed. `changed` is called whenever a part of it has to be drawn again."""

    def __init__(self, history: PromptHistory, changed: Callable[[], None]) -> None:
        self.menu = Menu()
        self.history = history
        self.chips = Chips()
        self._changed = changed
        self._draft_chips = self.chips
        # By their text in the history.
        self._remembered: dict[str, Composed] = {}
        self._before_search = ""
        self._last = Document()
        self.buffer = Buffer(multiline=True, on_text_changed=self._update, on_cursor_position_changed=self._update)

    @property
    def text(self) -> str:
        return self.buffer.text

    @property
    def is_shell(self) -> bool:
        """Whether a command line for the shell is being typed."""
        return self.text.startswith("!")

    def take(self) -> Composed:
        """The message as it stands; the input is empty afterwards."""
        composed = self._composed()
        self.chips = Chips()
        self.set_text("")
        return composed

    def set_text(self, text: str) -> None:
        """Put a text into the input, the cursor at its end."""
        self.menu.close()
        self.history.stop_browsing()
        self._replace(text)
        self.menu.close()
        self._changed()

    def put_back(self, messages: Sequence[Composed]) -> None:
        """Put messages that were not sent before what is typed by now, each with its chips."""
        chips = Chips()
        texts = [chips.import_text(message.typed, dict(message.chips)) for message in messages]
        texts.append(chips.import_text(self.text, self.chips.by_mark))
        self.chips = chips
        self.set_text("\n".join(filter(None, texts)))

    def paste(self, text: str, cwd: Path) -> None:
        """Insert a paste: a large one folded, paths of pictures as those pictures."""
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        pictures = picture_paths(text, cwd)
        for picture in pictures:
            self.attach(picture)
        if not pictures:
            self.buffer.insert_text(self.chips.paste(text) if is_large(text) else text)

    def attach(self, picture: Path) -> None:
        """Attach a picture."""
        self.buffer.insert_text(self.chips.picture(picture) + " ")

    def insert_skill(self, name: str, path: Path, *, prompt: str = "", instead_of: str = "") -> None:
        """Mention a skill, as itself; in place of words for it, the first place where they stand counts.

        In an empty input `prompt` follows it: the words its author thinks it is mostly used with.
        """
        mark, start = self.chips.skill(name, path), self.text.find(instead_of)
        if not instead_of or start < 0:
            self.buffer.insert_text(f"{mark} " if self.text.strip() else _with_prompt(mark, prompt))
            return
        end, cursor = start + len(instead_of), self.buffer.cursor_position
        text = f"{self.text[:start]}{mark}{self.text[end:]}"
        moved = cursor if cursor <= start else max(start, cursor - len(instead_of)) + len(mark)
        self._last = Document(text, min(moved, len(text)))
        self.buffer.save_to_undo_stack()
        self.buffer.set_document(self._last, bypass_readonly=True)
        self.menu.close()
        self._changed()

    def delete_before(self) -> None:
        """Delete the chip before the cursor as a whole, else the character."""
        length = self.chips.mark_ending_at(self.text, self.buffer.cursor_position)
        self.buffer.delete_before_cursor(length or 1)

    def accept(self, *, or_first: bool = False) -> MenuOffer | None:
        """Take what is chosen in the menu into the text; with `or_first` the first offer where nothing is chosen."""
        if or_first and self.menu.selected_offer is None:
            self.menu.move(1)
        offer = self.menu.selected_offer
        if offer is None:
            return None
        if self.menu.is_search:
            self.set_text(self._restore_chips(offer.insert))
            return offer
        word = self.menu.word
        if isinstance(offer.chip, PickedSkill):
            self.chips.skill(offer.chip.name, offer.chip.path)
        self.buffer.delete_before_cursor(self.buffer.cursor_position - word.start)
        after = self.buffer.document.text_after_cursor
        insert = f"{self.chips.picture(offer.chip.path)} " if isinstance(offer.chip, PictureChip) else offer.insert
        if offer.prompt and not self.text.strip():
            insert = _with_prompt(insert.strip(), offer.prompt)
        self.buffer.insert_text(insert.rstrip() if after.startswith((" ", "\n")) else insert)
        self.menu.close()
        self._changed()
        return offer

    def search_history(self) -> None:
        """Look for what is typed in the history; once more goes to the next one that fits."""
        if self.menu.is_search:
            self.menu.move(1)
            return
        self._before_search = self.text
        self.menu.search(HistorySource(self.history.latest_first), self.buffer.document)

    def close_menu(self) -> None:
        """Close the menu; after a search the input is as it was before."""
        was_search = self.menu.is_search
        self.menu.close()
        if was_search:
            self.set_text(self._before_search)
        self._changed()

    def older(self) -> None:
        """Show the message typed before the one that is shown."""
        if not self.history.is_browsing:
            self._draft_chips = self.chips
        if (text := self.history.older(self.text)) is not None:
            self._show(self._restore_chips(text))

    def newer(self) -> None:
        """Show the one typed after it, or at last what was being typed."""
        text = self.history.newer()
        if text is not None and self.history.is_browsing:
            self._show(self._restore_chips(text))
        elif text is not None:
            self.chips = self._draft_chips
            self._show(text)

    def refresh_menu(self) -> None:
        """Offer again: there is more to choose from than before."""
        if self.menu.source is not None or "@" in self.text:
            self.menu.update(self.buffer.document)
            self._changed()

    def _composed(self) -> Composed:
        composed = self.chips.compose(self.text.strip())
        if composed.chips:
            self._remembered[composed.text.strip()] = composed
            if len(self._remembered) > _MAX_REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
        return composed

    def _restore_chips(self, text: str) -> str:
        """A text of the history as it was typed; its chips replace the current ones."""
        self.chips = Chips()
        composed = self._remembered.get(text.strip())
        return self.chips.import_text(composed.typed, dict(composed.chips)) if composed else text

    def _show(self, text: str) -> None:
        self._replace(text)
        self.menu.close()

    def _replace(self, text: str) -> None:
        """Another text, which is no edit of the one before."""
        self._last = Document(text, len(text))
        self.buffer.set_document(self._last, bypass_readonly=True)

    def _update(self, _: Buffer) -> None:
        last, now = self._last, self.buffer.document
        # One edit is reported twice: as a change of the text, and as a change of the cursor position.
        if last == now:
            return
        self._last = self._mended(last, now)
        if self._last != now:
            self.buffer.set_document(self._last, bypass_readonly=True)
        if not self.history.is_browsing or self.menu.is_search:
            self.menu.update(self.buffer.document)

    def _mended(self, last: Document, now: Document) -> Document:
        """The input without broken chips, the cursor in none."""
        if now.text != last.text:
            mended = self.chips.mended(last.text, now.text)
            return Document(*mended) if mended else now
        forwards = now.cursor_position > last.cursor_position
        position = self.chips.outside(now.text, now.cursor_position, forwards=forwards)
        return now if position == now.cursor_position else Document(now.text, position, now.selection)


def _with_prompt(mark: str, prompt: str) -> str:
    """The mention of a skill and the words to begin with, which mostly have the mention in them."""
    prompt = sanitize_line(prompt)
    is_named = re.search(rf"{re.escape(mark)}(?![\w:-])", prompt)
    return prompt if is_named else f"{mark} {prompt}"


class ChipStyle(Processor):
    """Draws chips so that they differ from text."""

    def __init__(self, composer: Composer) -> None:
        self._composer = composer

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        text = fragment_list_to_text(transformation_input.fragments)
        marks = self._composer.chips.marks_in(text)
        if not marks:
            return Transformation(transformation_input.fragments)
        letters: StyleAndTextTuples = list(explode_text_fragments(transformation_input.fragments))
        for start, end in marks:
            for index in range(start, min(end, len(letters))):
                letters[index] = ("class:skill", letters[index][1])
        return Transformation(letters)


# Typed text wraps at words: rows are filled up with empty cells, so that no word is cut at the edge of a window.
_RUN: Final = re.compile(r" +|[^ ]+")


class WrappedLine(NamedTuple):
    """Empty cells before some characters of a line, and spaces at the end of a row that have no cell."""

    padding: dict[int, int]
    hidden: frozenset[int]


def wrap_line(text: str, width: int) -> WrappedLine:
    """Find where a line wraps in rows of `width` cells. A word longer than a row is cut."""
    padding: dict[int, int] = {}
    hidden: set[int] = set()
    x = 0
    for run in _RUN.finditer(text):
        start = run.start()
        if text[start] == " ":
            fitting = min(len(run[0]), width - x)
            hidden.update(range(start + fitting, run.end()))
            x += fitting
            continue
        sizes = [Char(char).width for char in run[0]]
        if x + sum(sizes) > width >= sum(sizes):
            padding[start] = width - x
            x = 0
        for at, size in enumerate(sizes, start):
            if x + size > width:
                padding[at] = width - x
                x = 0
            x += size
    return WrappedLine(padding, frozenset(hidden))


class WordWrap(Processor):
    """Wraps the lines of a window that wraps lines; each row begins with a prefix of `prefix` cells."""

    def __init__(self, prefix: int = 0) -> None:
        self._prefix = prefix

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        fragments = transformation_input.fragments
        width = transformation_input.width - self._prefix
        text = fragment_list_to_text(fragments)
        if width < 2 or (text.isascii() and len(text) <= width):
            return Transformation(fragments)
        wrapped = wrap_line(text, width)
        drawn: StyleAndTextTuples = []
        # Of each character of the line, and of its end.
        positions: list[int] = []
        for index, fragment in enumerate(explode_text_fragments(fragments)):
            if blank := wrapped.padding.get(index):
                drawn.extend([("", " ")] * blank)
            positions.append(len(drawn))
            if index not in wrapped.hidden:
                drawn.append(fragment)
        positions.append(len(drawn))
        return Transformation(
            drawn,
            source_to_display=lambda index: positions[min(index, len(positions) - 1)],
            display_to_source=lambda index: max(0, bisect_right(positions, index) - 1),
        )

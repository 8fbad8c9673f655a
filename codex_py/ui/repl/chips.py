"""Chips: short marks in the input that stand for more: a large paste, a picture, a skill that was picked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final, TypeAlias

from codex_py.protocol.ops import ImageInput, SkillInput, TextElement, TextInput, UserInput
from codex_py.protocol.value import Value
from codex_py.text.tokens import count_lines

FOLD_LINES: Final = 10
FOLD_CHARACTERS: Final = 1000


class Pasted(Value):
    """Text that was too long to be shown."""

    text: str


class PictureChip(Value):
    path: Path


class PickedSkill(Value):
    name: str
    path: Path


Chip: TypeAlias = Pasted | PictureChip | PickedSkill


class Composed(Value):
    """A message ready to go: as it was `typed`, with its `chips` by their marks, and what the session gets of it.

    `elements` are the parts of the text that are shown shorter.
    """

    typed: str
    text: str
    inputs: tuple[UserInput, ...]
    chips: tuple[tuple[str, Chip], ...] = ()
    elements: tuple[TextElement, ...] = ()

    def submitted(self) -> tuple[UserInput, ...]:
        """The inputs, with what is shown for parts of the text."""
        others = [item for item in self.inputs if not isinstance(item, TextInput)]
        return (*others, TextInput(self.text, self.elements)) if self.elements else self.inputs

    def shown_as(self, typed: str) -> Composed:
        """The same message, shown by other words than its own."""
        return self.replace(typed=typed, elements=(TextElement(0, _bytes_of(self.text), typed),))

    def mentioning(self, text: str, skill: str, path: Path) -> Composed:
        """The same message in other words, with one more skill."""
        others = [item for item in self.inputs if not isinstance(item, TextInput)]
        return Composed(text, text, (*others, SkillInput(skill, path), TextInput(text)))

    def naming(self, written: str, skill: str, path: Path) -> Composed:
        """The same message with `$written` naming this skill."""
        mention = re.compile(rf"\${re.escape(written)}(?![A-Za-z0-9_-])")
        chips = Chips()
        chips.add({**dict(self.chips), f"${skill}": PickedSkill(skill, path)})
        return chips.compose(mention.sub(lambda _: f"${skill}", self.typed))


class Chips:
    """The chips of one input, by their marks."""

    def __init__(self) -> None:
        self._chips: dict[str, Chip] = {}
        self._numbers = {"paste": 0, "image": 0}

    def paste(self, text: str) -> str:
        """The mark for a large paste."""
        lines = count_lines(text)
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        return self._add(f"[Pasted text #{self._next('paste')} · {size}]", Pasted(text))

    def picture(self, path: Path) -> str:
        """The mark for a picture."""
        return self._add(f"[Image #{self._next('image')} {_plain(path.name)}]", PictureChip(path))

    def skill(self, name: str, path: Path) -> str:
        """The mark for a skill: its name with a `$`."""
        return self._add(f"${name}", PickedSkill(name, path))

    def marks_in(self, text: str) -> list[tuple[int, int]]:
        """Where in a text a mark stands: its beginning and its end."""
        if not self._chips:
            return []
        longest_first = sorted(self._chips, key=len, reverse=True)
        pattern = "|".join(re.escape(mark) + (r"(?![\w:-])" if mark.startswith("$") else "") for mark in longest_first)
        return [match.span() for match in re.finditer(pattern, text)]

    def mark_ending_at(self, text: str, position: int) -> int:
        """The length of the mark right before a position; 0 when there is none. A skill is deleted letter by letter."""
        return next((end - start for start, end in self.marks_in(text) if end == position and text[start] == "["), 0)

    def mended(self, before: str, after: str) -> tuple[str, int] | None:
        """A text that was edited without the rest of a mark of which a part was taken away or written over, and where
        the edit ends in it; None when no mark was hurt.
        """
        if not self._chips or not (marks := [span for span in self.marks_in(before) if before[span[0]] == "["]):
            return None
        start = _shared(before, after)
        same_end = min(_shared(before[::-1], after[::-1]), len(before) - start, len(after) - start)
        written = after[start : len(after) - same_end]
        end = len(before) - same_end
        hurt = [
            span for span in marks if span[0] < end and start < span[1] and not (start <= span[0] and span[1] <= end)
        ]
        if not hurt:
            return None
        start, end = min(start, hurt[0][0]), max(end, hurt[-1][1])
        return before[:start] + written + before[end:], start + len(written)

    def outside(self, text: str, position: int, *, forwards: bool) -> int:
        """The position, or the end of the mark that it is inside of: nothing is written into one."""
        for start, end in self.marks_in(text):
            if text[start] == "[" and start < position < end:
                return end if forwards else start
        return position

    def import_text(self, text: str, chips: Mapping[str, Chip]) -> str:
        """Import a text of another input with its chips, which get new marks here; return the text with these marks."""
        others = Chips()
        others.add(chips)
        pieces: list[str] = []
        last = 0
        for start, end in others.marks_in(text):
            pieces += [text[last:start], self._mark(chips[text[start:end]])]
            last = end
        return "".join([*pieces, text[last:]])

    def add(self, chips: Mapping[str, Chip]) -> None:
        """Add chips with the marks that they have."""
        self._chips.update(chips)

    @property
    def by_mark(self) -> Mapping[str, Chip]:
        return self._chips

    def expand(self, text: str) -> str:
        """The text with every folded paste expanded."""
        return self._expanded(text)[0]

    def _expanded(self, text: str) -> tuple[str, tuple[TextElement, ...]]:
        """The same, and where the pastes are in it."""
        pieces: list[str] = []
        elements: list[TextElement] = []
        last = size = 0
        for start, end in self.marks_in(text):
            if isinstance(chip := self._chips[text[start:end]], Pasted):
                pieces += [text[last:start], chip.text]
                size += _bytes_of(text[last:start])
                elements.append(TextElement(size, size := size + _bytes_of(chip.text), text[start:end]))
                last = end
        return "".join([*pieces, text[last:]]), tuple(elements)

    def compose(self, typed: str) -> Composed:
        """What the session gets: pictures and skills of their own, then the text."""
        marks = [typed[start:end] for start, end in self.marks_in(typed)]
        used = [self._chips[mark] for mark in marks]
        pictures = [ImageInput(chip.path) for chip in used if isinstance(chip, PictureChip)]
        skills = [SkillInput(chip.name, chip.path) for chip in used if isinstance(chip, PickedSkill)]
        text, elements = self._expanded(typed)
        inputs = (*dict.fromkeys(pictures), *dict.fromkeys(skills), TextInput(text))
        return Composed(typed, text, inputs, tuple(dict(zip(marks, used, strict=True)).items()), elements)

    def _mark(self, chip: Chip) -> str:
        match chip:
            case Pasted(text):
                return self.paste(text)
            case PictureChip(path):
                return self.picture(path)
            case PickedSkill(name, path):
                return self.skill(name, path)

    def _add(self, mark: str, chip: Chip) -> str:
        self._chips[mark] = chip
        return mark

    def _next(self, label: str) -> int:
        self._numbers[label] += 1
        return self._numbers[label]


def _bytes_of(text: str) -> int:
    return len(text.encode(errors="surrogatepass"))


def is_large(text: str) -> bool:
    """Whether a paste is folded to a chip."""
    return len(text) > FOLD_CHARACTERS or text.count("\n") >= FOLD_LINES


def _plain(name: str) -> str:
    return re.sub(r"[^\w.\- ]", "_", name)[-40:]


def _shared(first: str, second: str) -> int:
    """How many characters two texts begin with alike."""
    pairs = zip(first, second, strict=False)
    return next((index for index, (left, right) in enumerate(pairs) if left != right), min(len(first), len(second)))

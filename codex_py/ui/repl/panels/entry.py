"""One line to be typed: a pattern, a message, a key. A hidden one is shown as stars and not stored."""

from __future__ import annotations

from collections.abc import Sequence

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from codex_py.ui.repl.panels.drawing import Row, part, wrapped
from codex_py.ui.repl.panels.forms import Form
from codex_py.ui.repl.panels.frame import Frame


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

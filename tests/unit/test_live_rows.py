"""Rows that are drawn piece by piece: the screen shows them and nothing of what stood there before."""

from __future__ import annotations

import random
from io import StringIO

import pyte
import pytest
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import DummyInput
from prompt_toolkit.layout import FormattedTextControl, Layout, VSplit, Window

from codex_py.ui.repl.layout import Column, Row, Rows
from codex_py.ui.repl.screen import HeldOutput

WIDTH, HEIGHT = 20, 8
STYLES = ("", "bold", "fg:ansired", "bg:ansiblue", "underline")
TEXTS = ("word", " ", "a", "  ", "日本", "long words", "", "-")


class Stage:
    """A screen with rows, and below them what letters are drawn on one by one, with a hole beside it."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.below = ""
        self._sent = StringIO()
        self._screen = pyte.Screen(WIDTH, HEIGHT)
        self._stream = pyte.Stream(self._screen)
        output = HeldOutput(self._sent, lambda: Size(HEIGHT, WIDTH), term="xterm")
        beside = Window(FormattedTextControl("> "), width=3, dont_extend_height=True)
        typed = Window(FormattedTextControl(lambda: self.below), wrap_lines=True, dont_extend_height=True)
        layout = Layout(Column([Rows(lambda: self.rows), VSplit([beside, typed])]))
        self._app: Application[None] = Application(layout=layout, input=DummyInput(), output=output)

    def draw(self) -> list[str]:
        """What is on the screen now."""
        with set_app(self._app):
            self._app.render_counter += 1
            self._app.renderer.render(self._app, self._app.layout)
        self._stream.feed(self._sent.getvalue())
        self._sent.seek(0)
        self._sent.truncate()
        return [line.rstrip() for line in self._screen.display]


def some_row(dice: random.Random) -> StyleAndTextTuples:
    return [(dice.choice(STYLES), dice.choice(TEXTS)) for _ in range(dice.randrange(3))]


@pytest.mark.parametrize("seed", range(12))
def test_a_drawing_leaves_nothing_of_the_one_before(seed: int) -> None:
    dice = random.Random(seed)
    stage = Stage()
    for _ in range(12):
        stage.rows = [some_row(dice) for _ in range(dice.randrange(5))]
        stage.below = dice.choice(("", "x", "some more than one row", "word"))
        shown = stage.draw()
        wanted = ["".join(text for _, text, *_ in row).rstrip() for row in stage.rows]

        assert shown[: len(wanted)] == wanted
        left = [line for line in shown[len(wanted) :] if line]
        assert left[0].split() == [">", *stage.below[:17].split()]
        assert "".join(line[3:] for line in left[1:]) == stage.below[17:].strip()


def test_what_a_terminal_would_obey_is_not_drawn() -> None:
    stage = Stage()
    stage.rows = [[("", "a\x1b[2Jb\tc")]]

    assert stage.draw()[0] == "a␛[2Jb c"

"""Random sequences of resizes, keys, dialogs and streams, after which the screen is what a fresh drawing shows."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.support.fake_responses import FakeResponses, Stream, added, completed, delta, say, tokens
from tests.support.home import make_place
from tests.support.terminal import Terminal

_QUIET_SECONDS: Final = 0.35
_STEPS: Final = 14
_MAX_TURNS: Final = 12
_MAX_ESCAPES: Final = 6
_PIECES: Final = (
    "Some words that go on and on ",
    "until the row is full.\n\n",
    "- an entry\n",
    "```py\nx = 1\n```\n",
    "日本語 ",
    "`code` ",
)


def play(seed: int, directory: Path) -> None:
    """Play the sequence of a seed. Fails with both screens when they differ."""
    dice = random.Random(seed)
    turns = [_answer(dice) for _ in range(_MAX_TURNS)]
    # An interrupt may come between what was sent and what was read.
    with FakeResponses(*turns, excuse={"unplayed", "replay"}) as model:
        place = make_place(directory)
        place.use_model(model.base_url, f'[projects."{place.repo}"]\ntrust_level = "trusted"\n')
        with Terminal(place, width=100, height=30) as terminal:
            terminal.wait_for_prompt()
            sent = 0
            for _ in range(_STEPS):
                sent += _step(dice, terminal, may_send=sent < _MAX_TURNS)
                if dice.random() < 0.5:
                    terminal.read_for(dice.choice((0.02, 0.1, 0.3)))
            _settle(terminal)
            found = terminal.rows
            terminal.press("ctrl-l")
            _read_until_quiet(terminal)
            complaint = difference(found, terminal.rows)
            assert not complaint, f"seed {seed}: {complaint}\n" + "\n".join(found) + "\n=== fresh:\n" + terminal.text


def difference(found: list[str], fresh: list[str]) -> str:
    """What is wrong with a screen, whose end must be the fresh drawing, and which has none of its rows above."""
    drawn = _without_blanks(fresh)
    rows = _without_blanks(found)
    if rows[-len(drawn) :] != drawn:
        return "the live part is not what is drawn afresh"
    stale = [row for row in rows[: -len(drawn)] if row and row == drawn[-1]]
    stale += [row for row in rows[: -len(drawn)] if row.startswith(("── Help", "── Status", "── Theme", "❯ ", "  1/"))]
    return f"rows that should be gone: {stale}" if stale else ""


def _answer(dice: random.Random) -> Stream:
    pieces = [dice.choice(_PIECES) for _ in range(dice.randint(3, 40))]
    message = {"type": "message", "role": "assistant", "content": []}
    return [added(message), *map(delta, pieces), say("".join(pieces)), completed(tokens(100, 10))]


def _step(dice: random.Random, terminal: Terminal, *, may_send: bool) -> int:
    """One thing a user does; 1 when it has sent a message."""
    steps: list[Callable[[], None]] = [
        lambda: terminal.resize(dice.randint(20, 120), dice.randint(6, 40)),
        lambda: terminal.resize(dice.choice((30, 100)), dice.choice((8, 12, 30))),
        lambda: terminal.type(dice.choice(("abc ", "x" * 90, "日本 ", "$", "@", "/", "\x7f", "\x1b[A", "\x1b[B"))),
        lambda: terminal.type("\x1b"),
        lambda: terminal.type(f"\x15/{dice.choice(('help', 'status', 'theme', 'nonsense'))}\r"),
        lambda: terminal.paste("\n".join("line" for _ in range(dice.randint(1, 14)))),
    ]
    if may_send and dice.random() < 0.3:
        terminal.type("\x15go on\r")
        return 1
    dice.choice(steps)()
    return 0


def _settle(terminal: Terminal) -> None:
    """Close what is open, stop what runs, and empty the input. Escapes on an empty input may open a list again."""
    for _ in range(_MAX_ESCAPES):
        terminal.type("\x1b")
        _read_until_quiet(terminal)
        # In a narrow window the rest of the row is cut.
        terminal.wait_for(lambda now: "Working (" not in now.text)
        # Of a text of several lines each is deleted: those before the cursor, and those after it.
        terminal.type("\x15\x7f" * 40)
        terminal.type("\x0b\x1b[3~" * 40)
        _read_until_quiet(terminal)
        if "Ask anything" in terminal.text:
            return
    raise AssertionError(f"the input is not in front:\n{terminal.text}")


def _read_until_quiet(terminal: Terminal) -> None:
    while True:
        before = len(terminal.raw)
        terminal.read_for(_QUIET_SECONDS)
        if len(terminal.raw) == before:
            return


def _without_blanks(rows: list[str]) -> list[str]:
    """The rows from the first to the last that has something on it."""
    filled = [number for number, row in enumerate(rows) if row]
    return rows[filled[0] : filled[-1] + 1] if filled else []

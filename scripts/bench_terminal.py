"""How the terminal session feels, measured in a pseudo-terminal: the wait for the prompt, for a key, for 10,000 deltas.

For `bench_promises`, which names the limits.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DELTAS = 10_000
KEYS = 40
# One key every tenth of a second is fast typing.
BETWEEN_KEYS = 0.1


@contextmanager
def _session(*script: Any) -> Generator[Any]:
    from tests.support.fake_responses import FakeResponses
    from tests.support.home import make_place
    from tests.support.terminal import Terminal

    with (
        tempfile.TemporaryDirectory(prefix=".codex-bench-", dir=Path.home()) as folder,
        FakeResponses(*script) as model,
    ):
        place = make_place(Path(folder))
        place.env.pop("PYTHONDONTWRITEBYTECODE")
        place.use_model(model.base_url, f'[projects."{place.repo}"]\ntrust_level = "trusted"\n')
        with Terminal(place) as terminal:
            yield terminal


def prompt_on_screen(_: Any) -> float:
    """Seconds from the start of the process to the prompt."""
    with _session() as first:
        # The first start of a new home writes what later ones read.
        first.wait_for_prompt()
    began = time.monotonic()
    with _session() as terminal:
        began = terminal.began
        terminal.wait_for("› ")
        return time.monotonic() - began


def key_while_streaming(_: Any) -> float:
    """Seconds from a key to its letter on the screen while a message streams in: of 20 keys 19 are faster."""
    with _session(_message(pause=0.004)) as terminal:
        _begin(terminal)
        waits: list[float] = []
        typed = ""
        while len(waits) < KEYS and "Esc stops it" in terminal.text:
            typed += "abcdefghij"[len(waits) % 10]
            began = time.monotonic()
            terminal.type(typed[-1])
            terminal.wait_for(f"› {typed}")
            waits.append(time.monotonic() - began)
            terminal.read_for(BETWEEN_KEYS)
        return sorted(waits)[int(len(waits) * 0.95) - 1]


def streaming_cpu(_: Any) -> float:
    """Seconds of CPU of the program while 10,000 deltas are drawn."""
    with _session(_message(pause=0.004)) as terminal:
        _begin(terminal)
        before = _cpu(terminal.child.pid)
        terminal.wait_for_prompt()
        return _cpu(terminal.child.pid) - before


def _begin(terminal: Any) -> None:
    terminal.wait_for_prompt().type("go")
    terminal.press("enter")
    terminal.wait_for("word bold")


def _message(*, pause: float) -> list[Any]:
    """Paragraphs in pieces of a few letters, with a breath after every fourth."""
    from tests.support.fake_responses import added, delta, hang, say

    text = ("word **bold** and `code` in a line of text that goes on for a while, " * 12 + "\n\n") * 100
    size = len(text) // DELTAS + 1
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    events: list[Any] = [added({"type": "message", "role": "assistant", "content": []})]
    for number, piece in enumerate(pieces):
        events += [delta(piece), *([hang(pause)] if number % 4 == 0 else [])]
    return [*events, say(text)]


def _cpu(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

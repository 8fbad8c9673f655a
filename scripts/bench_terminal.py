"""How the terminal session feels, measured in a pseudo-terminal: the wait for the prompt, for a key, for 10,000 deltas.

For `bench_promises`, which names the limits. A peer is driven with the same keys and waited for with the same texts.
"""

from __future__ import annotations

import os
import signal
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from bench_paired import Program

DELTAS = 10_000
MAX_SECONDS = 20
KEYS = 40
# One key every tenth of a second is fast typing.
BETWEEN_KEYS = 0.1
# Enter right after a letter is taken for a part of a paste.
BEFORE_ENTER = 0.3
END = "the end"
FILES = 100_000
WORDS = ("api", "auth", "cart", "config", "core", "event", "handler", "index", "model", "parser", "queue", "server")
# By names, by directories, by letters here and there, and what no file has.
QUERIES = ("handler", "ConfigIndex", "core/model", "apisrv", "eventq77", "queue_server9", "99999", "xkcd", "q.q")


@contextmanager
def _place(*script: Any) -> Generator[Any]:
    from tests.support.fake_responses import FakeResponses, repeat, say
    from tests.support.home import make_place

    # A peer may ask for more than its user did, a title for one.
    more, excused = repeat([say("Title")]), {"threads", "unplayed"}
    with (
        tempfile.TemporaryDirectory(prefix=".codex-bench-", dir=Path.home()) as directory,
        FakeResponses(*script, more, excuse=excused) as model,
    ):
        place = make_place(Path(directory))
        place.env.pop("PYTHONDONTWRITEBYTECODE")
        place.use_model(model.base_url, f'[projects."{place.repo}"]\ntrust_level = "trusted"\n')
        try:
            yield place
        finally:
            _end_what_stays(place.codex_home)


def _end_what_stays(home: Path) -> None:
    """A peer leaves servers running that nobody will ask again, in sessions of their own; they are told by its home."""
    mark = b"\0CODEX_HOME=" + os.fsencode(home) + b"\0"
    while staying := [one for one in Path("/proc").glob("[0-9]*") if mark in _environment(one)]:
        for process in staying:
            with suppress(ProcessLookupError):
                os.kill(int(process.name), signal.SIGKILL)


def _environment(process: Path) -> bytes:
    with suppress(OSError):
        return b"\0" + (process / "environ").read_bytes() + b"\0"
    return b""


def _started(program: Program, place: Any) -> Any:
    from bench_peer import PeerTerminal

    from tests.support.terminal import Terminal

    # No newer model and no newer version is to be offered.
    options = ["-c", 'model="bench"', "-c", "check_for_update_on_startup=false"]
    kind = PeerTerminal if program.name == "peer" else Terminal
    return kind(place, *options, command=str(Path(program.path).absolute()))


@contextmanager
def _session(program: Program, *script: Any) -> Generator[Any]:
    with _place(*script) as place, _started(program, place) as terminal:
        yield terminal


def start_of_session(program: Program, text: str) -> float:
    """Seconds from the start of the process to a text on the screen."""
    with _place() as place:
        with _started(program, place) as first:
            # The first start of a new home writes what later ones read.
            first.wait_for_prompt()
        with _started(program, place) as terminal:
            terminal.wait_for(text)
            return time.monotonic() - terminal.began


def key_while_streaming(program: Program) -> float:
    """Seconds from a key to its letter on the screen while a message streams in: of 20 keys 19 are faster."""
    with _session(program, _message(1000)) as terminal:
        _begin(terminal)
        waits: list[float] = []
        typed = ""
        while len(waits) < KEYS and END not in terminal.text:
            typed += "abcdefghij"[len(waits) % 10]
            began = time.monotonic()
            terminal.type(typed[-1])
            terminal.wait_for(f"› {typed}")
            waits.append(time.monotonic() - began)
            terminal.read_for(BETWEEN_KEYS)
        return sorted(waits)[int(len(waits) * 0.95) - 1]


def streaming_cpu(program: Program, *, rate: int) -> float:
    """Seconds of CPU that the program and its children take each second while so many deltas a second are drawn."""
    with _session(program, _message(rate)) as terminal:
        _begin(terminal)
        before, began = _cpu(terminal.child.pid), time.monotonic()
        terminal.wait_for(END).wait_for_prompt()
        return (_cpu(terminal.child.pid) - before) / (time.monotonic() - began)


def bytes_to_terminal(program: Program, *, rate: int) -> float:
    """Bytes that the terminal gets each second while so many deltas a second are drawn."""
    with _session(program, _message(rate)) as terminal:
        _begin(terminal)
        before, began = len(terminal.raw), time.monotonic()
        terminal.wait_for(END).wait_for_prompt()
        return (len(terminal.raw) - before) / (time.monotonic() - began)


def list_of_files(program: Program) -> float:
    """Seconds from the first `@`, right after the start, to the menu of a repository's files."""
    with _many_files(program) as terminal:
        began = time.monotonic()
        terminal.type("@")
        terminal.wait_for("  1/")
        return time.monotonic() - began


def files_in_menu(program: Program) -> list[float]:
    """Seconds from each key of some queries to the menu that answers it, once the list is there."""
    with _many_files(program) as terminal:
        waits: list[float] = []
        for query in QUERIES:
            terminal.type("@")
            terminal.wait_for("  1/")
            for end in range(1, len(query) + 1):
                began = time.monotonic()
                terminal.type(query[end - 1])
                # The input and the menu are drawn at once.
                terminal.wait_for(f"› @{query[:end]}")
                waits.append(time.monotonic() - began)
                terminal.read_for(BETWEEN_KEYS)
            terminal.press("ctrl-u")
            terminal.wait_for("Ask anything")
        return waits


@contextmanager
def _many_files(program: Program) -> Generator[Any]:
    with _place() as place:
        for path in _paths(FILES):
            place.write(path, "")
        with _started(program, place) as terminal:
            yield terminal.wait_for_prompt()


def _paths(count: int) -> Iterator[str]:
    """Paths as they are in a large repository: a dozen files a directory, names of words and a number."""
    for number in range(count):
        words = _some_words(number // 12, 4)
        yield f"{'/'.join(words)}/{'_'.join(_some_words(number, 2))}{number}.py"


def _some_words(number: int, count: int) -> Sequence[str]:
    chosen: list[str] = []
    rest = number * 7
    for _ in range(count):
        rest, place = divmod(rest, len(WORDS))
        chosen.append(WORDS[place])
    return chosen


def _begin(terminal: Any) -> None:
    terminal.wait_for_prompt().type("go")
    terminal.wait_for("› go").read_for(BEFORE_ENTER)
    terminal.press("enter")
    terminal.wait_for("word bold")


def _message(rate: int) -> list[Any]:
    """Paragraphs in pieces of a few letters, so many a second, with a breath each hundredth of a second."""
    from tests.support.fake_responses import added, delta, hang, say

    # Numbered, because an answer that only repeats itself is stopped.
    count = min(DELTAS, MAX_SECONDS * rate)
    lines = [f"word **bold** and `code` in line {number} of a long text, " for number in range(1200 * count // DELTAS)]
    text = "\n\n".join("".join(lines[start : start + 12]) for start in range(0, len(lines), 12)) + END
    size = len(text) // count + 1
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    events: list[Any] = [added({"type": "message", "role": "assistant", "content": []})]
    for number, piece in enumerate(pieces):
        events += [delta(piece), *([hang(0.01)] if number % (rate // 100) == 0 else [])]
    return [*events, say(text)]


def _cpu(session: int) -> float:
    """Of all that runs in a terminal: a launcher may only wait for the program proper."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            ticks += (int(fields[11]) + int(fields[12])) * (int(fields[3]) == session)
    return ticks / os.sysconf("SC_CLK_TCK")

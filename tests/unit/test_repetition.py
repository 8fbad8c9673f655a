"""Which texts count as a model repeating itself, and that looking for it costs the same for each character."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import codex_py
from codex_py.model.repetition import ARGUMENTS_SPAN, PROSE_SPAN, RepetitionDetector

ROOT = Path(codex_py.__file__).parent.parent
WORDS = "the quick brown fox jumps over a lazy dog while seven wizards mix potions".split()


def cycle_in(text: str, span: int = PROSE_SPAN, *, piece: int = 7) -> str | None:
    """What the detector reports while it reads the text in small pieces."""
    detector = RepetitionDetector(span)
    found = (detector.feed(text[start : start + piece]) for start in range(0, len(text), piece))
    return next((cycle for cycle in found if cycle is not None), None)


def looks_repeated(cycle: str | None, unit: str) -> bool:
    return cycle is not None and len(cycle) == len(unit) and cycle in unit * 3


@pytest.mark.parametrize("piece", [1, 5, 4096])
@pytest.mark.parametrize(
    "lead", ["", "Let me look at the files first.\n" + "".join(map(chr, range(32, 1200)))], ids=["pure", "after text"]
)
@pytest.mark.parametrize(
    "unit",
    [
        "I should look at it again. ",
        "Wait, that is not right. Let me try another way.\n\n",
        '{"cmd": "python -m pytest"}',
        " ".join(random.Random(1).choices(WORDS, k=300)) + "\n",
        "Привет, давайте посмотрим ещё раз. ",
        "我再看一遍。",
    ],
    ids=["reasoning", "lines", "call", "page", "Russian", "Chinese"],
)
def test_a_text_that_only_repeats_words_is_noticed(unit: str, lead: str, piece: int) -> None:
    text = lead + unit * (30_000 // len(unit))
    assert looks_repeated(cycle_in(text, piece=piece), unit)
    assert looks_repeated(cycle_in(text, ARGUMENTS_SPAN, piece=piece), unit)


@pytest.mark.parametrize("unit", ["!", "0, ", "\n", "G", "| | |\n", "again "])
def test_a_text_of_few_letters_is_noticed_later(unit: str) -> None:
    assert cycle_in(unit * (30_000 // len(unit))) is None
    assert looks_repeated(cycle_in(unit * (60_000 // len(unit))), unit)


def test_words_are_stopped_before_they_fill_a_window() -> None:
    unit = "I will now fix the parser. "
    detector = RepetitionDetector(PROSE_SPAN)
    repeats = next(count for count in range(1, 10_000) if detector.feed(unit))
    assert repeats * len(unit) < 10_000


def test_a_text_that_repeats_itself_and_then_goes_on_is_not_stopped() -> None:
    paragraph = "Nothing to see in this file, so on to the next one. "
    text = "".join(paragraph * 60 + f"And now for part {number} of the work.\n" for number in range(20))
    assert cycle_in(text) is None


def legitimate() -> Iterator[tuple[str, str]]:
    numbers = random.Random(2)
    yield "zeros", json.dumps([0] * 15_000)
    yield "matrix", json.dumps([[0.0] * 64 for _ in range(100)])
    yield "booleans", json.dumps([True, False] * 2_000)
    yield "flags", json.dumps([True, False] * 2_500, indent=2)
    yield "zero bytes", base64.b64encode(bytes(30_000)).decode()
    yield "base64", base64.b64encode(numbers.randbytes(60_000)).decode()
    yield "hex", numbers.randbytes(30_000).hex()
    yield "ruler", ("-" * 200 + "\n") * 150
    yield "table", "| name | value | unit |\n|---|---|---|\n" + "|  |  |  |\n" * 2_000
    yield "list", "".join(f"{number}. Check that the file exists and is readable\n" for number in range(2_000))
    yield "table of equal rows", "".join(f"| {number} | passed | 0 failures | none |\n" for number in range(2_000))
    yield "log", "".join(f"[{number:06}] GET /health 200 OK in 1 ms\n" for number in range(2_000))
    yield "sql", "".join(f"INSERT INTO users VALUES ({number}, 'name', NULL);\n" for number in range(2_000))
    yield "art", ("  /\\_/\\  " * 10 + "\n" + " ( o.o ) " * 10 + "\n" + "  > ^ <  " * 10 + "\n") * 40
    yield "checkerboard", ("#." * 40 + "\n" + ".#" * 40 + "\n") * 150
    yield "padding", "name" + " " * 20_000 + "value"
    yield "blank lines", "\n" * 20_000
    yield "svg", "".join(f'<rect x="{x}" y="{y}" width="8" height="8"/>\n' for x in range(40) for y in range(40))
    yield "prose", " ".join(numbers.choices(WORDS, k=20_000))


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in legitimate()])
def test_long_regular_texts_are_let_through(text: str) -> None:
    assert cycle_in(text) is None


@pytest.mark.parametrize(
    "text",
    [
        '<option value="none">Not available</option>\n' * 500,
        json.dumps([{"enabled": False, "description": None, "values": []}] * 350),
        ("Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor. " * 5 + "\n\n") * 50,
    ],
    ids=["options", "objects", "paragraphs"],
)
def test_a_file_may_repeat_its_lines_longer_than_an_answer(text: str) -> None:
    assert (cycle_in(text), cycle_in(text, ARGUMENTS_SPAN)) != (None, None)
    assert cycle_in(text, ARGUMENTS_SPAN) is None


def test_no_file_of_this_repository_counts_as_repeated() -> None:
    paths = [path for name in ("codex_py", "docs", "tests", "skills") for path in (ROOT / name).rglob("*")]
    # What is not of this repository: 7,000 files, if the tests are set up.
    left_out = {"__pycache__", "node_modules"}
    texts = {path: path.read_bytes() for path in paths if path.is_file() and left_out.isdisjoint(path.parts)}
    assert len(texts) > 500
    wrong = [path for path, data in texts.items() if cycle_in(data.decode("utf-8", "replace"), piece=200)]
    assert wrong == []


@pytest.mark.parametrize(
    "text",
    [
        f"{random.Random(3).getrandbits(1_000_000):b}",
        ("a" * 2047 + "b") * 400,
        ("ab" * 1023 + "c") * 400,
        "a" * 500_000 + "b" + "a" * 499_999,
    ],
    ids=["random", "long", "pairs", "late"],
)
def test_texts_that_are_hard_to_search_are_read_to_the_end(text: str) -> None:
    detector = RepetitionDetector(PROSE_SPAN)
    for start in range(0, len(text), 1000):
        detector.feed(text[start : start + 1000])

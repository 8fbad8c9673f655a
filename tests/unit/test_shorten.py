"""Cutting a JSON value down to a size: what is cut, what is kept, and that it always ends."""

from __future__ import annotations

from typing import Any

import pytest

from codex_py.protocol.encoding import encode_json
from codex_py.text.shorten import shortened


def deep(levels: int) -> Any:
    value: Any = "x"
    for _ in range(levels):
        value = {"inner": [value]}
    return value


def cut(value: dict[str, Any], most: int) -> dict[str, Any]:
    done = shortened(value, most, encode_json)
    assert len(encode_json(done)) <= most
    return done


def test_the_longest_text_is_cut_in_the_middle() -> None:
    text = "".join(f"{n} " for n in range(10_000))
    done = cut({"type": "t", "text": text, "other": "kept", "n": 1, "none": None}, 2_000)

    head, _, rest = done["text"].partition("\n[… ")
    count, _, tail = rest.partition(" characters left out …]\n")
    assert {**done, "text": ""} == {"type": "t", "text": "", "other": "kept", "n": 1, "none": None}
    assert (text.startswith(head), text.endswith(tail)) == (True, True)
    assert int(count) == len(text) - len(head) - len(tail)
    assert len(encode_json(done)) > 1_800


def test_several_long_texts_share_the_room_and_short_ones_are_whole() -> None:
    done = cut({"a": "a" * 5_000, "b": ["b" * 9_000, "short"], "c": "c" * 300}, 3_000)
    assert done["b"][1] == "short"
    assert done["c"] == "c" * 300
    assert abs(len(done["a"]) - len(done["b"][0])) < 10


@pytest.mark.parametrize(
    "text",
    [
        "\x00" * 50_000,
        '\\"\n' * 20_000,
        "👩‍💻" * 20_000,
        "\ud800" * 50_000,
        "é\u2028" * 30_000,
        "a" * 50_000 + "\x01" * 50_000,
    ],
)
def test_texts_that_take_more_bytes_than_characters_fit_too(text: str) -> None:
    assert "characters left out" in cut({"type": "t", "text": text}, 4_000)["text"]


@pytest.mark.parametrize(
    "value",
    [
        {"items": [{"text": f"step {n}", "completed": False} for n in range(20_000)]},
        {"items": [{"text": "x" * 400, "completed": False} for _ in range(2_000)]},
        {"table": {f"key {n}": n for n in range(20_000)}},
        {"k" * 100_000: 1},
        {"deep": deep(300), "long": "x" * 100_000},
        {"lists": [[[list(range(50)) for _ in range(20)] for _ in range(20)] for _ in range(5)]},
    ],
    ids=["short-texts", "texts", "table", "key", "deep", "lists"],
)
def test_what_is_long_in_another_way_is_cut_as_well(value: dict[str, Any]) -> None:
    cut(value, 4_000)


def test_lists_keep_their_first_entries() -> None:
    items = [{"text": f"step {n}", "completed": False} for n in range(20_000)]
    kept = cut({"id": "item_1", "items": items}, 4_000)["items"]
    assert 0 < len(kept) < 200
    assert kept == items[: len(kept)]

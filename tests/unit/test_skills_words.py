"""Lines looked up by how they begin: the same as going through all of them."""

from __future__ import annotations

import random
import re
from pathlib import Path

from codex_py.skills import words as word_lists
from codex_py.skills.query import read_query
from codex_py.skills.stems import CJK, fold
from codex_py.skills.words import Words, lines_with


def test_the_lines_that_begin_so_are_found_wherever_they_stand() -> None:
    words = random.Random(7)
    for count in (0, 1, 2, 3, 50):
        names = {"".join(words.choices("ab \t~é", k=words.randrange(1, 6))) for _ in range(count)}
        lines = sorted(name.encode() for name in names)
        text = b"".join(line + b"\n" for line in lines)
        for prefix in (b"a", b"b ", b"\t", b"ab", b"~", b"zz", b"\xc3", *lines):
            found = [line[len(prefix) :] for line in lines if line.startswith(prefix)]
            assert list(lines_with(text, prefix)) == found


def test_a_text_that_is_cut_off_or_not_in_order_ends_all_the_same() -> None:
    for text in (b"", b"\n", b"\n\n\n", b"no end", b"b 1\na 2\nno end", b"a" * 5000):
        assert len(list(lines_with(text, b"a "))) <= 1


def read(name: str) -> str:
    return Path(word_lists.__file__).with_name("words").joinpath(name).read_text("utf-8")


def test_lists_are_in_the_order_of_their_bytes_and_hold_what_a_query_can_ask_for() -> None:
    for name in ("synonyms.tsv", "translations.tsv"):
        lines = read(name).splitlines()
        keys = [line.partition("\t")[0] for line in lines]
        assert [key.encode() for key in keys] == sorted({key.encode() for key in keys})
        odd = [line for line in lines if not re.fullmatch(r"[\w ]+\t[a-z0-9]+( [a-z0-9]+)*", line)]
        assert not odd
        assert [key for key in keys if key != fold(key) or "  " in key] == []
        # The longest that a run of characters is cut into.
        assert [key for key in keys if re.fullmatch(f"[{CJK}]+", key) and len(key) > 10] == []


def test_other_forms_of_a_word_and_parts_of_a_compound_are_translated() -> None:
    words = Words()
    for token, english in (
        ("revisen", "review"),
        ("rechnungen", "invoice"),
        ("mietvertrag", "contract"),
        ("facturas", "invoice"),
    ):
        assert english in words.in_english(token, is_known=False), token
    assert words.in_english("xqzvbn", is_known=False) == ()
    assert "landlord" in dict(words.segments("我的房东"))["房东"]


def test_what_else_may_be_meant_is_worth_less_where_there_is_more_and_less_than_what_is_written() -> None:
    words = Words()
    for text in ("bill", "rechnung"):
        [group] = read_query(text, words, lambda _: False)
        (written, worth), *others = group.stems
        assert (written, worth) == (text, 1.0)
        assert others
        assert all(0 < other < 1 for _, other in others)
    few, many = (dict(read_query(text, words, lambda _: False)[0].stems) for text in ("tenancy", "bill"))
    assert max(list(many.values())[1:]) < max(list(few.values())[1:])


def test_words_without_meaning_are_stored_as_they_are_compared() -> None:
    assert read("stop.txt") == fold(read("stop.txt"))

"""The table and the pattern of the tokenizer are those of tiktoken."""

from __future__ import annotations

import gzip
import hashlib
from typing import Any

import pytest
from tiktoken_ext import openai_public  # pyright: ignore[reportMissingTypeStubs]

from codex_py.text import tokenizer
from codex_py.text.tokenizer import TokenCount, count_tokens


def test_the_table_and_the_pattern_are_those_of_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    hashes: list[str] = []

    def load(address: str, expected_hash: str) -> dict[bytes, int]:
        hashes.append(expected_hash)
        return {}

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", load)
    theirs: dict[str, Any] = openai_public.o200k_base()
    table = gzip.decompress(tokenizer.TABLE.read_bytes())
    assert hashes == [hashlib.sha256(table).hexdigest()]
    assert theirs["pat_str"] == tokenizer.PATTERN


@pytest.mark.parametrize(
    ("model", "estimated"),
    [
        ("gpt-5", False),
        ("openai/gpt-4o-mini", False),
        ("gpt-oss-120b", False),
        ("o4-mini", False),
        ("gpt-4", True),
        ("gpt-unheard-of", True),
        ("o200", True),
        ("claude-opus-5", True),
        ("", True),
    ],
)
def test_models_with_this_tokenizer_are_counted(model: str, estimated: bool) -> None:
    assert count_tokens("hello world, hello world!!!", model) == TokenCount(7 if estimated else 6, estimated)


def test_half_a_surrogate_pair_is_counted() -> None:
    assert count_tokens("a\ud800", "gpt-5").tokens > 1

"""Tokens counted by OpenAI's tokenizer, for its models; for others they are estimated.

The pattern and the table beside this module are `o200k_base` of tiktoken (https://github.com/openai/tiktoken, MIT: see
`o200k_base.LICENSE`). docs/decisions/024-tokens-are-counted.md says why the table is shipped.
"""

from __future__ import annotations

import zlib
from base64 import b64decode
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

from codex_py.text.tokens import estimate_text_tokens

TABLE: Final = Path(__file__).with_name("o200k_base.tiktoken.gz")
_PART: Final = 50_000
_WORD_END: Final = "(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN: Final = "|".join(
    (
        rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]*[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]+{_WORD_END}",
        rf"[^\r\n\p{{L}}\p{{N}}]?[\p{{Lu}}\p{{Lt}}\p{{Lm}}\p{{Lo}}\p{{M}}]+[\p{{Ll}}\p{{Lm}}\p{{Lo}}\p{{M}}]*{_WORD_END}",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)


class TokenCount(NamedTuple):
    """The tokens of a text."""

    tokens: int
    estimated: bool
    """Whether that is four bytes a token."""

    def in_words(self) -> str:
        """The number; `≈` stands before an estimate."""
        return f"{'≈ ' if self.estimated else ''}{self.tokens:,}"


def count_tokens(text: str, model: str) -> TokenCount:
    """Count the tokens of a text for a model. The first call takes a third of a second: not for an event loop."""
    encode = _encoder(model.rpartition("/")[2])
    if encode is None:
        return TokenCount(estimate_text_tokens(text), True)
    # The pattern overflows the stack in a run of a million blanks.
    parts = (text[start : start + _PART] for start in range(0, len(text), _PART))
    return TokenCount(sum(len(encode(part)) for part in parts), False)


@lru_cache(maxsize=2)
def _encoder(model: str) -> Callable[[str], Sequence[int]] | None:
    """The tokenizer of a model, None where that is another one. Those with other control tokens alone are the same."""
    if not model.startswith(("gpt-", "chatgpt-", "o1", "o3", "o4")):
        return None
    import tiktoken

    try:
        if tiktoken.encoding_name_for_model(model) not in ("o200k_base", "o200k_harmony"):
            return None
    except KeyError:
        return None
    # `tiktoken.get_encoding` would download the table.
    lines = zlib.decompress(TABLE.read_bytes(), wbits=zlib.MAX_WBITS | 16).splitlines()
    ranks = {b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}
    encoding = tiktoken.Encoding("o200k_base", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    return encoding.encode_ordinary

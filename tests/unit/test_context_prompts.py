from __future__ import annotations

import pytest

from codex_py.context.host_messages import turn_aborted
from codex_py.context.instructions import base_instructions
from codex_py.context.markup import cut_to
from codex_py.patch.grammar import parse_patch
from codex_py.text.tokens import estimate_text_tokens, estimate_tokens


@pytest.mark.parametrize(("short", "limit"), [(False, 2500), (True, 700)])
def test_the_base_instructions_are_within_their_budget(short: bool, limit: int) -> None:
    assert 100 < estimate_text_tokens(base_instructions(short=short)) < limit


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize(
    "topic",
    ["codex-py", "AGENTS.md", "`rg`", "`exec_command`", "`apply_patch`", "`write_stdin`", "SKILL.md", "`path:line`"],
)
def test_the_base_instructions_cover(topic: str, short: bool) -> None:
    assert topic in base_instructions(short=short)


def test_the_base_instructions_are_plain_text() -> None:
    for short in (False, True):
        text = base_instructions(short=short)
        assert text.isascii()
        assert text == text.strip()
        assert base_instructions(short=short) == text


@pytest.mark.parametrize("short", [False, True])
def test_the_example_patch_is_a_patch(short: bool) -> None:
    example = base_instructions(short=short).partition("<<'EOF'\n")[2].partition("EOF\n")[0]
    assert len(parse_patch(example).hunks) == (2 if short else 3)


def test_an_aborted_turn_leaves_a_note() -> None:
    assert turn_aborted().decode() == {
        "type": "message",
        "role": "user",
        "content": [
            {
                "type": "input_text",
                "text": "<turn_aborted>\nThe user stopped the previous turn on purpose. Commands and patches that were "
                "running may be half done, and processes started in the background may still be running. Look at the "
                "present state before you continue or repeat anything.\n</turn_aborted>",
            }
        ],
    }


@pytest.mark.parametrize(("count", "tokens"), [(0, 0), (1, 1), (4, 1), (5, 2), (168_950, 42_238)])
def test_four_bytes_are_a_token(count: int, tokens: int) -> None:
    assert estimate_tokens(count) == tokens
    assert estimate_text_tokens("x" * count) == tokens


def test_tokens_count_bytes_not_characters() -> None:
    assert estimate_text_tokens("漢字é\ud800") == estimate_tokens(3 + 3 + 2 + 3)


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abcdef\n[cut here: 6 of 7 bytes are shown]"),
        ("ééé", 3, "é\n[cut here: 3 of 6 bytes are shown]"),
        ("", 0, ""),
    ],
)
def test_a_long_text_is_cut_at_a_character(text: str, limit: int, expected: str) -> None:
    assert cut_to(text, limit) == expected

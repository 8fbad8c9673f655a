from __future__ import annotations

import pytest

from codex_py.skills.mentions import find_mentions, is_mentionable
from tests.support.work import within

_DEEP = "a:" * 60


MANY_COLONS = {"a", "lint", f"{_DEEP}x", *(("a:" * count) + "a" for count in range(60))}
HOSTILE = [
    "$a " * 350_000,
    " ".join(f"$n{number}" for number in range(125_000)),
    "[$a](" * 200_000,
    "[$a](" * 200_000 + ")",
    "[$a]()" * 160_000,
    " ".join(f"[$a](/x/{number}/SKILL.md)" for number in range(40_000)),
    "$" + "a:" * 500_000,
    "".join(f"${_DEEP}{number} " for number in range(7_500)),
    "$" * 1_000_000,
    "[$" * 500_000,
    "[$a]" + " " * 1_000_000,
    ("[$a]" + " " * 1000) * 1000 + ")",
    "[$aaaaaaaa" * 100_000 + ")",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
def test_a_hostile_megabyte_is_read_in_linear_time(text: str) -> None:
    within(5 * len(text), lambda: find_mentions(text, MANY_COLONS))


def test_which_names_can_be_mentioned() -> None:
    names = ["lint", "ns:lint", "2_to-3", "my skill", "größe", "", "a/b", "path", "HOME", "lint\n"]
    assert [name for name in names if is_mentionable(name)] == ["lint", "ns:lint", "2_to-3", "größe"]

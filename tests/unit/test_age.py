"""How long ago something was."""

from __future__ import annotations

import pytest

from codex_py.text.display import describe_age

NOW = 1_795_305_600.0  # 2026-11-22T00:00:00Z


@pytest.mark.parametrize(
    ("stamp", "age"),
    [
        ("2026-11-22T00:00:00.000Z", "now"),
        ("2026-11-21T23:59:01Z", "now"),
        ("2027-01-01T00:00:00Z", "now"),
        ("2026-11-21T23:59:00.000Z", "1m ago"),
        ("2026-11-21T23:00:01.000Z", "59m ago"),
        ("2026-11-21T23:00:00.123456789Z", "59m ago"),
        ("2026-11-21T00:00:01Z", "23h ago"),
        ("2026-11-20T12:00:00Z", "1d ago"),
        ("2026-10-22T00:00:01Z", "30d ago"),
        ("2026-10-01T00:00:00Z", "2026-10-01"),
        ("soon", "soon"),
        ("", ""),
    ],
)
def test_an_age_is_reported_in_few_letters(stamp: str, age: str) -> None:
    assert describe_age(stamp, now=NOW) == age

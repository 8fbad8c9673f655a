"""The part of a long text that a person is shown."""

from __future__ import annotations

import pytest

from codex_py.text.display import ends_of
from codex_py.text.sanitize import sanitize


@pytest.mark.parametrize("between", ["\n", "\r\n", "\r\r\n", "\n\n", "\x1b\n", "\u2028\n", "\u200d\n", "é\r\n\t"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n\n", "\r"])
def test_the_ends_of_a_long_output_look_as_they_do_in_the_whole(between: str, end: str) -> None:
    output = between.join(map(str, range(100))) + end
    whole = sanitize(output).rstrip("\n").split("\n")
    assert ends_of(output, 6) == [*whole[:3], f"… {len(whole) - 6} more lines …", *whole[-3:]]
    assert ends_of(output, 300) == whole


@pytest.mark.parametrize("output", ["", "\n", " \r\n\t"])
def test_of_nothing_nothing_is_shown(output: str) -> None:
    assert ends_of(output) == []

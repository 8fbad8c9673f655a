"""Work counted instead of timed: the lines of Python a piece of code runs are the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")


class TooMuchWork(AssertionError):
    """More lines were run than allowed. Raised in the midst of the work, so that endless work ends too."""


def within(lines: int, act: Callable[[], T]) -> T:
    """Do something, and give back what it gives; fail as soon as it has run more than so many lines of Python.

    Counted in this thread only. What C code does is not seen: for that an input must be big enough that quadratic
    work on it does not end within the time limit of a test.
    """
    left = lines

    def count(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        if event == "line":
            left -= 1
            if left < 0:
                raise TooMuchWork(f"more than {lines} lines of Python were run, and no end is in sight")
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        return act()
    finally:
        sys.settrace(before)

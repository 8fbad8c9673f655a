"""When commands ran."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from codex_py.sandbox.protected_names import COARSE_NS

_MAX_RUNS: Final = 10_000


class RunTimes:
    """When commands ran, which tells what they made from what the user made between them."""

    def __init__(self) -> None:
        self._spans: deque[list[int]] = deque(maxlen=_MAX_RUNS)
        self.count = 0
        """How many have begun."""

    def begin(self) -> Callable[[], None]:
        """A command begins; call what is given back when it has ended."""
        span = [time.time_ns() - COARSE_NS, sys.maxsize]
        self._spans.append(span)
        self.count += 1

        def end() -> None:
            span[1] = time.time_ns()

        return end

    def cover(self, path: Path) -> bool:
        """Whether a path, links not followed, was last changed while a command ran."""
        try:
            changed = os.lstat(path).st_ctime_ns
        except OSError:
            return False
        return any(start <= changed <= end for start, end in self._spans)

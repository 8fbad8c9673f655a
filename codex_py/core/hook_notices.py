"""Notices about hooks, each shown once: what does not change is not repeated at each start."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path

from codex_py.paths import make_private_dir


def untold(notices: Sequence[str], home: Path) -> tuple[str, ...]:
    """Those that the user has not been told yet, who has been from now on."""
    new: list[str] = []
    for notice in notices:
        mark = home / "cache" / "told" / hashlib.sha256(notice.encode(errors="replace")).hexdigest()[:32]
        if mark.exists():
            continue
        new.append(notice)
        # Where nothing can be kept, it is told again.
        with contextlib.suppress(OSError):
            make_private_dir(mark.parent)
            mark.touch(mode=0o600)
    return tuple(new)

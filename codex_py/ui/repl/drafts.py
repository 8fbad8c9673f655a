"""Files that another program writes for us, or shows: messages in an editor, pages in a pager, pictures.

They lie in CODEX_HOME, which no sandboxed command writes: what comes back from them counts as the user's own.
"""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import mkstemp
from typing import Final

from codex_py.errors import UserError
from codex_py.paths import make_private_dir

_DAY_SECONDS: Final = 24 * 3600.0


@contextmanager
def draft_file(home: Path, text: str, suffix: str) -> Generator[Path]:
    """A file with this text that only the user can read and that is gone afterwards. Raises `UserError`."""
    path = keep_draft(home, text.encode("utf-8", "replace"), suffix)
    try:
        yield path
    finally:
        with suppress(OSError):
            path.unlink()


def keep_draft(home: Path, content: bytes, suffix: str) -> Path:
    """A file with this content, for a day at most. `home` is CODEX_HOME. Raises `UserError`."""
    directory = home / "drafts"
    try:
        make_private_dir(directory)
        _remove_stale(directory)
        descriptor, name = mkstemp(dir=directory, suffix=suffix)
        with os.fdopen(descriptor, "wb") as out:
            out.write(content)
    except OSError as error:
        raise UserError(f"cannot write a draft in `{directory}`: {(error.strerror or str(error)).lower()}") from error
    return Path(name)


def _remove_stale(directory: Path) -> None:
    """What a session that was killed has left."""
    oldest = time.time() - _DAY_SECONDS
    for path in directory.iterdir():
        with suppress(OSError):
            if path.lstat().st_mtime < oldest:
                path.unlink()

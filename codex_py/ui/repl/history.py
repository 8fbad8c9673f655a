"""What was typed before, in `history.jsonl` of CODEX_HOME: one line of JSON a message, shared with Codex CLI."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

from codex_py.paths import make_private_dir, open_private, real_path
from codex_py.protocol.encoding import as_object, decode_or_none, encode_json
from codex_py.replace_file import replace_file
from codex_py.ui.repl.menu import MAX_OFFERS, MenuOffer, MenuWord, best

FILE: Final = "history.jsonl"
# Of a longer file the end is read: about ten thousand messages.
_MAX_READ: Final = 1024 * 1024
_MAX_LENGTH: Final = 100 * 1024


class PromptHistory:
    """Messages, oldest first. With `path` None they last as long as this object; `max_bytes` limits the file."""

    def __init__(self, path: Path | None, *, max_bytes: int | None = None) -> None:
        self._path = path
        self._max_bytes = max_bytes
        self._entries: list[str] = []
        self._is_read = False
        self._unsent: str | None = None
        self._position: int | None = None
        self._draft = ""

    def add(self, text: str, *, session_id: str) -> None:
        """Remember a message; the same one twice running counts once. A file that cannot be written costs nothing."""
        self._position = None
        messages = self._messages()
        if messages and messages[-1] == self._unsent == text:
            messages.pop()
        if not text.strip() or (messages and messages[-1] == text):
            return
        messages.append(text)
        self._unsent = None
        if self._path is not None and len(text) <= _MAX_LENGTH:
            line = encode_json({"session_id": session_id, "ts": int(time.time()), "text": text}) + b"\n"
            with contextlib.suppress(OSError):
                _append(self._path, line, self._max_bytes)

    def remember_unsent(self, text: str) -> None:
        """Remember a text that was not sent, and write it nowhere."""
        messages = self._messages()
        if text.strip() and (not messages or messages[-1] != text):
            messages.append(text)
            self._unsent = text

    def older(self, draft: str) -> str | None:
        """The message before the one that was shown last; None at the end. `draft` comes back by `newer`."""
        messages = self._messages()
        if self._position is None:
            self._position, self._draft = len(messages), draft
        if self._position == 0:
            return None
        self._position -= 1
        return messages[self._position]

    def newer(self) -> str | None:
        """The message after it, or at last the draft."""
        if self._position is None:
            return None
        messages = self._messages()
        self._position += 1
        if self._position < len(messages):
            return messages[self._position]
        self._position = None
        return self._draft

    @property
    def is_browsing(self) -> bool:
        """Whether the input shows an older message."""
        return self._position is not None

    def stop_browsing(self) -> None:
        self._position = None

    def latest_first(self) -> list[str]:
        """Every message once, the one typed last first."""
        return list(dict.fromkeys(reversed(self._messages())))

    def _messages(self) -> list[str]:
        if not self._is_read:
            self._is_read = True
            if self._path is not None:
                self._entries[:0] = read_messages(self._path)
        return self._entries


class HistorySource:
    """The history as something to search in; the whole input is what is searched for."""

    title = "history"
    empty = ""
    total = 0

    def opened(self) -> None:
        """The menu opens."""

    def __init__(self, messages: Callable[[], Sequence[str]]) -> None:
        self._messages = messages

    def word_at(self, before: str) -> MenuWord | None:
        return MenuWord(0, before)

    def offers(self, query: str) -> Sequence[MenuOffer]:
        found = best(query, self._messages(), key=lambda text: (text[:500],), limit=None)
        self.total = len(found)
        return [MenuOffer(_one_line(text), "", _rest_of(text), text) for text in found[:MAX_OFFERS]]


def read_messages(path: Path) -> list[str]:
    """The messages in a history file, oldest first; lines that are none are passed over."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return []
    try:
        size = os.fstat(descriptor).st_size
        raw = os.pread(descriptor, _MAX_READ, max(0, size - _MAX_READ))
    except OSError:
        return []
    finally:
        os.close(descriptor)
    lines = raw.split(b"\n")
    return list(_texts(lines[1:] if size > _MAX_READ else lines))


def _texts(lines: Iterable[bytes]) -> Iterable[str]:
    for line in lines:
        text = as_object(decode_or_none(line)).get("text")
        if isinstance(text, str) and text:
            yield text


def _append(path: Path, line: bytes, max_bytes: int | None) -> None:
    make_private_dir(path.parent)
    # The file may be a link to one elsewhere, which must stay a link.
    path = Path(real_path(path))
    descriptor = _open_locked(path)
    try:
        before = os.fstat(descriptor).st_size
        if before and os.pread(descriptor, 1, before - 1) != b"\n":
            line = b"\n" + line
        if os.write(descriptor, line) < len(line):
            # A full disk. The next line must not be added to a part of this one.
            os.ftruncate(descriptor, before)
        size = os.fstat(descriptor).st_size
        if max_bytes is not None and size > max_bytes:
            replace_file(path, _newest_lines(descriptor, size, max_bytes))
    finally:
        os.close(descriptor)


def _open_locked(path: Path) -> int:
    """The file, with its lock; not a file that another process has replaced before it gave the lock back."""
    while True:
        descriptor = open_private(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), path.stat()):
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _newest_lines(descriptor: int, size: int, max_bytes: int) -> bytes:
    """The lines to keep: four fifths of what is allowed, so that the file is not replaced for each line."""
    limit = max_bytes * 4 // 5
    return os.pread(descriptor, limit, max(0, size - limit)).partition(b"\n")[2]


def _one_line(text: str) -> str:
    return " ".join(text[:200].split())


def _rest_of(text: str) -> str:
    return _one_line(text.partition("\n")[2]) if "\n" in text else ""
